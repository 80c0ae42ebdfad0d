import pytest

from coxfield.field.cuts.bounds import lagrangian_bound
from coxfield.field.graph import nearest_pairs
from field.random_fields import random_field


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
