"""Which rows of the user's data an error is about."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from coxfield.kernels.per_class import PointsError, rows_named

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
