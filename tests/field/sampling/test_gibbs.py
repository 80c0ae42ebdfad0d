import numpy as np
import pytest

from coxfield.field import Gibbs, rows, sample
from coxfield.field.sampling import gibbs
from coxfield.field.sampling.chains import State
from coxfield_paper.studies.samplers import FIELDS, exact_marginals, random_field, standard_deviations
from field import random_fields as reference
from tolerances import assert_same_decisions


class Replay:
    """A random generator with given Gumbel variables."""

    def __init__(self, noise):
        self.noise, self.position = noise, 0

    def gumbel(self, size):
        part = self.noise[self.position : self.position + size[0]]
        self.position += size[0]
        return part


def scan(field, labels, noise, coupling):
    """One sweep of one chain, node by node, by the definition of the energy; with the scores that decided."""
    labels, probabilities = labels.copy(), np.empty((len(field), field.n_classes))
    scores = np.empty_like(probabilities)
    couplings = [reference.couplings(field, c) for c in range(field.n_classes)]
    for i in range(len(field)):
        sums = [matrix[i] @ (labels == c) for c, matrix in enumerate(couplings)]
        logits = coupling * np.array(sums) - field.relative_unary[i]
        scores[i] = logits + noise[i]
        labels[i] = np.argmax(scores[i])
        probabilities[i] = np.exp(logits) / np.exp(logits).sum()
    return labels, probabilities, scores


@pytest.mark.parametrize("block", [1, 4, 100])
@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_a_sweep_is_the_sequential_scan(monkeypatch, shared, held, block):
    monkeypatch.setattr(gibbs, "BLOCK", block)
    monkeypatch.setattr(rows, "MOST", rows.MOST if held else 0)
    field = reference.random_field(2, 3, 14, shared)
    rng = np.random.default_rng(0)
    labels, noise = rng.integers(3, size=(5, 14)), rng.gumbel(size=(14, 5, 3))
    state = Gibbs(field).step(Replay(noise), State(labels), 0.7)
    for chain in range(5):
        expected, probabilities, scores = scan(field, labels[chain], noise[:, chain], 0.7)
        # Every decision must be clear, because the next ones depend on it.
        assert_same_decisions(state.labels[chain], expected, scores, terms=14, at_least=1.0)
        np.testing.assert_allclose(state.probabilities[chain], probabilities, rtol=1e-9)


def test_the_given_state_is_not_changed():
    field = reference.random_field(1, 2, 9, True)
    sampler, rng = Gibbs(field), np.random.default_rng(0)
    state = sampler.init(rng, 3)
    before = state.labels.copy()
    sampler.step(rng, state)
    np.testing.assert_array_equal(state.labels, before)


@pytest.mark.parametrize("seed", range(FIELDS))
def test_marginals_are_those_of_enumeration(seed):
    field = random_field(seed)
    samples = sample(Gibbs(field), 400, n_chains=32, burn_in=50, random_state=seed)
    assert np.abs(standard_deviations(samples, exact_marginals(field))).max() < 4


def test_without_coupling_nodes_are_independent():
    field = reference.random_field(0, 3, 6, False)
    sampler, rng = Gibbs(field), np.random.default_rng(0)
    state = sampler.step(rng, sampler.init(rng), 0.0)
    weights = np.exp(-field.relative_unary)
    np.testing.assert_allclose(state.probabilities[0], weights / weights.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [1, 2])
@pytest.mark.parametrize("n", [0, 1])
def test_tiny_fields(n, n_classes):
    samples = sample(Gibbs(reference.random_field(0, n_classes, n, True, n_known=0)), 5, random_state=0)
    assert samples.marginals.shape == samples.standard_errors.shape == (n, n_classes)
    np.testing.assert_allclose(samples.marginals.sum(axis=1), 1, rtol=1e-6)
    assert samples.labels.shape == (4, 5, n)
