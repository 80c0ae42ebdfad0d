"""Modes against dense eigenpairs, heat against the matrix exponential, linear covariances against cosines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import expm
from scipy.sparse.linalg import ArpackNoConvergence
from sklearn.neighbors import kneighbors_graph

from coxfield.graphs import spectrum
from coxfield.graphs.neighbours import EdgeRule, Search
from coxfield.graphs.spectrum import (
    Axes,
    Heat,
    effective_rank,
    lowest_modes,
    spectrum_of_distances,
    spectrum_of_graph,
    spectrum_of_points,
    time_of_rank,
    unit_rows,
)


def laplacian(affinity):
    W = affinity.toarray()
    degrees = W.sum(axis=1)
    inverse = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    return np.eye(len(W)) - inverse[:, None] * W * inverse


def graph_of(X, rule):
    return rule.graph(Search.among(X).of_all(rule.neighbours))


def islands(count, size, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.uniform(size=(count, 2)) * 1e4, size, axis=0) + rng.normal(size=(count * size, 2))


@pytest.mark.parametrize("n", [250, 500])
def test_modes_are_eigenpairs_and_mode_0_is_the_root_of_the_degrees(n):
    affinity = graph_of(np.random.default_rng(0).normal(size=(n, 2)), EdgeRule(10))
    found = lowest_modes(affinity, 40)
    L = laplacian(affinity)
    np.testing.assert_allclose(L @ found.vectors, found.vectors * found.values, atol=1e-8)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(40), atol=1e-8)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(L)[:40], atol=1e-8)
    roots = np.sqrt(affinity.sum(axis=1))
    assert np.abs(found.vectors[:, 0] @ roots) / np.linalg.norm(roots) == pytest.approx(1)


@pytest.mark.parametrize(("count", "size"), [(40, 20), (100, 8)])
def test_no_part_of_a_graph_that_falls_apart_is_missed(count, size):
    affinity = graph_of(islands(count, size), EdgeRule(5))
    found = lowest_modes(affinity, 64)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(laplacian(affinity))[:64].clip(0), atol=1e-9)
    assert len(found) == 64
    assert (np.linalg.norm(found.vectors[:, 1:], axis=1) > 1e-6).all()  # every point is in some mode


def test_parts_that_hang_together_by_faint_ties_are_not_missed_either():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + np.array([8, 0]), [[4, 60.0], [4, 62], [0, 25]]]
    )
    affinity = graph_of(X, EdgeRule(10, sharpness=10.0, common=True))
    values = np.linalg.eigvalsh(laplacian(affinity))[:64]
    np.testing.assert_allclose(lowest_modes(affinity, 64).values, values.clip(0), atol=1e-9)


def test_a_point_without_neighbours_has_exactly_no_part_in_the_modes():
    X = np.concatenate([np.random.default_rng(0).normal(size=(400, 2)), [[1e5, 0.0]]])
    found = lowest_modes(graph_of(X, EdgeRule(10, sharpness=10.0, common=True)), 30)
    assert (found.vectors[-1] == 0).all()


def test_no_edges_at_all():
    for n in (2, 20, 400):
        found = lowest_modes(sparse.csr_array((n, n)), min(n, 10))
        np.testing.assert_allclose(found.values, 1, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=0), 1, atol=1e-9)


def test_single_precision_tells_modes_apart_that_are_closer_than_its_tolerance(monkeypatch):
    affinity = graph_of(np.arange(2500.0)[:, None], EdgeRule(5))
    exact = lowest_modes(affinity, 10)
    monkeypatch.setattr(spectrum, "MANY", 1000)
    found = lowest_modes(affinity, 10)
    assert found.vectors.dtype == np.float32
    assert exact.values[1] < 1e-5  # the tolerance
    np.testing.assert_allclose(found.values[1:4], exact.values[1:4], rtol=0.05)
    overlap = np.abs((found.vectors[:, 1:4] * exact.vectors[:, 1:4]).sum(axis=0))
    np.testing.assert_allclose(overlap, 1, atol=0.02)


def test_modes_that_do_not_converge_are_left_out(monkeypatch):
    affinity = graph_of(np.random.default_rng(0).normal(size=(400, 2)), EdgeRule(10))
    right = lowest_modes(affinity, 20)

    def stop(*args, **options):
        raise ArpackNoConvergence("stopped", right.values[1:6], right.vectors[:, 1:6])

    monkeypatch.setattr(spectrum, "eigsh", stop)
    found = lowest_modes(affinity, 20)
    assert len(found) == 6
    np.testing.assert_allclose(found.values, right.values[:6], atol=1e-9)


def test_few_restarts_do_not_crash(monkeypatch):
    monkeypatch.setattr(spectrum, "RESTARTS", 1)
    found = lowest_modes(graph_of(np.arange(1000.0)[:, None], EdgeRule(5)), 30)
    assert 1 <= len(found) <= 30
    assert found.values[0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("edge", [-0.9, 0.3, 1.0])
def test_the_edge_of_the_polynomial_changes_no_mode(edge, monkeypatch):
    """Too high, it would hide modes: then there is a second search."""
    affinity = graph_of(np.random.default_rng(0).normal(size=(400, 2)), EdgeRule(10))
    monkeypatch.setattr(spectrum, "_edge", lambda *_: edge)
    values = np.linalg.eigvalsh(laplacian(affinity))[:40]
    np.testing.assert_allclose(lowest_modes(affinity, 40).values, values.clip(0), atol=1e-9)


def test_about_so_many_eigenvalues_lie_above_the_edge():
    walk, _ = spectrum._normalised(graph_of(np.random.default_rng(0).normal(size=(1500, 3)), EdgeRule(10)))
    values = np.linalg.eigvalsh(walk.toarray())
    for seed in range(5):
        edge = spectrum._edge(walk, np.random.default_rng(seed).standard_normal(1500), 96)
        # A random vector has 96 squares of normal numbers there: their sum has the standard error sqrt(2 x 96) = 14.
        assert abs((values > edge).sum() - 96) < 4 * 14


def test_products_with_the_graph_are_told_of():
    graph, steps = graph_of(np.random.default_rng(0).normal(size=(400, 2)), EdgeRule(5)), []
    with_steps = lowest_modes(graph, 10, lambda: steps.append(1))
    assert len(steps) > 10
    np.testing.assert_array_equal(with_steps.values, lowest_modes(graph, 10).values)


def random_graph(rng, n, share=0.4):
    """A symmetric graph without diagonal; points may have no neighbour."""
    upper = np.triu(rng.uniform(0.05, 1, size=(n, n)) * (rng.uniform(size=(n, n)) < share), 1)
    return sparse.csr_array(upper + upper.T)


def heat_kernel(affinity, time):
    """exp(-t L) scaled to unit diagonal, by the matrix exponential."""
    W = affinity.toarray()
    degrees = W.sum(axis=1)
    inverse = np.array([0 if d == 0 else 1 / np.sqrt(d) for d in degrees])
    heat = expm(-time * (np.eye(len(W)) - inverse[:, None] * W * inverse))
    roots = np.sqrt(np.diag(heat))
    return heat / np.outer(roots, roots)


def covariance(affinity, time, *, centred=False, count=None):
    n = affinity.shape[0]
    return Heat(lowest_modes(affinity, count or n), time, centred).columns(np.arange(n))


@pytest.mark.parametrize("time", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("n", [2, 3, 12, 40])
def test_heat_is_the_matrix_exponential_with_unit_diagonal(n, time):
    affinity = random_graph(np.random.default_rng(n), n, share=1.0 if n < 4 else 0.4)
    np.testing.assert_allclose(covariance(affinity, time), heat_kernel(affinity, time), atol=1e-10)


def test_points_without_neighbours_and_parts_keep_to_themselves():
    rng = np.random.default_rng(0)
    affinity = sparse.block_diag([random_graph(rng, 8, 1.0), random_graph(rng, 9, 1.0), np.zeros((2, 2))], "csr")
    for time in (1.0, 20.0):
        ours = covariance(sparse.csr_array(affinity), time)
        np.testing.assert_allclose(ours, heat_kernel(affinity, time), atol=1e-10)
    later = covariance(sparse.csr_array(affinity), 400.0)  # a point alone has e^-400 of its heat: rounding is more
    assert np.abs(later[-2:, :-2]).max() == 0
    np.testing.assert_allclose(later[-2:, -2:], np.eye(2), atol=1e-10)
    np.testing.assert_allclose(later[:8, :8], 1, atol=1e-10)
    np.testing.assert_allclose(later[:8, 8:17], 0, atol=1e-10)


def test_a_point_on_a_faint_tie_follows_its_neighbour():
    path = np.zeros((6, 6))
    for i, weight in enumerate([1.0, 0.8, 1.0, 1e-40, 1e-90]):
        path[i, i + 1] = path[i + 1, i] = weight
    heat = covariance(sparse.csr_array(path), 300.0)
    np.testing.assert_allclose(heat, 1, atol=1e-6)  # the tails of the other modes have e^(-300 x 0.4) left


def test_a_graph_without_edges_has_no_heat_flow():
    np.testing.assert_allclose(covariance(sparse.csr_array((5, 5)), 3.0), np.eye(5), atol=1e-12)


def test_equal_modes_do_not_overflow_at_the_longest_time():
    complete = sparse.csr_array(np.ones((6, 6)) - np.eye(6))
    time = time_of_rank(lowest_modes(complete, 6).values, 1.2)
    assert np.isfinite(covariance(complete, time, centred=True)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 25), st.integers(0, 2**32 - 1), st.floats(-3, 3), st.floats(0.1, 1))
def test_heat_is_not_negative_and_without_mode_0_still_a_covariance(n, seed, log_time, share):
    affinity = random_graph(np.random.default_rng(seed), n, share)
    slack = 1e-9  # features are sums of n products of numbers with 1e-15 of rounding; e^(-t lambda / 2) is above 1e-9
    whole = covariance(affinity, np.exp(log_time))
    assert whole.min() > -slack
    assert np.abs(np.diag(whole) - 1).max() < slack
    centred = covariance(affinity, np.exp(log_time), centred=True)
    assert np.linalg.eigvalsh((centred + centred.T) / 2).min() > -slack


def test_the_lowest_modes_are_enough_for_long_times():
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(0, 30, size=(500, 1)), axis=0)
    affinity = sparse.csr_array(np.exp(-((X - X.T) ** 2)) * (np.abs(X - X.T) < 3) * (1 - np.eye(500)))
    every = lowest_modes(affinity, 500)
    time = 2 * np.log(1e11) / every.values[64]  # what is left of the tail
    for centred in (False, True):
        few, all_ = (Heat(modes, time, centred).columns([0, 250, 499]) for modes in (lowest_modes(affinity, 64), every))
        np.testing.assert_allclose(few, all_, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.01, 2), min_size=6, max_size=20, unique=True), st.floats(1.2, 4))
def test_time_and_effective_rank_are_inverse_to_each_other(above, rank):
    values = np.concatenate([[0], np.sort(above)])
    if effective_rank(values, np.exp(-6)) < rank or effective_rank(values, np.exp(16)) > rank:
        return
    assert effective_rank(values, time_of_rank(values, rank)) == pytest.approx(rank, rel=1e-6)


def test_the_longest_time_is_for_graphs_that_fall_apart():
    assert time_of_rank(np.array([0, 0, 0, 0, 0.5]), 1.2) == np.exp(16)
    assert effective_rank(np.array([0, 0, 0, 0, 0.5]), np.exp(16)) == 3


def test_rows_of_length_zero_stay():
    np.testing.assert_array_equal(unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0.0, 0.0]])


def cosines(X, share, *, centred=True):
    """z^T (Sigma + h tr / d)^-1 z', normalised, by the direct formula."""
    Z = X - X.mean(axis=0) if centred else X
    covariance = Z.T @ Z / len(X)
    d = X.shape[1]
    products = Z @ np.linalg.inv(covariance + share * np.trace(covariance) / d * np.eye(d)) @ Z.T
    roots = np.sqrt(np.diag(products))
    return products / np.outer(roots, roots)


