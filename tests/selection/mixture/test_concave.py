"""The concave problem: one optimum, right gradients, limits."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_wine

from coxfield.datasets import load_pima, load_synth
from coxfield.engine.store import Labelled
from coxfield.selection.mixture.bank import bank_of
from coxfield.selection.mixture.concave import MEAN_PRECISION, Problem, row_log_softmax, row_softmax
from coxfield.selection.mixture.loo_members import member_sums
from derivatives import difference
from mixtures import concave_problem as made
from tolerances import assert_close


@pytest.mark.parametrize("shape", [(50, 10), (7, 30, 2)])
def test_logarithms_of_rows_are_those_of_scipy(shape):
    scores = 300 * np.random.default_rng(0).normal(size=shape)
    assert_close(row_log_softmax(scores), log_softmax(scores, axis=-1), terms=10, scale=1000.0)
    assert_close(row_softmax(scores), softmax(scores, axis=-1), terms=10, condition=1000)


def test_the_loss_is_the_negative_log_posterior():
    problem, sums = made()
    w, mean = np.linspace(0, 2, 6), np.array([0.3, -0.1, 0.2])
    weights = w / problem.scale
    logs = log_softmax(mean + np.einsum("m,mjc->jc", weights, sums), axis=1)
    fit = problem.counts @ logs[np.arange(50), problem.y]
    prior = -np.sum(weights * problem.scale) - MEAN_PRECISION / 2 * np.sum((mean - problem.centre) ** 2)
    assert problem.loss(np.concatenate([w, mean]))[0] == pytest.approx(-(fit + prior), rel=1e-12)


def test_the_rate_of_the_prior_is_the_largest_evidence_in_nats():
    problem, sums = made()
    centred = sums - sums.mean(axis=1, keepdims=True)
    centred -= centred.mean(axis=2, keepdims=True)
    np.testing.assert_allclose(problem.scale, np.abs(centred).max(axis=(1, 2)), rtol=1e-12)


def test_units_of_a_member_change_its_weight_and_nothing_else():
    problem, sums = made()
    units = np.array([1.0, 10.0, 1e-3, 1.0, 7.0, 1.0])
    other = Problem.of(sums * units[:, None, None], problem.y, problem.counts, problem.centre).solve()
    np.testing.assert_allclose(
        other.weights * units, problem.solve().weights, rtol=1e-3, atol=1e-5 * problem.solve().weights.max()
    )


def test_a_member_that_says_nothing_has_no_weight():
    problem, sums = made()
    sums[3] = 5.0
    assert Problem.of(sums, problem.y, problem.counts, problem.centre).solve().weights[3] == 0


def test_means_may_be_held():
    problem, _ = made()
    np.testing.assert_array_equal(problem.solve(learn_mean=False).mean, problem.centre)


def test_gradients():
    problem, _ = made()
    rng = np.random.default_rng(1)
    here = np.concatenate([rng.uniform(0.2, 3, size=6), rng.normal(size=3)])
    _, gradient = problem.loss(here)
    for k, step in enumerate(np.eye(len(here))):
        slope = difference(lambda t, step=step: problem.loss(here + t * step)[0])
        assert gradient[k] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def wine():
    return load_wine(return_X_y=True)


def synth():
    return load_synth(return_X_y=True)[:2]


def diabetes():
    return load_pima(return_X_y=True)[:2]


@pytest.mark.parametrize("load", [wine, synth, diabetes])
def test_all_starts_lead_to_the_same_optimum(load):
    X, y = load()
    y = np.unique(y, return_inverse=True)[1]
    labelled = Labelled(X, y, y.max() + 1)
    bank = bank_of(None, labelled)
    sums = member_sums(labelled, bank, np.arange(len(y))).sums
    problem = Problem.of(sums, y, labelled.counts, np.log(np.bincount(y) / len(y)))
    rng = np.random.default_rng(0)
    found = [problem.solve()]
    for _ in range(10):
        start = np.concatenate([rng.exponential(3.0, size=problem.n_members), rng.normal(size=problem.centre.size)])
        found.append(problem.solve(start))
    losses = np.array([solution.loss for solution in found])
    np.testing.assert_allclose(losses, losses.min(), rtol=1e-6)
    probabilities = [np.exp(log_softmax(one.mean + np.einsum("m,mjc->jc", one.weights, sums), axis=1)) for one in found]
    # The loss is flat to second order at the optimum, so that predictions agree to the root of its tolerance.
    assert max(np.abs(p - probabilities[0]).max() for p in probabilities) < 1e-3


def test_steps_are_told_of():
    told = []
    made()[0].solve(done=told.append)
    assert len(told) > 1
    assert set(told) == {1}
