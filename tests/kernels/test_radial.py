import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.radial import recognise


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_have_vanished_are_zero_and_none_is_subnormal(dtype):
    tiny, near = np.finfo(dtype).tiny, np.array([[0.0]], dtype)
    for n in range(1, 70):  # processors may treat the last entries of an array differently
        points = recognise(RBF(1.0), 1).bind(np.full((n, 1), 500.0, dtype))
        assert not points.at(near).tile(points).any()
    points = recognise(RBF(1.0), 1).bind(np.linspace(0, 60, 700, dtype=dtype)[:, None])
    values = points.at(near).tile(points)
    assert ((values == 0) | (values >= tiny)).all()
    d2 = np.square(np.linspace(0, 60, 700, dtype=dtype), dtype=dtype)[:60]
    np.testing.assert_allclose(values[0, :60], np.exp(-d2 / 2), rtol=1e3 * np.finfo(dtype).eps)


def test_points_are_scaled_and_moved_without_touching_the_data():
    X = np.arange(12.0).reshape(4, 3)
    before = X.copy()
    bound = recognise(RBF([1.0, 2.0, 4.0]), 3).bind(X, np.array([2, 0]))
    np.testing.assert_allclose(bound.points.coordinates, (X[[2, 0]] - X.mean(axis=0)) / [1, 2, 4])
    np.testing.assert_array_equal(X, before)
