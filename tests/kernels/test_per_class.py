"""Which class uses which covariance, and which rows of the user's data an error is about."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.kernels.protocol import PerClass, PointsError, class_kernels, class_values, rows_named

CLASSES = np.array(["a", "b", "c"])


def test_one_kernel_is_shared_by_all_classes():
    kernels = class_kernels(RBF(2.0), CLASSES)
    assert kernels.shared
    assert len(kernels) == 3
    assert list(kernels) == [RBF(2.0)] * 3
    assert kernels.classes(0).tolist() == [0, 1, 2]


def test_equal_kernels_are_shared_and_others_are_not():
    kernels = class_kernels({"a": RBF(1.0), "b": Matern(1.0), "c": RBF(1.0)}, CLASSES)
    assert kernels.distinct == (RBF(1.0), Matern(1.0))
    assert kernels.owner.tolist() == [0, 1, 0]
    assert kernels[1] == Matern(1.0)


def test_for_learning_only_the_same_object_is_shared():
    one = RBF(1.0)
    kernels = class_kernels({"a": one, "b": RBF(1.0), "c": one}, CLASSES, by_object=True)
    assert kernels.owner.tolist() == [0, 1, 0]


def test_mapping_computes_shared_things_once():
    made = []
    kernels = PerClass.of([1, 2, 1]).map(lambda number: made.append(number) or -number)
    assert made == [1, 2]
    assert list(kernels) == [-1, -2, -1]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ({"a": RBF(), "b": RBF(), "x": RBF()}, "kernel names the class 'x', but y holds only"),
        ({"a": RBF(), "b": RBF(), pd.NA: RBF()}, "kernel names the class <NA>, but y holds only"),
        ({"a": RBF(), "b": RBF()}, "kernel has no entry for the class 'c'"),
    ],
)
def test_mappings_that_do_not_fit_the_classes_are_refused(kernel, words):
    with pytest.raises(ValueError, match=words):
        class_kernels(kernel, CLASSES)


def test_numbers_per_class():
    assert class_values(0.5, CLASSES, "mean", 0.0).tolist() == [0.5, 0.5, 0.5]
    assert class_values({"b": 2.0}, CLASSES, "mean", 0.0).tolist() == [0.0, 2.0, 0.0]
    assert class_values([1, 2, 3], CLASSES, "mean", 0.0).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="mean must be finite, got nan"):
        class_values(np.nan, CLASSES, "mean", 0.0)
    with pytest.raises(ValueError, match=r"mean must be between -1e\+100 and 1e\+100, got -1e\+300"):
        class_values(-1e300, CLASSES, "mean", 0.0)
    with pytest.raises(ValueError, match="mean must be a number, or a mapping class -> number, got 'large'"):
        class_values("large", CLASSES, "mean", 0.0)
    with pytest.raises(ValueError, match="mean names the class 'x'"):
        class_values({"x": 1.0}, CLASSES, "mean", 0.0)


X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
Z = np.array([[2.0, 3.0], [6.0, 0.0], [7.0, 7.0]])


def said(points, *levels):
    """The sentence after it has passed the given levels of names, the innermost first."""
    error = PointsError.at("K is nan", points, "mend it")
    for sets in levels:
        with pytest.raises(PointsError), rows_named(sets):
            raise error
    return str(error)


def test_points_of_one_set_are_named_together():
    assert said((X[2:], X[:1]), {"points": X}) == "K is nan for rows 2 and 0 of the points: mend it"
    assert said((X[1:2], X[1:2]), {"points": X}) == "K is nan for row 1 of the points and itself: mend it"
    assert said([X[1:2]], {"points": X}) == "K is nan for row 1 of the points: mend it"


def test_the_first_point_is_asked_about_and_the_second_is_known():
    sets = {"queries": Z, "training points": X}
    assert said((Z[1:2], X[2:]), sets) == "K is nan for row 1 of the queries and row 2 of the training points: mend it"
    # This point is in both sets.
    assert said((X[1:2], X[1:2]), sets) == "K is nan for row 0 of the queries and row 1 of the training points: mend it"


def test_a_set_with_two_names_has_the_last():
    assert said((X[2:], X[:1]), {"queries": X, "training points": X}).startswith("K is nan for rows 2 and 0 of the tra")


def test_points_that_nobody_knows_are_shown():
    assert said((X[2:], Z[1:2])) == "K is nan for the points (4, 5) and (6, 0): mend it"
    assert said((X[2:], Z[1:2]), {"points": X}) == "K is nan for row 2 of the points and the point (6, 0): mend it"
    assert said([np.arange(9.0)[None] / 3]) == "K is nan for the point (0, 0.3333, 0.6667, ...): mend it"
    assert said([X[:1]], {"others": X[:, :1]}) == "K is nan for the point (0, 1): mend it"


def test_the_outermost_names_that_fit_are_those_of_the_user():
    assert said([X[2:]], {"part": X[1:]}, {"points": X}) == "K is nan for row 2 of the points: mend it"
    assert said([X[2:]], {"part": X[1:]}, {"points": Z}) == "K is nan for row 1 of the part: mend it"


def test_single_and_double_precision_are_the_same_point():
    exact = X.astype(np.float32)
    assert said([exact[2:].astype(float)], {"points": exact}) == "K is nan for row 2 of the points: mend it"


def test_sparse_rows_are_found():
    rows = sparse.csr_array([[0.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 0.0, 2.0]])
    for row in range(3):
        assert said([rows[[row]]], {"points": rows}) == f"K is nan for row {row} of the points: mend it"
    assert said([rows[[1]]], {"points": rows[[0, 2]]}) == "K is nan for the point (0, 1, 2): mend it"
    assert said([rows[[1]]], {"points": rows.toarray()}) == "K is nan for the point (0, 1, 2): mend it"


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError, match="division"), rows_named({"points": X}):
        raise ZeroDivisionError("division")


def test_the_error_survives_its_way_between_processes():
    error = PointsError.at("K is nan", (X[2:], X[:1]), "mend it")
    copy = pickle.loads(pickle.dumps(error))
    copy.name_rows({"points": X})
    assert str(copy) == "K is nan for rows 2 and 0 of the points: mend it"
    assert isinstance(copy, ValueError)
