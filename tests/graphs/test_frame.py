import numpy as np
import pytest
from scipy import sparse

from coxfield.graphs.frame import Frame


def test_ordinary_points_stay_as_they_are():
    X = np.random.default_rng(0).normal(size=(20, 3)) + 5
    assert Frame.of(X) == Frame(precision=X.dtype)
    assert Frame.of(X).place(X) is X


@pytest.mark.parametrize(("factor", "offset"), [(1e200, 0.0), (1e-200, 0.0), (1.0, 1e6), (1e-200, 1.0)])
def test_extreme_points_are_moved_and_scaled_alike(factor, offset):
    X = np.random.default_rng(0).normal(size=(20, 3)) * factor + offset
    frame = Frame.of(X)
    placed = frame.place(X)
    assert np.abs(placed).max() <= 4
    np.testing.assert_allclose(np.diff(placed, axis=0) * frame.unit, np.diff(X, axis=0), rtol=1e-6)


def test_single_precision_has_narrower_bounds():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32) * np.float32(1e25)
    placed = Frame.of(X).place(X)
    assert placed.dtype == np.float32
    assert np.abs(placed).max() <= 4


@pytest.mark.parametrize("factor", [2.0**-1070, 2.0**-500, 1.0, 2.0**500])
def test_new_points_of_single_precision_are_placed_like_those_of_double_precision(factor):
    frame = Frame.of(np.array([[1.0], [5.0]]) * factor)
    few = np.zeros((1, 1), np.float32)
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(frame.place(few), frame.place(few.astype(float)))


def test_equal_points_and_sparse_rows():
    assert (Frame.of(np.full((4, 2), 7.0)).place(np.full((4, 2), 7.0)) == 0).all()
    X = sparse.csr_array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(Frame.of(X).place(X).toarray(), [[0.6, 0.8], [0, 0]])