def cosines_found(axes, X, share):
    features = axes.features(axes.coordinates(X), share)
    return features @ features.T


@pytest.mark.parametrize("share", [0.03, 1.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_points_follow_the_direct_formula(share, dtype):
    X = np.random.default_rng(0).normal(size=(40, 6)) @ np.diag([5, 3, 1, 1, 0.3, 0.0]) + 2
    axes = Axes.of(X.astype(dtype))
    tolerance = 1e-10 if dtype is np.float64 else 2e-4  # eps times the condition number, 1 / 0.03 x 25, and a few
    np.testing.assert_allclose(cosines_found(axes, X.astype(dtype), share), cosines(X, share), atol=tolerance)


def test_leading_axes_are_enough_where_the_others_have_little_spread(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 80)) + 1e-4 * rng.normal(size=(60, 80))
    monkeypatch.setattr(spectrum, "MOST_AXES", 50)
    monkeypatch.setattr(spectrum, "LEADING", 20)
    axes = Axes.of(X)
    assert axes.axes.shape == (80, 20)
    np.testing.assert_allclose(cosines_found(axes, X, 0.1), cosines(X, 0.1), atol=1e-4)


def test_sparse_rows_are_scaled_and_not_centred():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 12)) * (rng.uniform(size=(50, 12)) < 0.5) + np.eye(50, 12)
    axes = Axes.of(sparse.csr_array(X))
    assert axes.centre is None
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    # Twelve features are fewer than the leading axes, so nothing is left out.
    np.testing.assert_allclose(
        cosines_found(axes, sparse.csr_array(X), 0.3), cosines(unit, 0.3, centred=False), atol=1e-8
    )


