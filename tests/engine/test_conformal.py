"""Closed-form conformal counts agree with naive comparisons of odds, ordinary and extreme."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.utils import gen_batches

from coxfield.engine.class_sums import Scores, class_sums, prior_terms
from coxfield.engine.conformal import (
    Calibrators,
    Odds,
    calibrating_points,
    count_worse,
    covariance_errors,
    log_without_each,
    odds_against,
    relative_errors,
    slack,
)
from coxfield.engine.store import store_labels
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from tolerances import assert_close, rounding


def naive(F, y, k, c, least):
    """Whether each point fits as badly as a new one, by adding its covariances to the scores of class c."""
    rivals, own = F.copy(), (np.arange(len(y)), y)
    rivals[:, c] += k
    mine = rivals[own]
    rivals[own] = -np.inf
    return logsumexp(rivals, axis=1) - mine >= least


def counted(kernel, F, X, new, y, against, per_class=False):
    """`count_worse` for given scores F of the calibrators and log odds against all classes of the new points."""
    points = recognise(kernel, X.shape[1]).bind(X)
    odds = Odds.of(log_softmax(F, axis=1), y, np.zeros(len(y)))
    blocks = [points[some] for some in gen_batches(len(y), 70)]
    calibrators = Calibrators(blocks, y, odds, np.arange(F.shape[1]))
    return count_worse(calibrators, points.at(new), against, np.zeros(len(new)), per_class=per_class)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_sum_without_each_column(n_classes):
    logs = np.random.default_rng(0).normal(size=(6, n_classes)) * 300
    expected = [[logsumexp(np.delete(row, c)) for c in range(n_classes)] for row in logs]
    assert_close(log_without_each(logs), expected, terms=n_classes, scale=np.abs(logs).max())


def test_odds_of_certain_points_keep_their_digits():
    logs = log_softmax([[0.0, -50.0, -60.0], [0.0, -1e4, -2e4], [3.0, 3.0, 3.0]], axis=1)
    against = odds_against(logs)
    assert_close(against[:, 0], [np.logaddexp(-50, -60), -1e4, np.log(2)], terms=3)
    assert np.isfinite(odds_against(np.array([[0.0, -np.inf]]))).all()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("spread", [1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("strength", [0.5, 40.0, 900.0])
@pytest.mark.parametrize("kind", ["positive", "negative"])
def test_counts_are_those_of_a_naive_loop(n_classes, spread, strength, kind):
    rng = np.random.default_rng(n_classes)
    X, new, y = rng.normal(size=(150, 2)), rng.normal(size=(9, 2)), np.sort(rng.integers(n_classes, size=150))
    kernel = strength * (RBF(0.7) if kind == "positive" else DotProduct(0.5) + RBF(0.1))
    F, against = rng.normal(size=(150, n_classes)) * spread, rng.normal(size=(9, n_classes)) * spread
    k = kernel(X, new)
    # No tie: the log odds are further apart than rounding of scores and covariances.
    margin = rounding(np.abs(F).max() + np.abs(k).max(), terms=16)
    both = counted(kernel, F, X, new, y, against), counted(kernel, F, X, new, y, against, per_class=True)
    for t in range(9):
        for c in range(n_classes):
            worse = naive(F, y, k[:, t], c, against[t, c])
            clear = naive(F, y, k[:, t], c, against[t, c] - margin) == naive(F, y, k[:, t], c, against[t, c] + margin)
            assert clear.all()
            assert both[0][t, c] == np.count_nonzero(worse)
            assert both[1][t, c] == np.count_nonzero(worse & (y == c))


def test_ties_count():
    X, y = np.zeros((4, 1)), np.array([0, 0, 1, 1])
    F = np.zeros((4, 2))
    F[y == 0, 0] = 2.0
    # A new point at the same place adds 1 to the score of its class: for class 0, calibrators of class 0 have odds of
    # log w = -3, and calibrators of class 1 have log w = 1.
    against = np.array([[-3.0, -1.0], [1.0, -1.0], [1.0 + 1e-9, 3.0]])
    found = counted(RBF(1.0), F, X, np.zeros((3, 1)), y, against)
    np.testing.assert_array_equal(found, [[4, 4], [2, 4], [0, 0]])


KINDS = [(np.float32, np.float32), (np.float32, np.float64)]  # as given, and as used


def test_errors_of_sums_bound_what_rounding_does():
    rng = np.random.default_rng(0)
    covariances = PerClass.shared_by(recognise(RBF(0.5), 3), 2)
    for offset in (0.0, 3.0):
        X, y = rng.normal(size=(300, 3)) + offset, rng.integers(2, size=300)
        X[0] = 20.0  # far from the others, so that distances in float32 lose digits
        rough, exact = (store_labels(X.astype(kind).astype(used), y, covariances) for kind, used in KINDS)
        new = rng.normal(size=(50, 3)).astype(np.float32) + np.float32(offset)
        errors = relative_errors(rough, rough.queries(new), 50)
        sums, true = class_sums(rough, new).values, class_sums(exact, new.astype(float)).values
        assert (np.abs(sums - true).max(axis=1) <= errors * true.max(axis=1)).all()
        assert errors.max() < 0.15
        fine = relative_errors(exact, exact.queries(new.astype(float)), 50)
        assert fine.max() < 1e-9


def test_errors_of_covariances_are_bounded_beside_far_points():
    """A far point makes the sums of all queries careful, but not the covariances with points nearby."""
    rng = np.random.default_rng(0)
    near = rng.normal(size=(60, 2)) + np.where(np.arange(60) % 2, 70, -70)[:, None]
    far, new = np.array([[0.0, 400.0]]), (near[:20] + rng.normal(size=(20, 2))).astype(np.float32)
    covariance = recognise(RBF(1.0), 2)
    rough = covariance.bind(np.concatenate([near, far]).astype(np.float32))
    exact = covariance.bind(np.concatenate([near, far]).astype(np.float32).astype(float))
    queries = rough.at(new)
    assert queries.imprecise(rough).all()
    precise = ~rough.imprecise(queries)
    assert precise.sum() == 60
    errors = covariance_errors(queries, [rough[:30], rough[30:]])
    true = exact.at(new.astype(float)).tile(exact)[:, precise]
    found = queries.tile(rough)[:, precise].astype(float)
    count = true > 1e-6
    assert (np.abs(found - true) <= errors[:, None] * true + 1e-9)[count].all()
    assert (np.abs(found - true)[count] / true[count]).max() > 1e-4  # which is more than sums with care are wrong by


def test_slack_grows_with_scores():
    rng = np.random.default_rng(0)
    covariances = PerClass.shared_by(recognise(RBF(0.5), 3), 2)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    found = []
    for strength in (1.0, 1e6):
        strong = covariances.map(lambda each, strength=strength: each.rescaled(variance=strength))
        store = store_labels(X, y, strong)
        scores = Scores(prior_terms(strong, X, np.zeros(2)), class_sums(store, X))
        found.append(slack(scores, relative_errors(store, store.queries(X), 30)))
    assert (found[0] > 0).all()
    assert (found[1] > 1e4 * found[0]).all()
    assert found[1].max() < 1e-3


def test_points_of_the_store_are_used_as_they_are():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.integers(3, size=30)
    store = store_labels(X, y, PerClass.shared_by(recognise(RBF(0.5), 3), 3))
    group, order = store.groups[0], np.argsort(y, kind="stable")
    (block,) = calibrating_points(group, X, order, order)
    assert np.shares_memory(block.points.coordinates, group.parts[0].points.points.coordinates)
    (other,) = calibrating_points(group, X, order[::2], order[::2])
    assert_close(other.tile(block), block.tile(block)[::2], terms=3, condition=100)


def test_a_group_without_points():
    X, y = np.random.default_rng(0).normal(size=(10, 2)), np.zeros(10, int)
    store = store_labels(X, y, PerClass.of([recognise(RBF(0.5), 2), recognise(RBF(2.0), 2)]))
    (block,) = calibrating_points(store.groups[1], X, np.arange(10), np.arange(10))
    assert len(block) == 10
    assert calibrating_points(store.groups[1], X, np.arange(0), np.arange(0)) == []
