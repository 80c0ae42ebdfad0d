import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence

from coxfield.graphs import modes
from coxfield.graphs.affinity import Ties
from coxfield.graphs.modes import lowest_modes
from coxfield.graphs.neighbours import Search


def laplacian(affinity):
    W = affinity.toarray()
    degrees = W.sum(axis=1)
    inverse = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    return np.eye(len(W)) - inverse[:, None] * W * inverse


def graph_of(X, ties):
    return ties.graph(Search.among(X).of_all(ties.neighbours))


def islands(count, size, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.uniform(size=(count, 2)) * 1e4, size, axis=0) + rng.normal(size=(count * size, 2))


@pytest.mark.parametrize("n", [250, 500])
def test_modes_are_eigenpairs_and_mode_0_is_the_root_of_the_degrees(n):
    affinity = graph_of(np.random.default_rng(0).normal(size=(n, 2)), Ties(10))
    found = lowest_modes(affinity, 40)
    L = laplacian(affinity)
    np.testing.assert_allclose(L @ found.vectors, found.vectors * found.values, atol=1e-8)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(40), atol=1e-8)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(L)[:40], atol=1e-8)
    roots = np.sqrt(affinity.sum(axis=1))
    assert np.abs(found.vectors[:, 0] @ roots) / np.linalg.norm(roots) == pytest.approx(1)


@pytest.mark.parametrize(("count", "size"), [(40, 20), (100, 8)])
def test_no_part_of_a_graph_that_falls_apart_is_missed(count, size):
    affinity = graph_of(islands(count, size), Ties(5))
    found = lowest_modes(affinity, 64)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(laplacian(affinity))[:64].clip(0), atol=1e-9)
    assert len(found) == 64
    assert (np.linalg.norm(found.vectors[:, 1:], axis=1) > 1e-6).all()  # every point is in some mode


def test_parts_that_hang_together_by_faint_ties_are_not_missed_either():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + np.array([8, 0]), [[4, 60.0], [4, 62], [0, 25]]]
    )
    affinity = graph_of(X, Ties(10, sharpness=10.0, common=True))
    values = np.linalg.eigvalsh(laplacian(affinity))[:64]
    np.testing.assert_allclose(lowest_modes(affinity, 64).values, values.clip(0), atol=1e-9)


def test_a_point_without_neighbours_has_exactly_no_part_in_the_modes():
    X = np.concatenate([np.random.default_rng(0).normal(size=(400, 2)), [[1e5, 0.0]]])
    found = lowest_modes(graph_of(X, Ties(10, sharpness=10.0, common=True)), 30)
    assert (found.vectors[-1] == 0).all()


def test_no_edges_at_all():
    for n in (2, 20, 400):
        found = lowest_modes(sparse.csr_array((n, n)), min(n, 10))
        np.testing.assert_allclose(found.values, 1, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=0), 1, atol=1e-9)


def test_single_precision_tells_modes_apart_that_are_closer_than_its_tolerance(monkeypatch):
    affinity = graph_of(np.arange(2500.0)[:, None], Ties(5))
    exact = lowest_modes(affinity, 10)
    monkeypatch.setattr(modes, "MANY", 1000)
    found = lowest_modes(affinity, 10)
    assert found.vectors.dtype == np.float32
    assert exact.values[1] < 1e-5  # the tolerance
    np.testing.assert_allclose(found.values[1:4], exact.values[1:4], rtol=0.05)
    overlap = np.abs((found.vectors[:, 1:4] * exact.vectors[:, 1:4]).sum(axis=0))
    np.testing.assert_allclose(overlap, 1, atol=0.02)


def test_modes_that_do_not_converge_are_left_out(monkeypatch):
    affinity = graph_of(np.random.default_rng(0).normal(size=(400, 2)), Ties(10))
    right = lowest_modes(affinity, 20)

    def stop(*args, **options):
        raise ArpackNoConvergence("stopped", right.values[1:6], right.vectors[:, 1:6])

    monkeypatch.setattr(modes, "eigsh", stop)
    found = lowest_modes(affinity, 20)
    assert len(found) == 6
    np.testing.assert_allclose(found.values, right.values[:6], atol=1e-9)


def test_few_restarts_do_not_crash(monkeypatch):
    monkeypatch.setattr(modes, "RESTARTS", 1)
    found = lowest_modes(graph_of(np.arange(1000.0)[:, None], Ties(5)), 30)
    assert 1 <= len(found) <= 30
    assert found.values[0] == pytest.approx(0, abs=1e-9)


def test_products_with_the_graph_are_told_of():
    graph, steps = graph_of(np.random.default_rng(0).normal(size=(400, 2)), Ties(5)), []
    with_steps = lowest_modes(graph, 10, lambda: steps.append(1))
    assert len(steps) > 10
    np.testing.assert_array_equal(with_steps.values, lowest_modes(graph, 10).values)
