import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.radial import recognise
from tolerances import assert_close

SCALE = np.array([0.5, 2.0, 1.0])
X = np.random.default_rng(0).normal(10.0, 1.0, size=(8, 3))
ROWS = np.array([6, 1, 1, 4])


def bound(data):
    return recognise(RBF(SCALE), 3).bind(data)


@pytest.mark.parametrize("rows", [slice(1, 5), ROWS, np.zeros(0, int)], ids=["slice", "rows", "none"])
def test_some_of_the_points_are_those_rows_of_the_data(rows):
    points = bound(X)[rows]
    expected = np.arange(8)[rows]
    assert len(points) == len(expected)
    np.testing.assert_array_equal(points.X[points.rows], X[expected])
    assert isinstance(rows, slice) or len(points.X) == len(expected)  # nothing of the others
    assert_close(points.points.coordinates, (X[expected] - X.mean(axis=0)) / SCALE, terms=8, scale=2 * 13 / SCALE)


def test_rows_of_rows_are_rows_of_the_data():
    points = bound(X)[ROWS][[3, 0]]
    np.testing.assert_array_equal(points.X[points.rows], X[[4, 6]])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_double_precision_is_made_from_the_data_and_not_from_rounded_coordinates(form):
    single = X.astype(np.float32)
    points = bound(form(single))[ROWS]
    assert points.dtype == np.float32
    found = points.in_double()
    assert found.dtype == np.float64
    origin = 0 if points.origin is None else points.origin.astype(float)
    expected = (single[ROWS].astype(float) - origin) / SCALE
    coordinates = found.coordinates.toarray() if sparse.issparse(found.coordinates) else found.coordinates
    assert_close(coordinates, expected)
    assert_close(found.sq_norms, np.square(expected).sum(axis=1), terms=3)


def test_double_precision_stays_as_it_is():
    points = bound(X)
    assert points.in_double() is points.points
