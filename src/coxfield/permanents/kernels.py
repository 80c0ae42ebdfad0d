r"""The two covariances of a permanental Cox process: C-hat for product densities, C-tilde for Janossy densities.

C-hat = 2 C. On a box window, C-tilde has the eigenfunctions of C-hat with eigenvalues lambda / (1 + lambda), so as
operators over the window C-tilde = C-hat - C-hat (1 + C-hat)^{-1} C-hat. With Gauss-Legendre nodes z and weights v,

.. math:: \tilde C(x, x') = \hat C(x, x')
          - \hat c(x)' V^{1/2} (1 + V^{1/2} \hat C[z] V^{1/2})^{-1} V^{1/2} \hat c(x'),

which sums the eigen-expansion without dividing by small eigenvalues. It makes sense outside the window too: there, the
density asks for a point and says nothing of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from coxfield.geometry.window import Quadrature, Window, gauss_legendre
from coxfield.utils.numbers import logs_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from coxfield.kernels.protocol import Covariance


WIDEST = 1e80  # of a side of the window, or its inverse: the product of three is still a number
NODES = {1: 200, 2: 32, 3: 10}  # per axis; about 1000 in all, because their Cholesky factor costs O(nodes^3)
STRONGEST = 8e307  # variance; twice that must be a floating point number
COARSER = 0.75  # the share of nodes per side whose C-tilde is compared
TOLERANCE = 0.01  # the largest difference allowed between the two, relative to C-hat(x, x)
LOOKED_AT = 100  # points at which they are compared
DIGITS = 1e-6  # the largest share of C-tilde(x, x) that may be rounding


def check_window(window, X: NDArray) -> NDArray:
    """The window as one row (low, high) per feature; None stands for the box of the points, widened on each side.

    It is widened by the mean spacing of n points in a row: if n points are spread evenly over an interval, the
    outermost lie that far inside.
    """
    n, d = X.shape
    if d > max(NODES):
        raise ValueError(
            f"Janossy densities integrate over a window in at most {max(NODES)} dimensions, but the data have {d} "
            'features: give density="product"'
        )
    if window is None:
        low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
        _refuse_extreme(low, high)
        gap = (high - low) / max(n - 1, 1)
        window = np.stack([low - gap, high + gap], axis=1)
    elif np.shape(window) != (d, 2):
        raise ValueError(f"window must be a pair (low, high) for each of {d} features, got shape {np.shape(window)}")
    return np.array(Window(window).sides)


def _refuse_extreme(low: NDArray, high: NDArray) -> None:
    """Refuse features whose window has a volume that is not a number."""
    size = np.maximum(np.abs(low), np.abs(high))
    wide = np.maximum(high / 2 - low / 2, size * np.finfo(float).eps)
    for k in np.flatnonzero((size > WIDEST) | ((wide < 1 / WIDEST) & (size > 0))):
        raise ValueError(
            f"feature {k} has values from {low[k]:.3g} to {high[k]:.3g}, so that the volume of the window is beyond "
            "what numbers can say: multiply it by a power of ten, or give a window"
        )


def quadrature(window: Window | ArrayLike, share: float = 1.0) -> Quadrature:
    """Gauss-Legendre nodes over the window, with a share of the usual number per axis."""
    window = Window.of(window)
    return gauss_legendre(window, round(share * NODES[window.dimension]))


@dataclass(frozen=True)
class ScaledRows:
    """Rows of covariances relative to the largest of each row, so that underflow spoils nothing that counts."""

    values: NDArray
    log_scale: NDArray

    @classmethod
    def of(cls, covariances: NDArray, *, leave_out: bool) -> ScaledRows:
        """Scale rows of covariances; with `leave_out` the diagonal is zero."""
        if leave_out:
            np.fill_diagonal(covariances, 0)
        largest = np.abs(covariances).max(axis=1)
        return cls(covariances / np.where(largest > 0, largest, 1)[:, None], logs_of(largest))

    @classmethod
    def of_logs(cls, logs: NDArray) -> ScaledRows:
        """The same from logs of covariances."""
        top = logs.max(axis=1)
        return cls(np.exp(logs - np.where(np.isneginf(top), 0, top)[:, None]), top)


@dataclass(frozen=True)
class ProductKernel:
    """C-hat = 2 C: with it, alpha = k / 2 is the process whose intensity is the sum of k squared Gaussian processes."""

    covariance: Covariance

    def diagonal(self, X: NDArray) -> NDArray:
        """C-hat(x, x) of each row."""
        variances = np.broadcast_to(self.covariance.diagonal(X), len(X)).astype(float)
        wrong = ~((variances > 0) & (variances < STRONGEST))
        if wrong.any():
            raise ValueError(
                f"{self.covariance.kernel!r} has variance {variances[wrong][0]:.3g} at a point: it must be positive "
                f"and below {STRONGEST:.0e}"
            )
        return 2 * variances

    def rows(self, X: NDArray, Y: NDArray, *, leave_out: bool = False) -> ScaledRows:
        """C-hat between each row of X and all of Y."""
        return ScaledRows.of_logs(self._logs(X, Y, np.arange(len(X)) if leave_out else None))

    def values(self, X: NDArray, Y: NDArray) -> NDArray:
        """C-hat between all pairs, where it may underflow."""
        return np.exp(self._logs(X, Y))

    def _logs(self, X: NDArray, Y: NDArray, leave_out: NDArray | None = None) -> NDArray:
        points = self.covariance.bind(Y)
        return points.at(X).log_tile(points, leave_out=leave_out) + np.log(2)

    def matrix(self, X: NDArray) -> NDArray:
        """C-hat of some points, with what the kernel says of a point and itself on the diagonal."""
        values = self.values(X, X)
        np.fill_diagonal(values, self.diagonal(X))
        return (values + values.T) / 2


@dataclass(frozen=True)
class LocalKernel:
    """C-tilde over a window; build it with `localise`. Values may be negative, by a little."""

    whole: ProductKernel
    quadrature: Quadrature
    factor: NDArray
    """Lower Cholesky factor of 1 + V^(1/2) C-hat V^(1/2)."""

    def _removed(self, X: NDArray) -> NDArray:
        """Columns whose inner products are what the window takes from C-hat."""
        columns = self.quadrature.roots[:, None] * self.whole.values(self.quadrature.nodes, X)
        return solve_triangular(self.factor, columns, lower=True)

    def diagonal(self, X: NDArray) -> NDArray:
        """C-tilde(x, x) of each row."""
        whole = self.whole.diagonal(X)
        return self._with_digits(whole, whole - np.square(self._removed(X)).sum(axis=0))

    def _with_digits(self, whole: NDArray, left: NDArray) -> NDArray:
        """What is left of variances; refused if it has no digits, or is not positive."""
        if not (np.finfo(float).eps * whole < DIGITS * left).all():
            raise ValueError(too_strong(self.whole, whole.max() / 2))
        return left

    def rows(self, X: NDArray, Y: NDArray, *, leave_out: bool = False) -> ScaledRows:
        """C-tilde between each row of X and all of Y."""
        return ScaledRows.of(self.whole.values(X, Y) - self._removed(X).T @ self._removed(Y), leave_out=leave_out)

    def matrix(self, X: NDArray) -> NDArray:
        """C-tilde of some points."""
        removed, whole = self._removed(X), self.whole.matrix(X)
        left = whole - removed.T @ removed
        self._with_digits(np.diagonal(whole), np.diagonal(left))
        return left

    @property
    def log_void(self) -> float:
        """D, the sum of log(1 + lambda): the probability of an empty window is exp(-alpha D)."""
        return 2 * float(np.log(np.diagonal(self.factor)).sum())


def localise(whole: ProductKernel, rule: Quadrature) -> LocalKernel:
    """C-tilde from C-hat, in O(nodes^3) operations."""
    with np.errstate(over="ignore", invalid="ignore"):
        weighted = whole.matrix(rule.nodes) * np.outer(rule.roots, rule.roots)
    try:
        if not np.isfinite(weighted).all():
            raise LinAlgError
        factor = cholesky(weighted + np.eye(len(weighted)), lower=True)
    except LinAlgError:  # beside such eigenvalues, 1 is lost
        raise ValueError(too_strong(whole, whole.diagonal(rule.nodes).max() / 2)) from None
    return LocalKernel(whole, rule, factor)


def too_strong(whole: ProductKernel, variance: float) -> str:
    """What to say of a variance that leaves no digits to lambda / (1 + lambda)."""
    return (
        f"{whole.covariance.kernel!r} has variance {variance:.3g}, too large for Janossy densities: give a smaller "
        'variance, a larger alpha if kernel is None, or density="product"'
    )


def local_kernel(whole: ProductKernel, box: NDArray, X: NDArray) -> LocalKernel | None:
    """C-tilde over the box, or None when the nodes are too few for a covariance so short.

    They are too few when three quarters as many per side give another C-tilde, at some of the points X or at some of
    the coarser nodes: a covariance that reaches from no node to a point shows up at the nodes.
    """
    local, coarse = localise(whole, quadrature(box)), localise(whole, quadrature(box, COARSER))
    some = np.concatenate([_some(X), _some(coarse.quadrature.nodes)])
    difference = np.abs(local.matrix(some) - coarse.matrix(some)).max()
    return local if difference <= TOLERANCE * whole.diagonal(some).max() else None


def _some(points: NDArray) -> NDArray:
    return points[:: -(-len(points) // LOOKED_AT)]
