import numpy as np
import pytest
from scipy import sparse

from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_distributions, store_labels
from coxfield.kernels.called import Graph, hold
from coxfield.kernels.per_class import PerClass
from tolerances import assert_close

RNG = np.random.default_rng(0)
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
    assert nodes.precomputed
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