def test_new_points_of_single_precision_meet_points_beyond_it():
    X = np.random.default_rng(0).normal(size=(20, 2)) * 2.0**200
    axes = Axes.of(X)
    with np.errstate(all="raise"):
        cosines_found = axes.coordinates(np.zeros((1, 2), np.float32))
    np.testing.assert_array_equal(cosines_found, axes.coordinates(np.zeros((1, 2))))


def test_equal_points_have_no_spread_and_no_opinion():
    X = np.full((5, 3), 2.0)
    axes = Axes.of(X)
    assert not axes.variances.any()
    assert axes.rank(0.1) == 1.0
    assert (axes.features(axes.coordinates(X), 0.1) == 0).all()


def test_effective_rank_lies_between_one_and_the_number_of_directions():
    X = np.random.default_rng(0).normal(size=(200, 4))
    axes = Axes.of(X)
    assert 3.5 < axes.rank(0.03) <= 4
    thin = Axes.of(X * [1, 1e-3, 1e-3, 1e-3])
    assert 1 <= thin.rank(0.3) < 1.1


def test_points_far_from_the_origin_or_of_extreme_size_follow_it_too():
    X = np.random.default_rng(0).integers(0, 100, size=(40, 5)).astype(float)
    for moved in (X + 2.0**30, X * 2.0**600):
        np.testing.assert_allclose(cosines_found(Axes.of(moved), moved, 0.1), cosines(X, 0.1), atol=1e-9)


