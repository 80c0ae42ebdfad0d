"""The equations for the weights, term by term, with their closed forms and limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from coxfield.permanents import cycle_weights
from coxfield.permanents.cycle_weights import TOLERANCE, balanced_weights, weights_at
from tolerances import assert_close, rounding


def correlations(n, length_scale, seed=0):
    """A matrix of correlations without its diagonal."""
    B = RBF(length_scale)(np.random.default_rng(seed).uniform(0, 2, size=(n, 2)))
    np.fill_diagonal(B, 0)
    return B


def naive_totals(B, alpha, w, longest):
    """Sum of the probabilities of the cycles of each point."""
    total = np.ones(len(B))
    if longest >= 2:
        total += B**2 @ w
    if longest >= 3:
        total += np.einsum("ij,jk,ki,j,k->i", B, B, B, w, w)
    return alpha * w * total


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 30),
    alpha=st.floats(0.05, 20),
    length_scale=st.floats(0.01, 10),
    longest=st.sampled_from([1, 2, 3]),
    seed=st.integers(0, 2**20),
)
def test_the_probabilities_of_every_points_cycles_sum_to_one(n, alpha, length_scale, longest, seed):
    B = correlations(n, length_scale, seed)
    w = np.exp(balanced_weights(B, alpha, longest).u)
    error = np.abs(naive_totals(B, alpha, w, longest) - 1)
    assert (error <= TOLERANCE + rounding(1.0, terms=n**2)).all()


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_evaluation_is_the_equations_at_any_weights(longest):
    B, u = correlations(7, 0.8), np.linspace(-1, 0.5, 7)
    found = weights_at(B, 1.3, u, longest)
    assert_close(found.totals, naive_totals(B, 1.3, np.exp(u), longest), terms=7**2)
    for i in range(7):
        for j in range(7):
            cycles = B[i, j] ** 2 if longest >= 2 else 0.0
            if longest >= 3:
                cycles += 2 * sum(B[i, j] * B[j, k] * B[k, i] * np.exp(u[k]) for k in range(7))
            assert_close(found.pairs[i, j], 1.3 * np.exp(u[i] + u[j]) * cycles, terms=7)


@pytest.mark.parametrize("longest", [2, 3])
def test_the_matrix_of_newtons_method_is_the_derivative_of_the_totals(longest):
    """Central differences of step h err by h^2 times a third derivative, and by rounding over h."""
    B, u, h = correlations(5, 0.8), np.linspace(-1, 0.2, 5), 1e-4
    state = weights_at(B, 0.7, u, longest)
    for j in range(5):
        step = h * np.eye(5)[j]
        slope = (weights_at(B, 0.7, u + step, longest).totals - weights_at(B, 0.7, u - step, longest).totals) / (2 * h)
        # Every term is an exponential of at most three times u, so that its third derivative is below 27 times it.
        bound = 27 / 6 * h**2 * state.totals.max() * np.exp(3 * h) + rounding(state.totals.max(), terms=25) / h
        assert (np.abs(slope - (state.pairs + np.diag(state.totals))[:, j]) < bound).all()


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_without_longer_cycles_the_weight_is_one_over_alpha(alpha):
    assert_close(np.exp(balanced_weights(correlations(6, 1.0), alpha, 1).u), np.full(6, 1 / alpha), condition=1.4)
    for longest in (2, 3):  # points far from each other are alone in their cycles
        assert_close(np.exp(balanced_weights(np.zeros((6, 6)), alpha, longest).u), np.full(6, 1 / alpha), condition=1.4)


@pytest.mark.parametrize("n", [2, 5, 40])
def test_of_ones_with_two_cycles_the_weight_solves_a_quadratic_equation(n):
    # 0.8 w (1 + (n - 1) w) = 1
    w = (-1 + np.sqrt(1 + 4 * (n - 1) / 0.8)) / (2 * (n - 1))
    found = np.exp(balanced_weights(np.ones((n, n)) - np.eye(n), 0.8, 2).u)
    np.testing.assert_allclose(found, w, rtol=2 * TOLERANCE)


def test_no_points_have_no_weights():
    assert balanced_weights(np.zeros((0, 0)), 1.0, 3).u.shape == (0,)


def test_weights_that_do_not_settle_get_a_sentence(monkeypatch):
    monkeypatch.setattr(cycle_weights, "MOST", 1)
    with pytest.raises(
        ValueError, match=r"did not settle in 1 iterations: try fewer cycles, or .* nearer to 1 than 0\.1"
    ):
        balanced_weights(correlations(20, 2.0), 0.1, 3)


def test_what_is_left_without_a_point_is_one_minus_what_it_shares():
    weights = balanced_weights(correlations(8, 0.8), 0.7, 3)
    off = ~np.eye(8, dtype=bool)
    np.testing.assert_allclose(weights.without()[off], (1 - weights.pairs)[off], rtol=0, atol=10 * TOLERANCE)


def test_without_the_only_neighbour_a_point_is_alone():
    """One minus the share of the pair would be rounding only: the weights solve alpha w (1 + B^2 w) = 1."""
    B, alpha = np.array([[0.0, 0.5], [0.5, 0.0]]), 1e-12
    weights = balanced_weights(B, alpha, 3)
    w = (-1 + np.sqrt(1 + 4 * 0.25 / alpha)) / (2 * 0.25)
    np.testing.assert_allclose(weights.without()[0, 1], alpha * w, rtol=10 * TOLERANCE)


@pytest.mark.parametrize("alpha", [1e-300, 1e300])
def test_any_alpha_gives_weights_of_single_points(alpha):
    weights = balanced_weights(correlations(6, 1.0), alpha, 1)
    assert_close(weights.totals, np.ones(6), condition=1 + abs(np.log(alpha)))


@pytest.mark.parametrize("longest", [2, 3])
def test_with_large_alpha_all_points_are_alone(longest):
    weights = balanced_weights(correlations(6, 1.0), 1e300, longest)
    assert_close(weights.alone, np.ones(6), condition=1 + np.log(1e300))


@pytest.mark.parametrize("length_scale", [0.03, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [1e-12, 1e-4])
def test_weights_settle_for_small_alpha(alpha, length_scale):
    for seed in range(3):
        assert balanced_weights(correlations(40, length_scale, seed), alpha, 3).residual < TOLERANCE
