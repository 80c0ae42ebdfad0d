"""Values that were computed before, and couplings that a user lists."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_distributions, store_labels
from coxfield.kernels.called import Graph, HeldPoints, all_held, hold
from coxfield.kernels.namespace import cross_out
from coxfield.kernels.protocol import PerClass, values
from coxfield.kernels.radial import RadialPoints, recognise
from strategies import RECOGNISED, UNRECOGNISED
from tolerances import assert_close

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
KERNEL = 0.7 * RBF([1.0, 2.0, 0.5])
# (|x|^2 + |z|^2) / l^2, at most: the rounding of distances made of products is relative to that.
EXPONENTS = 4 * np.square(X / [1.0, 2.0, 0.5]).sum(axis=1).max()
SUBSETS = {
    "whole": slice(None),
    "slice": slice(2, 9),
    "few": np.array([7, 1]),
    "out of order": np.array([11, 0, 5, 3, 3]),
    "none": np.zeros(0, int),
}


@pytest.fixture
def bound():
    return recognise(KERNEL, 3).bind(X)


@pytest.mark.parametrize("rows", SUBSETS.values(), ids=SUBSETS)
@pytest.mark.parametrize("columns", SUBSETS.values(), ids=SUBSETS)
def test_any_rows_and_columns_are_a_copy_of_what_is_held(bound, rows, columns):
    held = hold(bound)
    found = held[rows].tile(held[columns])
    expected = held.matrix[np.ix_(np.arange(12)[rows], np.arange(12)[columns])]
    assert_close(found, expected, condition=EXPONENTS)  # the matrix is symmetric but for rounding
    before = held.matrix.copy()
    found[...] = np.nan
    np.testing.assert_array_equal(held.matrix, before)


@pytest.mark.parametrize("kernel", [*RECOGNISED, *UNRECOGNISED], ids=str)
def test_the_matrix_is_the_covariance(kernel):
    bound = recognise(kernel, 3).bind(X)
    np.testing.assert_array_equal(hold(bound).matrix, values(bound, bound))


def test_subsets_of_subsets_keep_their_numbers(bound):
    held = hold(bound)
    assert held[[8, 3, 5]][[2, 0]].rows.tolist() == [5, 8]
    assert len(held[[8, 3, 5]]) == 3


def test_values_are_computed_once(bound, monkeypatch):
    calls = []
    tile = RadialPoints.tile
    monkeypatch.setattr(RadialPoints, "tile", lambda *args: calls.append(1) or tile(*args))
    held = hold(bound)
    for rows in SUBSETS.values():
        held[rows].tile(held)
        held[rows].log_tile(held)
        held[rows].rescaled(variance=2.0).tile(held.rescaled(variance=2.0))
    assert len(calls) == 1


def test_listed_pairs_are_entries_of_the_matrix(bound):
    held = hold(bound)
    some, others = held[[7, 1, 4]], held[[0, 2]]
    i, j = np.array([0, 2, 2]), np.array([1, 0, 1])
    np.testing.assert_array_equal(some.pairs(i, others, j), held.matrix[[7, 4, 4], [2, 0, 2]])


def test_logarithms_leave_out_what_they_must(bound):
    held = hold(bound)
    logs = cross_out(held[:4].log_tile(held), np.array([0, -1, 11, 3]), 0, -np.inf)
    expected = np.log(held.matrix[:4])
    expected[[0, 2, 3], [0, 11, 3]] = -np.inf
    np.testing.assert_array_equal(logs, expected)
    far = hold(recognise(RBF(1e-3), 3).bind(X))
    assert np.isneginf(far.log_tile(far)[0, 1])  # what underflowed is gone, and no warning


def test_another_variance_needs_no_new_values_and_another_length_scale_does(bound):
    held = hold(bound)
    louder = held[[3, 1]].rescaled(variance=4.0)
    assert isinstance(louder, HeldPoints)
    np.testing.assert_array_equal(louder.tile(louder), 4.0 * held.matrix[np.ix_([3, 1], [3, 1])])
    assert_close(louder.diagonal(), np.array([4 * 0.7]))
    assert_close(louder.covariance.variance, 4 * 0.7)
    longer = held[[3, 1]].rescaled(length=2.0, variance=4.0)
    expected = bound.rescaled(2.0, 4.0)[[3, 1]]
    np.testing.assert_array_equal(longer.tile(longer), expected.tile(expected))


def test_the_diagonal_is_that_of_the_covariance_with_its_noise():
    held = hold(recognise(RBF(1.0) + WhiteKernel(0.5), 3).bind(X))
    assert_close(held[[0, 4]].diagonal(), np.full(2, 1.5))
    assert_close(np.diagonal(held.matrix), np.ones(12))


def test_what_is_not_held_is_asked_of_the_points(bound):
    held = hold(bound)
    some, columns = held[[7, 1, 4]], held[[2, 7]]
    weights, own, rows = np.array([0.5, 2.0]), np.array([1, -1, -1]), np.array([1.0, -2.0, 0.3])
    found = some.differentiate(columns, weights, own)
    expected = bound[[7, 1, 4]].differentiate(bound[[2, 7]], weights, own)
    np.testing.assert_array_equal(found.sums, expected.sums)
    np.testing.assert_array_equal(found.gradient(rows), expected.gradient(rows))
    np.testing.assert_array_equal(some.diagonal_gradient(rows), bound[[7, 1, 4]].diagonal_gradient(rows))
    np.testing.assert_array_equal(some.neighbours(2), bound[[7, 1, 4]].neighbours(2))
    new = RNG.normal(size=(2, 3))
    np.testing.assert_array_equal(held.at(new).tile(bound), bound.at(new).tile(bound))


def test_nothing_held_is_imprecise(bound):
    held = hold(bound)[:5]
    assert not held.imprecise(held).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_that_of_the_points_and_pairs_are_double(dtype):
    held = hold(recognise(RBF(1.0), 3).bind(X.astype(dtype)))
    assert held.dtype == held.tile(held).dtype == dtype
    assert held.pairs(np.array([0]), held, np.array([1])).dtype == np.float64
    assert held.log_tile(held).dtype == np.float64


def test_many_points_are_not_held(bound, monkeypatch):
    monkeypatch.setattr("coxfield.kernels.called.MOST", 100)
    assert hold(bound) is bound
    held = hold(bound[:10])
    assert hold(held) is held


UPPER = np.triu(RNG.exponential(size=(10, 10)) * (RNG.random((10, 10)) < 0.4), 1)
MATRIX = UPPER + UPPER.T
GRAPH = Graph(sparse.csr_array(MATRIX))
ROWS = np.arange(10)[:, None]


@pytest.mark.parametrize("some", [slice(None), slice(2, 6), [3, 1, 8], np.zeros(0, int)])
@pytest.mark.parametrize("others", [slice(None), [9, 0], np.zeros(0, int)])
def test_blocks_are_parts_of_the_matrix(some, others):
    nodes = GRAPH.bind(ROWS)
    np.testing.assert_array_equal(nodes[some].block(nodes[others]).toarray(), MATRIX[some][:, others])
    np.testing.assert_array_equal(nodes[some].links().toarray(), MATRIX[some][:, some])
    np.testing.assert_array_equal(nodes[some].tile(nodes[others]), MATRIX[some][:, others])


def test_the_whole_graph_is_not_copied():
    assert GRAPH.bind(ROWS).links() is GRAPH.matrix


def test_couplings_are_already_held():
    nodes = GRAPH.bind(ROWS)
    assert all_held([nodes])
    assert hold(nodes) is nodes


def test_neighbours_are_the_strongest_links_and_then_other_nodes():
    found = GRAPH.bind(ROWS).neighbours(4)
    for i, row in enumerate(found):
        links = np.flatnonzero(MATRIX[i])
        expected = links[np.argsort(-MATRIX[i, links])][:4]
        np.testing.assert_array_equal(row[: len(expected)], expected)
        assert i not in row


def test_class_sums_of_soft_labels():
    shares = RNG.dirichlet(np.ones(3), size=10)
    sums = class_sums(store_distributions(ROWS, shares, PerClass.shared_by(GRAPH, 3)), ROWS)
    assert_close(sums.values, MATRIX @ shares, terms=10)


@pytest.mark.parametrize("n_classes", [2, 40])
def test_class_sums_leave_out_what_they_should(n_classes):
    y = RNG.integers(n_classes, size=10)
    leave_out = RNG.integers(-1, 10, size=10)
    sums = class_sums(store_labels(ROWS, y, PerClass.shared_by(GRAPH, n_classes)), ROWS, leave_out)
    left = MATRIX * (np.arange(10) != leave_out[:, None])
    assert_close(sums.values, np.stack([left[:, y == c].sum(axis=1) for c in range(n_classes)], axis=1), terms=10)


def test_what_a_graph_cannot_do_is_said():
    nodes = GRAPH.bind(ROWS)
    with pytest.raises(ValueError, match="has no parameters to learn: give a kernel instead"):
        nodes.differentiate(nodes, np.ones(10), np.arange(10))
    assert nodes.diagonal_gradient(np.ones(10)).shape == (0,)
    with pytest.raises(ValueError, match="the negative coupling -1"):
        Graph(sparse.csr_array([[0.0, -1.0], [-1.0, 0.0]])).check_nonnegative()
    GRAPH.check_nonnegative()
