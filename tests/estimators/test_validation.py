import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.estimators.validation import (
    check_option,
    check_weights,
    class_numbers,
    known_class_numbers,
    like,
    separate_labels,
    shown_kernel,
)
from coxfield.kernels.per_class import PerClass

X = np.zeros((4, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [2, 2.0, [2, 2, 2, 2], np.full(4, 2.0, np.float32)])
def test_weights_are_numbers_of_the_precision_of_the_points(weights, dtype):
    found = check_weights(weights, X.astype(dtype))
    assert found.tolist() == [2.0] * 4
    assert found.dtype == dtype


def test_no_weights_are_none():
    assert check_weights(None, X) is None


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 2.0, 3.0], "inconsistent numbers of samples"),
        ([1.0, -2.0, 3.0, 1.0], "sample_weight must not be negative, got -2: leave such rows out instead"),
        ([0.0] * 4, "sample_weight is zero everywhere: at least one point must count"),
        (0, "sample_weight is zero everywhere"),
        ([[1.0]] * 4, r"1D array or scalar, got an array of shape \(4, 1\)"),
        ([1.0, np.nan, 1.0, 1.0], "sample_weight contains NaN"),
        ([1.0, np.inf, 1.0, 1.0], "sample_weight contains infinity"),
    ],
)
def test_what_is_no_weight_is_refused(weights, words):
    with pytest.raises(ValueError, match=words):
        check_weights(weights, X)


KNOWN = [True, False, True, False]
BLANKS = {
    "numbers": ([0, -1, 1, -1], -1, [0, 1]),
    "another number": ([-1, 7, 1, 7], 7, [-1, 1]),
    "numbers and NaN": ([0, np.nan, 1, np.nan], np.nan, [0, 1]),
    "NaN for None": ([0, None, 1, None], np.nan, [0, 1]),
    "None for NaN": (np.array([0, np.nan, 1, np.nan], np.float32), None, [0, 1]),
    "a narrow NaN": ([0.0, np.nan, 1.0, np.nan], np.float32("nan"), [0, 1]),
    "words and None": (["a", None, "b", None], None, ["a", "b"]),
    "words and nothing": (["a", "", "b", ""], "", ["a", "b"]),
    "words beside a number": (["a", -1, "b", -1], -1, ["a", "b"]),
    "words beside a number, as a tuple": (("a", -1, "b", -1), -1, ["a", "b"]),
    "words beside NaN": (["a", np.nan, "b", np.nan], None, ["a", "b"]),
    "objects": (np.array(["a", -1, "b", -1], dtype=object), -1, ["a", "b"]),
    "truth and None": (np.array([True, None, False, None], dtype=object), None, [True, False]),
    "pandas": (pd.Series(["a", None, "b", None]), None, ["a", "b"]),
    "pandas strings": (pd.Series(["a", None, "b", None], dtype="string"), None, ["a", "b"]),
    "pandas categories": (pd.Series(["a", None, "b", None], dtype="category"), None, ["a", "b"]),
    "pandas integers": (pd.Series([0, None, 1, None], dtype="Int64"), None, [0, 1]),
    "polars": (pl.Series(["a", None, "b", None]), None, ["a", "b"]),
}


@pytest.mark.parametrize(("y", "missing", "labels"), BLANKS.values(), ids=BLANKS)
def test_known_labels_are_told_from_blanks_of_many_kinds(y, missing, labels):
    found, known = separate_labels(y, missing, X)
    assert known.tolist() == KNOWN
    assert found[known].tolist() == labels
    classes, codes = known_class_numbers(y, missing, X, LGCPClassifier())
    assert classes.tolist() == sorted(labels)
    assert codes.tolist() == [sorted(labels).index(labels[0]), -1, sorted(labels).index(labels[1]), -1]


def test_truth_is_not_taken_for_the_number_one():
    _, known = separate_labels(np.array([True, False, True, False]), 1, X)
    assert known.all()
    _, known = separate_labels([1, 0, 1, 0], 1, X)
    assert known.tolist() == [False, True, False, True]


@pytest.mark.parametrize("y", [[0, 1, np.nan, -1], np.array(["a", "b", None, "c"], dtype=object)])
def test_a_blank_that_stands_for_nothing_is_refused(y):
    with pytest.raises(
        ValueError, match=r"y holds NaN or None in row 2, but missing_label is -1: give missing_label=None"
    ):
        separate_labels(y, -1, X)


def test_a_column_of_labels_is_taken_with_a_warning():
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        found, _ = separate_labels(np.array([[0], [1], [0], [-1]]), -1, X)
    assert found.tolist() == [0, 1, 0, -1]


def test_labels_must_be_as_many_as_points_and_some_of_them_known():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        separate_labels([0, 1], -1, X)
    with pytest.raises(ValueError, match=r"no point is labelled: every entry of y is missing_label=''"):
        known_class_numbers([""] * 4, "", X, LGCPClassifier())


def test_classes_are_sorted_and_numbered():
    classes, codes = class_numbers(np.array(["b", "a", "b"]), LGCPClassifier())
    assert classes.tolist() == ["a", "b"]
    assert codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", "a"], "LGCPClassifier needs labels of at least two classes, got only one class: 'a'"),
        ([0.5, 0.7], "Unknown label type"),
    ],
)
def test_labels_that_make_no_two_classes_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        class_numbers(np.array(y), LGCPClassifier())


@pytest.mark.parametrize("thin", [False, True])
def test_points_become_as_sparse_or_as_dense_as_those_of_training(thin):
    data = np.array([[0.0, 1.0], [2.0, 0.0]])
    training = sparse.csr_array(X) if thin else X
    for given in (data, sparse.csr_array(data)):
        found = like(given, training)
        assert sparse.issparse(found) == thin
        np.testing.assert_array_equal(found.toarray() if thin else found, data)
        assert (found is given) == (sparse.issparse(given) == thin)


def test_kernels_are_shown_as_they_were_given():
    kernels, classes = PerClass.of([RBF(1.0), Matern(2.0)]), np.array(["a", "b"])
    assert shown_kernel(kernels, {"a": RBF(), "b": Matern()}, classes) == {"a": RBF(1.0), "b": Matern(2.0)}
    assert shown_kernel(PerClass.shared_by(RBF(3.0), 2), RBF(1.0), classes) == RBF(3.0)
    assert shown_kernel(PerClass.shared_by(RBF(3.0), 2), None, classes) == RBF(3.0)


def test_options_are_one_of_those_allowed():
    check_option("method", None, ("fast", None))
    with pytest.raises(ValueError, match="method must be one of 'fast', None; got 'slow'"):
        check_option("method", "slow", ("fast", None))
