from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.gaussian_process.kernels import RBF

from coxfield.field import Gibbs, LabelField, SwendsenWang, sample
from coxfield.field.sampling import chains, diagnostics
from coxfield.field.sampling.chains import State, initial_state
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
    np.testing.assert_allclose(samples.standard_errors, diagnostics.never_seen_error(200))
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
    state = initial_state(field, np.random.default_rng(0), 20_000)
    expected = softmax(-field.relative_unary, axis=1)
    for c in range(3):
        error = np.sqrt(expected[:, c] * (1 - expected[:, c]) / 20_000)
        assert (np.abs((state.labels == c).mean(axis=0) - expected[:, c]) < 4 * error).all()
    np.testing.assert_allclose(state.probabilities[7], expected)


def test_starts_may_be_given_once_or_for_each_chain():
    field, rng = random_field(2, 3, 4, True), np.random.default_rng(0)
    np.testing.assert_array_equal(initial_state(field, rng, 2, [0, 1, 2, 0]).labels, [[0, 1, 2, 0]] * 2)
    each = np.array([[0, 1, 2, 0], [2, 2, 2, 2]])
    np.testing.assert_array_equal(initial_state(field, rng, 2, each).labels, each)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2, 3], [0, 1, 2, -1], np.zeros((3, 4), int)])
def test_starts_of_another_shape_or_class_are_refused(labels):
    with pytest.raises(ValueError, match="a class below 3 for each of the 4 nodes"):
        initial_state(random_field(2, 3, 4, True), np.random.default_rng(0), 2, labels)


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
