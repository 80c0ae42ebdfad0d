"""What every covariance must do, those of the package and new ones; and what most bound points do alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct

import mixtures
from covariance_doubles import RowCovariance, SumCovariance
from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier
from coxfield.engine.class_sums import class_sums, log_sums
from coxfield.engine.store import Labelled, Segments, store_labels
from coxfield.field import Gibbs, LabelField, SwendsenWang, map_labels, sample
from coxfield.kernels import called as module
from coxfield.kernels.called import Graph, all_held, hold, nearest
from coxfield.kernels.namespace import cross_out
from coxfield.kernels.protocol import LogSums, Path, PerClass, values
from coxfield.kernels.radial import recognise
from strategies import RECOGNISED, UNRECOGNISED
from tolerances import assert_close

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
ROWS = np.arange(12.0)[:, None]
PLAIN = 0.7 * RBF(1.3)


def summed():
    return SumCovariance((recognise(RBF(0.6), 3), recognise(2.0 * RBF([1.0, 2.0, 0.5]), 3)), (0.4, 1.5))


CASES = {str(kernel): (recognise(kernel, 3), X, kernel(X)) for kernel in [*RECOGNISED, *UNRECOGNISED]}
CASES["sum"] = (summed(), X, 0.4 * RBF(0.6)(X) + 1.5 * (2.0 * RBF([1.0, 2.0, 0.5]))(X))
LEARNED = mixtures.example(Labelled(RNG.normal(size=(20, 3)), np.arange(20) % 3, 3))
CASES["mixture"] = (LEARNED, X, mixtures.by_loops(LEARNED, X))
CASES["rows"] = (RowCovariance(PLAIN(X)), ROWS, PLAIN(X))
LINKS = PLAIN(X) * (np.abs(np.arange(12)[:, None] - np.arange(12)) % 11 < 4) * (1 - np.eye(12))
CASES["graph"] = (Graph(sparse.csr_array(LINKS)), ROWS, LINKS)


def assert_same_covariances(found, expected, of=slice(None), columns=slice(None)):
    """Equal up to rounding. A squared distance of 0 may be computed as 1e-15, and rough kernels depend on its root."""
    rows, columns = np.arange(12)[of], np.arange(12)[columns]
    itself = rows[:, None] == columns
    expected = expected[np.ix_(rows, columns)]
    np.testing.assert_allclose(np.where(itself, 0, found), np.where(itself, 0, expected), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(found[itself], expected[itself], rtol=1e-6)


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    return request.param


def test_tiles_are_the_covariance(case):
    covariance, points, expected = case
    bound = covariance.bind(points)
    tile = bound[2:7].tile(bound[[0, 3]])
    assert_same_covariances(tile, expected, slice(2, 7), [0, 3])
    assert_same_covariances(values(bound, bound), expected)
    assert not bound.imprecise(bound).any()


def test_an_output_array_changes_nothing(case):
    covariance, points, _ = case
    bound = covariance.bind(points)
    room = np.full((12, 12), np.nan)
    np.testing.assert_array_equal(bound[:4].tile(bound, room), bound[:4].tile(bound))


def test_log_tiles_are_logarithms_of_the_values_without_left_out_columns(case):
    covariance, points, expected = case
    bound = covariance.bind(points)
    assert_same_covariances(np.exp(bound.log_tile(bound)), expected)
    leave_out = np.where(np.arange(12) % 2, np.arange(12), -1)
    logs = cross_out(bound.log_tile(bound), leave_out, 0, -np.inf)
    assert np.isneginf(logs[np.arange(1, 12, 2), np.arange(1, 12, 2)]).all()
    assert_same_covariances(np.where(np.isneginf(logs), expected, np.exp(logs)), expected)


def test_listed_pairs_the_diagonal_and_other_points(case):
    covariance, points, expected = case
    bound = covariance.bind(points)
    i, j = np.array([0, 5, 5, 11]), np.array([1, 5, 2, 0])
    np.testing.assert_allclose(bound.pairs(i, bound, j), expected[i, j], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.broadcast_to(bound.diagonal(), 12), np.diagonal(expected), rtol=1e-12)
    np.testing.assert_allclose(np.broadcast_to(covariance.diagonal(points), 12), np.diagonal(expected), rtol=1e-12)
    assert_same_covariances(values(bound.at(points[3:5]), bound), expected, slice(3, 5))
    assert_same_covariances(values(covariance.bind(points, i), bound), expected, i)


def test_listed_pairs_at_several_length_scales(case):
    covariance, points, _ = case
    bound = covariance.bind(points)
    i, j, factors = np.array([0, 5, 5, 11]), np.array([1, 5, 2, 0]), np.array([2.0, 1.0, 0.7])
    for factor, found in zip(factors, bound.pairs_at(i, bound, j, factors), strict=True):
        scaled = bound.rescaled(factor)
        np.testing.assert_allclose(found, scaled.pairs(i, scaled, j), rtol=1e-12, atol=1e-14)


def test_rescaled_points_are_points_under_the_rescaled_covariance(case):
    covariance, points, expected = case
    bound = covariance.bind(points)
    assert_same_covariances(values(*[bound.rescaled(variance=3.0)] * 2), 3 * expected)
    by_length = covariance.rescaled(length=2.0).bind(points)
    assert_same_covariances(values(*[bound.rescaled(length=2.0)] * 2), values(by_length, by_length))


def test_neighbours_are_other_points(case):
    covariance, points, _ = case
    found = covariance.bind(points).neighbours(3)
    assert found.shape == (12, 3)
    assert (found != np.arange(12)[:, None]).all()


class Adder:
    """Adds up the tiles of a walk, like the class sums of one class."""

    def __init__(self, n_factors, n_rows, n_columns):
        self.values = np.zeros((n_factors, n_rows, n_columns))

    def add(self, k, start, tile):
        self.values[k, :, start : start + tile.shape[1]] += tile

    def add_entries(self, k, at, columns, values):
        self.values[k, at, columns] += values


def test_a_walk_visits_every_factor(case):
    covariance, points, _ = case
    factors = np.array([2.0, 2**0.5, 1.0, 0.3])
    bound, sink = covariance.bind(points), Adder(4, 6, 12)
    own = np.array([0, -1, 2, 3, -1, 5])
    tops = bound[:6].walk(bound, factors, own, sink)
    for k, factor in enumerate(factors):
        scaled = covariance.rescaled(length=factor).bind(points)
        expected = values(scaled, scaled)[:6]
        expected[np.arange(6)[own >= 0], own[own >= 0]] = 0
        found = np.exp(tops[k])[:, None] * sink.values[k]
        np.fill_diagonal(expected, np.diagonal(values(scaled, scaled))[:6] * (own < 0))
        itself = np.arange(6)[:, None] == np.arange(12)
        np.testing.assert_allclose(np.where(itself, 0, found), np.where(itself, 0, expected), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(found[itself], expected[itself], rtol=1e-6)


def test_held_covariances_are_the_same_covariances(case):
    covariance, points, expected = case
    bound = hold(covariance.bind(points))
    assert all_held([bound])
    assert_same_covariances(bound.tile(bound), expected)
    some = bound[[7, 1, 4]]
    assert_same_covariances(some.tile(bound[:5]), expected, [7, 1, 4], slice(5))
    np.testing.assert_allclose(some.pairs(np.array([0, 2]), bound, np.array([3, 3])), expected[[7, 4], 3], rtol=1e-12)
    np.testing.assert_allclose(some.rescaled(variance=2.0).tile(some.rescaled(variance=2.0)), 2 * some.tile(some))
    np.testing.assert_allclose(np.exp(some.log_tile(some)), some.tile(some))
    assert_same_covariances(values(bound.at(points[:2]), covariance.bind(points)), expected, slice(2))
    assert bound.neighbours(2).shape == (12, 2)


def test_class_sums_are_those_of_the_matrix(case):
    covariance, points, expected = case
    y, weights = np.arange(12) % 3, RNG.uniform(0.5, 2, size=12)
    sums = class_sums(store_labels(points, y, PerClass.shared_by(covariance, 3), weights), points, np.arange(12))
    others = expected * (1 - np.eye(12))
    wanted = np.stack([others[:, y == c] @ weights[y == c] for c in range(3)], axis=1)
    np.testing.assert_allclose(sums.values, wanted, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(np.exp(sums.logs), wanted, rtol=1e-10, atol=1e-13)


NEW = {"sum": CASES["sum"], "rows": CASES["rows"]}


@pytest.mark.filterwarnings("ignore:the most probable labelling gives all")
@pytest.mark.parametrize(("covariance", "points", "matrix"), NEW.values(), ids=NEW)
def test_a_new_covariance_serves_every_estimator(covariance, points, matrix):
    y = np.arange(12) % 2
    clf = LGCPClassifier(covariance, selection=None).fit(points, y)
    half = np.diagonal(matrix) / 2 if covariance.stationary else 0  # otherwise it is left out, because classes share it
    scores = np.stack([half + matrix[:, y == c].sum(axis=1) for c in (0, 1)], axis=1)
    assert_close(clf.class_scores(points), scores, terms=12)
    assert_close(
        clf.loo_class_scores(), scores - np.where(y[:, None] == [0, 1], np.diagonal(matrix)[:, None], 0), terms=12
    )
    some = np.where(np.arange(12) < 4, y, -1)
    semi = SLGCPClassifier(covariance, selection=None).fit(points, some)
    field = LabelField.from_points(points, covariance, some)
    _, energies = field.enumerate()
    assert_close(semi.energy_, energies.min(), terms=100)
    assert semi.certified_.all()
    permanental = PermanentalClassifier(covariance, selection=None).fit(points, y)
    assert_close(permanental.predict_proba(points).sum(axis=1), np.ones(12))


@pytest.mark.parametrize(("covariance", "points", "matrix"), NEW.values(), ids=NEW)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_new_covariance_serves_cuts_and_samplers(covariance, points, matrix, n_classes):
    labels = np.where(np.arange(12) < n_classes, np.arange(12), -1)
    field = LabelField.from_points(points[:9], covariance, labels[:9], n_classes=n_classes)
    all_labels, energies = field.enumerate()
    found = map_labels(field)
    assert found.energy <= energies.min() + 2 * found.gap + 1e-9
    weights = np.exp(energies.min() - energies)
    exact = np.stack([weights @ (all_labels == c) for c in range(n_classes)], axis=1) / weights.sum()
    for sampler in (Gibbs, SwendsenWang):
        draws = sample(sampler(field), 400, random_state=0)
        assert (np.abs(draws.marginals - exact) <= 5 * draws.standard_errors).all()


@pytest.mark.parametrize("numbers", [[], [0], [2, 5, 7]])
def test_columns_of_a_path_over_some_points(numbers):
    path = Path(None, None, None, [], np.array(numbers, int))
    expected = [numbers.index(number) if number in numbers else -1 for number in range(-1, 9)]
    assert path.columns_of(np.arange(-1, 9)).tolist() == expected
    assert Path(None, None, None, []).columns_of(np.arange(-1, 3)).tolist() == [-1, 0, 1, 2]


SEVEN = np.random.default_rng(0).normal(size=(7, 2))


def test_a_point_that_is_left_out_leaves_no_trace():
    points = recognise(RBF(1.0), 2).bind(SEVEN)
    assert points.left_out(np.arange(7)) is points


def test_one_layer_of_sums():
    for kernel in (0.5 * RBF(1.0), RBF(1.0) + DotProduct()):
        points = recognise(kernel, 2).bind(SEVEN)
        (path,) = points.paths(points, Segments(np.array([0, 3]), np.arange(1.0, 8.0)))
        found = points.total([log_sums(path, np.arange(7))])
        expected = kernel(SEVEN) * (1 - np.eye(7)) * np.arange(1.0, 8.0)
        expected = np.stack([expected[:, :3].sum(axis=1), expected[:, 3:].sum(axis=1)], axis=1)
        np.testing.assert_allclose(found.values[0, 0], expected, rtol=1e-10)


@given(st.integers(0, 2**20), st.floats(-2000, 500))
def test_sums_over_shards_add_whatever_their_size(seed, far):
    """Each sum is relative to its own largest term; the whole is that of all terms at once."""
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(2, 5)) * [[1.0], [30.0]] + [[0.0], [far]]
    parts = [
        LogSums(np.full((1, 1, 1), each.max()), np.exp(each - each.max()).sum().reshape(1, 1, 1, 1)) for each in logs
    ]
    both = parts[0] + parts[1]
    np.testing.assert_allclose(both.logs.item(), np.logaddexp.reduce(logs.ravel()), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(both.logs, (parts[1] + parts[0]).logs)


def test_tiles_at_several_length_scales_are_rescaled_tiles_and_logarithms():
    factors = np.array([2.0, 1.0, 0.3])
    for kernel in (0.5 * RBF(1.0), RBF(1.0) * RBF(2.0)):
        points = recognise(kernel, 2).bind(SEVEN)
        logs = list(points.log_tiles_at(points, factors))
        for k, tile in enumerate(points.tiles_at(points, factors)):
            scaled = points.rescaled(factors[k])
            np.testing.assert_allclose(tile, values(scaled, scaled), rtol=1e-10)
            np.testing.assert_allclose(np.exp(logs[k]), values(scaled, scaled), rtol=1e-10)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 15), count=st.integers(1, 4), seed=st.integers(0, 2**20), thin=st.booleans())
def test_neighbours_are_at_the_least_distances(n, count, seed, thin):
    count = min(count, n - 1)
    X = np.random.default_rng(seed).normal(size=(n, 3))
    found = nearest(sparse.csr_array(X) if thin else X, count)
    distances = np.array([[np.sqrt(sum((a - b) ** 2)) for b in X] for a in X])
    at = np.take_along_axis(distances, found, axis=1)
    np.fill_diagonal(distances, np.inf)
    # Squared distances made of products err by |x|^2 + |z|^2; the root multiplies that by 1 / 2d.
    sizes = 2 * np.square(X).sum(axis=1).max()
    condition = sizes / np.sort(distances, axis=1)[:, :count] ** 2
    assert_close(np.sort(at, axis=1), np.sort(distances, axis=1)[:, :count], terms=3, condition=condition)


def test_a_point_is_never_its_own_neighbour_even_among_twins():
    found = nearest(np.zeros((6, 2)), 3)
    assert found.shape == (6, 3)
    assert (found != np.arange(6)[:, None]).all()
    assert all(len(set(row)) == 3 for row in found.tolist())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_many_features_are_projected_and_near_points_still_found(form, monkeypatch):
    monkeypatch.setattr(module, "FEW", 100)
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(100, 200)), 2, axis=0) + 1e-3 * rng.normal(size=(200, 200))
    found = nearest(form(X), 1)[:, 0]
    twins = np.arange(200) ^ 1
    assert (found == twins).mean() > 0.95
