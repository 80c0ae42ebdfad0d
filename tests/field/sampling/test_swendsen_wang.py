import numpy as np
import pytest
from scipy.special import softmax

from coxfield.engine import tiles
from coxfield.field import SwendsenWang, rows, sample
from coxfield.field.sampling import swendsen_wang
from coxfield_paper.studies.samplers import FIELDS, exact_marginals, random_field, standard_deviations
from field import random_fields as reference


@pytest.mark.parametrize("seed", range(FIELDS))
def test_marginals_are_those_of_enumeration(seed):
    field = random_field(seed)
    samples = sample(SwendsenWang(field), 250, n_chains=32, burn_in=50, random_state=seed)
    assert np.abs(standard_deviations(samples, exact_marginals(field))).max() < 4


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
    monkeypatch.setattr(rows, "MOST", rows.MOST if held else 0)
    monkeypatch.setattr(swendsen_wang, "PROPOSALS", 5000)
    monkeypatch.setattr(swendsen_wang, "CROWDED", 0.0 if many else np.inf)
    monkeypatch.setattr(tiles, "ROWS", 2)
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


def test_without_coupling_nodes_are_independent():
    field = reference.random_field(0, 3, 6, True)
    sampler, rng = SwendsenWang(field), np.random.default_rng(0)
    state = sampler.step(rng, sampler.init(rng), 0.0)
    np.testing.assert_allclose(state.probabilities[0], softmax(-field.relative_unary, axis=1))


@pytest.mark.parametrize("n_classes", [1, 2])
@pytest.mark.parametrize("n", [0, 1])
def test_tiny_fields(n, n_classes):
    samples = sample(SwendsenWang(reference.random_field(0, n_classes, n, True, n_known=0)), 5, random_state=0)
    assert samples.marginals.shape == samples.standard_errors.shape == (n, n_classes)
    np.testing.assert_allclose(samples.marginals.sum(axis=1), 1, rtol=1e-6)
