import numpy as np
import pytest

from coxfield.field.cuts.persistency import persistent_labels
from coxfield.field.graph import nearest_pairs
from field.random_fields import random_field

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
