import numpy as np
import pytest
from scipy import sparse

from coxfield.graphs import neighbours
from coxfield.graphs.neighbours import Listed, Search, listed
from tolerances import assert_close


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
