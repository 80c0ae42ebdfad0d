"""The loop of all samplers against counting by hand, and its diagnostics against slow formulas."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import softmax
from sklearn.gaussian_process.kernels import RBF

from coxfield.field import Gibbs, LabelField, SwendsenWang, chains, sample
from coxfield.field.chains import FieldSampler, State, effective_sample_size, never_seen_error, r_hat, standard_error
from field.random_fields import random_field

STRONG = 60.0 * RBF(1.0)


@dataclass(frozen=True)
class Counter:
    """A sampler that counts its steps: all labels are the number of steps modulo the number of classes."""

    field: LabelField

    def init(self, rng, n_chains=1, labels=None):
        return State(np.zeros((n_chains, len(self.field)), int))

    def step(self, rng, state):
        return State((state.labels + 1) % self.field.n_classes)


def counter(n_classes=3):
    return Counter(random_field(0, n_classes, 2, True))


def test_burn_in_and_thinning_choose_the_draws():
    steps = []
    samples = sample(counter(), 4, n_chains=2, burn_in=5, thin=2, done=steps.append)
    np.testing.assert_array_equal(samples.labels[1, :, 0], np.array([7, 9, 11, 13]) % 3)
    assert sum(steps) == 5 + 4 * 2
    assert samples.n_draws == 8
    assert samples.labels.dtype == np.uint8


def test_samplers_without_probabilities_are_counted():
    samples = sample(counter(), 6, n_chains=2, burn_in=0)
    np.testing.assert_allclose(samples.marginals, 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(samples.variances, 2 / 9)


@pytest.mark.parametrize("sampler", [Gibbs, SwendsenWang])
def test_the_same_seed_gives_the_same_draws(sampler):
    field = random_field(1, 3, 6, False)
    first, second, other = (sample(sampler(field), 20, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.labels, second.labels)
    assert not np.array_equal(first.labels, other.labels)


def test_batches_change_neither_marginals_nor_the_meaning_of_errors(monkeypatch):
    field = random_field(4, 2, 6, True)
    whole = sample(Gibbs(field), 2048, random_state=0)
    monkeypatch.setattr(chains, "SERIES", 1)
    monkeypatch.setattr(chains, "FEWEST_BATCHES", 128)
    parts = sample(Gibbs(field), 2048, keep_labels=False, random_state=0)
    assert parts.labels is None
    assert parts.series.shape == (4, 128, 6, 2)
    np.testing.assert_allclose(parts.marginals, whole.marginals, rtol=1e-4)
    np.testing.assert_allclose(parts.variances, whole.variances, rtol=1e-4)
    # Each is an estimate from 512 batches at least: right to a tenth, twice that for the ratio.
    np.testing.assert_allclose(parts.standard_errors, whole.standard_errors, rtol=0.25)


def test_a_last_batch_that_is_not_full_is_left_out(monkeypatch):
    monkeypatch.setattr(chains, "SERIES", 1)
    monkeypatch.setattr(chains, "FEWEST_BATCHES", 4)
    samples = sample(counter(), 10, n_chains=1, burn_in=0)
    assert samples.series.shape[1] == 3
    np.testing.assert_allclose(samples.series.sum(axis=3), 1, rtol=1e-6)


def test_a_node_that_never_changes_has_an_error_and_an_r_hat_of_one():
    field = LabelField.from_points([[0.0], [0.1]], STRONG, labels=[0, -1], n_classes=2)
    samples = sample(Gibbs(field), 50, random_state=0)
    assert (samples.labels == 0).all()
    np.testing.assert_array_equal(samples.r_hat, 1)
    np.testing.assert_allclose(samples.standard_errors, chains.never_seen_error(200))
    np.testing.assert_array_equal(samples.effective_sample_size, 200)


def test_chains_that_always_disagree_are_detected():
    field = LabelField.from_points([[0.0], [0.1], [0.2]], STRONG, labels=[-1] * 3, n_classes=2)
    start = np.array([[0, 0, 0], [1, 1, 1]])
    samples = sample(Gibbs(field), 50, n_chains=2, labels=start, random_state=0)
    assert (samples.r_hat > 100).all()
    assert (samples.standard_errors > 0.2).all()
    assert (sample(SwendsenWang(field), 200, n_chains=2, labels=start, random_state=0).r_hat < 1.1).all()


def test_starts_are_draws_by_the_unary_terms():
    field = random_field(2, 3, 5, False)
    state = FieldSampler(field).init(np.random.default_rng(0), 20_000)
    expected = softmax(-field.relative_unary, axis=1)
    for c in range(3):
        error = np.sqrt(expected[:, c] * (1 - expected[:, c]) / 20_000)
        assert (np.abs((state.labels == c).mean(axis=0) - expected[:, c]) < 4 * error).all()
    np.testing.assert_allclose(state.probabilities[7], expected)


def test_starts_may_be_given_once_or_for_each_chain():
    field, rng = random_field(2, 3, 4, True), np.random.default_rng(0)
    np.testing.assert_array_equal(FieldSampler(field).init(rng, 2, [0, 1, 2, 0]).labels, [[0, 1, 2, 0]] * 2)
    each = np.array([[0, 1, 2, 0], [2, 2, 2, 2]])
    np.testing.assert_array_equal(FieldSampler(field).init(rng, 2, each).labels, each)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2, 3], [0, 1, 2, -1], np.zeros((3, 4), int)])
def test_starts_of_another_shape_or_class_are_refused(labels):
    with pytest.raises(ValueError, match="a class below 3 for each of the 4 nodes"):
        FieldSampler(random_field(2, 3, 4, True)).init(np.random.default_rng(0), 2, labels)


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1, got 0"),
        ({"n_samples": 5, "thin": 0}, "thin must be at least 1, got 0"),
        ({"n_samples": 5, "burn_in": -1}, "burn_in must be at least 0, got -1"),
        ({"n_samples": 5, "n_chains": 0}, "n_chains must be at least 1, got 0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(numbers, sentence):
    with pytest.raises(ValueError, match=sentence):
        sample(Gibbs(random_field(0, 2, 3, True)), **numbers)


def test_too_few_draws_have_marginals_but_no_errors():
    samples = sample(Gibbs(random_field(0, 2, 3, True)), 2)
    assert np.isfinite(samples.marginals).all()
    with pytest.raises(ValueError, match="at least 4 draws"):
        _ = samples.standard_errors


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
    monkeypatch.setattr(chains, "NUMBERS", 1)
    np.testing.assert_allclose(effective_sample_size(series), whole)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4)])
def test_short_series_are_refused(shape):
    with pytest.raises(ValueError, match="at least 4 draws"):
        r_hat(np.zeros(shape))
