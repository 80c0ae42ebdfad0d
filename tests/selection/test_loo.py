"""Leave-one-out: sums against loops, losses, the path of what was tried, and temperatures."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield.engine import class_sums as blocks
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import Labelled
from coxfield.kernels import radial
from coxfield.kernels.called import Called
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import rescale_length
from coxfield.selection.grid import default_factors, finer_factors, typical_distance
from coxfield.selection.loo import (
    HIGHEST,
    LARGEST,
    Search,
    SelectionPath,
    best_log_variance,
    log_loss,
    loo_log_sums,
    work_units,
)
from reference import refit_scores, softmax
from tolerances import assert_close, assert_same_decisions, assert_same_error

KERNELS = PerClass.shared_by(RBF(1.0), 2)


@pytest.mark.parametrize("means", [[0.0, 0.0], [0.4, -0.1]])
@pytest.mark.parametrize("weighted", [False, True])
def test_path_reports_the_losses_of_refits(means, weighted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 2)), rng.permutation(np.arange(25) % 2)
    weights = rng.choice([1.0, 2.0], size=25) if weighted else None
    factors = np.array([2.0, 0.7, 0.2])
    search = Search(np.array(means), "loo_error", bounded=False, refine=False, set_variance=False)
    path = search.path(Labelled(X, y, 2, weights), KERNELS, factors)
    for k, factor in enumerate(factors):
        scores = refit_scores(X, y, [RBF(factor)] * 2, means, weights)
        log_p = np.log(softmax(scores))[np.arange(25), y]
        assert path["loo_log_loss"][k] == pytest.approx(-np.average(log_p, weights=weights))
        assert_same_error(path["loo_error"][k], scores.argmax(axis=1), y, scores, weights=weights, terms=25)
    np.testing.assert_array_equal(path["variance"], 1)


def test_free_variance_lowers_the_log_loss_and_leaves_the_errors():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.permutation(np.arange(40) % 2)
    fixed, free = (
        Search(np.zeros(2), "loo_error", bounded=False, refine=False, set_variance=set_variance).path(
            Labelled(X, y, 2), KERNELS, np.array([1.0, 0.3])
        )
        for set_variance in (False, True)
    )
    assert (free["loo_log_loss"] < fixed["loo_log_loss"]).all()
    assert_close(free["loo_error"], fixed["loo_error"], terms=40)


def test_finer_length_scales_are_tried_around_the_best():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 2)), rng.permutation(np.arange(40) % 2)
    search = Search(np.zeros(2), "loo_log_loss", bounded=False, refine=True, set_variance=False)
    path = search.path(Labelled(X, y, 2), KERNELS, np.array([4.0, 2.0, 1.0]))
    assert len(path) == 3 + 6
    assert (np.diff(path["factor"]) < 0).all()


def covariances(kernels, n_features):
    return PerClass.of(kernels).map(lambda kernel: recognise(kernel, n_features))


def one_by_one(labelled, kernels, factors):
    for factor in factors:
        scaled = [rescale_length(kernel, factor) for kernel in kernels]
        store = labelled.under(covariances(scaled, labelled.X.shape[1]))
        yield class_sums(store, labelled.X, leave_out=np.arange(len(labelled))).logs


CASES = {
    "squared exponential": [3.0 * RBF(0.9)] * 3,
    "ARD": [RBF([0.5, 1.0, 3.0, 0.2])] * 3,
    "Matern": [Matern(1.2, nu=1.5)] * 3,
    "called": [RBF(0.5) + RBF(3.0)] * 3,
    "a kernel per class": [RBF(0.4), 2.0 * Matern(1.0), RBF(2.0)],
}


@pytest.mark.parametrize("kernels", CASES.values(), ids=CASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_path_equals_leave_one_out_sums_one_length_scale_at_a_time(kernels, weighted, dtype, monkeypatch):
    monkeypatch.setattr(blocks, "ROWS", 13)
    monkeypatch.setattr(radial, "COLUMNS", 17)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)).astype(dtype), rng.permutation(np.arange(60) % 3)
    weights = rng.choice([0.5, 1.0, 2.5], size=60).astype(dtype) if weighted else None
    # Chains of squares, broken by steps of another ratio.
    falling = np.concatenate([[7.0], 4 * 2 ** (-np.arange(12) / 2), 0.07 * 2 ** (-np.arange(10) / 2), [0.001]])
    factors = np.concatenate([falling, finer_factors(1.0, kernels, bounded=False)])
    labelled = Labelled(X, y, 3, weights)
    found = list(loo_log_sums(labelled, covariances(kernels, 4), factors))
    for k, expected in enumerate(one_by_one(labelled, kernels, factors)):
        # Far below the largest sum of a row the path has a floor. Such small values do not matter.
        large = expected > expected.max(axis=1, keepdims=True) - 30
        if isinstance(recognise(kernels[0], 4), Called):  # below the normal numbers its values lose their digits
            large &= expected > np.log(np.finfo(float).tiny / np.finfo(float).eps)
        tolerance = 1e-9 if dtype == np.float64 else 2e-4
        scale = np.abs(expected[large]).max(initial=1)
        assert np.abs(found[k][large] - expected[large]).max(initial=0) < tolerance * scale, factors[k]
        told = np.isfinite(expected.max(axis=1))  # a covariance that can only be called underflows
        decisions = found[k].argmax(axis=1)[told], expected.argmax(axis=1)[told]
        if told.any():
            assert_same_decisions(*decisions, expected[told], 2 * tolerance * scale, at_least=0.8)


def test_little_working_memory_means_more_passes_and_the_same_path():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 4
    labelled, of = Labelled(X, y, 4), covariances([RBF(1.0)] * 4, 2)
    factors = default_factors(typical_distance(X))
    whole = np.array(list(loo_log_sums(labelled, of, factors)))
    heard = []
    with config_context(working_memory=0.1):
        assert work_units(labelled, of, 24) > 300
        parts = np.array(list(loo_log_sums(labelled, of, factors, done=heard.append)))
        assert sum(heard) == work_units(labelled, of, 24)
    large = whole > whole.max(axis=2, keepdims=True) - 30
    np.testing.assert_allclose(parts[large], whole[large], rtol=1e-9, atol=1e-12)


def test_a_covariance_with_negative_values_is_refused():
    X, y = np.random.default_rng(3).normal(size=(10, 2)), np.arange(10) % 2
    negative = RBF(1.0) * DotProduct(0.0)
    with pytest.raises(ValueError, match="takes negative values, such as"):
        list(loo_log_sums(Labelled(X, y, 2), covariances([negative] * 2, 2), np.ones(1)))


def test_fixed_length_scales_stay_along_the_path():
    X, y = np.random.default_rng(4).normal(size=(20, 2)), np.arange(20) % 2
    kernels = [RBF(1.0), RBF(0.7, "fixed")]
    found = list(loo_log_sums(Labelled(X, y, 2), covariances(kernels, 2), np.array([2.0, 0.5])))
    np.testing.assert_allclose(found[0][:, 1], found[1][:, 1])
    assert not np.allclose(found[0][:, 0], found[1][:, 0])


def path(criteria, **columns):
    return SelectionPath({name: np.asarray(column) for name, column in columns.items()}, criteria)


def test_the_first_criterion_decides_and_the_next_breaks_ties():
    tried = {"factor": [4.0, 3.0, 2.0, 1.0], "error": [0.3, 0.1, 0.1 + 1e-15, 0.1], "loss": [0.1, 0.5, 0.4, 0.6]}
    assert path(("error", "loss"), **tried).best == 2
    assert path(("loss",), **tried).best == 0


def test_the_longest_length_scale_wins_the_remaining_ties():
    assert path(("error",), factor=[8.0, 4.0, 2.0, 1.0, 0.5], error=[0.5, 0.2, 0.1, 0.0, 0.0]).best == 3


def test_nan_never_wins():
    untried = [np.nan, np.nan, 0.2, 0.3, 0.2]
    assert path(("error",), factor=[8.0, 4.0, 2.0, 1.0, 0.5], error=untried).best == 2


def test_truth_values_are_criteria_too():
    tried = {"factor": [2.0, 1.0], "trivial": [True, False], "loss": [0.1, 0.6]}
    assert path(("trivial", "loss"), **tried).best == 1
    assert path(("trivial", "loss"), factor=[2.0], trivial=[True], loss=[0.1]).best == 0


def test_paths_are_joined_in_order_of_length():
    one = SelectionPath.of([{"factor": 1.0, "error": 0.1}, {"factor": 4.0, "error": 0.2}], ("error",))
    two = SelectionPath.of([{"factor": 2.0, "error": 0.0}], ("error",))
    joined = one.joined(two)
    assert joined["factor"].tolist() == [4.0, 2.0, 1.0]
    assert joined["error"].tolist() == [0.2, 0.0, 0.1]
    assert joined.chosen("factor") == 2.0
    assert len(joined) == 3


def test_users_see_length_scales_and_the_choice():
    table = path(("error",), factor=[4.0, 2.0], error=[0.2, 0.1]).table(0.5)
    assert list(table) == ["length_scale", "error", "chosen"]
    assert table["length_scale"].tolist() == [2.0, 1.0]
    assert table["chosen"].tolist() == [False, True]


def test_an_empty_path_has_length_zero():
    assert len(SelectionPath.of([], ("error",))) == 0


def smoothed_loss(scores, mean, y, weights, v):
    log_p = log_softmax(mean + v * scores, axis=1)
    smoothing = 1 / (1 + weights.sum())
    return -weights @ ((1 - smoothing) * log_p[np.arange(len(y)), y] + smoothing * log_p.mean(axis=1))


@pytest.mark.parametrize("size", [1e-14, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("guess", [0.0, -12.0, 100.0])
def test_variance_minimises_the_log_loss(size, seed, guess):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=50)
    scores = size * rng.gamma(1.0, size=(50, 3))
    scores[np.arange(50), y] *= 1.5
    mean, weights = rng.normal(size=3) * 0.3, rng.uniform(0.5, 2, size=50)
    found = best_log_variance(np.log(scores), mean, y, weights, guess)
    best = minimize_scalar(lambda u: smoothed_loss(scores / size, mean, y, weights, np.exp(u)), bounds=(-8, 5))
    assert found + np.log(size) == pytest.approx(best.x, abs=2e-3)


def test_log_loss_is_the_mean_negative_log_probability():
    scores, mean = np.array([[1.0, 2.0], [3.0, 0.5]]), np.array([0.1, -0.2])
    y, weights = np.array([1, 0]), np.array([1.0, 3.0])
    expected = -np.average(log_softmax(mean + 2 * scores, axis=1)[[0, 1], y], weights=weights)
    assert log_loss(np.log(scores), mean, y, weights, np.log(2)) == pytest.approx(expected)


def test_perfect_scores_do_not_send_the_variance_to_infinity():
    y = np.arange(20) % 2
    scores = np.where(np.arange(2) == y[:, None], 0.0, -np.inf)
    found = best_log_variance(scores, np.zeros(2), y, np.ones(20))
    # One point's worth of uniform labels among 21: log odds of about log(41).
    assert found == pytest.approx(np.log(np.log(41)), abs=0.01)


def test_misleading_scores_give_a_variance_of_practically_zero():
    y = np.arange(20) % 2
    scores = np.where(np.arange(2) == y[:, None], -np.inf, 0.0)
    assert np.exp(best_log_variance(scores, np.zeros(2), y, np.ones(20))) < 1e-6


def test_vanishing_scores_keep_the_variance_a_number():
    y = np.arange(6) % 2
    assert best_log_variance(np.full((6, 2), -np.inf), np.zeros(2), y, np.ones(6)) == 0
    hopeless = np.where(np.arange(2) == y[:, None], -5000.0, -5001.0)
    assert best_log_variance(hopeless, np.zeros(2), y, np.ones(6)) <= LARGEST
    assert LARGEST > HIGHEST
