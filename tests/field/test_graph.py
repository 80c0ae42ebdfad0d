import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

from covariance_doubles import RowCovariance
from coxfield.field import Gibbs, LabelField, SwendsenWang, map_labels, sample
from coxfield.field.graph import first_pairs, nearest_pairs
from coxfield.kernels.graph import Graph
from coxfield.kernels.recognise import recognise
from field.random_graphs import random_couplings
from tolerances import assert_close, rounding


def test_every_node_is_paired_with_its_nearest_in_units_of_the_length_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    scale = np.array([0.1, 1.0, 10.0])
    pairs = nearest_pairs(recognise(RBF(scale), 3).bind(X), 2)
    distances = np.linalg.norm((X[:, None] - X) / scale, axis=-1)
    np.fill_diagonal(distances, np.inf)
    i, j = pairs.ends
    assert (i < j).all()
    held = np.full((60, 60), np.inf)
    held[i, j] = held[j, i] = distances[i, j]
    assert_close(held.min(axis=1), distances.min(axis=1), terms=3)


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_few_nodes_are_all_paired(n):
    assert len(nearest_pairs(recognise(RBF(1.0), 2).bind(np.zeros((n, 2))), 8)) == n * (n - 1) // 2


def test_a_field_of_many_features_is_solved_exactly():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 100)).astype(np.float32)
    labels = np.concatenate([[0, 1] * 5, np.full(140, -1)])
    result = map_labels(LabelField.from_points(X, RBF(5.0), labels))
    assert result.certified.all()
    assert result.relative_gap <= 1e-9


def test_few_nodes_make_a_complete_graph_and_its_parts_are_complete():
    few, many = (nearest_pairs(recognise(RBF(1.0), 1).bind(np.arange(float(n))[:, None]), 4) for n in (5, 6))
    assert few.complete
    assert few.among(np.array([0, 3])).complete
    assert not many.complete
    assert not many.union(np.array([0]), np.array([5])).complete


def test_listed_links_are_the_whole_graph():
    couplings = random_couplings(1, 30, density=0.2)
    points = Graph(sparse.csr_array(couplings)).bind(np.arange(30)[:, None])
    pairs = first_pairs([points], 1)
    assert pairs.complete
    np.testing.assert_array_equal(np.stack(pairs.ends), np.nonzero(np.triu(couplings)))
    shuffled = first_pairs([points[np.arange(30)[::-1]]])
    np.testing.assert_array_equal(np.stack(shuffled.ends), np.nonzero(np.triu(couplings[::-1, ::-1])))


def test_covariances_with_different_links_are_listed_together():
    both = [random_couplings(seed, 12, density=0.2) for seed in (1, 2)]
    rows = np.arange(12)[:, None]
    pairs = first_pairs([Graph(sparse.csr_array(one)).bind(rows) for one in both])
    np.testing.assert_array_equal(np.stack(pairs.ends), np.nonzero(np.triu(both[0] + both[1])))
    dense = RowCovariance(both[1]).bind(rows)
    assert not first_pairs([Graph(sparse.csr_array(both[0])).bind(rows), dense], 3).complete


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_with_graphs_of_their_own_are_solved_and_sampled(n_classes):
    rows, graphs = np.arange(8)[:, None], [sparse.csr_array(random_couplings(c, 8)) for c in range(n_classes)]
    field = LabelField.from_points(rows, [Graph(one) for one in graphs], [0, 1, -1, -1, -1, -1, -1, -1])
    labels, energies = field.enumerate()
    result = map_labels(field)
    slack = rounding(np.abs(energies).max(), terms=64)
    assert result.lower_bound - slack <= energies.min() <= result.energy + slack
    assert n_classes > 2 or result.energy <= energies.min() + result.gap + slack
    weights = np.exp(energies.min() - energies)
    exact = np.stack([weights @ (labels == c) for c in range(n_classes)], axis=1) / weights.sum()
    for sampler in (Gibbs, SwendsenWang):
        draws = sample(sampler(field), 400, random_state=0)
        assert (np.abs(draws.marginals - exact) <= 5 * draws.standard_errors).all()
