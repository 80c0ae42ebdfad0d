r"""Weights that stand for Per_alpha(A without i) / Per_alpha(A), when no cycle is longer than three.

If points were free to leave a permutation independently of each other, Per_alpha(A without S) / Per_alpha(A) would be a
product of weights w_i over S, and the probability that i is in a given cycle would be alpha times the entries of A
along the cycle times the weights of its points. The weights are chosen so that for each point the probabilities of all
its cycles, up to the longest allowed, sum to one:

.. math:: \alpha w_i \Bigl( A_{ii} + \sum_j A_{ij}^2 w_j + \sum_{j \ne k} A_{ij} A_{jk} A_{ki} w_j w_k \Bigr) = 1.

With u = log w these equations say that the gradient of

.. math:: \alpha \Bigl( \sum_i A_{ii} e^{u_i} + \tfrac12 \sum_{ij} A_{ij}^2 e^{u_i + u_j}
          + \tfrac13 \sum_{ijk} A_{ij} A_{jk} A_{ki} e^{u_i + u_j + u_k} \Bigr) - \sum_i u_i

vanishes. It is strictly convex for a non-negative A, so there is exactly one solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOLERANCE = 1e-10  # in the probabilities that must sum to one
NEAR = 2.0  # Newton's method is used where all sums of probabilities are within this factor of one
MOST = 200  # iterations; ten are usual


@dataclass(frozen=True)
class _Balance:
    """The derivatives of the convex function at some u."""

    u: NDArray
    totals: NDArray
    """Sum of the probabilities of each point's cycles: the gradient plus one."""
    pairs: NDArray
    """Probability that i and j share a cycle of two or three."""

    @property
    def residual(self) -> float:
        """By how much the equations fail."""
        return float(np.abs(self.totals - 1).max(initial=0))

    def newton(self) -> NDArray:
        """The solution of the equations made linear at u."""
        return self.u + solve(self.pairs + np.diag(self.totals), 1 - self.totals, assume_a="pos")


def balance(B: NDArray, alpha: float, u: NDArray, longest: int) -> _Balance:
    """Evaluate at u for the matrix I + B, B without a diagonal."""
    w = np.exp(u)
    edges = np.square(B)
    two = edges @ w if longest >= 2 else np.zeros_like(w)
    pairs = edges if longest >= 2 else np.zeros_like(B)
    three = np.zeros_like(w)
    if longest >= 3:
        triangles = B * ((B * w) @ B)
        three = triangles @ w
        pairs = pairs + 2 * triangles
    return _Balance(u, alpha * w * (1 + two + three), alpha * np.outer(w, w) * pairs)


def calibrate(B: NDArray, alpha: float, longest: int) -> _Balance:
    """Solve for u = log w, for the matrix I + B with cycles of at most `longest` points (1, 2 or 3).

    Far from the solution u is lowered by log(totals) / longest, which never raises the convex function (it is
    generalised iterative scaling); near it Newton's method takes over where it brings the equations nearer. O(n^3)
    operations an iteration, about ten iterations, O(n^2) memory.

    Parameters
    ----------
    B : ndarray of shape (n, n)
        Symmetric, non-negative, with zeros on the diagonal.
    alpha : float
    longest : int
    """
    if longest == 1:
        return balance(B, alpha, np.full(len(B), -np.log(alpha)), 1)
    state = balance(B, alpha, calibrate(B, alpha, longest - 1).u, longest)
    for _ in range(MOST):
        if state.residual < TOLERANCE:
            return state
        state = _improved(B, alpha, state, longest)
    raise RuntimeError(f"the cyclic expansion was not balanced after {MOST} iterations: try fewer cycles")


def _improved(B: NDArray, alpha: float, state: _Balance, longest: int) -> _Balance:
    if np.abs(np.log(state.totals)).max() < np.log(NEAR):
        trial = balance(B, alpha, state.newton(), longest)
        if trial.residual < state.residual:
            return trial
    return balance(B, alpha, state.u - np.log(state.totals) / longest, longest)
