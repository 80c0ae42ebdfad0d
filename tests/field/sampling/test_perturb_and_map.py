import numpy as np
import pytest
from scipy.special import softmax
from sklearn.gaussian_process.kernels import RBF

from coxfield.field import LabelField, PerturbAndMap, sample
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


@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("n", [0, 1])
def test_tiny_fields(n, n_classes):
    samples = sample(PerturbAndMap(reference.random_field(0, n_classes, n, True, n_known=0)), 5, random_state=0)
    assert samples.marginals.shape == (n, n_classes)
