import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import expm

from coxfield.graphs.heat import Heat, effective_rank, time_of_rank, unit_rows
from coxfield.graphs.modes import lowest_modes


def random_graph(rng, n, share=0.4):
    """A symmetric graph without diagonal; points may have no neighbour."""
    upper = np.triu(rng.uniform(0.05, 1, size=(n, n)) * (rng.uniform(size=(n, n)) < share), 1)
    return sparse.csr_array(upper + upper.T)


def reference(affinity, time):
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
    np.testing.assert_allclose(covariance(affinity, time), reference(affinity, time), atol=1e-10)


def test_points_without_neighbours_and_parts_keep_to_themselves():
    rng = np.random.default_rng(0)
    affinity = sparse.block_diag([random_graph(rng, 8, 1.0), random_graph(rng, 9, 1.0), np.zeros((2, 2))], "csr")
    for time in (1.0, 20.0):
        ours = covariance(sparse.csr_array(affinity), time)
        np.testing.assert_allclose(ours, reference(affinity, time), atol=1e-10)
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
