import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from coxfield.selection.loo import HIGHEST, LARGEST, best_log_variance, log_loss


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
