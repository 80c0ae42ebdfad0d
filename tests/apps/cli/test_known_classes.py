"""Classes of new rows: in the type of the model, and known or new."""

import numpy as np
import polars as pl
import pytest

from coxfield.apps.cli.options import labels_like, new_classes
from coxfield.io.tables import Table


def table(labels):
    return Table("t.csv", pl.DataFrame({"y": labels}))


@pytest.mark.parametrize(
    ("labels", "classes", "found"),
    [
        (["a", "b"], np.array(["a", "b"]), ["a", "b"]),
        ([1, 2], np.array(["1", "x"]), ["1", "2"]),
        ([True], np.array(["true", "x"], dtype=object), ["true"]),
        ([1, 2], np.array([1, 2], np.int8), [1, 2]),
        ([1, 300], np.array([1, 2], np.int8), [1, 300]),
        ([1.0, 2.0], np.array([1, 2]), [1, 2]),
        ([1, 2], np.array([1.0, 2.0]), [1, 2]),
        ([True, False], np.array([False, True]), [True, False]),
    ],
)
def test_labels_are_like_the_classes(labels, classes, found):
    assert labels_like(table(labels), "y", classes).tolist() == found


@pytest.mark.parametrize(
    ("labels", "classes", "sentence"),
    [
        (["a"], np.array([1, 2]), "holds text, but the classes of the model are numbers such as 1"),
        ([1], np.array([False, True]), "holds numbers, but the classes of the model are booleans such as false"),
        ([True], np.array([0, 1]), "holds booleans, but the classes of the model are numbers such as 0"),
        (["a"], np.array(["2020-01-01", "2021-01-01"], "M8[D]"), "the classes of the model are dates such as 2020"),
    ],
)
def test_labels_of_another_kind_are_refused(labels, classes, sentence):
    with pytest.raises(ValueError, match=f"Column 'y' of t.csv {sentence}|{sentence}"):
        labels_like(table(labels), "y", classes)


def test_new_classes_are_named_or_returned():
    labels, classes = np.array(["a", "c", "d", "c"]), np.array(["a", "b"])
    rows = table(labels)
    assert new_classes(rows, "y", labels, classes, allowed=True).tolist() == ["c", "d"]
    assert new_classes(rows, "y", labels[:1], classes, allowed=False).tolist() == []
    with pytest.raises(ValueError, match=r"holds the class c in row 2, .* give --new-classes; known are a, b"):
        new_classes(rows, "y", labels, classes, allowed=False)
