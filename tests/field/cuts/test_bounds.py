from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.field import LabelField
from coxfield.field.cuts.bounds import lagrangian_bound
from coxfield.field.graph import nearest_pairs
from field.random_fields import random_field
from tolerances import assert_close


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