POINTS = np.random.default_rng(0).normal(size=(60, 2))
RULES = (EdgeRule(5), EdgeRule(12, 4.0, common=True))


def test_points_and_their_listed_distances_have_the_same_graphs():
    points = spectrum_of_points(POINTS, RULES, 60)
    near = sparse.csr_array(kneighbors_graph(POINTS, 12, mode="distance"))
    listed = spectrum_of_distances(near, RULES, 60)
    for one, other in zip(points.modes, listed.modes, strict=True):
        np.testing.assert_allclose(one.values, other.values, atol=1e-10)
    assert points.names == listed.names == tuple(rule.name for rule in RULES)
    assert points.axes is not None
    assert listed.axes is None


def test_a_given_graph_has_the_modes_of_the_graph_computed_inside():
    graph = RULES[0].graph(Search.among(POINTS).of_all(12))
    given = spectrum_of_graph(graph, 60)
    np.testing.assert_allclose(given.modes[0].values, spectrum_of_points(POINTS, RULES, 60).modes[0].values, atol=1e-10)
    shares = given.join.shares(sparse.csr_array([[1.0] * 4 + [0.0] * 56, [0.0] * 60]), [0])[0].toarray()
    np.testing.assert_array_equal(shares[0, :4], 0.25)
    assert (shares[1] == 0).all()


def test_new_points_join_only_the_graphs_that_are_asked_for():
    shape = spectrum_of_points(POINTS, RULES, 60)
    assert shape.join.shares(POINTS[:3], []) == {}
    shares = shape.join.shares(POINTS[:3], [1])
    assert list(shares) == [1]
    assert shares[1].shape == (3, 60)
    assert (np.asarray(shares[1].argmax(axis=1)).ravel() == np.arange(3)).all()


def test_steps_are_shown(capsys):
    spectrum_of_points(POINTS, RULES, 10, verbose=1)
    shown = capsys.readouterr().err
    assert "nearest neighbours of 60 points" in shown
    assert "modes of the graph of 12 neighbours, one scale, sharpness 4" in shown
    assert "principal axes" in shown
