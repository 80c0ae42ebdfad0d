"""Minimum cuts of both engines against exhaustive search, and against each other bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coxfield.field import mincut as engines
from coxfield.field.mincut import in_rounds, min_cut, push_relabel
from lean import run_without


@pytest.fixture(params=[in_rounds, push_relabel])
def engine(request, monkeypatch):
    """Each engine in turn."""
    if request.param is push_relabel:
        pytest.importorskip("ortools")
    monkeypatch.setattr(engines, "_engine", lambda: request.param)
    return request.param


by_each_engine = pytest.mark.usefixtures("engine")


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


@by_each_engine
@pytest.mark.parametrize("scale", [1.0, 1e-14, 1e-290, 1e200])
@pytest.mark.parametrize("seed", range(5))
def test_the_cut_is_least_and_its_value_within_the_stated_error_at_any_scale(seed, scale):
    graph = random_graph(seed, scale=scale)
    cut, least = min_cut(*graph), exhaustive_minimum(graph)
    assert cut_value(*graph, cut.side) == pytest.approx(least, rel=1e-12)
    assert cut.value <= least * (1 + 1e-15)
    assert least <= (cut.value + cut.error) * (1 + 1e-15)
    assert cut.error < 1e-13 * least


@by_each_engine
def test_capacities_of_very_different_sizes_do_not_overflow():
    graph = np.array([1e-9, 0, 3.0]), np.array([0, 1e-9, 0]), np.array([0, 1]), np.array([1, 2]), np.array([1e30, 1.0])
    cut = min_cut(*graph)
    assert cut.value == pytest.approx(1e-9)
    assert cut.side.all()


@by_each_engine
def test_edges_that_round_to_nothing_are_in_the_error():
    graph = np.array([1.0, 0]), np.array([0, 1.0]), np.array([0]), np.array([1]), np.array([1e-30])
    cut = min_cut(*graph)
    assert cut.value == 0
    assert cut.value + cut.error >= 1e-30


@by_each_engine
@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_terminals_no_edges_no_nodes(n):
    nothing = np.zeros(0, int), np.zeros(0, int), np.zeros(0)
    assert min_cut(np.zeros(n), np.zeros(n), *nothing).value == 0
    assert min_cut(np.ones(n), np.zeros(n), *nothing).side.all()
    assert not min_cut(np.zeros(n), np.ones(n), *nothing).side.any()
    assert min_cut(np.ones(n), np.ones(n), *nothing).value == n


@by_each_engine
def test_given_arrays_are_not_changed():
    graph = random_graph(0)
    copies = [array.copy() for array in graph]
    min_cut(*graph)
    for now, before in zip(graph, copies, strict=True):
        np.testing.assert_array_equal(now, before)


@st.composite
def integer_networks(draw):
    """Capacities between 1 and 2^60, so that rounds and clipped arcs occur; the source gives no more than 2^60."""
    n = draw(st.integers(1, 9))
    capacities = st.integers(0, 60).flatmap(lambda bits: st.integers(0, 2**bits))
    source = [draw(capacities) // n for _ in range(n)]
    sink = [draw(capacities) for _ in range(n)]
    pairs = draw(st.lists(st.sampled_from([(a, b) for a in range(n) for b in range(a)] or [(0, 0)]), unique=True))
    i, j = np.array([pair for pair in pairs if pair != (0, 0)], int).reshape(-1, 2).T
    weights = [draw(capacities) + 1 for _ in i]
    return *(np.array(each, np.int64) for each in (source, sink)), i, j, np.array(weights, np.int64)


@given(integer_networks())
def test_rounds_end_with_a_cut_that_is_as_large_as_the_flow(network):
    source, sink, i, j, weights = network
    if not source.any():
        return
    side, flow = in_rounds(*network)
    cut = [*source[~side].tolist(), *sink[side].tolist(), *weights[side[i] != side[j]].tolist()]
    assert sum(cut) == flow  # integers of Python: no flow is larger than a cut, so both are right


@given(integer_networks())
def test_both_engines_find_the_same_side_and_the_same_flow(network):
    pytest.importorskip("ortools")
    if not network[0].any():
        return
    (side, flow), (other, same) = in_rounds(*network), push_relabel(*network)
    assert flow == same
    np.testing.assert_array_equal(side, other)


PROGRAM = """
import numpy as np
from coxfield import SLGCPClassifier
from coxfield.field import mincut

X, y = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]), [0, -1, -1, 1, -1, -1]
for inference in ("map", "perturb_and_map"):
    clf = SLGCPClassifier(inference=inference, length_scales=[0.2], random_state=0)
    print(clf.fit(X, y).label_distributions_.tolist())
print(mincut._engine().__name__)
"""


def test_without_or_tools_cuts_are_those_of_scipy():
    pytest.importorskip("ortools")
    without, installed = (run_without(missing, PROGRAM) for missing in (("ortools", "pandas"), ()))
    assert without.stdout.splitlines()[-1:] == ["in_rounds"], without.stderr
    assert installed.stdout.splitlines()[-1:] == ["push_relabel"], installed.stderr
    assert without.stdout.splitlines()[:-1] == installed.stdout.splitlines()[:-1]


@by_each_engine
def test_pymaxflow_agrees():
    maxflow = pytest.importorskip("maxflow")
    source, sink, i, j, capacity = random_graph(3, n=60)
    graph = maxflow.GraphFloat(60, len(i))
    nodes = graph.add_nodes(60)
    graph.add_edges(i, j, capacity, capacity)
    graph.add_grid_tedges(nodes, source, sink)
    assert min_cut(source, sink, i, j, capacity).value == pytest.approx(graph.maxflow(), rel=1e-12)


@by_each_engine
def test_igraph_agrees():
    igraph = pytest.importorskip("igraph")
    source, sink, i, j, capacity = random_graph(4, n=60)
    n = len(source)
    tails = np.concatenate([i, np.full(n, n), np.arange(n)])
    heads = np.concatenate([j, np.arange(n), np.full(n, n + 1)])
    graph = igraph.Graph(n + 2, np.stack([tails, heads], axis=1))
    value = graph.mincut_value(n, n + 1, capacity=np.concatenate([capacity, source, sink]).tolist())
    assert min_cut(source, sink, i, j, capacity).value == pytest.approx(value, rel=1e-12)
