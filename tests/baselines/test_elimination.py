"""Elimination against the inverse of the matrix, and against arithmetic without rounding."""

from fractions import Fraction

import numpy as np
import pytest
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
    assert np.linalg.cond(np.eye(12) - P[:12, :12]) > 1e16
    assert_close(eliminate(weights, 12, 5).arrival, wanted, terms=elimination_terms(16))
