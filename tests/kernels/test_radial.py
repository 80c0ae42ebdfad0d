import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.radial import profile_floor
from coxfield.kernels.recognise import recognise


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vanishing_values_equal_the_floor_and_stay_normal_numbers(dtype):
    found, tiny = recognise(RBF(1.0), 1), np.finfo(dtype).tiny
    for n in range(1, 70):  # processors may treat the last entries of an array differently
        values = found.floored_profile(np.full(n, 1e5, dtype))
        np.testing.assert_array_equal(values, dtype(profile_floor(np.dtype(dtype).name)))
        assert (values >= tiny).all()
    d2 = np.array([0.0, 1.0, 50.0], dtype)
    np.testing.assert_allclose(found.floored_profile(d2.copy()), np.exp(-d2 / 2), rtol=4 * np.finfo(dtype).eps)


def test_points_are_scaled_and_moved_without_touching_the_data():
    X = np.arange(12.0).reshape(4, 3)
    before = X.copy()
    bound = recognise(RBF([1.0, 2.0, 4.0]), 3).bind(X, np.array([2, 0]))
    np.testing.assert_allclose(bound.points.coordinates, (X[[2, 0]] - X.mean(axis=0)) / [1, 2, 4])
    np.testing.assert_array_equal(X, before)


def test_sums_are_faint_when_every_value_is_about_to_underflow():
    bound = recognise(RBF(1.0), 1).bind(np.zeros((3, 1), np.float32))
    assert bound.faint(np.array([[0.0, 0.0], [1e-35, 0.0], [0.0, 1e-20]])).tolist() == [True, True, False]
