r"""Weights of the points in the cyclic approximation: one weight stands for Per_alpha(A without i) / Per_alpha(A).

Suppose that points could leave a permutation independently of each other. Then Per_alpha(A without S) / Per_alpha(A)
would be the product of the weights w_i of the points in S. The probability of a given cycle would be alpha, times the
entries of A along the cycle, times the weights of its points. The weights are chosen so that for each point the
probabilities of all its cycles, up to the longest allowed, sum to one:

.. math:: \alpha w_i \Bigl( A_{ii} + \sum_j A_{ij}^2 w_j + \sum_{j \ne k} A_{ij} A_{jk} A_{ki} w_j w_k \Bigr) = 1.

With u = log w these equations say that the gradient of

.. math:: \alpha \Bigl( \sum_i A_{ii} e^{u_i} + \tfrac12 \sum_{ij} A_{ij}^2 e^{u_i + u_j}
          + \tfrac13 \sum_{ijk} A_{ij} A_{jk} A_{ki} e^{u_i + u_j + u_k} \Bigr) - \sum_i u_i

is zero. This function is strictly convex if no entry of A is negative, so there is exactly one solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOLERANCE = 1e-10  # largest error of the sums of probabilities that must be one
NEAR = 2.0  # Newton's method is used if all sums of probabilities are between 1 / NEAR and NEAR
MOST = 200  # iterations; ten are usual


@dataclass(frozen=True)
class CycleWeights:
    """Weights, and the probabilities of cycles that they give."""

    u: NDArray
    """Logarithms of the weights."""
    totals: NDArray
    """For each point, the sum of the probabilities of its cycles: the gradient of the convex function plus one."""
    pairs: NDArray
    """Probability that i and j share a cycle of two or three points."""

    @property
    def residual(self) -> float:
        """Largest distance of a total from one."""
        return float(np.abs(self.totals - 1).max(initial=0))

    def newton(self) -> NDArray:
        """The logarithms of the weights after one step of Newton's method."""
        return self.u + solve(self.pairs + np.diag(self.totals), 1 - self.totals, assume_a="pos")


def weights_at(B: NDArray, alpha: float, u: NDArray, longest: int) -> CycleWeights:
    """Evaluate the weights exp(u) for the matrix I + B, where B has a zero diagonal."""
    w = np.exp(u)
    edges = np.square(B)
    two = edges @ w if longest >= 2 else np.zeros_like(w)
    pairs = edges if longest >= 2 else np.zeros_like(B)
    three = np.zeros_like(w)
    if longest >= 3:
        triangles = B * ((B * w) @ B)
        three = triangles @ w
        pairs = pairs + 2 * triangles
    return CycleWeights(u, alpha * w * (1 + two + three), alpha * np.outer(w, w) * pairs)


def balanced_weights(B: NDArray, alpha: float, longest: int) -> CycleWeights:
    """Solve for the weights, for the matrix I + B and cycles of at most `longest` points.

    Far from the solution, each step lowers u by log(totals) / longest. This is generalised iterative scaling, and it
    never raises the convex function. Near the solution, a step of Newton's method is taken if it lowers the residual.
    There are about ten iterations, each with O(n^3) operations and O(n^2) memory.

    Parameters
    ----------
    B : ndarray of shape (n, n)
        Symmetric, without negative entries, with zeros on the diagonal.
    alpha : float
    longest : {1, 2, 3}
    """
    if longest == 1:
        return weights_at(B, alpha, np.full(len(B), -np.log(alpha)), 1)
    weights = weights_at(B, alpha, balanced_weights(B, alpha, longest - 1).u, longest)
    for _ in range(MOST):
        if weights.residual < TOLERANCE:
            return weights
        weights = _improved(B, alpha, weights, longest)
    raise RuntimeError(f"the weights of the cyclic approximation did not settle in {MOST} iterations: try fewer cycles")


def _improved(B: NDArray, alpha: float, weights: CycleWeights, longest: int) -> CycleWeights:
    if np.abs(np.log(weights.totals)).max() < np.log(NEAR):
        trial = weights_at(B, alpha, weights.newton(), longest)
        if trial.residual < weights.residual:
            return trial
    return weights_at(B, alpha, weights.u - np.log(weights.totals) / longest, longest)
