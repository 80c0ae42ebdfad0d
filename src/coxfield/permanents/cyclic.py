r"""The cyclic approximation: ratios of alpha-permanents from cycles of at most four points.

A new point t joins a permutation of the old points as a cycle of its own, or between some j and its image k. The terms
below are ordered by the length of the cycle that t joins. Per_alpha(A without S) / Per_alpha(A) is replaced by a
product of weights over S:

.. math:: \frac{\operatorname{Per}_\alpha(A[x, t])}{\operatorname{Per}_\alpha(A[x])} \approx
          \alpha \Bigl( A_{tt} + \sum_j A_{tj} w_j A_{jt} + \sum_{j \ne k} A_{tj} w_j A_{jk} w_k A_{kt}
          + \sum_{j, k, l \text{ distinct}} A_{tj} w_j A_{jk} w_k A_{kl} w_l A_{lt} \Bigr).

The m-cycle approximation stops at cycles of m points through t. Its weights allow cycles of up to m - 1 old points. The
ratio is alpha A_tt + a' Q a, where a is the row of covariances to the old points. The matrix Q is the same for all new
points. `docs/permanental.md` derives it and compares it with the exact ratio.

The weights. Suppose that points could leave a permutation independently of each other. Then Per_alpha(A without S) /
Per_alpha(A) would be the product of the weights w_i of the points in S. The probability of a given cycle would be
alpha, times the entries of A along the cycle, times the weights of its points. The weights are chosen so that for each
point the probabilities of all its cycles, up to the longest allowed, sum to one:

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
from sklearn.utils.validation import check_array, check_consistent_length

from coxfield.permanents.permanent import check_alpha, check_covariances
from coxfield.utils.numbers import logs_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


TOLERANCE = 1e-10  # largest error of the sums of probabilities that must be one
MOST = 200  # iterations; ten are usual
SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625)  # of a step of Newton's method
PROGRESS = 0.3  # share of what a step promises that it must keep
ROUNDING = 4 * np.finfo(float).eps  # share of a sum of n numbers, for each of them, that may be rounding
CYCLES = (2, 3, 4)
SMALLEST = 1e-12  # alpha; below it, which points are alone is a question of pairing them off, and weights do not settle
NEGLIGIBLE = 1e-60  # smaller correlations change no result, and their products are subnormal numbers, which are slow


@dataclass(frozen=True)
class CycleWeights:
    """Weights, and the probabilities of cycles that they give."""

    u: NDArray
    """Logarithms of the weights."""
    fixed: NDArray
    """Probability that i is a cycle of its own."""
    edges: NDArray
    """Probability of the cycle of i and j."""
    triangles: NDArray
    """Probability that i, j and any third point are a cycle in which j follows i."""

    @cached_property
    def totals(self) -> NDArray:
        """For each point, the sum of the probabilities of its cycles: the gradient of the convex function plus one."""
        return self.fixed + self.edges.sum(axis=1) + self.triangles.sum(axis=1)

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
        return self.fixed + edges + _remainder(self.triangles.sum(axis=1), 2 * self.triangles)


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
    links = logs_of(np.square(B).sum(axis=1))
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


def log_permanent_ratio_cyclic(A, rows, diagonal, alpha=1.0, *, cycles=4) -> NDArray:
    """Approximate log Per_alpha(A[x, t]) / Per_alpha(A[x]) for some new points t, from cycles of up to four points.

    It takes O(n^3) operations to set up and O(n^2) for each new point. It is exact for a matrix of ones, and in the
    limit of points that are far apart. The more cycles, the smaller the error (`docs/permanental.md`).

    Parameters
    ----------
    A : array-like of shape (n, n)
        Covariances of the old points: symmetric, without negative entries, with a positive diagonal.
    rows : array-like of shape (n_new, n)
        Covariances of each new point with the old points, not negative.
    diagonal : array-like of shape (n_new,)
        Variance of each new point, positive.
    alpha : float, default=1.0
    cycles : {2, 3, 4}, default=4
        Number of points of the longest cycle, new point included.

    Returns
    -------
    ndarray of shape (n_new,)

    Examples
    --------
    >>> import numpy as np
    >>> from coxfield.permanents import log_permanent_ratio_cyclic
    >>> ones = np.ones((50, 50))  # Per_1 is 50!, and 51! with one more point
    >>> float(np.exp(log_permanent_ratio_cyclic(ones, [np.ones(50)], [1.0])[0]).round(6))
    51.0
    """
    A, alpha = check_covariances(A), check_alpha(alpha, positive=True)
    rows = check_array(rows, dtype=float, input_name="rows")
    diagonal = check_array(diagonal, dtype=float, ensure_2d=False, input_name="diagonal")
    check_consistent_length(rows, diagonal)
    if rows.shape[1] != len(A) or (rows < 0).any() or not (diagonal > 0).all():
        raise ValueError(
            f"rows must hold {len(A)} covariances for each new point, none negative, and diagonal positive variances; "
            f"got rows of shape {rows.shape}, smallest entry {rows.min():.3g}, smallest variance {diagonal.min():.3g}"
        )
    expansion = expand(A, alpha, check_cycles(cycles))
    rows = rows / expansion.scale  # in this unit Q neither overflows nor underflows
    excess = logs_of(np.einsum("ij,ij->i", rows @ expansion.paths(), rows))
    return np.logaddexp(np.log(alpha) + np.log(diagonal), excess)


def check_cycles(cycles) -> int:
    """The length of the longest cycle; refuse lengths other than 2, 3 and 4."""
    if cycles not in CYCLES:
        raise ValueError(f"cycles must be 2, 3 or 4, got {cycles!r}")
    return int(cycles)


@dataclass(frozen=True)
class CyclicExpansion:
    """The part of the cyclic approximation that depends on the old points only; build it with `expand`."""

    alpha: float
    cycles: int
    scale: NDArray
    """Square root of the diagonal of A. The other fields belong to A scaled to unit diagonal."""
    B: NDArray
    """The scaled matrix, with zeros on the diagonal."""
    weights: CycleWeights
    """Weights for the scaled matrix, and the probabilities of cycles of old points."""

    @property
    def w(self) -> NDArray:
        """The weights themselves."""
        return np.exp(self.weights.u)

    def paths(self) -> NDArray:
        """Q for the scaled matrix: sums over weighted paths from j to k of up to `cycles` - 1 points."""
        Q = np.diag(self.weights.fixed)
        root = roots(self.alpha, self.weights.u)
        C = root[:, None] * self.B * root
        if self.cycles >= 3:
            Q += root[:, None] * C * root
        if self.cycles >= 4:
            through = C @ C / np.sqrt(self.alpha)
            np.fill_diagonal(through, 0)  # a path does not return to its start
            Q += root[:, None] * through * root
        return Q

    def insertion(self) -> NDArray:
        """The matrix Q of alpha A_tt + a' Q a."""
        return self.paths() / np.outer(self.scale, self.scale)

    def leave_one_out(self, rows: NDArray) -> NDArray:
        """a' Q a of each old point from all the others, in O(n^3) operations for all points together.

        Paths through the left-out point i are removed. Then each other point j has lost the probability of sharing a
        cycle with i, so its weight is divided by what remains. This is exact for two points, for two cycles, and for a
        matrix of ones.

        Parameters
        ----------
        rows : ndarray of shape (n, n)
            Covariances between the points, with zeros on the diagonal. Each row may have its own unit. The result for
            that row has the square of that unit.
        """
        rows = rows / self.scale
        kept = 1 / self.weights.without()
        np.fill_diagonal(kept, 0)
        total = np.einsum("ij,ij->i", (kept * rows) @ self.paths(), rows)
        if self.cycles < 4:
            return total
        root = roots(self.alpha, self.weights.u)
        ends = rows * (root[:, None] * self.B * np.square(root))  # the two ends of the paths j, i, k, for each i
        between = (kept * ends).sum(axis=1) * ends.sum(axis=1) - (kept * ends * ends).sum(axis=1)
        return total - between / np.sqrt(self.alpha)


def expand(A: NDArray, alpha: float, cycles: int) -> CyclicExpansion:
    """Set up the cyclic approximation for checked arguments, in O(n^3) operations."""
    if alpha < SMALLEST and cycles > 2:
        raise ValueError(
            f"alpha={alpha:g} is too small for the approximation by {cycles} cycles: give at least {SMALLEST:g}, or "
            "cycles=2, which takes any alpha"
        )
    scale = np.sqrt(np.diagonal(A))
    B = A / np.outer(scale, scale)
    np.fill_diagonal(B, 0)
    B[B < NEGLIGIBLE] = 0
    return CyclicExpansion(alpha, cycles, scale, B, balanced_weights(B, alpha, cycles - 1))
