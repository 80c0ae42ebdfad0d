"""Perturb-and-MAP and randomised cuts against exact marginals and exhaustive search."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.gaussian_process.kernels import RBF

from coxfield.datasets import make_double_helix
from coxfield.field import LabelField, PerturbAndMap, RandomisedCut, map_labels, sample
from coxfield.field.edges import Edges
from coxfield.field.samplers import _cost, _expand, _move
from coxfield_paper.studies.samplers import exact_marginals
from field import random_fields as reference
from tolerances import decided


@pytest.mark.parametrize("n_classes", [2, 3])
def test_independent_nodes_are_drawn_exactly(n_classes):
    X = 1000.0 * np.arange(4).reshape(-1, 1)
    labels = [0, -1, -1, -1]
    means = np.linspace(0, 1.5, n_classes)
    field = LabelField.from_points(X, RBF(1.0), labels, mean=means, n_classes=n_classes)
    samples = sample(PerturbAndMap(field), 60, burn_in=0, random_state=0)
    np.testing.assert_allclose(exact_marginals(field), softmax(np.tile(means, (3, 1)), axis=1))
    assert (np.abs(samples.marginals - exact_marginals(field)) < 4 * samples.standard_errors).all()


@pytest.mark.parametrize("shared", [True, False])
def test_draws_of_two_classes_are_minima_of_the_perturbed_energy(shared):
    field = reference.random_field(3, 2, 7, shared)
    sampler, state = PerturbAndMap(field), PerturbAndMap(field).init(np.random.default_rng(0), 10)
    noise = np.random.default_rng(1).gumbel(size=(10, 7, 2))
    drawn = sampler.step(np.random.default_rng(1), state).labels
    labels, energies = field.enumerate()
    for one, perturbation in zip(drawn, noise, strict=True):
        perturbed = energies - perturbation[np.arange(7), labels].sum(axis=1)
        assert decided(-perturbed[None], terms=7**2, at_least=1.0)
        np.testing.assert_array_equal(one, labels[perturbed.argmin()])


def test_draws_of_three_classes_are_no_worse_than_any_expansion():
    field = reference.random_field(3, 3, 6, False)
    noise = np.random.default_rng(1).gumbel(size=(10, 6, 3))
    sampler = PerturbAndMap(field)
    drawn = sampler.step(np.random.default_rng(1), sampler.init(np.random.default_rng(0), 10)).labels
    labels, energies = field.enumerate()
    for one, perturbation in zip(drawn, noise, strict=True):
        perturbed = energies - perturbation[np.arange(6), labels].sum(axis=1)
        mine = perturbed[(labels == one).all(axis=1)]
        reachable = [((labels == one) | (labels == alpha)).all(axis=1) for alpha in range(3)]
        assert mine <= perturbed[np.any(reachable, axis=0)].min() + 1e-9


def test_it_is_an_approximation_where_nodes_depend_on_each_other():
    field = LabelField.from_points([[0.0], [0.1], [0.2], [0.3]], 2.0 * RBF(1.0), [-1] * 4, mean=[0.0, 0.3])
    samples = sample(PerturbAndMap(field), 100, burn_in=0, random_state=0)
    assert np.abs((samples.marginals - exact_marginals(field)) / samples.standard_errors).max() > 4


@pytest.mark.parametrize("sampler", [PerturbAndMap, RandomisedCut])
@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("n", [0, 1])
def test_tiny_fields(n, n_classes, sampler):
    samples = sample(sampler(reference.random_field(0, n_classes, n, True, n_known=0)), 5, random_state=0)
    assert samples.marginals.shape == (n, n_classes)


def all_labellings(n, n_classes):
    return np.indices((n_classes,) * n).reshape(n, -1).T


def random_problem(seed, n=6, n_classes=3):
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    edges = Edges(i, j, rng.exponential(size=len(i)) / 3)
    return rng.exponential(size=(n, n_classes)), edges, rng.integers(n_classes, size=n)


@pytest.mark.parametrize("alpha", range(3))
@pytest.mark.parametrize("seed", range(5))
def test_a_move_is_the_best_one(seed, alpha):
    unary, edges, labels = random_problem(seed)
    everything = all_labellings(6, 3)
    reachable = everything[((everything == labels) | (everything == alpha)).all(axis=1)]
    best = min(_cost(unary, edges, one) for one in reachable)
    assert _cost(unary, edges, _move(unary, edges, labels, alpha)) == pytest.approx(best, rel=1e-12)


def test_expansion_stops_when_no_move_helps():
    unary, edges, labels = random_problem(7)
    found = _expand(unary, edges, labels)
    moves = [_cost(unary, edges, _move(unary, edges, found, alpha)) for alpha in range(3)]
    assert _cost(unary, edges, found) <= min(moves) * (1 + 1e-12)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_without_noise_a_small_field_gives_its_most_probable_labelling(seed, shared):
    field = reference.random_field(seed, 2, 7, shared)  # few enough for all pairs to be neighbours
    sampler, rng = RandomisedCut(field, noise=0.0, balance=0.0), np.random.default_rng(0)
    for labels in sampler.step(rng, sampler.init(rng, 2)).labels:
        assert field.energy(labels) == pytest.approx(map_labels(field).energy, rel=1e-12)


def helix_field():
    X, truth = make_double_helix(60, random_state=0)
    labels = np.full(len(truth), -1)
    for c in (0, 1):
        labels[np.flatnonzero(truth == c)[::12]] = c
    return LabelField.from_points(X, RBF(0.3), labels), truth


def test_unbalanced_cuts_are_discarded():
    field, _ = helix_field()
    free = sample(RandomisedCut(field, balance=0.0), 20, burn_in=0, random_state=0).labels.mean(axis=2)
    threshold = np.median(np.minimum(free, 1 - free))  # so that half of the cuts are discarded
    kept = sample(RandomisedCut(field, balance=threshold), 20, burn_in=0, random_state=0).labels.mean(axis=2)
    assert np.minimum(free, 1 - free).min() < threshold <= np.minimum(kept, 1 - kept).min()


def test_where_no_cut_is_balanced_the_most_balanced_one_is_kept():
    field = LabelField.from_points([[0.0], [0.1], [0.2]], 30.0 * RBF(1.0), labels=[0, -1, -1])
    assert (sample(RandomisedCut(field), 5, random_state=0).labels == 0).all()


def test_noise_makes_draws_differ_and_their_mean_a_classifier():
    field, truth = helix_field()
    samples = sample(RandomisedCut(field), 25, burn_in=0, random_state=0)
    assert len(np.unique(samples.labels.reshape(-1, len(field)), axis=0)) > 1
    chance = max(np.mean(truth), 1 - np.mean(truth))
    assert (samples.marginals.argmax(axis=1) == truth[field.nodes]).mean() > chance


@pytest.mark.parametrize("shared", [True, False])
def test_three_classes_near_their_labelled_points(shared):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 15)
    X = rng.normal(size=(45, 2)) / 3 + np.array([[0, 0], [3, 0], [0, 3]])[truth]
    labels = np.where(np.arange(45) % 15 < 3, truth, -1)
    kernel = RBF(0.7) if shared else [RBF(0.7), RBF(0.6), RBF(0.8)]
    field = LabelField.from_points(X, kernel, labels)
    samples = sample(RandomisedCut(field), 10, burn_in=0, random_state=0)
    np.testing.assert_array_equal(samples.marginals.argmax(axis=1), truth[field.nodes])


@pytest.mark.parametrize(("options", "sentence"), [({"noise": 2.0}, "noise must lie"), ({"balance": 0.6}, "1/2")])
def test_options_that_make_no_sense_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        RandomisedCut(reference.random_field(0, 2, 3, True), **options)
