"""Bounds of the energy and proven labels, against enumeration of tiny fields."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.field import LabelField
from coxfield.field import solve as module
from coxfield.field.edges import nearest_pairs
from coxfield.field.solve import lagrangian_bound, persistent_labels
from field.random_fields import random_field
from tolerances import assert_close, decided


def pairs_of(field, count=8):
    return nearest_pairs(field.points[0], count)


@pytest.mark.parametrize("neighbours", [2, 8])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_below_the_minimum(seed, shared, neighbours):
    field = random_field(seed, 3, 8, shared)
    labels, energies = field.enumerate()
    for one in (labels[energies.argmin()], labels[seed]):
        found = lagrangian_bound(field, one, field.neighbour_sums(one), pairs_of(field, neighbours), 0.0)
        assert field.energy(one) - found.gap <= energies.min() + 1e-9


def test_the_bound_is_tight_for_two_classes():
    field = random_field(2, 2, 10, shared=True)
    labels, energies = field.enumerate()
    best = labels[energies.argmin()]
    assert lagrangian_bound(field, best, field.neighbour_sums(best), pairs_of(field), 1e-12).gap < 1e-9


def far_apart(n_classes=4, n=6):
    """A field whose nodes do not feel each other: the minimum is that of each node."""
    rng = np.random.default_rng(0)
    field = LabelField.from_points(1e4 * np.arange(n)[:, None], RBF(1.0), [-1] * n, n_classes=n_classes)
    return replace(field, relative_unary=rng.normal(size=(n, n_classes)))


def test_without_couplings_the_gap_is_what_the_labels_cost_too_much():
    field = far_apart()
    best = field.relative_unary.argmin(axis=1)
    for labels in (best, (best + 1) % 4):
        paid = field.relative_unary[np.arange(6), labels] - field.relative_unary.min(axis=1)
        found = lagrangian_bound(field, labels, field.neighbour_sums(labels), pairs_of(field), 0.0)
        assert_close(found.gap, paid.sum(), terms=6 * 4, scale=np.abs(field.relative_unary).sum())


def test_a_gap_that_is_small_enough_ends_the_climb():
    field = random_field(0, 3, 8, shared=False)
    labels = np.arange(8) % 3
    sums = field.neighbour_sums(labels)
    quick, long = (lagrangian_bound(field, labels, sums, pairs_of(field, 2), close) for close in (np.inf, 0.0))
    assert quick.cuts == 3
    assert long.cuts > 3
    assert quick.gap > long.gap > 0


@pytest.mark.parametrize("shared", [True, False])
def test_edges_are_counted_and_a_sparse_graph_is_enriched(shared):
    field = random_field(0, 3, 8, shared)
    labels = np.arange(8) % 3
    found = lagrangian_bound(field, labels, field.neighbour_sums(labels), pairs_of(field, 1), 0.0)
    assert len(pairs_of(field, 1)) <= found.edges <= 8 * 7 // 2


SOLVER = {"tolerance": 1e-9, "max_rounds": 100}


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
