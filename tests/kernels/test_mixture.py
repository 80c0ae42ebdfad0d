"""Mixtures of covariances, against double loops: ladders, points bound to them, rows that come and go, class sums."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coxfield import LGCPClassifier
from coxfield.engine.class_sums import class_sums, log_sums
from coxfield.engine.store import Segments, Shares, store_bound
from coxfield.engine.training import gain, lose
from coxfield.field import LabelField
from coxfield.kernels.mixture import Mixture, inverse, log_densities
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.kernels.transforms import ALPHAS, Member, Whitening
from coxfield.process import LogGaussianCoxProcess
from mixtures import by_loops, example, ladder, problem
from tolerances import assert_close

DATA = problem()
LEARNED = example(DATA)
NEW = DATA.X[:5] + 0.01


def test_a_mixture_is_its_own_covariance():
    assert recognise(LEARNED, 3) is LEARNED
    assert LEARNED.kernel is LEARNED


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_double_loops(weighted):
    data = problem(weighted=weighted)
    mixture = example(data)
    np.testing.assert_allclose(mixture(NEW, data.X), by_loops(mixture, NEW, data.X), rtol=1e-9)
    np.testing.assert_allclose(mixture(NEW), by_loops(mixture, NEW), rtol=1e-9)
    np.testing.assert_allclose(mixture.diag(NEW), np.diagonal(by_loops(mixture, NEW)), rtol=1e-9)


def test_a_mixture_is_positive_definite_and_never_negative():
    matrix = LEARNED(DATA.X)
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2).min() > -1e-10 * np.trace(matrix)
    assert (matrix >= 0).all()
    LEARNED.check_nonnegative()


def test_reference_points_have_the_densities_of_any_points():
    bound, general = LEARNED.bind_reference(), LEARNED.bind(DATA.X)
    assert bound.whole
    assert not general.whole
    for known, computed in zip(bound.log_densities, general.log_densities, strict=True):
        np.testing.assert_allclose(known, computed, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_class_sums_in_one_pass_are_those_of_the_values(weighted):
    data = problem(weighted=weighted)
    mixture = example(data)
    shared = PerClass.shared_by(mixture, 3)
    store = store_bound([mixture.bind_reference()], data.y, shared, data.weights)
    expected = by_loops(mixture, NEW, data.X) * data.counts
    expected = np.stack([expected[:, data.y == c].sum(axis=1) for c in range(3)], axis=1)
    np.testing.assert_allclose(class_sums(store, NEW).values, expected, rtol=1e-9)


def test_far_away_nothing_counts_and_the_nearest_point_decides():
    shared = PerClass.shared_by(LEARNED, 3)
    store = store_bound([LEARNED.bind_reference()], DATA.y, shared)
    for away in (1e3, 1e8, 1e150):
        with np.errstate(over="raise"):
            sums = class_sums(store, DATA.X[:3] + away)
        assert np.isfinite(sums.values).all()
        assert sums.values.max() < 1e-6
        assert np.isfinite(sums.logs).any()


def test_single_precision():
    data = problem(dtype=np.float32)
    mixture = example(data)
    store = store_bound([mixture.bind_reference()], data.y, PerClass.shared_by(mixture, 3))
    double = example(problem())
    wide = store_bound([double.bind_reference()], data.y, PerClass.shared_by(double, 3))
    found = class_sums(store, NEW.astype(np.float32)).values
    np.testing.assert_allclose(found, class_sums(wide, NEW).values, rtol=2e-3)


def test_rescaling_lengths_changes_the_densities():
    longer = LEARNED.rescaled(length=2.0, variance=3.0)
    np.testing.assert_allclose(longer(NEW), by_loops(longer, NEW), rtol=1e-9)
    np.testing.assert_allclose(LEARNED.rescaled(variance=3.0)(NEW), 3 * LEARNED(NEW), rtol=1e-12)


def test_other_kernels_can_be_members():
    mixture = Mixture((ladder(kernel=Matern(1.0, nu=1.5)), ladder(kernel=RBF(1.0) * Matern(2.0))), DATA.X)
    np.testing.assert_allclose(mixture(NEW, DATA.X), by_loops(mixture, NEW, DATA.X), rtol=1e-8)


def test_copies_give_the_same_values():
    again = copy.deepcopy(LEARNED)
    np.testing.assert_array_equal(again(NEW), LEARNED(NEW))
    assert "_reference" not in again.__getstate__()


def test_it_reads_as_a_sum():
    shown = repr(Mixture((ladder(factors=(1.0, 0.5), weights=[[0.25, 0], [0, 2.0]]),), DATA.X))
    first, second = shown.split(" + ")
    assert first == "0.25 * RBF(length_scale=2) of raw points / density**0.5"
    assert second == "2 * RBF(length_scale=1) of raw points / density**0.75"


def test_a_mixture_serves_the_label_field():
    labels = np.where(np.arange(24) < 6, DATA.y, -1)
    field = LabelField.from_points(DATA.X, LEARNED, labels, n_classes=3)
    i, j = np.flatnonzero(labels < 0)[:2]
    labelling = DATA.y.copy()
    moved = labelling.copy()
    moved[i] = (labelling[i] + 1) % 3
    matrix = LEARNED(DATA.X)
    matrix[np.diag_indices(24)] = 0
    gain = matrix[i, labelling == labelling[i]].sum() - matrix[i, labelling == moved[i]].sum()
    unlabelled = labels < 0
    assert field.energy(moved[unlabelled]) - field.energy(labelling[unlabelled]) == pytest.approx(gain, rel=1e-8)
    assert j != i


def test_a_stationary_mixture_is_simulated():
    plain = Mixture((ladder(factors=(1.0, 0.5), alphas=(0.0,), weights=[[0.3], [0.2]], d=1),), np.zeros((1, 1)))
    assert plain.is_stationary()
    process = LogGaussianCoxProcess(plain, mean=1.0)
    h = np.array([0.0, 1.0])
    expected = np.exp((0.3 * RBF(2.0) + 0.2 * RBF(1.0))([[0.0]], h[:, None])[0])
    np.testing.assert_allclose(process.pair_correlation(h), expected, rtol=1e-12)
    counts = np.array([len(process.sample([(0, 3)], random_state=seed)) for seed in range(200)])
    error = counts.std(ddof=1) / np.sqrt(len(counts))
    assert abs(counts.mean() - 3 * np.exp(1 + 0.5 / 2)) < 4 * error


def test_a_density_is_not_stationary():
    with pytest.raises(ValueError, match="is not stationary"):
        LogGaussianCoxProcess(LEARNED)


def test_a_member_is_squared_exponentials_on_the_features_by_default():
    member = Member()
    assert member.kernel is None
    assert (member.transform, member.alphas) == ("raw", ALPHAS)


def test_members_do_not_change():
    with pytest.raises(AttributeError):
        Member(RBF(1.0)).kernel = RBF(2.0)


WEIGHTED = problem(weighted=True)


def test_densities_are_sums_over_reference_points():
    part = ladder()
    points = part.bind(WEIGHTED.X)
    found = log_densities(points[:4], points, WEIGHTED.weights)
    for f in range(3):
        np.testing.assert_allclose(
            found[f], np.log(part.kernel(f)(WEIGHTED.X[:4], WEIGHTED.X) @ WEIGHTED.weights), rtol=1e-10
        )


def test_a_reference_point_may_be_omitted():
    part = ladder()
    points = part.bind(WEIGHTED.X)
    found = log_densities(points[:2], points, None, np.array([0, -1]))
    k = part.kernel(0)(WEIGHTED.X[:2], WEIGHTED.X)
    np.testing.assert_allclose(found[0], np.log([k[0, 1:].sum(), k[1].sum()]), rtol=1e-10)


def test_pruning_keeps_what_has_a_weight():
    pruned = ladder(weights=[[0, 0.5], [0, 0], [0, 2.0]]).pruned()
    assert pruned.weights.tolist() == [[0.5], [2.0]]
    assert (pruned.factors.tolist(), pruned.alphas.tolist()) == ([1.0, 0.4], [0.75])


def test_points_are_left_out_only_of_a_covariance_that_was_learned_from_them():
    mixture = Mixture((ladder(),), WEIGHTED.X)
    foreign = mixture.bind(WEIGHTED.X)
    assert foreign.left_out(np.arange(24)) is foreign
    own = mixture.bind_reference().at(WEIGHTED.X).left_out(np.arange(24))
    k = mixture.ladders[0].kernel(0)(WEIGHTED.X)
    np.testing.assert_allclose(own.log_densities[0][0], np.log(k.sum(axis=1) - 1), rtol=1e-9)
    np.testing.assert_allclose(own[3:5].log_densities[0][0], own.log_densities[0][0][3:5], rtol=1e-12)


def test_whitening_is_undone_also_at_the_end_of_a_pipeline():
    alone = Whitening().fit(WEIGHTED.X, WEIGHTED.y)
    piped = make_pipeline(StandardScaler(), Whitening()).fit(WEIGHTED.X, WEIGHTED.y)
    mixtures = [Mixture((ladder(transform),), WEIGHTED.X) for transform in (alone, piped)]
    stretches = [mixture.bind_reference().at(WEIGHTED.X).left_out(np.arange(24)) for mixture in mixtures]
    one, other = (of.ladders[0].points.points.stretch for of in stretches)
    np.testing.assert_allclose(one.factors, other.factors, rtol=1e-8)
    assert (one.factors > 0).all()


def test_logarithms_of_sums_are_right_where_every_sum_vanishes():
    data = problem()
    mixture = Mixture((ladder(),), data.X)
    store = store_bound([mixture.bind_reference()], data.y, PerClass.shared_by(mixture, 3))
    far = data.X[:5] + 300.0
    logs = mixture.bind(far).log_tile(mixture.bind(data.X))
    expected = np.stack([np.logaddexp.reduce(logs[:, data.y == c], axis=1) for c in range(3)], axis=1)
    found = class_sums(store, far)
    assert (expected < -1000).all()
    np.testing.assert_allclose(found.logs, expected, rtol=1e-10)
    assert not found.values.any()


RNG = np.random.default_rng(0)
N = 24
X, LATER = RNG.normal(size=(N, 2)), RNG.normal(size=(7, 2))
COUNTS = RNG.uniform(0.5, 2.0, size=N + 7)
Y = np.arange(N) % 2


def reference(points, counts):
    """Two representations, with several length scales, powers of the density and a floor, bound to the points."""
    settings = {"factors": (2.0, 0.5), "alphas": (0.5, 1.0), "floors": (0.0, 3.0), "weights": [[1.0, 0.5], [0.0, 2.0]]}
    ladders = (ladder(d=2, **settings), ladder(Whitening().fit(X, Y), "whitened", d=2, **settings))
    return Mixture(ladders, points, counts).bind_reference()


def assert_same(found, expected, changes):
    """To rounding: what is subtracted is at most half of a density, or the density is computed again."""
    for one, other in zip(found.log_densities, expected.log_densities, strict=True):
        assert_close(np.exp(one), np.exp(other), terms=20 * N * (1 + changes))
    assert found.covariance.n_reference == expected.covariance.n_reference == len(found)
    assert found.rows.tolist() == list(range(len(found)))
    queries = RNG.normal(size=(5, 2))
    values, wanted = (bound.covariance(queries, queries) for bound in (found, expected))
    assert_close(values, wanted, terms=40 * N * N * (1 + changes))
    assert_close(found.tile(found), expected.tile(expected), terms=40 * N * N * (1 + changes))


@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=25, deadline=None)
@given(places=st.lists(st.integers(0, N - 1), max_size=N - 1, unique=True).map(np.sort))
def test_what_is_left_is_the_mixture_of_the_other_points(weighted, places):
    counts, places = COUNTS[:N] if weighted else None, places.astype(int)
    kept, old = np.setdiff1d(np.arange(N), places), reference(X, counts)
    left = lose(old, places, X[kept], counts)
    assert_same(left, reference(X[kept], None if counts is None else counts[kept]), len(places))
    assert old.covariance.n_reference == N  # somebody may hold it


@pytest.mark.parametrize("weighted", [False, True])
def test_points_that_arrive_add_their_terms(weighted):
    counts, both = COUNTS if weighted else None, np.concatenate([X, LATER])
    grown = gain(reference(X, None if counts is None else counts[:N]), both, counts, LATER)
    assert_same(grown, reference(both, counts), 7)


def test_points_that_come_and_go_leave_nothing():
    points = reference(X, None)
    for _ in range(20):
        points = gain(points, np.concatenate([X, LATER]), None, LATER)
        points = lose(points, N + np.arange(7), X, None)
    assert_same(points, reference(X, None), 20 * 14)


def test_a_point_that_was_alone_leaves_no_density_of_rounding():
    """A density of which nearly all leaves: nothing of what is left would survive a subtraction."""
    points = np.concatenate([[[0.0, 0.0]], np.full((10**4, 2), 1e-9), [[40.0, 0.0]]])
    counts = np.r_[1.0, np.full(10**4, 1e12), 1.0]
    old = Mixture((ladder(d=2),), points, counts).bind_reference()
    left = lose(old, 1 + np.arange(10**4), points[[0, -1]], counts)
    assert_close(np.exp(left.log_densities[0]), np.ones((3, 2)), terms=100)


def test_a_whitening_has_no_entries_of_points_that_left_and_none_for_points_that_came():
    left = lose(reference(X, None), np.array([0, 5]), np.delete(X, [0, 5], axis=0), None)
    whitening, whole = left.covariance.ladders[1].transform, Whitening().fit(X, Y)
    assert whitening.labels_.tolist() == np.delete(Y, [0, 5]).tolist()
    np.testing.assert_array_equal(whitening.removal_, np.delete(whole.removal_, [0, 5]))
    np.testing.assert_array_equal(whitening.matrix_, whole.matrix_)  # a summary of all points
    grown = gain(left, np.concatenate([left.covariance.X, LATER]), None, LATER)
    whitening = grown.covariance.ladders[1].transform
    assert whitening.labels_[-7:].tolist() == [-1] * 7
    assert not whitening.removal_[-7:].any()


def test_densities_that_were_fixed_before_treat_all_other_points_alike():
    apart = reference(X, None).covariance.apart(X[:8], None, 3.0)
    (first, *_), k = apart.ladders, None
    k = first.kernel(0)(LATER, X[:8]).sum(axis=1) * 3.0
    np.testing.assert_allclose(np.exp(apart.bind(LATER).log_densities[0][0]), k)
    assert first.floors.tolist() == [1.0, 4.0]


MIXTURE = example(DATA)
ORDER = np.argsort(DATA.y, kind="stable")


def total(rows, columns, weights):
    sums = [log_sums(path, np.full(len(rows), -1)) for path in rows.paths(columns, weights)]
    return rows.total(sums).values[0, 0]


def test_reference_points_are_held_in_an_order_at_once():
    mixture = MIXTURE.bind_reference().covariance
    found, expected = mixture.bind_reference(ORDER), mixture.bind_reference()[ORDER]
    np.testing.assert_array_equal(found.rows, ORDER)
    for one, other in zip(found.ladders, expected.ladders, strict=True):
        np.testing.assert_array_equal(one.points.points.coordinates, other.points.points.coordinates)
        np.testing.assert_array_equal(one.points.rows, other.points.rows)
        np.testing.assert_array_equal(one.known, other.known)


@pytest.mark.parametrize("soft", [False, True])
def test_densities_of_queries_come_from_the_same_pass(soft):
    columns = MIXTURE.bind_reference()[ORDER]
    rows = columns.at(DATA.X[:4] + 0.02)
    one_hot = np.eye(3)[DATA.y[ORDER]]
    weights = Shares(one_hot) if soft else Segments(np.array([0, 8, 16]), np.ones(24))
    expected = by_loops(MIXTURE, DATA.X[:4] + 0.02, DATA.X[ORDER]) @ one_hot
    np.testing.assert_allclose(total(rows, columns, weights), expected, rtol=1e-9)
    assert "log_densities" not in rows.__dict__


def test_without_all_reference_points_there_is_a_pass_of_its_own():
    columns = MIXTURE.bind_reference()[ORDER[:16]]
    rows = columns.at(DATA.X[:4])
    weights = Segments(np.array([0, 5, 8]), np.linspace(1, 2, 16))
    expected = by_loops(MIXTURE, DATA.X[:4], DATA.X[ORDER[:16]]) * np.linspace(1, 2, 16)
    expected = np.add.reduceat(expected, [0, 5, 8], axis=1)
    np.testing.assert_allclose(total(rows, columns, weights), expected, rtol=1e-9)


def test_what_a_member_divides_by():
    part, log_q = ladder(alphas=(0.0, 0.5, 0.75), floors=(0.0, 0.0, 3.0)), np.array([0.0, 2.0, -np.inf])
    assert part.log_divisor(0, log_q).tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(inverse(part.log_divisor(1, log_q[:2])), [1.0, np.exp(-1)])
    np.testing.assert_allclose(inverse(part.log_divisor(2, log_q)), (np.exp(log_q) + 3) ** -0.75)
    with np.errstate(over="raise"):
        assert np.isfinite(inverse(np.array([-1e6]))).all()


def test_scores_of_members_with_a_variance_are_sums_of_the_covariance():
    rng = np.random.default_rng(5)
    y = np.arange(30) % 2
    X, queries = rng.normal(size=(30, 2)) + y[:, None], rng.normal(size=(7, 2))
    model = LGCPClassifier([Member(4.0 * RBF(1.0), alphas=(0.5,)), Member(0.3 * RBF(0.5), alphas=(0.75,))]).fit(X, y)
    values = model.kernel_(queries, X)
    sums = np.stack([values[:, y == c].sum(axis=1) for c in (0, 1)], axis=1)
    # The variances differ from the given ones by the weights; both sides have them.
    assert_close(model.class_scores(queries) - model.mean_, sums, terms=30, scale=np.abs(sums).max(), condition=10)
