import numpy as np
import pytest
from scipy.signal import lfilter

from coxfield.field.sampling import diagnostics
from coxfield.field.sampling.diagnostics import effective_sample_size, never_seen_error, r_hat, standard_error


def autoregressive(correlation, n_chains, n_draws, trailing=(), seed=0):
    """Chains of correlation^t, from their stationary distribution of variance 1."""
    noise = np.random.default_rng(seed).normal(size=(n_chains, n_draws, *trailing))
    noise[:, 1:] *= np.sqrt(1 - correlation**2)
    return lfilter([1], [1, -correlation], noise, axis=1)


def slow_effective_size(halves):
    """The formulas of the module written as loops over lags and chains, for one series."""
    m, n = halves.shape
    within = np.mean([np.var(chain, ddof=1) for chain in halves])
    total = (n - 1) / n * within + np.var([chain.mean() for chain in halves], ddof=1)
    rho = []
    for lag in range(n):
        covariances = [sum((c[t] - c.mean()) * (c[t + lag] - c.mean()) for t in range(n - lag)) / n for c in halves]
        rho.append(1 - (within - np.mean(covariances)) / total)
    rho[0] = 1.0
    time, least = -1.0, np.inf
    for k in range(n // 2):
        pair = rho[2 * k] + rho[2 * k + 1]
        if pair <= 0:
            break
        least = min(least, pair)
        time += 2 * least
    return m * n / max(time, 1 / np.log10(m * n))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_draws", [4, 9, 60])
def test_effective_size_is_its_formula_by_loops(seed, n_draws):
    series = autoregressive(0.6, 3, n_draws, seed=seed)
    half = n_draws // 2
    halves = np.concatenate([series[:, :half], series[:, -half:]])
    assert effective_sample_size(series) == pytest.approx(slow_effective_size(halves), rel=1e-10)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_autoregressive_chains_are_worth_their_known_share(correlation):
    series = autoregressive(correlation, 4, 20_000, (20,))
    shares = effective_sample_size(series) / (4 * 20_000)
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    assert abs(shares.mean() - (1 - correlation) / (1 + correlation)) < 4 * error + 0.02 * shares.mean()


def test_standard_errors_are_the_spread_of_means_over_repetitions():
    series = autoregressive(0.8, 4, 1000, (300,))
    reported = np.sqrt((standard_error(series) ** 2).mean())
    true = np.sqrt((1 + 0.8) / (1 - 0.8) / 4000)
    assert reported == pytest.approx(true, rel=0.1)
    assert (series.mean(axis=(0, 1)) / standard_error(series)).std() == pytest.approx(1, abs=4 / np.sqrt(2 * 300))


def test_r_hat_is_its_formula():
    series = np.random.default_rng(1).normal(size=(3, 10)) + np.array([[0.0], [1.0], [0.5]])
    halves = np.concatenate([series[:, :5], series[:, 5:]])
    within = np.mean([half.var(ddof=1) for half in halves])
    total = 4 / 5 * within + np.var([half.mean() for half in halves], ddof=1)
    assert r_hat(series) == pytest.approx(np.sqrt(total / within))


def test_a_drift_within_a_single_chain_shows_in_r_hat():
    drift = np.linspace(-2, 2, 400)[None] + np.random.default_rng(0).normal(size=(1, 400))
    assert r_hat(drift) > 1.3
    assert r_hat(np.random.default_rng(0).permuted(drift, axis=1)) < 1.05


def test_constant_series_are_trusted_when_chains_agree_and_not_when_they_differ():
    series = np.zeros((2, 8, 3))
    series[:, :, 1] = 0.1 + 0.2  # a mean that rounding moves
    series[1, :, 2] = 1
    np.testing.assert_array_equal(r_hat(series), [1, 1, np.inf])
    np.testing.assert_array_equal(standard_error(series)[:2], [0, 0])
    np.testing.assert_array_equal(effective_sample_size(series)[:2], [16, 16])
    assert effective_sample_size(series)[2] <= 4
    assert standard_error(series)[2] > 0.25


def test_the_error_of_unseen_events_covers_events_missed_in_half_of_all_runs():
    n = 1000
    missed_half_the_time = 1 - 0.5 ** (1 / n)
    assert missed_half_the_time < 4 * never_seen_error(n)


def test_large_series_are_transformed_in_parts(monkeypatch):
    series = autoregressive(0.5, 2, 50, (7, 2))
    whole = effective_sample_size(series)
    monkeypatch.setattr(diagnostics, "NUMBERS", 1)
    np.testing.assert_allclose(effective_sample_size(series), whole)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4)])
def test_short_series_are_refused(shape):
    with pytest.raises(ValueError, match="at least 4 draws"):
        r_hat(np.zeros(shape))
