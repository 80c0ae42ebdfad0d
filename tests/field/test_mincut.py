"""Two-class problems on all pairs against dense cuts, and passes over separated pairs against double loops."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF

from coxfield import threads
from coxfield.field import LabelField
from coxfield.field.edges import couple, nearest_pairs
from coxfield.field.mincut import NO_EDGES, TwoClasses, crossing, min_cut, minimise, row_sums
from tolerances import assert_same_minimum, rounding

SOLVER = {"tolerance": 1e-9, "max_rounds": 100}


def problem(seed, n=300, length_scale=0.3, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).astype(dtype)
    return TwoClasses(rng.normal(size=n) * rng.choice([0.1, 1, 3]), coupled(X, RBF(length_scale)))


def coupled(X, kernel):
    return couple(LabelField.from_points(X, kernel, np.full(len(X), -1)), 1, [0])


def start(problem, neighbours=4):
    coupling = problem.coupling
    return coupling.edges(nearest_pairs(coupling.points[0], neighbours))


def full_cost(problem, x):
    weights = problem.coupling.tile(problem.coupling).astype(float)
    return problem.terminal_cost(x) + weights[np.ix_(x, ~x)].sum()


def full_minimum(problem):
    i, j = np.triu_indices(len(problem.pull), 1)
    source, sink = np.maximum(problem.pull, 0), np.maximum(-problem.pull, 0)
    return min_cut(source, sink, i, j, problem.coupling.weights(i, j)).value


@pytest.mark.parametrize("length_scale", [0.05, 0.2, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_of_the_full_graph_with_few_of_its_edges(seed, length_scale):
    one = problem(seed, length_scale=length_scale)
    found = minimise(one, start(one), **SOLVER)
    assert found.cost == pytest.approx(full_minimum(one), rel=1e-9)
    assert found.cost == pytest.approx(full_cost(one, found.x), rel=1e-12)
    assert found.gap <= 1e-9 * found.cost
    assert len(found.edges) < 300 * 299 / 2


def test_no_edges_are_needed_to_start_from():
    one = problem(5)
    assert minimise(one, NO_EDGES, **SOLVER).cost == pytest.approx(full_minimum(one), rel=1e-9)


def test_starting_from_the_answer_takes_fewer_rounds_and_returns_it():
    one = problem(6, length_scale=0.5)
    first = minimise(one, start(one), **SOLVER)
    again = minimise(one, first.edges, init=first.x, **SOLVER)
    assert again.rounds == 1
    assert_same_minimum(lambda x: full_cost(one, x), again.x, first.x, terms=300 * 299)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_stopping_early_gives_a_valid_gap(rounds):
    one = problem(7, length_scale=0.5)
    found, least = minimise(one, start(one), tolerance=1e-9, max_rounds=rounds), full_minimum(one)
    assert found.rounds <= rounds
    assert found.lower_bound <= least * (1 + 1e-12)
    assert found.cost >= least * (1 - 1e-12)


def test_bounds_rise_and_costs_fall_from_round_to_round():
    one, seen = problem(8, length_scale=0.5), []
    minimise(one, start(one, 2), progress=seen.append, **SOLVER)
    assert [round_.rounds for round_ in seen] == list(range(1, len(seen) + 1))
    slack = rounding(seen[0].cost, terms=300 * 299)
    assert (np.diff([round_.lower_bound for round_ in seen]) >= -slack).all()
    assert (np.diff([round_.cost for round_ in seen]) <= slack).all()


def test_float32_couplings():
    one = problem(9, dtype=np.float32)
    found = minimise(one, start(one), **SOLVER)
    assert found.gap <= 1e-9 * found.cost
    assert found.cost == pytest.approx(full_cost(one, found.x), rel=1e-5)
    assert found.cost == pytest.approx(full_minimum(one), rel=1e-5)


def test_tiny_problems_are_judged_by_their_own_scale():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(200, 2))
    one = TwoClasses(1e-14 * rng.normal(size=200), coupled(X, 1e-14 * RBF(0.3)))
    found = minimise(one, start(one), **SOLVER)
    assert found.cost == pytest.approx(full_minimum(one), rel=1e-9)
    assert 0 < found.cost < 1e-11


def test_pymaxflow_on_the_full_graph_agrees():
    maxflow = pytest.importorskip("maxflow")
    one = problem(11)
    i, j = np.triu_indices(len(one.pull), 1)
    weights = one.coupling.weights(i, j)
    graph = maxflow.GraphFloat(len(one.pull), len(i))
    nodes = graph.add_nodes(len(one.pull))
    graph.add_edges(i, j, weights, weights)
    graph.add_grid_tedges(nodes, np.maximum(one.pull, 0), np.maximum(-one.pull, 0))
    assert minimise(one, start(one), **SOLVER).cost == pytest.approx(graph.maxflow(), rel=1e-9)


KERNEL = RBF(0.7)


@pytest.fixture(params=[1024, 0.005], ids=["one tile", "many tiles"])
def tiles(request):
    with config_context(working_memory=request.param):
        yield


def coupled_pairs(seed, n=60, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).astype(dtype)
    coupling = couple(LabelField.from_points(X, KERNEL, np.full(n, -1)), 1, [0])
    weights = KERNEL(X)
    np.fill_diagonal(weights, 0)
    return coupling, weights, *rng.integers(2, size=(2, n)).astype(bool)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sums_count_the_separated_pairs_that_are_no_edges(n_jobs):
    coupling, weights, labels, reference = coupled_pairs(0)
    edges = coupling.edges(nearest_pairs(coupling.points[0], 5))
    weights[edges.i, edges.j] = weights[edges.j, edges.i] = 0
    apart = labels[:, None] != labels
    with threads.use(n_jobs):
        found = crossing(coupling, labels, reference, edges, 10)
    np.testing.assert_allclose(found.sums, (weights * apart).sum(axis=1), rtol=1e-12)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("budget", [0, 7, 10**6])
def test_the_edges_are_the_heaviest_that_the_reference_does_not_separate_the_same_way(budget):
    coupling, weights, labels, reference = coupled_pairs(1)
    slack = (labels[:, None] & ~labels) & ~(reference[:, None] & ~reference)
    expected = np.sort(weights[slack])[::-1][:budget]
    edges = crossing(coupling, labels, reference, NO_EDGES, budget).edges
    np.testing.assert_allclose(np.sort(edges.weight)[::-1], expected, rtol=1e-12)
    np.testing.assert_allclose(weights[edges.i, edges.j], edges.weight, rtol=1e-12)
    assert slack[edges.i, edges.j].all()
    assert len(np.unique(edges.i * 60 + edges.j)) == len(edges)


@pytest.mark.parametrize("ones", [0, 1, 59, 60])
def test_unbalanced_labellings(ones):
    coupling, weights, _, reference = coupled_pairs(2)
    labels = np.arange(60) < ones
    found = crossing(coupling, labels, reference, NO_EDGES, 5)
    np.testing.assert_allclose(found.sums, (weights * (labels[:, None] != labels)).sum(axis=1), rtol=1e-12)


def test_the_bound_is_never_slack_at_the_reference():
    coupling, _, labels, _ = coupled_pairs(3)
    assert len(crossing(coupling, labels, labels, NO_EDGES, 100).edges) == 0


def test_a_complete_graph_lacks_nothing():
    coupling, _, labels, reference = coupled_pairs(6, n=8)
    edges = coupling.edges(nearest_pairs(coupling.points[0]))
    assert edges.complete
    assert (edges + NO_EDGES).complete
    found = crossing(coupling, labels, reference, edges, 10)
    assert (found.sums == 0).all()
    assert len(found.edges) == 0


def test_single_precision_is_summed_in_double():
    coupling, weights, labels, _ = coupled_pairs(4, dtype=np.float32)
    found = crossing(coupling, labels, labels, NO_EDGES, 0)
    assert found.sums.dtype == np.float64
    np.testing.assert_allclose(found.sums, (weights * (labels[:, None] != labels)).sum(axis=1), rtol=1e-5)


@pytest.mark.usefixtures("tiles")
def test_row_sums_leave_out_the_node_itself():
    coupling, weights, _, _ = coupled_pairs(5)
    np.testing.assert_allclose(row_sums(coupling), weights.sum(axis=1), rtol=1e-12)
