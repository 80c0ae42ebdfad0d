"""Many length scales from one matrix of distances, against one kernel value at a time; rows that are left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from coxfield.kernels import radial
from coxfield.kernels.namespace import cross_out
from coxfield.kernels.protocol import KernelPoints
from coxfield.kernels.radial import NEGLIGIBLE, RATIO, SQUARING, RadialPoints, recognise
from tolerances import assert_close, rounding

RNG = np.random.default_rng(0)
X, QUERIES = RNG.normal(size=(14, 3)), RNG.normal(size=(9, 3))
OWN = np.where(np.arange(9) % 4, np.arange(9), -1)
LONG_TO_SHORT = 4 * RATIO ** -np.arange(22.0)
KERNELS = [0.7 * RBF(1.3), RBF([0.5, 2.0, 1.0]), Matern(0.8, nu=0.5), Matern(0.9, nu=0.8), RationalQuadratic(1.0, 1.7)]


class Collector:
    """Writes down what a walk hands over, and how."""

    def __init__(self, n_factors, n_rows, n_columns):
        self.values = np.zeros((n_factors, n_rows, n_columns))
        self.tiles = self.picked = 0

    def add(self, k, start, tile):
        self.values[k, :, start : start + tile.shape[1]] += tile
        self.tiles += 1

    def rescale(self, scale):
        self.values *= scale[:, :, None]

    def add_entries(self, k, at, columns, values):
        np.add.at(self.values[k], (at, columns), values)
        self.picked += 1


def relative(covariance, factor, rows, columns, own):
    """C divided by the largest value of each row, by double loop, and the logarithms of what was divided by."""
    scaled = covariance.rescaled(length=factor)
    logs = np.full((len(rows), len(columns)), -np.inf)
    for j, x in enumerate(rows.astype(float)):
        for k, z in enumerate(columns.astype(float)):
            if own[j] != k:
                d2 = np.sum(((x - z) / scaled.length_scale) ** 2)
                logs[j, k] = scaled.profile.log_of(np.array([d2]))[0]
    tops = logs.max(axis=1)
    return np.exp(logs - tops[:, None]), tops + np.log(covariance.variance)


def exponents(covariance):
    """(|x|^2 + |z|^2) / l^2, at most: the rounding of distances made of products is relative to that."""
    return 4 * max(np.square(points / covariance.length_scale).sum(axis=1).max() for points in (X, QUERIES))


def assert_walk(covariance, factors, dtype=float):
    """What the walk hands over is right, relative to the largest value of each row."""
    data, queries = X.astype(dtype), QUERIES.astype(dtype)
    bound, sink = covariance.bind(data), Collector(len(factors), 9, 14)
    tops = RadialPoints.walk(bound.at(queries), bound, factors, OWN, sink)
    limits = SQUARING[data.dtype.name]
    # Rough kernels see the root of a squared distance, which multiplies the error of one below 1.
    nearest = min(1, np.square((QUERIES[:, None] - X) / covariance.length_scale).sum(axis=2).min())
    for k, factor in enumerate(factors):
        expected, expected_tops = relative(covariance, factor, queries, data, OWN)
        # Each square of a chain doubles the error of a value.
        condition = exponents(covariance) / factor**2 / np.sqrt(nearest) + 2**limits.chain
        error = rounding(1.0, terms=3, condition=condition, dtype=dtype)
        np.testing.assert_allclose(tops[k], expected_tops, rtol=0, atol=error)
        np.testing.assert_allclose(sink.values[k], expected, rtol=0, atol=min(error, 1.0) + limits.floor)
    return sink


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_step_of_the_ladder_is_the_kernel_at_that_length_scale(kernel, dtype, monkeypatch):
    monkeypatch.setattr(radial, "COLUMNS", 5)
    assert_walk(recognise(kernel, 3), LONG_TO_SHORT[:12], dtype)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.2, 0.5, 0.5 * RATIO, 1.0, RATIO, 2.0, 9.0]), min_size=1, max_size=8))
def test_factors_may_come_in_any_order(factors):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(radial, "SPARSE", 0.9)  # pick out what has not vanished as early as possible
        patch.setattr(radial, "COLUMNS", 5)
        assert_walk(recognise(RBF(1.0), 3), np.array(factors))


def test_what_has_vanished_comes_back_at_a_longer_length_scale(monkeypatch):
    monkeypatch.setattr(radial, "SPARSE", 0.9)
    sink = assert_walk(recognise(RBF(1.0), 3), np.array([0.05, 0.04, 0.03, 4.0, 0.05, 0.03, 0.02]))
    assert sink.picked > 0


def test_the_few_values_that_have_not_vanished_are_picked_out(monkeypatch):
    monkeypatch.setattr(radial, "SPARSE", 0.3)
    sink = assert_walk(recognise(RBF(1.0), 3), LONG_TO_SHORT)
    assert sink.picked > 0
    assert sink.tiles + sink.picked == len(LONG_TO_SHORT)


@pytest.mark.parametrize("factor", [1e-4, 1e-2, 1.0, 1e4])
def test_the_largest_value_of_a_row_is_one_at_any_length_scale(factor):
    bound, sink = recognise(RBF(1.0), 3).bind(X), Collector(1, 14, 14)
    RadialPoints.walk(bound, bound, np.array([factor]), np.arange(14), sink)
    assert (np.diagonal(sink.values[0]) == 0).all()
    sizes = exponents(bound.covariance) / factor**2
    assert_close(sink.values[0].max(axis=1), np.ones(14), terms=3, condition=max(1, sizes))
    if factor == 1e4:  # all points are one
        np.testing.assert_allclose(sink.values[0][~np.eye(14, dtype=bool)], 1, rtol=1e-6)
    elif factor == 1e-4:  # only the nearest is left
        assert ((sink.values[0] > 1e-9).sum(axis=1) == 1).all()


def test_a_row_that_sees_nobody_gets_nothing():
    bound, sink = recognise(3.0 * RBF(1.0), 3).bind(X[:1]), Collector(2, 1, 1)
    tops = RadialPoints.walk(bound, bound, np.array([1.0, 0.5]), np.array([0]), sink)
    np.testing.assert_array_equal(sink.values, 0)
    np.testing.assert_allclose(tops, np.log(3.0), rtol=1e-15)


def test_a_length_scale_that_is_fixed_stays():
    bound, sink = recognise(RBF(1.0, "fixed"), 3).bind(X), Collector(3, 14, 14)
    tops = RadialPoints.walk(bound, bound, np.array([4.0, 1.0, 0.1]), np.full(14, -1), sink)
    for k in range(3):
        np.testing.assert_allclose(np.exp(tops[k])[:, None] * sink.values[k], RBF(1.0)(X), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_one_factor_after_the_other_is_the_same_walk(kernel):
    covariance, factors = recognise(kernel, 3), np.array([3.0, 1.0, 0.7])
    bound, sink = covariance.bind(X), Collector(3, 9, 14)
    tops = KernelPoints.walk(bound.at(QUERIES), bound, factors, OWN, sink)
    for k, factor in enumerate(factors):
        expected, expected_tops = relative(covariance, factor, QUERIES, X, OWN)
        # `log_tile` may err by what it calls negligible.
        np.testing.assert_allclose(tops[k], expected_tops, rtol=0, atol=2 * NEGLIGIBLE)
        np.testing.assert_allclose(sink.values[k], expected, rtol=0, atol=2 * NEGLIGIBLE)


def test_one_by_one_a_row_that_sees_nobody_gets_nothing():
    bound, sink = recognise(RBF(1.0), 3).bind(X[:1]), Collector(1, 1, 1)
    tops = KernelPoints.walk(bound, bound, np.ones(1), np.array([0]), sink)
    np.testing.assert_array_equal(sink.values, 0)
    np.testing.assert_array_equal(tops, 0)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("factors", [LONG_TO_SHORT[:12], np.array([1.0]), np.array([3.0, 1.5, 0.75, 2.0])])
def test_rungs_are_tiles_of_rescaled_points(kernel, factors):
    covariance = recognise(kernel, 3)
    columns = covariance.bind(X)
    rows = columns.at(QUERIES)
    room = np.empty((20, 20))
    found = [tile.copy() for tile in rows.tiles_at(columns, factors, room)]
    logs = list(rows.log_tiles_at(columns, factors))
    assert len(found) == len(logs) == len(factors)
    for tile, log, factor in zip(found, logs, factors, strict=True):
        expected = rows.rescaled(factor).tile(columns.rescaled(factor))
        # A chain of squares doubles the relative error each time, and the error of a logarithm is relative to it.
        np.testing.assert_allclose(tile, expected, rtol=1e-9, atol=1e-290)
        seen = expected > 1e-300
        np.testing.assert_allclose(log[seen], np.log(expected[seen]), rtol=1e-9, atol=1e-12)


def test_fixed_length_scales_have_one_rung():
    points = recognise(RBF(1.3, "fixed"), 3).bind(X)
    one, other = (tile.copy() for tile in points.tiles_at(points, np.array([1.0, 0.5])))
    np.testing.assert_allclose(one, other, rtol=1e-14)


@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    start=st.integers(0, 6),
    seed=st.integers(0, 2**20),
)
def test_only_where_a_row_meets_its_own_column_is_anything_written(shape, start, seed):
    rng = np.random.default_rng(seed)
    tile = rng.normal(size=shape)
    leave_out = rng.integers(-1, 12, size=shape[0])
    value = -7.0
    expected = tile.copy()
    for row in range(shape[0]):
        for column in range(shape[1]):
            if leave_out[row] == start + column:
                expected[row, column] = value
    assert cross_out(tile, leave_out, start, value) is tile
    np.testing.assert_array_equal(tile, expected)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 0])
def test_a_view_is_written_through(value):
    matrix = np.ones((3, 4))
    cross_out(matrix[:, 2:], np.array([2, 3, 0]), 2, value)
    assert matrix[0, 2] == matrix[1, 3] == value
    assert (np.delete(matrix.ravel(), [2, 7]) == 1).all()
