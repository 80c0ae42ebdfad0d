import numpy as np
import pytest

from coxfield.field.cuts.maxflow import min_cut


def random_graph(seed, n=8, scale=1.0):
    rng = np.random.default_rng(seed)
    source, sink = np.maximum(rng.normal(size=(2, n)), 0) * scale
    i, j = np.triu_indices(n, 1)
    return source, sink, i, j, rng.random(len(i)) * scale * rng.choice([0.05, 0.5, 5])


def cut_value(source, sink, i, j, capacity, side):
    return source[~side].sum() + sink[side].sum() + capacity[side[i] != side[j]].sum()


def exhaustive_minimum(graph):
    n = len(graph[0])
    sides = np.indices((2,) * n).reshape(n, -1).T.astype(bool)
    return min(cut_value(*graph, side) for side in sides)


@pytest.mark.parametrize("scale", [1.0, 1e-14, 1e-290, 1e200])
@pytest.mark.parametrize("seed", range(5))
def test_the_cut_is_least_and_its_value_within_the_stated_error_at_any_scale(seed, scale):
    graph = random_graph(seed, scale=scale)
    cut, least = min_cut(*graph), exhaustive_minimum(graph)
    assert cut_value(*graph, cut.side) == pytest.approx(least, rel=1e-12)
    assert cut.value <= least * (1 + 1e-15)
    assert least <= (cut.value + cut.error) * (1 + 1e-15)
    assert cut.error < 1e-13 * least


def test_capacities_of_very_different_sizes_do_not_overflow():
    graph = np.array([1e-9, 0, 3.0]), np.array([0, 1e-9, 0]), np.array([0, 1]), np.array([1, 2]), np.array([1e30, 1.0])
    cut = min_cut(*graph)
    assert cut.value == pytest.approx(1e-9)
    assert cut.side.all()


def test_edges_that_round_to_nothing_are_in_the_error():
    graph = np.array([1.0, 0]), np.array([0, 1.0]), np.array([0]), np.array([1]), np.array([1e-30])
    cut = min_cut(*graph)
    assert cut.value == 0
    assert cut.value + cut.error >= 1e-30


@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_terminals_no_edges_no_nodes(n):
    nothing = np.zeros(0, int), np.zeros(0, int), np.zeros(0)
    assert min_cut(np.zeros(n), np.zeros(n), *nothing).value == 0
    assert min_cut(np.ones(n), np.zeros(n), *nothing).side.all()
    assert not min_cut(np.zeros(n), np.ones(n), *nothing).side.any()
    assert min_cut(np.ones(n), np.ones(n), *nothing).value == n


def test_given_arrays_are_not_changed():
    graph = random_graph(0)
    copies = [array.copy() for array in graph]
    min_cut(*graph)
    for now, before in zip(graph, copies, strict=True):
        np.testing.assert_array_equal(now, before)


def test_pymaxflow_agrees():
    maxflow = pytest.importorskip("maxflow")
    source, sink, i, j, capacity = random_graph(3, n=60)
    graph = maxflow.GraphFloat(60, len(i))
    nodes = graph.add_nodes(60)
    graph.add_edges(i, j, capacity, capacity)
    graph.add_grid_tedges(nodes, source, sink)
    assert min_cut(source, sink, i, j, capacity).value == pytest.approx(graph.maxflow(), rel=1e-12)


def test_igraph_agrees():
    igraph = pytest.importorskip("igraph")
    source, sink, i, j, capacity = random_graph(4, n=60)
    n = len(source)
    tails = np.concatenate([i, np.full(n, n), np.arange(n)])
    heads = np.concatenate([j, np.arange(n), np.full(n, n + 1)])
    graph = igraph.Graph(n + 2, np.stack([tails, heads], axis=1))
    value = graph.mincut_value(n, n + 1, capacity=np.concatenate([capacity, source, sink]).tolist())
    assert min_cut(source, sink, i, j, capacity).value == pytest.approx(value, rel=1e-12)
