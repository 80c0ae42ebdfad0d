"""Neighbours against brute force, the frame of points, and edge weights against the formula."""

import numpy as np
import pytest
from scipy import sparse

from coxfield.graphs import neighbours
from coxfield.graphs.neighbours import EdgeRule, Frame, Listed, Search, listed, row_shares
from tolerances import assert_close


def test_ordinary_points_stay_as_they_are():
    X = np.random.default_rng(0).normal(size=(20, 3)) + 5
    assert Frame.of(X) == Frame(precision=X.dtype)
    assert Frame.of(X).place(X) is X


@pytest.mark.parametrize(("factor", "offset"), [(1e200, 0.0), (1e-200, 0.0), (1.0, 1e6), (1e-200, 1.0)])
def test_extreme_points_are_moved_and_scaled_alike(factor, offset):
    X = np.random.default_rng(0).normal(size=(20, 3)) * factor + offset
    frame = Frame.of(X)
    placed = frame.place(X)
    assert np.abs(placed).max() <= 4
    np.testing.assert_allclose(np.diff(placed, axis=0) * frame.unit, np.diff(X, axis=0), rtol=1e-6)


def test_single_precision_has_narrower_bounds():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32) * np.float32(1e25)
    placed = Frame.of(X).place(X)
    assert placed.dtype == np.float32
    assert np.abs(placed).max() <= 4


@pytest.mark.parametrize("factor", [2.0**-1070, 2.0**-500, 1.0, 2.0**500])
def test_new_points_of_single_precision_are_placed_like_those_of_double_precision(factor):
    frame = Frame.of(np.array([[1.0], [5.0]]) * factor)
    few = np.zeros((1, 1), np.float32)
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(frame.place(few), frame.place(few.astype(float)))


def test_equal_points_and_sparse_rows():
    assert (Frame.of(np.full((4, 2), 7.0)).place(np.full((4, 2), 7.0)) == 0).all()
    X = sparse.csr_array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(Frame.of(X).place(X).toarray(), [[0.6, 0.8], [0, 0]])


def brute_force(X, queries, count, *, same):
    """Distances to the nearest points, by double loop."""
    rows = []
    for i, x in enumerate(queries):
        lengths = [np.sqrt(((x - z) ** 2).sum()) for j, z in enumerate(X) if not (same and i == j)]
        rows.append(sorted(lengths)[:count])
    return np.array(rows)


@pytest.mark.parametrize("d", [2, 15])
@pytest.mark.parametrize("n", [2, 5, 60])
def test_neighbours_are_those_of_a_double_loop(n, d):
    rng = np.random.default_rng(n)
    X, new = rng.normal(size=(n, d)), rng.normal(size=(7, d))
    search = Search.among(X)
    found = search.of_all(8)
    assert found.count == min(8, n - 1)
    rounded = {"terms": d, "condition": 100}  # squares of lengths up to ten times the least distance are subtracted
    assert_close(found.distance, brute_force(X, X, 8, same=True), **rounded)
    assert (found.index != np.arange(n)[:, None]).all()
    fresh = search.of(new, 8)
    assert fresh.count == min(8, n)
    assert_close(fresh.distance, brute_force(X, new, 8, same=False), **rounded)
    assert_close(fresh.distance[:, 0], np.linalg.norm(new - X[fresh.index[:, 0]], axis=1), **rounded)


@pytest.mark.parametrize("d", [2, 15])
def test_a_point_is_not_its_own_neighbour_but_its_twin_is(d):
    X = np.repeat(np.random.default_rng(0).normal(size=(30, d)) + 7, 3, axis=0)
    found = Search.among(X).of_all(4)
    assert (found.index != np.arange(90)[:, None]).all()
    assert (found.distance[:, :2] == 0).all()
    assert (found.distance[:, 2:] > 0).all()
    np.testing.assert_array_equal(found.index[:, :2] // 3, np.repeat(np.arange(30), 3)[:, None].repeat(2, axis=1))
    every = [len(set(row)) == 4 for row in found.index.tolist()]
    assert all(every)


def test_more_twins_than_neighbours():
    found = Search.among(np.ones((20, 3))).of_all(5)
    assert found.index.shape == (20, 5)
    assert (found.index != np.arange(20)[:, None]).all()
    assert (found.distance == 0).all()


def test_sparse_rows_are_compared_by_their_angle():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 20)) * (rng.uniform(size=(50, 20)) < 0.4) + np.eye(50, 20)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    rare, dense = Search.among(sparse.csr_array(X)).of_all(6), Search.among(unit).of_all(6)
    np.testing.assert_allclose(rare.distance, dense.distance, atol=1e-7)  # 1e-15 of rounding, and a square root
    new = sparse.csr_array(3 * X[:4])
    np.testing.assert_array_equal(Search.among(sparse.csr_array(X)).of(new, 3).index[:, 0], np.arange(4))


