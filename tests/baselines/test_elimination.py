"""Elimination against the inverse of the matrix, and against arithmetic without rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from baselines.walks import condition, elimination_terms
from coxfield.baselines.elimination import eliminate
from coxfield.baselines.harmonic import step_weights
from tolerances import assert_close


@pytest.mark.parametrize("block", [1, 3, 7, 48])
def test_elimination_is_the_absorption_of_the_walk_whatever_the_block(block):
    rng = np.random.default_rng(0)
    weights = rng.random((20, 20))
    np.fill_diagonal(weights, 0)
    P = weights / weights.sum(axis=1, keepdims=True)
    walk = eliminate(weights, 16, block)
    passing = np.linalg.inv(np.eye(16) - P[:16, :16])
    rounded = {"terms": elimination_terms(20), "condition": condition(weights, np.arange(20) < 16)}
    assert_close(walk.arrival, passing @ P[:16, 16:], **rounded)
    assert_close(walk.steps, weights[16:, 16:] + weights[16:, :16] @ passing @ P[:16, 16:], **rounded)


def exact_arrival(weights, count):
    """The same elimination in rational numbers."""
    P = [[Fraction(float(w)) for w in row] for row in weights]
    n = len(P)
    for k in range(count):
        exits = sum(P[k][k + 1 :])
        P[k][k + 1 :] = [w / exits for w in P[k][k + 1 :]]
        for i in range(k + 1, n):
            P[i][k + 1 :] = [P[i][j] + P[i][k] * P[k][j] for j in range(k + 1, n)]
    arrival = [None] * count
    for k in reversed(range(count)):
        arrival[k] = [
            P[k][j] + sum(P[k][i] * arrival[i][j - count] for i in range(k + 1, count)) for j in range(count, n)
        ]
    return np.array(arrival, dtype=float)


def test_every_digit_survives_where_the_laplacian_is_singular_to_working_precision():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(8, 2)), 4 + rng.normal(size=(8, 2))])
    weights = step_weights(cdist(X, X, "sqeuclidean"), 0.15)
    wanted = exact_arrival(weights, 12)
    P = weights / weights.sum(axis=1, keepdims=True)
    # Beyond 1 / eps a condition number is rounding itself, so that only its order of magnitude is known.
    assert np.linalg.cond(np.eye(12) - P[:12, :12]) > 0.01 / np.finfo(float).eps
    assert_close(eliminate(weights, 12, 5).arrival, wanted, terms=elimination_terms(16))


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("odds", [1.0, 3.0])
def test_on_a_line_the_walk_arrives_as_a_gambler_is_ruined(n, odds):
    """From k of n, with odds r to gain, the gambler gains all with probability (1 - r^-k) / (1 - r^-n)."""
    weights = np.zeros((n + 1, n + 1))
    for k in range(n):
        weights[k, k + 1], weights[k + 1, k] = odds, 1.0
    order = np.r_[1:n, 0, n]  # those to eliminate come first
    walk = eliminate(weights[np.ix_(order, order)], n - 1)
    k = np.arange(1, n)
    gains = k / n if odds == 1 else (1 - odds**-k) / (1 - odds**-n)
    rounded = {"terms": elimination_terms(n + 1), "condition": 1 / (1 - 1 / odds) if odds > 1 else 1}
    assert_close(walk.arrival[:, 1], gains, **rounded)
    assert_close(walk.arrival.sum(axis=1), np.ones(n - 1), terms=elimination_terms(n + 1))
    assert walk.connected


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 9), st.integers(0, 2**20), st.integers(1, 4))
def test_arrivals_are_probabilities_and_the_diagonal_and_units_do_not_matter(n, seed, block):
    rng = np.random.default_rng(seed)
    weights, count = rng.random((n, n)), int(rng.integers(1, n))
    found = eliminate(weights, count, block)
    assert_close(found.arrival.sum(axis=1), np.ones(count), terms=elimination_terms(n))
    scaled = weights * rng.uniform(0.1, 10, size=(n, 1))  # each row up to a factor
    np.fill_diagonal(scaled, 0)
    assert_close(eliminate(scaled, count, block).arrival, found.arrival, terms=elimination_terms(n))


def test_states_from_which_there_is_no_way_on_are_told():
    weights = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert not eliminate(weights, 2).connected
    assert eliminate(weights + 1e-300, 2).connected


def test_nothing_to_eliminate_leaves_the_steps():
    weights = np.random.default_rng(0).random((3, 3))
    walk = eliminate(weights, 0)
    np.testing.assert_array_equal(walk.steps, weights)
    assert walk.arrival.shape == (0, 3)


def test_what_the_caller_gave_is_not_edited():
    weights = np.random.default_rng(0).random((4, 4))
    before = weights.copy()
    eliminate(weights, 2)
    np.testing.assert_array_equal(weights, before)


def test_shares_of_the_work_are_told_of():
    told = []
    eliminate(np.random.default_rng(0).random((20, 20)), 15, block=4, done=told.append)
    assert len(told) == 4
    assert sum(told) == pytest.approx(1)
    assert told[0] > told[1] > told[2]  # what is left becomes smaller
