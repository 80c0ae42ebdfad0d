import numpy as np
import pytest
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF

from coxfield import threads
from coxfield.field import LabelField
from coxfield.field.couplings import couple
from coxfield.field.cuts.crossing import NO_EDGES, crossing, row_sums
from coxfield.field.graph import nearest_pairs

KERNEL = RBF(0.7)


@pytest.fixture(params=[1024, 0.005], ids=["one tile", "many tiles"])
def tiles(request):
    with config_context(working_memory=request.param):
        yield


def problem(seed, n=60, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).astype(dtype)
    coupling = couple(LabelField.from_points(X, KERNEL, np.full(n, -1)), 1, [0])
    weights = KERNEL(X)
    np.fill_diagonal(weights, 0)
    return coupling, weights, *rng.integers(2, size=(2, n)).astype(bool)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sums_count_the_separated_pairs_that_are_no_edges(n_jobs):
    coupling, weights, labels, reference = problem(0)
    edges = coupling.edges(nearest_pairs(coupling.points[0], 5))
    weights[edges.i, edges.j] = weights[edges.j, edges.i] = 0
    apart = labels[:, None] != labels
    with threads.use(n_jobs):
        found = crossing(coupling, labels, reference, edges, 10)
    np.testing.assert_allclose(found.sums, (weights * apart).sum(axis=1), rtol=1e-12)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("budget", [0, 7, 10**6])
def test_the_edges_are_the_heaviest_that_the_reference_does_not_separate_the_same_way(budget):
    coupling, weights, labels, reference = problem(1)
    slack = (labels[:, None] & ~labels) & ~(reference[:, None] & ~reference)
    expected = np.sort(weights[slack])[::-1][:budget]
    edges = crossing(coupling, labels, reference, NO_EDGES, budget).edges
    np.testing.assert_allclose(np.sort(edges.weight)[::-1], expected, rtol=1e-12)
    np.testing.assert_allclose(weights[edges.i, edges.j], edges.weight, rtol=1e-12)
    assert slack[edges.i, edges.j].all()
    assert len(np.unique(edges.i * 60 + edges.j)) == len(edges)


@pytest.mark.parametrize("ones", [0, 1, 59, 60])
def test_unbalanced_labellings(ones):
    coupling, weights, _, reference = problem(2)
    labels = np.arange(60) < ones
    found = crossing(coupling, labels, reference, NO_EDGES, 5)
    np.testing.assert_allclose(found.sums, (weights * (labels[:, None] != labels)).sum(axis=1), rtol=1e-12)


def test_the_bound_is_never_slack_at_the_reference():
    coupling, _, labels, _ = problem(3)
    assert len(crossing(coupling, labels, labels, NO_EDGES, 100).edges) == 0


def test_a_complete_graph_lacks_nothing():
    coupling, _, labels, reference = problem(6, n=8)
    edges = coupling.edges(nearest_pairs(coupling.points[0]))
    assert edges.complete
    assert (edges + NO_EDGES).complete
    found = crossing(coupling, labels, reference, edges, 10)
    assert (found.sums == 0).all()
    assert len(found.edges) == 0


def test_single_precision_is_summed_in_double():
    coupling, weights, labels, _ = problem(4, dtype=np.float32)
    found = crossing(coupling, labels, labels, NO_EDGES, 0)
    assert found.sums.dtype == np.float64
    np.testing.assert_allclose(found.sums, (weights * (labels[:, None] != labels)).sum(axis=1), rtol=1e-5)


@pytest.mark.usefixtures("tiles")
def test_row_sums_leave_out_the_node_itself():
    coupling, weights, _, _ = problem(5)
    np.testing.assert_allclose(row_sums(coupling), weights.sum(axis=1), rtol=1e-12)