def test_principal_components_propose_and_exact_distances_decide(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 30)) @ rng.normal(size=(30, 120)) + 0.1 * rng.normal(size=(800, 120))
    exact = Search.among(X).of_all(10)
    monkeypatch.setattr(neighbours, "MOST_WORK", 0)
    search = Search.among(X)
    found = search.of_all(10)
    assert search._axes is not None
    shared = [len(set(a) & set(b)) for a, b in zip(found.index.tolist(), exact.index.tolist(), strict=True)]
    assert np.mean(shared) > 9.9
    rows = np.arange(800)[:, None]
    assert_close(found.distance, np.sqrt(((X[rows] - X[found.index]) ** 2).sum(axis=2)), terms=120)
    assert (np.diff(found.distance, axis=1) >= 0).all()
    assert search.of(X[:5], 3).index[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_proposals_in_single_precision_miss_no_neighbour(monkeypatch):
    """Clouds, twins, and an island that is so tight and so far away that its distances need double precision."""
    rng = np.random.default_rng(0)
    cloud, island = rng.normal(size=(900, 15)), 1e-4 * rng.normal(size=(150, 15)) + 30
    X = np.concatenate([cloud, np.repeat(cloud[:4], 60, axis=0), island])
    exact = Search.among(X).of_all(10)
    monkeypatch.setattr(neighbours, "PROPOSED", 0)
    search = Search.among(X)
    assert search._proposals is not None
    found = search.of_all(10)
    # Distances by products lose digits where the squares of the points are large; those of candidates do not.
    np.testing.assert_allclose(found.distance[:900], exact.distance[:900], atol=1e-5)
    rows = np.arange(len(X))[:, None]
    assert_close(found.distance, np.sqrt(((X[rows] - X[found.index]) ** 2).sum(axis=2)), terms=15)
    gaps = np.linalg.norm(island[:, None] - island, axis=2)
    assert_close(found.distance[-150:], np.sort(gaps, axis=1)[:, 1:11], terms=15)
    _, unsure = search._proposals.nearest(X, 51)
    assert unsure[-150:].all()
    assert not unsure[4:900].any()


@pytest.mark.parametrize("d", [3, 15])
def test_points_far_from_the_origin_and_of_extreme_size_have_the_same_neighbours(d):
    X = np.random.default_rng(0).integers(0, 1000, size=(100, d)).astype(float)  # sums with 2^30 are exact
    expected = Search.among(X).of_all(5)
    for moved in (X + 2.0**30, X * 2.0**600, X * 2.0**-600):
        found = Search.among(moved).of_all(5)
        ratio = found.distance[0, 0] / expected.distance[0, 0]
        np.testing.assert_allclose(found.distance, expected.distance * ratio, rtol=1e-9)


def test_listed_distances():
    distances = sparse.csr_array(([5.0, 0.0, 2.0, 9.0, 1.0, 4.0], ([0, 0, 0, 0, 1, 3], [1, 2, 3, 0, 0, 0])), (4, 4))
    found = Listed(distances).of_all(2)
    np.testing.assert_array_equal(found.index, [[2, 3], [0, 0], [0, 0], [0, 0]])  # the stored 0 counts
    np.testing.assert_array_equal(found.distance, [[0, 2], [1, np.inf], [np.inf, np.inf], [4, np.inf]])
    new = Listed(distances).of(sparse.csr_array([[0.0, 3, 1, 0]]), 5)
    np.testing.assert_array_equal(new.index, [[2, 1]])
    assert len(Listed(distances)) == 4


def test_all_entries_of_a_dense_matrix_of_distances_count():
    dense = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    assert listed(dense).nnz == 9
    found = Listed(listed(dense)).of_all(1)
    np.testing.assert_array_equal(found.index, [[1], [0], [1]])
    np.testing.assert_array_equal(found.distance, [[0], [0], [1]])


def test_listed_distances_without_any_entry():
    found = Listed(sparse.csr_array((3, 3))).of_all(4)
    assert found.index.shape == (3, 1)
    assert np.isinf(found.distance).all()


@pytest.mark.parametrize(("d", "work"), [(2, 1e11), (12, 1e11), (120, 0)])
def test_blocks_of_points_change_nothing_and_are_told_of(monkeypatch, d, work):
    monkeypatch.setattr(neighbours, "MOST_WORK", work)
    X = np.random.default_rng(d).normal(size=(50, d))
    whole, told = Search.among(X).of_all(5), []
    monkeypatch.setattr(neighbours, "AT_ONCE", 7)
    parts = Search.among(X).of_all(5, told.append)
    assert told == [7] * 7 + [1]
    np.testing.assert_array_equal(parts.index, whole.index)
    assert_close(parts.distance, whole.distance, terms=d, condition=100)


CLOUD = np.random.default_rng(0).normal(size=(30, 2))


def scale(x, others, rank):
    return sorted(np.linalg.norm(x - z) for z in others)[rank - 1]


def edge_weights(X, rule):
    """The graph by double loop."""
    n = len(X)
    own = [scale(X[i], np.delete(X, i, 0), min(7, rule.neighbours)) for i in range(n)]
    if rule.common:
        own = [np.median(own)] * n
    W = np.zeros((n, n))
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: np.linalg.norm(X[i] - X[j]))
        for j in others[: rule.neighbours]:
            weight = np.exp(-rule.sharpness * np.linalg.norm(X[i] - X[j]) ** 2 / (own[i] * own[j]))
            W[i, j] = W[j, i] = max(W[i, j], weight)
    return W


