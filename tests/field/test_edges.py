"""Graphs to start from, and couplings of two-class problems against double loops."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern

from covariance_doubles import RowCovariance
from coxfield.field import Gibbs, LabelField, SwendsenWang, map_labels, sample
from coxfield.field.edges import Pairs, couple, first_pairs, nearest_pairs
from coxfield.kernels.called import Graph
from coxfield.kernels.radial import recognise
from field.random_fields import KERNELS
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


rng = np.random.default_rng(0)
X = rng.normal(size=(9, 2))
GROUPS = rng.integers(3, size=9)


def field_of(kernels, points=X):
    """A field of free points with one kernel per class."""
    return LabelField.from_points(points, list(kernels), np.full(points.shape[0], -1), n_classes=len(kernels))


def tile(coupling):
    weights = coupling.tile(coupling)
    np.fill_diagonal(weights, 0)
    return weights


def listed(coupling):
    i, j = np.triu_indices(len(coupling), 1)
    weights = np.zeros((len(coupling),) * 2)
    weights[i, j] = coupling.weights(i, j)
    return weights + weights.T


def kernel_values(kernel):
    values = kernel(X)
    np.fill_diagonal(values, 0)
    return values


@pytest.mark.parametrize("form", [tile, listed])
@pytest.mark.parametrize("held", [False, True], ids=["", "held"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_one_covariance_for_both_labels_is_the_covariance(form, held, kernel):
    field = field_of([kernel, kernel])
    field = field.held() if held else field
    np.testing.assert_allclose(form(couple(field, 1, [0])), kernel_values(kernel), atol=1e-14)


@pytest.mark.parametrize("form", [tile, listed])
def test_two_covariances_count_half_each(form):
    one, zero = KERNELS[:2]
    expected = (kernel_values(one) + kernel_values(zero)) / 2
    np.testing.assert_allclose(form(couple(field_of([one, zero]), 0, [1])), expected, atol=1e-14)
    np.testing.assert_allclose(form(couple(field_of([one, zero]), 0)), kernel_values(one) / 2, atol=1e-14)


@pytest.mark.parametrize("form", [tile, listed])
def test_the_best_of_several_labels_has_the_largest_covariance(form):
    one, *others = KERNELS[3:7]
    largest = np.max([kernel_values(kernel) for kernel in others], axis=0)
    coupling = couple(field_of(KERNELS[3:7]), 0, [1, 2, 3])
    np.testing.assert_allclose(form(coupling), (kernel_values(one) + largest) / 2, atol=1e-14)


@pytest.mark.parametrize("form", [tile, listed])
@pytest.mark.parametrize("picks", [[0, 0, 0], [0, 1, 0], [2, 6, 7]])
def test_groups_have_their_own_covariance_and_no_weight_between_them(form, picks):
    one, zeros = KERNELS[0], [KERNELS[pick] for pick in picks]
    own = np.zeros((9, 9))
    for g, kernel in enumerate(zeros):
        members = np.flatnonzero(np.equal(GROUPS, g))
        mine = np.ix_(members, members)
        own[mine] = kernel_values(kernel)[mine]
    coupling = couple(field_of([one, *zeros]), 0, [1, 2, 3], GROUPS)
    np.testing.assert_allclose(form(coupling), (kernel_values(one) + own) / 2, atol=1e-14)


def test_some_nodes_have_a_part_of_the_weights():
    coupling = couple(field_of(KERNELS[:3]), 0, [0, 1, 2], GROUPS)
    rows, columns = np.array([5, 1, 2]), np.array([0, 8])
    part = coupling[rows].tile(coupling[columns])
    np.testing.assert_allclose(part, tile(coupling)[np.ix_(rows, columns)], rtol=1e-12)


def test_sparse_points_have_the_weights_of_dense_ones():
    dense, thin = (couple(field_of([RBF(0.8)] * 2, Z), 1, [0]) for Z in (X, sparse.csr_array(X)))
    for form in (tile, listed):
        np.testing.assert_allclose(form(thin), form(dense), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_points_far_away_keep_their_neighbours(dtype, far):
    Z = np.concatenate([X[:4], X[:4] + far]).astype(dtype)
    weights = tile(couple(field_of([Matern(0.5)] * 2, Z), 1, [0]))
    np.testing.assert_allclose(weights[:4, :4], tile(couple(field_of([Matern(0.5)] * 2, X[:4]), 1, [0])), rtol=0.1)
    assert (weights[:4, 4:] == 0).all()


def test_pairs_among_some_nodes_are_renumbered():
    pairs = Pairs(6, np.zeros(0, int)).union(np.array([4, 0, 5, 2]), np.array([1, 2, 4, 0]))
    np.testing.assert_array_equal(pairs.ends, [[0, 1, 4], [2, 4, 5]])
    np.testing.assert_array_equal(pairs.among(np.array([1, 4, 5])).ends, [[0, 1], [1, 2]])
