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
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOLERANCE = 1e-10  # largest error of the sums of probabilities that must be one
MOST = 200  # iterations; ten are usual
SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625)  # of a step of Newton's method
PROGRESS = 0.3  # share of what a step promises that it must keep
ROUNDING = 4 * np.finfo(float).eps  # share of a sum of n numbers, for each of them, that may be rounding


@dataclass(frozen=True)
class CycleWeights:
    """Weights, and the probabilities of cycles that they give."""

    u: NDArray
    """Logarithms of the weights."""
    alone: NDArray
    """Probability that i is a cycle of its own."""
    edges: NDArray
    """Probability of the cycle of i and j."""
    triangles: NDArray
    """Probability that i, j and any third point are a cycle in which j follows i."""

    @cached_property
    def totals(self) -> NDArray:
        """For each point, the sum of the probabilities of its cycles: the gradient of the convex function plus one."""
        return self.alone + self.edges.sum(axis=1) + self.triangles.sum(axis=1)

    @cached_property
    def pairs(self) -> NDArray:
        """Probability that i and j share a cycle of two or three points."""
        return self.edges + 2 * self.triangles

    @property
    def residual(self) -> float:
        """Largest distance of a total from one."""
        return float(np.abs(self.totals - 1).max(initial=0))

    @cached_property
    def imbalance(self) -> float:
        """Largest logarithm of a total; not a number if the weights are too large."""
        return float(np.abs(np.log(self.totals)).max(initial=0))

    def newton(self) -> NDArray | None:
        """The step of Newton's method to logarithms of totals that are zero, or None if rounding has spoilt it."""
        try:
            factor = cho_factor(self.pairs + np.diag(self.totals), lower=True)
        except LinAlgError:  # pairs that are never apart: only the product of their weights is certain
            return None
        return cho_solve(factor, -self.totals * np.log(self.totals))

    def without(self) -> NDArray:
        """For each i and j, the probability of the cycles of j that do not contain i.

        It is one minus `pairs`, without the cancellation: if alpha is small, points are hardly ever alone.
        """
        edges = _remainder(self.edges.sum(axis=1), self.edges)
        return self.alone + edges + _remainder(self.triangles.sum(axis=1), 2 * self.triangles)


def _remainder(totals: NDArray, parts: NDArray) -> NDArray:
    """Each total without one of its parts, for parts[i, j] of totals[j]; what is only rounding is zero."""
    rest = totals - parts
    return np.where(rest > ROUNDING * len(totals) * totals, rest, 0)


def roots(alpha: float, u: NDArray) -> NDArray:
    """Square roots of the weights exp(u), times the fourth root of alpha.

    All terms are products of these and of entries of B that neither overflow nor underflow for any alpha.
    """
    return np.exp((u + np.log(alpha) / 2) / 2)


def weights_at(B: NDArray, alpha: float, u: NDArray, longest: int) -> CycleWeights:
    """Evaluate the weights exp(u) for the matrix I + B, where B has a zero diagonal."""
    root = roots(alpha, u)
    C = root[:, None] * B * root
    edges = np.square(C) if longest >= 2 else np.zeros_like(B)
    triangles = C * (C @ C) / np.sqrt(alpha) if longest >= 3 else np.zeros_like(B)
    return CycleWeights(u, np.exp(u + np.log(alpha)), edges, triangles)


def balanced_weights(B: NDArray, alpha: float, longest: int) -> CycleWeights:
    """Solve for the weights, for the matrix I + B and cycles of at most `longest` points.

    A step of Newton's method is taken as far as it balances the totals. If it does not, u is lowered by
    log(totals) / longest. This is generalised iterative scaling, and it never raises the convex function. There are
    about ten iterations, each with O(n^3) operations and O(n^2) memory.

    Parameters
    ----------
    B : ndarray of shape (n, n)
        Symmetric, without negative entries, with zeros on the diagonal.
    alpha : float
    longest : {1, 2, 3}
    """
    if longest == 1:
        return weights_at(B, alpha, np.full(len(B), -np.log(alpha)), 1)
    start = _first_step(B, alpha) if longest == 2 else balanced_weights(B, alpha, 2).u
    weights = weights_at(B, alpha, start, longest)
    for _ in range(MOST):
        if weights.residual < TOLERANCE:
            return weights
        weights = _improved(B, alpha, weights, longest)
    raise ValueError(
        f"the weights of the cyclic approximation did not settle in {MOST} iterations: try fewer cycles, or an alpha "
        f"that is nearer to 1 than {alpha:g}"
    )


def _first_step(B: NDArray, alpha: float) -> NDArray:
    """One step of iterative scaling from weights 1 / alpha, by logarithms: a small alpha would overflow there."""
    with np.errstate(divide="ignore"):
        links = np.log(np.square(B).sum(axis=1))
    return -np.log(alpha) - np.logaddexp(0, links - np.log(alpha)) / 2


def _improved(B: NDArray, alpha: float, weights: CycleWeights, longest: int) -> CycleWeights:
    step = weights.newton()
    for share in SHARES:
        if step is None:
            break
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a step that is too long is not taken
            trial = weights_at(B, alpha, weights.u + share * step, longest)
            if trial.imbalance < (1 - PROGRESS * share) * weights.imbalance:
                return trial
    return weights_at(B, alpha, weights.u - np.log(weights.totals) / longest, longest)