@pytest.mark.parametrize("rule", [EdgeRule(3), EdgeRule(10), EdgeRule(10, 4.0, common=True), EdgeRule(5, 2.5)])
def test_weights_are_those_of_a_double_loop(rule):
    found = Search.among(CLOUD).of_all(12)
    W = rule.graph(found).toarray()
    expected = edge_weights(CLOUD, rule)
    assert_close(W, expected, condition=100)  # exponents reach 100
    np.testing.assert_array_equal(W, W.T)
    assert (np.diag(W) == 0).all()


def test_duplicates_take_the_typical_scale():
    X = np.concatenate([np.zeros((12, 2)), CLOUD])
    rule = EdgeRule(5)
    found = Search.among(X).of_all(5)
    scales = rule.scales(found)
    assert (scales > 0).all()
    assert_close(scales[:12], np.median(scales[12:]))
    assert np.isfinite(rule.graph(found).toarray()).all()
    same = Search.among(np.ones((9, 2))).of_all(5)
    assert (rule.scales(same) == 1).all()
    assert set(rule.graph(same).toarray().ravel()) == {0, 1}


def test_faint_weights_are_none():
    X = np.concatenate([CLOUD, [[1e3, 0]]])
    W = EdgeRule(5, 10.0, common=True).graph(Search.among(X).of_all(5)).toarray()
    assert (W[-1] == 0).all()
    assert W[W > 0].min() >= 1e-200


def test_listed_points_may_have_few_neighbours_or_none():
    distances = sparse.csr_array(([1.0, 2.0, 1.0], ([0, 0, 1], [1, 2, 0])), (4, 4))
    W = EdgeRule(5).graph(Listed(distances).of_all(5)).toarray()
    scales = [2.0, 1.0, 1.5, 1.5]  # the last two have none of their own: the median
    assert_close(W[0, 1], np.exp(-1 / (scales[0] * scales[1])))
    assert_close(W[0, 2], np.exp(-4 / (scales[0] * scales[2])))
    np.testing.assert_array_equal(W, W.T)
    assert (W[3] == 0).all()


@pytest.mark.parametrize("rule", [EdgeRule(5), EdgeRule(8, 10.0, common=True)])
def test_shares_of_new_points_add_up_to_one_however_far_they_are(rule):
    search = Search.among(CLOUD)
    scales = rule.scales(search.of_all(8))
    new = np.array([[0.0, 0.0], [3.0, 1.0], [1e4, 0.0], [1e9, 1e9], CLOUD[3]])
    shares = rule.shares(search.of(new, 8), scales)
    assert_close(np.asarray(shares.sum(axis=1)).ravel(), 1.0, terms=8)
    found = search.of(new[:2], 8)
    for q in range(2):
        own = scales[0] if rule.common else found.distance[q, min(7, rule.neighbours) - 1]
        near = found.index[q, : rule.neighbours]
        weights = np.exp(-rule.sharpness * found.distance[q, : rule.neighbours] ** 2 / (own * scales[near]))
        assert_close(shares.toarray()[q, near], weights / weights.sum(), terms=8, condition=300)


def test_a_new_point_without_listed_neighbours_has_no_shares():
    search = Listed(sparse.csr_array(np.ones((3, 3))))
    rule = EdgeRule(2)
    shares = rule.shares(search.of(sparse.csr_array((1, 3)), 2), rule.scales(search.of_all(2)))
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
    assert EdgeRule(5).name == "5 neighbours"
    assert EdgeRule(10, 4.0, common=True).name == "10 neighbours, one scale, sharpness 4"
