from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.field import LabelField
from coxfield.field.cuts import persistency as module
from coxfield.field.cuts.persistency import persistent_labels
from coxfield.field.graph import nearest_pairs
from field.random_fields import random_field
from tolerances import decided

SOLVER = {"tolerance": 1e-9, "max_rounds": 100}


def pairs_of(field, count=8):
    return nearest_pairs(field.points[0], count)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_persistent_labels_extend_to_an_optimal_labelling(seed, shared):
    field = random_field(seed, 3, 8, shared)
    proven = persistent_labels(field, pairs_of(field), **SOLVER)
    labels, energies = field.enumerate()
    optima = labels[energies <= energies.min() + 1e-9]
    known = proven.labels >= 0
    assert (optima[:, known] == proven.labels[known]).all(axis=1).any()
    assert proven.slack < 1e-8


@pytest.mark.parametrize("shared", [True, False])
def test_strong_unary_terms_are_all_proven(shared):
    field = random_field(1, 3, 8, shared)
    field.relative_unary[np.arange(8), np.arange(8) % 3] -= 100
    np.testing.assert_array_equal(persistent_labels(field, pairs_of(field), **SOLVER).labels, np.arange(8) % 3)


@pytest.mark.parametrize("seed", range(5))
def test_of_two_classes_every_label_is_proven(seed):
    field = random_field(seed, 2, 9, shared=seed % 2 == 0)
    labels, energies = field.enumerate()
    assert decided(-energies[None], terms=9**2, at_least=1.0)
    proven = persistent_labels(field, pairs_of(field), **SOLVER)
    np.testing.assert_array_equal(proven.labels, labels[energies.argmin()])


def test_without_couplings_every_node_takes_its_cheapest_class():
    rng = np.random.default_rng(0)
    field = LabelField.from_points(1e4 * np.arange(6)[:, None], RBF(1.0), [-1] * 6, n_classes=4)
    field = replace(field, relative_unary=rng.normal(size=(6, 4)))
    proven = persistent_labels(field, pairs_of(field), **SOLVER)
    np.testing.assert_array_equal(proven.labels, field.relative_unary.argmin(axis=1))


def test_a_cut_that_is_not_closed_proves_nothing(monkeypatch):
    field = random_field(1, 3, 8, shared=True)
    assert (persistent_labels(field, pairs_of(field), **SOLVER).labels >= 0).any()
    minimise = module.minimise
    monkeypatch.setattr(module, "minimise", lambda *args, **how: replace(minimise(*args, **how), lower_bound=-1.0))
    assert (persistent_labels(field, pairs_of(field), **SOLVER).labels == -1).all()


def test_no_nodes_have_no_labels():
    field = random_field(0, 3, 0, shared=True)
    assert persistent_labels(field, pairs_of(field), **SOLVER).labels.shape == (0,)


def test_what_is_proven_for_one_class_is_data_to_the_next():
    """The middle node is of the last class by itself, and of the first beside its neighbour, which is proven before."""
    field = LabelField.from_points(np.array([[-1.665], [0.0], [1.177]]), 4.0 * RBF(1.0), [-1] * 3, n_classes=3)
    field = replace(field, relative_unary=np.array([[-20.0, 0.0, 0.0], [0.0, 10.0, -0.5], [0.0, -20.0, 0.0]]))
    labels, energies = field.enumerate()
    assert labels[energies.argmin()].tolist() == [0, 0, 1]
    assert persistent_labels(field, pairs_of(field), **SOLVER).labels.tolist() == [0, -1, 1]
