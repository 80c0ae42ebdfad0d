import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from coxfield.kernels.distances import Stretch, pair_sq_distances, place, sq_distances
from tolerances import assert_close


@pytest.mark.parametrize("length_scale", [0.7, np.array([0.5, 2.0, 1.0, 9.0])])
def test_distances_are_those_of_scaled_points(length_scale):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(100, 1, size=(20, 4)), rng.normal(100, 1, size=(30, 4))
    expected = np.square((X[:, None] - Z) / length_scale).sum(axis=-1)
    origin = X.mean(axis=0)
    a, b = place(X, length_scale, origin), place(Z, length_scale, origin)
    norms = [np.square((points - origin) / length_scale).sum(axis=1).max() for points in (X, Z)]
    assert_close(sq_distances(a, b), expected, terms=4, scale=2 * sum(norms))
    rows, columns = np.array([0, 3, 3]), np.array([5, 0, 29])
    assert_close(pair_sq_distances(X, rows, Z, columns, length_scale), expected[rows, columns], terms=4)


def test_sparse_and_dense_agree():
    rng = np.random.default_rng(1)
    X = sparse.csr_array(rng.random((15, 40)) * (rng.random((15, 40)) < 0.1))
    scale = np.linspace(0.5, 2, 40)
    dense = X.toarray()
    points, placed = place(X, scale, None), place(dense, scale, np.zeros(40))
    np.testing.assert_allclose(sq_distances(points, points), sq_distances(placed, placed), atol=1e-13)
    rows = np.array([0, 2])
    np.testing.assert_allclose(
        pair_sq_distances(X, rows, X, rows[::-1], scale), pair_sq_distances(dense, rows, dense, rows[::-1], scale)
    )


def test_moving_to_the_mean_keeps_single_precision_distances_right():
    rng = np.random.default_rng(2)
    X = (1000 + rng.normal(size=(50, 3))).astype(np.float32)
    exact = cdist(X.astype(float), X.astype(float), "sqeuclidean")
    points = place(X, 1.0, X.mean(axis=0))
    assert np.abs(sq_distances(points, points) - exact).max() < 1e-4
    unmoved = place(X, 1.0, np.zeros(3, np.float32))
    assert np.abs(sq_distances(unmoved, unmoved) - exact).max() > 0.1


def test_placing_rows_leaves_the_callers_array_alone():
    X = np.arange(12.0).reshape(4, 3)
    before = X.copy()
    np.testing.assert_array_equal(place(X, 2.0, X[0], np.array([1, 2])).coordinates, (X[1:3] - X[0]) / 2)
    np.testing.assert_array_equal(X, before)


def test_a_stretch_adds_to_distances_along_its_direction():
    rng = np.random.default_rng(3)
    X, Z, directions, factors = rng.normal(size=(6, 4)), rng.normal(size=(9, 4)), rng.normal(size=(6, 4)), rng.random(6)
    origin = np.ones(4)
    a = place(X, 2.0, origin).stretched(Stretch(directions, factors))
    b = place(Z, 2.0, origin)
    steps = (X[:, None] - Z) / 2
    expected = np.square(steps).sum(axis=2) + factors[:, None] * np.einsum("jd,jtd->jt", directions, steps) ** 2
    scale = 8 * (np.square(X).sum(axis=1).max() + np.square(Z).sum(axis=1).max() + 8) * 10
    assert_close(sq_distances(a, b), expected, terms=8, scale=scale)
    assert_close(sq_distances(a[2:4], b[[1, 5]]), expected[2:4][:, [1, 5]], terms=8, scale=scale)
    single = sq_distances(a.astype(np.float32), b.astype(np.float32))
    assert_close(single, expected, terms=8, scale=scale, dtype=np.float32)


@pytest.mark.parametrize(("size", "factor"), [(1e25, 1e-30), (1e35, 1.0)])
def test_a_stretch_along_a_direction_whose_square_overflows(size, factor):
    stretch = Stretch(np.float32(size) * np.eye(2, dtype=np.float32), np.full(2, factor, np.float32))
    with np.errstate(all="raise"):
        found = stretch.added(np.zeros((2, 2), np.float32), np.array([[3.0, 0.0]], np.float32))
    if factor < 1:
        assert_close(found, np.array([[9e20], [0.0]]), dtype=np.float32)
    else:  # so far away that every covariance has vanished
        assert np.isfinite(found).all()
        assert found[0, 0] > 1e28
