"""Squared distances, their units, and logarithms of covariances against distances by subtraction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.kernels.distances import Stretch, centre, pair_sq_distances, place, sq_distances
from coxfield.kernels.namespace import cross_out
from coxfield.kernels.radial import NEGLIGIBLE, exact_sq_distances, recognise
from coxfield.kernels.transforms import Units, feature_sizes, feature_units, in_units
from strategies import RECOGNISED
from tolerances import assert_close, rounding


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


RNG = np.random.default_rng(0)
WILD = RNG.normal(size=(20, 4)) * [1.0, 1e250, 1e-250, 0.0]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_features_of_extreme_size_are_divided_by_powers_of_two(form):
    units = feature_units(form(WILD))
    assert units[[0, 3]].tolist() == [1, 1]
    scaled = in_units(form(WILD), units)
    dense = scaled.toarray() if sparse.issparse(scaled) else scaled
    assert (dense * units == WILD).all()  # no digit has changed
    assert ((feature_sizes(scaled)[:3] >= 1) & (feature_sizes(scaled)[:3] < 4)).all()


def test_sizes_are_largest_absolute_values():
    np.testing.assert_array_equal(feature_sizes(WILD), np.abs(WILD).max(axis=0))
    np.testing.assert_array_equal(feature_sizes(sparse.csr_array(WILD)), np.abs(WILD).max(axis=0))


def test_ordinary_points_stay_as_they_are():
    ordinary = WILD[:, [0, 3]]
    assert in_units(ordinary, feature_units(ordinary)) is ordinary


def test_single_precision_stays_and_its_limits_are_narrower():
    single = (WILD[:, :1] * 1e20).astype(np.float32)
    units = feature_units(single)
    assert units[0] > 1
    assert in_units(single, units).dtype == np.float32
    assert feature_units(single.astype(float)).tolist() == [1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_far_beyond_those_of_the_units_are_as_far_as_numbers_go(dtype):
    limits = np.finfo(dtype)
    scaler = Units().fit(limits.tiny * np.array([[1.0], [2.0]], dtype))
    far = limits.max / 2 * np.array([[1.0], [-1.0]], dtype)
    assert scaler.transform(far).ravel().tolist() == [limits.max, limits.min]


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
    found = cross_out(bound.at(rows).log_tile(bound), own if left_out else np.full(6, -1), 0, -np.inf)
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
    found = cross_out(bound.log_tile(bound), own, 0, -np.inf)
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


def test_the_centre_of_values_whose_differences_overflow():
    X = np.array([[1.7e308, 1.0], [1.7e308, 2.0], [-1.7e308, 3.0]])
    np.testing.assert_allclose(centre(X), [1.7e308 / 3, 2.0])
