"""Gibbs and Swendsen-Wang against sequential scans, exact transitions and enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from coxfield.engine import class_sums
from coxfield.field import Gibbs, SwendsenWang, edges, sample, samplers
from coxfield.field.chains import State
from coxfield.field.samplers import clusters
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
    monkeypatch.setattr(samplers, "BLOCK", block)
    monkeypatch.setattr(edges, "MOST", edges.MOST if held else 0)
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


@pytest.mark.parametrize(("sampler", "n_samples"), [(Gibbs, 400), (SwendsenWang, 250)])
@pytest.mark.parametrize("seed", range(FIELDS))
def test_marginals_are_those_of_enumeration(seed, sampler, n_samples):
    field = random_field(seed)
    samples = sample(sampler(field), n_samples, n_chains=32, burn_in=50, random_state=seed)
    assert np.abs(standard_deviations(samples, exact_marginals(field))).max() < 4


@pytest.mark.parametrize(("kind", "shared"), [(Gibbs, False), (SwendsenWang, True)])
def test_without_coupling_nodes_are_independent(kind, shared):
    field = reference.random_field(0, 3, 6, shared)
    sampler, rng = kind(field), np.random.default_rng(0)
    state = sampler.step(rng, sampler.init(rng), 0.0)
    weights = np.exp(-field.relative_unary)
    np.testing.assert_allclose(state.probabilities[0], weights / weights.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("sampler", [Gibbs, SwendsenWang])
@pytest.mark.parametrize("n_classes", [1, 2])
@pytest.mark.parametrize("n", [0, 1])
def test_tiny_fields(n, n_classes, sampler):
    samples = sample(sampler(reference.random_field(0, n_classes, n, True, n_known=0)), 5, random_state=0)
    assert samples.marginals.shape == samples.standard_errors.shape == (n, n_classes)
    np.testing.assert_allclose(samples.marginals.sum(axis=1), 1, rtol=1e-6)
    assert samples.labels.shape == (4, 5, n)


def states(labels, n_classes):
    """The number of each labelling in the order of `LabelField.enumerate`."""
    return labels @ n_classes ** np.arange(labels.shape[1])[::-1]


def joint_deviation(field, coupling=1.0, n_chains=10_000, seed=0):
    """Start in the exact distribution, make one step: largest deviation from it, in standard errors."""
    labels, energies = field.enumerate()
    unary = field.unary[np.arange(len(field)), labels].sum(axis=1)
    truth = softmax(-unary - coupling * (energies - unary))
    sampler, rng = SwendsenWang(field), np.random.default_rng(seed)
    # The number of chains in each state is proportional to its probability, so that only the step is random.
    counts = rng.multinomial(n_chains, truth)
    start = np.repeat(labels, counts, axis=0)
    state = sampler.step(rng, sampler.init(rng, n_chains, start), coupling)
    assert not np.array_equal(state.labels, start)
    found = np.bincount(states(state.labels, field.n_classes), minlength=len(labels)) / n_chains
    return np.abs((found - truth) / np.sqrt(truth * (1 - truth) / n_chains + 1 / n_chains**2)).max()


@pytest.mark.parametrize("coupling", [1.0, 0.4])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_step_keeps_the_joint_distribution(seed, n_classes, shared, coupling):
    assert joint_deviation(reference.random_field(seed, n_classes, 3, shared), coupling) < 4


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize("held", [True, False])
def test_a_step_by_blocks_and_parts_of_chains_keeps_the_joint_distribution(monkeypatch, held, many, n_classes):
    monkeypatch.setattr(edges, "MOST", edges.MOST if held else 0)
    monkeypatch.setattr(samplers, "PROPOSALS", 5000)
    monkeypatch.setattr(samplers, "CROWDED", 0.0 if many else np.inf)
    monkeypatch.setattr(class_sums, "ROWS", 2)
    assert joint_deviation(reference.random_field(4, n_classes, 4, False), n_chains=3000) < 4


def test_transitions_of_two_nodes_are_those_of_the_bond_between_them():
    field = reference.random_field(5, 2, 2, True)
    bound = 1 - np.exp(-reference.couplings(field, 0)[0, 1])
    alone, both = softmax(-field.relative_unary, axis=1), softmax(-field.relative_unary.sum(axis=0))
    expected = (1 - bound) * np.outer(alone[0], alone[1]) + bound * np.diag(both)
    sampler, rng, n_chains = SwendsenWang(field), np.random.default_rng(0), 40_000
    labels = sampler.step(rng, sampler.init(rng, n_chains, [0, 0])).labels
    found = np.bincount(states(labels, 2), minlength=4) / n_chains
    error = np.sqrt(expected * (1 - expected) / n_chains).ravel()
    assert (np.abs(found - expected.ravel()) < 4 * error).all()


def test_probabilities_are_those_that_labels_were_drawn_from():
    field = reference.random_field(3, 3, 6, False)
    sampler, rng, n_chains = SwendsenWang(field), np.random.default_rng(0), 20_000
    state = sampler.step(rng, sampler.init(rng, n_chains, np.array([0, 1, 2, 0, 1, 2])))
    difference = state.probabilities - (state.labels[:, :, None] == np.arange(3))
    assert (np.abs(difference.mean(axis=0)) <= 4 * difference.std(axis=0) / np.sqrt(n_chains)).all()
    np.testing.assert_allclose(state.probabilities.sum(axis=2), 1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 60))
def test_few_and_many_bonds_give_the_same_clusters(seed, n, count):
    bonds = np.random.default_rng(seed).integers(n, size=(2, count))
    found = clusters(bonds, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samplers, "FEW", -1)
        expected = clusters(bonds, n)
    assert found[0] == expected[0]
    np.testing.assert_array_equal(found[1], expected[1])


def test_a_long_chain_is_one_cluster():
    order = np.random.default_rng(0).permutation(1500)
    number, cluster = clusters(np.stack([order[:-1], order[1:]]), 1500)
    assert number == 1
    assert not cluster.any()


def test_without_bonds_each_node_is_a_cluster():
    number, cluster = clusters(np.zeros((2, 0), int), 3)
    assert number == 3
    np.testing.assert_array_equal(cluster, np.arange(3))
