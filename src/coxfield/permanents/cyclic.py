r"""The cyclic approximation: ratios of alpha-permanents from cycles of at most four points.

A new point t joins a permutation of the old ones as a cycle of its own, or between some j and its image k. By the
length of the cycle that it joins, with Per_alpha(A without S) / Per_alpha(A) replaced by a product of weights over S
(see `calibration`),

.. math:: \frac{\operatorname{Per}_\alpha(A[x, t])}{\operatorname{Per}_\alpha(A[x])} \approx
          \alpha \Bigl( A_{tt} + \sum_j A_{tj} w_j A_{jt} + \sum_{j \ne k} A_{tj} w_j A_{jk} w_k A_{kt}
          + \sum_{j, k, l \text{ distinct}} A_{tj} w_j A_{jk} w_k A_{kl} w_l A_{lt} \Bigr),

where the m-cycle approximation stops at cycles of m points through t and its weights allow cycles of up to m - 1 among
the old points. Written as alpha A_tt + a' Q a with the row a of covariances to the old points, Q is one matrix for all
new points. `docs/permanental.md` derives it and compares it with the exact ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from coxfield.permanents.calibration import calibrate
from coxfield.permanents.checks import check_alpha, check_covariances

if TYPE_CHECKING:
    from numpy.typing import NDArray

CYCLES = (2, 3, 4)
NEGLIGIBLE = 1e-60  # a correlation that no sum beside 1 will notice; products of smaller ones are subnormal, and slow


def log_permanent_ratio_cyclic(A, rows, diagonal, alpha=1.0, *, cycles=4) -> NDArray:
    """log Per_alpha(A[x, t]) / Per_alpha(A[x]) for some new points t, from cycles of up to four points.

    O(n^3) operations to set up and O(n^2) for each new point. Exact for a matrix of ones, and in the limit of points
    that are far apart; closer for more cycles (`docs/permanental.md`).

    Parameters
    ----------
    A : array-like of shape (n, n)
        Covariances of the old points: symmetric, without negative entries, of positive diagonal.
    rows : array-like of shape (n_new, n)
        Covariances of each new point with the old ones, not negative.
    diagonal : array-like of shape (n_new,)
        Variance of each new point, positive.
    alpha : float, default=1.0
    cycles : {2, 3, 4}, default=4
        Points of the longest cycle that a new point may close.

    Returns
    -------
    ndarray of shape (n_new,)

    Examples
    --------
    >>> import numpy as np
    >>> from coxfield.permanents import log_permanent_ratio_cyclic
    >>> ones = np.ones((50, 50))  # Per_1 is 50!, and 51! with a point more
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
            f"got rows of shape {rows.shape}, least entry {rows.min():.3g}, and variances from {diagonal.min():.3g}"
        )
    Q = expand(A, alpha, check_cycles(cycles)).insertion()
    return np.log(alpha * diagonal + np.einsum("ij,ij->i", rows @ Q, rows))


def check_cycles(cycles) -> int:
    """Refuse lengths of cycles that the approximation does not know."""
    if cycles not in CYCLES:
        raise ValueError(f"cycles must be 2, 3 or 4, got {cycles!r}")
    return int(cycles)


@dataclass(frozen=True)
class CyclicExpansion:
    """The old points' side of the cyclic approximation; build it with `expand`."""

    alpha: float
    cycles: int
    scale: NDArray
    """Square root of the diagonal: the rest is in units of it."""
    B: NDArray
    """A scaled to unit diagonal, without the diagonal."""
    w: NDArray
    """Weights for the scaled matrix."""
    pairs: NDArray
    """Probability that two old points share a cycle."""

    def _paths(self) -> NDArray:
        """Q for the scaled matrix: weighted paths of up to `cycles` - 1 points from j to k."""
        Q = np.diag(self.w)
        if self.cycles >= 3:
            Q += np.outer(self.w, self.w) * self.B
        if self.cycles >= 4:
            through = (self.B * self.w) @ self.B
            np.fill_diagonal(through, 0)  # a path does not come back
            Q += np.outer(self.w, self.w) * through
        return self.alpha * Q

    def insertion(self) -> NDArray:
        """The matrix Q of alpha A_tt + a' Q a."""
        return self._paths() / np.outer(self.scale, self.scale)

    def leave_one_out(self, rows: NDArray) -> NDArray:
        """a' Q a of each old point from all the others, in O(n^3) operations for all of them.

        Paths through the point are left out, and what each other point j loses thereby, the probability of sharing a
        cycle with it, is given back by dividing by what is left. Exact when there are two points, for two cycles, and
        for a matrix of ones.

        Parameters
        ----------
        rows : ndarray of shape (n, n)
            Covariances between the points, zero on the diagonal, each row in units of its own: the result is in units
            of its square.
        """
        rows = rows / self.scale
        kept = 1 / (1 - self.pairs)
        np.fill_diagonal(kept, 0)
        total = np.einsum("ij,ij->i", (kept * rows) @ self._paths(), rows)
        if self.cycles < 4:
            return total
        ends = rows * self.B * self.w  # of the paths j, i, k, for each i
        between = (kept * ends).sum(axis=1) * ends.sum(axis=1) - (kept * ends * ends).sum(axis=1)
        return total - self.alpha * self.w * between


def expand(A: NDArray, alpha: float, cycles: int) -> CyclicExpansion:
    """Set up the cyclic approximation for checked arguments, in O(n^3) operations."""
    scale = np.sqrt(np.diagonal(A))
    B = A / np.outer(scale, scale)
    np.fill_diagonal(B, 0)
    B[B < NEGLIGIBLE] = 0
    state = calibrate(B, alpha, cycles - 1)
    return CyclicExpansion(alpha, cycles, scale, B, np.exp(state.u), state.pairs)
