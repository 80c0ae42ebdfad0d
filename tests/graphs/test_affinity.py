import numpy as np
import pytest
from scipy import sparse

from coxfield.graphs.affinity import Ties, row_shares
from coxfield.graphs.neighbours import Listed, Search
from tolerances import assert_close

POINTS = np.random.default_rng(0).normal(size=(30, 2))


def scale(x, others, rank):
    return sorted(np.linalg.norm(x - z) for z in others)[rank - 1]


def reference(X, ties):
    """The graph by double loop."""
    n = len(X)
    own = [scale(X[i], np.delete(X, i, 0), min(7, ties.neighbours)) for i in range(n)]
    if ties.common:
        own = [np.median(own)] * n
    W = np.zeros((n, n))
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: np.linalg.norm(X[i] - X[j]))
        for j in others[: ties.neighbours]:
            weight = np.exp(-ties.sharpness * np.linalg.norm(X[i] - X[j]) ** 2 / (own[i] * own[j]))
            W[i, j] = W[j, i] = max(W[i, j], weight)
    return W


@pytest.mark.parametrize("ties", [Ties(3), Ties(10), Ties(10, 4.0, common=True), Ties(5, 2.5)])
def test_weights_are_those_of_a_double_loop(ties):
    found = Search.among(POINTS).of_all(12)
    W = ties.graph(found).toarray()
    expected = reference(POINTS, ties)
    assert_close(W, expected, condition=100)  # exponents reach 100
    np.testing.assert_array_equal(W, W.T)
    assert (np.diag(W) == 0).all()


def test_duplicates_take_the_typical_scale():
    X = np.concatenate([np.zeros((12, 2)), POINTS])
    ties = Ties(5)
    found = Search.among(X).of_all(5)
    scales = ties.scales(found)
    assert (scales > 0).all()
    assert_close(scales[:12], np.median(scales[12:]))
    assert np.isfinite(ties.graph(found).toarray()).all()
    same = Search.among(np.ones((9, 2))).of_all(5)
    assert (ties.scales(same) == 1).all()
    assert set(ties.graph(same).toarray().ravel()) == {0, 1}


def test_faint_weights_are_none():
    X = np.concatenate([POINTS, [[1e3, 0]]])
    W = Ties(5, 10.0, common=True).graph(Search.among(X).of_all(5)).toarray()
    assert (W[-1] == 0).all()
    assert W[W > 0].min() >= 1e-200


def test_listed_points_may_have_few_neighbours_or_none():
    distances = sparse.csr_array(([1.0, 2.0, 1.0], ([0, 0, 1], [1, 2, 0])), (4, 4))
    W = Ties(5).graph(Listed(distances).of_all(5)).toarray()
    scales = [2.0, 1.0, 1.5, 1.5]  # the last two have none of their own: the median
    assert_close(W[0, 1], np.exp(-1 / (scales[0] * scales[1])))
    assert_close(W[0, 2], np.exp(-4 / (scales[0] * scales[2])))
    np.testing.assert_array_equal(W, W.T)
    assert (W[3] == 0).all()


@pytest.mark.parametrize("ties", [Ties(5), Ties(8, 10.0, common=True)])
def test_shares_of_new_points_add_up_to_one_however_far_they_are(ties):
    search = Search.among(POINTS)
    scales = ties.scales(search.of_all(8))
    new = np.array([[0.0, 0.0], [3.0, 1.0], [1e4, 0.0], [1e9, 1e9], POINTS[3]])
    shares = ties.shares(search.of(new, 8), scales)
    assert_close(np.asarray(shares.sum(axis=1)).ravel(), 1.0, terms=8)
    found = search.of(new[:2], 8)
    for q in range(2):
        own = scales[0] if ties.common else found.distance[q, min(7, ties.neighbours) - 1]
        near = found.index[q, : ties.neighbours]
        weights = np.exp(-ties.sharpness * found.distance[q, : ties.neighbours] ** 2 / (own * scales[near]))
        assert_close(shares.toarray()[q, near], weights / weights.sum(), terms=8, condition=300)


def test_a_new_point_without_listed_neighbours_has_no_shares():
    search = Listed(sparse.csr_array(np.ones((3, 3))))
    ties = Ties(2)
    shares = ties.shares(search.of(sparse.csr_array((1, 3)), 2), ties.scales(search.of_all(2)))
    assert (shares.toarray() == 0).all()


def test_given_weights_become_shares():
    shares = row_shares(sparse.csr_array([[1.0, 3.0], [0.0, 0.0]])).toarray()
    np.testing.assert_array_equal(shares, [[0.25, 0.75], [0, 0]])


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1.0, 1e308])
def test_shares_of_extreme_weights(size):
    weights = sparse.csr_array(np.full((2, 40), size) * [[1], [0]])
    with np.errstate(all="raise"):
        shares = row_shares(weights).toarray()
    np.testing.assert_array_equal(shares, np.full((2, 40), 1 / 40) * [[1], [0]])


def test_names_say_what_differs():
    assert Ties(5).name == "5 neighbours"
    assert Ties(10, 4.0, common=True).name == "10 neighbours, one scale, sharpness 4"
