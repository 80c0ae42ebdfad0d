import numpy as np
import pytest

from coxfield.field.cuts.expansion import Expansion, _problem, expand
from coxfield.field.graph import nearest_pairs
from field.random_fields import couplings, random_field

SOLVER = {"tolerance": 1e-9, "max_rounds": 100}


def expanded(field, labels):
    return expand(field, labels, nearest_pairs(field.points[0]), **SOLVER)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("alpha", [0, 1, 2])
def test_the_two_class_energy_of_a_move_is_the_change_of_energy(alpha, shared):
    field = random_field(alpha, 3, 7, shared)
    labels = np.random.default_rng(alpha).integers(3, size=7)
    sums = field.neighbour_sums(labels)
    nodes = np.flatnonzero(labels != alpha)
    problem = _problem(field, Expansion(labels, sums, 0.0, 0, 0, 0), alpha, nodes)
    weights = problem.coupling.tile(problem.coupling)
    for x in np.indices((2,) * len(nodes)).reshape(len(nodes), -1).T.astype(bool):
        moved = labels.copy()
        moved[nodes[x]] = alpha
        change = weights[np.ix_(x, ~x)].sum() - problem.pull[x].sum()
        assert change == pytest.approx(field.energy(moved) - field.energy(labels), abs=1e-10)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_energy_never_rises_and_no_single_move_is_left(seed, shared):
    field = random_field(seed, 4, 40, shared)
    labels = np.random.default_rng(seed).integers(4, size=40)
    found = expanded(field, labels)
    energy = field.energy(found.labels)
    assert energy <= field.energy(labels)
    again = expanded(field, found.labels)
    assert again.moves == 0
    np.testing.assert_array_equal(again.labels, found.labels)
    np.testing.assert_allclose(found.sums, field.neighbour_sums(found.labels))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_the_excess_is_at_most_what_an_optimum_separates(seed, shared):
    """The factor 2 of the Potts model, in the form that also holds for class-specific covariances."""
    field = random_field(seed, 3, 8, shared)
    found = expanded(field, np.random.default_rng(seed).integers(3, size=8))
    labels, energies = field.enumerate()
    best = labels[energies.argmin()]
    largest = np.max([couplings(field, c) for c in range(3)], axis=0)
    separated = (largest * (best[:, None] != best)).sum() / 2
    assert field.energy(found.labels) - energies.min() <= separated + 1e-10


def test_the_given_labels_are_not_changed():
    field = random_field(3, 3, 20, shared=True)
    labels = np.random.default_rng(0).integers(3, size=20)
    before = labels.copy()
    assert expanded(field, labels).moves > 0
    np.testing.assert_array_equal(labels, before)
