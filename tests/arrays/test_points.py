"""Points and squared distances in array libraries, against distances taken one pair at a time."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.arrays.library import to_numpy
from coxfield.arrays.points import ArrayPoints, capped, centre, pair_sq_distances, product_error, sq_distances
from coxfield.kernels import distances
from coxfield.kernels.recognise import recognise
from tolerances import assert_close

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(6, 3)), RNG.normal(size=(11, 3))
SCALES = [0.7, [0.5, 1.0, 2.0]]


def naive(a, b, scale):
    """Squared distances by a double loop."""
    return np.array([[np.sum(((x - z) / scale) ** 2) for z in b.astype(float)] for x in a.astype(float)])


def bound(values, kernel, given, library):
    array = given(values)
    return ArrayPoints.of(library, recognise(kernel, values.shape[1]), array, centre(array, library))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_products_and_subtraction_give_the_distances(scale, dtype, given, library):
    rows, columns = X.astype(dtype), Z.astype(dtype)
    b = bound(columns, RBF(scale), given, library)
    a = b.at(given(rows))
    expected = naive(rows, columns, scale)
    norms = to_numpy(a.sq_norms).max() + b.farthest
    assert_close(to_numpy(sq_distances(a, b)), expected, terms=3, scale=norms + expected)
    assert (np.abs(to_numpy(sq_distances(a, b)) - expected) <= to_numpy(product_error(a, b))[:, None]).all()
    i, j = np.divmod(np.arange(66), 11)
    pairs = to_numpy(pair_sq_distances(a, library.array(i), b, library.array(j)))
    assert pairs.dtype == np.float64
    assert_close(pairs.reshape(6, 11), expected, terms=3)


def test_some_points_are_the_same_points(given, library):
    points = bound(X, RBF(0.7), given, library)
    for some in (points[2:4], points.taken(library.array(np.array([2, 3])))):
        assert len(some) == 2
        np.testing.assert_array_equal(to_numpy(some.X), X[2:4])
        np.testing.assert_array_equal(to_numpy(some.coordinates), to_numpy(points.coordinates)[2:4])
        np.testing.assert_array_equal(to_numpy(some.sq_norms), to_numpy(points.sq_norms)[2:4])


def test_double_precision_comes_from_the_numbers_as_given(given, library):
    single = bound((1e4 + X).astype(np.float32), RBF(1e-3), given, library)
    exact = ((1e4 + X).astype(np.float32).astype(float) - to_numpy(single.origin).astype(float)) / 1e-3
    assert_close(to_numpy(single.in_double().coordinates), exact)
    double = bound(X, RBF(1.0), given, library)
    assert double.in_double() is double


def test_the_mean_does_not_overflow(given, library):
    with np.errstate(all="ignore"):
        found = to_numpy(centre(given(np.array([[1.5e308, 1.0], [1.6e308, 3.0]])), library))
    assert_close(found, np.array([1.55e308, 2.0]))


def test_distances_that_overflow_are_large_numbers_as_in_numpy(given, library):
    values = np.array([[np.nan, np.inf], [-1.0, 2.0]])
    np.testing.assert_array_equal(to_numpy(capped(given(values), library)), distances.capped(values.copy()))


@pytest.mark.parametrize(("factor", "dtype"), [(1e200, np.float64), (1e-200, np.float64), (1e30, np.float32)])
def test_points_and_length_scales_of_any_size(factor, dtype, given, library):
    with np.errstate(all="ignore"):
        b = bound((factor * Z).astype(dtype), RBF(0.7 * factor), given, library)
        a = b.at(given((factor * X).astype(dtype)))
        d2 = to_numpy(sq_distances(a, b))
    norms = to_numpy(a.sq_norms).max() + b.farthest
    assert_close(d2, naive((factor * X).astype(dtype), (factor * Z).astype(dtype), 0.7 * factor), terms=3, scale=norms)
