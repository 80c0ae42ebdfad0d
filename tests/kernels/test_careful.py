"""Logarithms of covariances against distances taken by subtraction, one pair at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.kernels.radial import NEGLIGIBLE, exact_sq_distances, recognise
from strategies import RECOGNISED
from tolerances import rounding

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(6, 3)), RNG.normal(size=(11, 3))
GROUPS = [slice(0, 4), np.array([4, 7, 10]), np.array([5, 6, 8, 9])]


def exact_logs(covariance, rows, columns):
    """log C, one pair at a time, from the data in double precision."""
    logs = np.empty((len(rows), len(columns)))
    for j, x in enumerate(np.asarray(rows, float)):
        for k, z in enumerate(np.asarray(columns, float)):
            d2 = np.sum(((x - z) / covariance.length_scale) ** 2)
            logs[j, k] = covariance.profile.log_of(np.array([d2]))[0] + np.log(covariance.variance)
    return logs


def assert_right(found, expected):
    """Right but for rounding, and for what the module calls negligible."""
    allowed = NEGLIGIBLE + rounding(np.abs(expected), terms=3)
    np.testing.assert_array_less(np.abs(found - expected), allowed)


def log_sums(logs, groups=GROUPS):
    return np.stack([np.logaddexp.reduce(logs[:, group], axis=1) for group in groups], axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", RECOGNISED, ids=str)
def test_logarithms_are_right_in_any_precision(kernel, dtype):
    covariance, rows, columns = recognise(kernel, 3), X.astype(dtype), Z.astype(dtype)
    bound = covariance.bind(columns)
    found = bound.at(rows).log_tile(bound)
    assert found.dtype == np.float64
    assert_right(found, exact_logs(covariance, rows, columns))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    length_scale=st.sampled_from([1e-6, 1e-3, 1.0, 1e4]),
    spread=st.sampled_from([0.3, 30.0, 3e4]),
    far=st.sampled_from([0.0, 1e3, 1e7]),
    smooth=st.booleans(),
    left_out=st.booleans(),
)
def test_sums_of_groups_are_right_at_any_length_scale_and_distance(seed, length_scale, spread, far, smooth, left_out):
    """Also where the rounding of products is larger than all distances: clusters of points far from each other."""
    rng = np.random.default_rng(seed)
    columns = spread * length_scale * rng.normal(size=(11, 3)) + far * rng.integers(0, 2, size=(11, 1))
    own = rng.permutation(11)[:6]
    rows = columns[own] if left_out else columns[own] + length_scale * rng.normal(size=(6, 3))
    kernel = RBF(length_scale) if smooth else Matern(length_scale, nu=2.5)
    covariance = recognise(kernel, 3)
    bound = covariance.bind(columns)
    found = bound.at(rows).log_tile(bound, leave_out=own if left_out else None)
    expected = exact_logs(covariance, rows, columns)
    if left_out:
        expected[np.arange(6), own] = -np.inf
    assert_right(log_sums(found), log_sums(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_groups_every_logarithm_is_right_where_products_are_not(dtype):
    columns = (1e6 + 50 * RNG.normal(size=(11, 3))).astype(dtype)
    columns[:4] = -1e6
    covariance = recognise(RBF(0.5), 3)
    bound = covariance.bind(columns)
    assert bound.imprecise(bound).all()
    assert_right(bound.log_tile(bound), exact_logs(covariance, columns, columns))


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["all", "groups"])
@pytest.mark.parametrize("kernel", [*RECOGNISED, RBF(1e-7)], ids=str)
def test_a_point_left_out_is_not_its_own_nearest(kernel, groups):
    covariance = recognise(kernel, 3)
    bound = covariance.bind(Z)
    own = np.where(np.arange(11) % 3 > 0, np.arange(11), -1)
    found = bound.log_tile(bound, leave_out=own)
    expected = exact_logs(covariance, Z, Z)
    for row, column in enumerate(own):
        if column >= 0:
            assert np.isneginf(found[row, column])
            expected[row, column] = -np.inf
    others = ~np.eye(11, dtype=bool)  # rough kernels see the root of a distance that is 0 but for rounding
    if groups is None:
        assert_right(found[others], expected[others])
    else:
        left = own >= 0
        sums, wanted = log_sums(found[left]), log_sums(expected[left])
        assert_right(sums, wanted)


@pytest.mark.parametrize("length_scale", [1e-7, 1.0])
def test_sparse_rows_give_what_dense_ones_do(length_scale):
    thin = Z * (RNG.random(Z.shape) < 0.6)
    covariance = recognise(RBF(length_scale), 3)
    bound = covariance.bind(sparse.csr_array(thin))
    found = log_sums(bound.log_tile(bound))
    assert_right(found, log_sums(exact_logs(covariance, thin, thin)))


def test_distances_that_overflow_are_large_numbers():
    bound = recognise(RBF(1.0), 1).bind(np.array([[0.0], [1.0], [3.0]]))
    logs = bound.at(np.array([[1e200]])).log_tile(bound)
    assert np.isfinite(logs).all()
    assert (logs < -1e200).all()


def test_the_variance_is_added_once():
    one, loud = (recognise(kernel, 3) for kernel in (RBF(1.0), 1e280 * RBF(1.0)))
    difference = loud.bind(X).log_tile(loud.bind(X)) - one.bind(X).log_tile(one.bind(X))
    np.testing.assert_allclose(difference, np.log(1e280), rtol=1e-14)


def test_precise_distances_far_from_the_origin():
    points = recognise(RBF(1e-4), 3).bind(np.vstack([X, Z]))
    far = points.at(X + 1e3)
    d2 = exact_sq_distances(far, points)
    expected = np.square((X + 1e3)[:, None] - np.vstack([X, Z])).sum(axis=2) / 1e-8
    np.testing.assert_allclose(d2, expected, rtol=1e-12)
