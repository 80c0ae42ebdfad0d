"""The linear covariance: the cosine between points that are whitened by the covariance of all points.

Whitened means multiplied by (Sigma + h tr(Sigma) / d)^-1/2, where h > 0 keeps directions without spread from
dominating. Classes that differ in direction, not in place along the data, are told apart by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from coxfield.graphs.frame import Frame
from coxfield.graphs.heat import unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_AXES = 1024  # features up to which all axes are used; beyond, the leading ones
LEADING = 100


@dataclass(frozen=True)
class Axes:
    """Principal axes of all points."""

    centre: NDArray | None
    """The mean of the points; None for sparse points, which are not centred."""
    axes: NDArray
    """As columns."""
    variances: NDArray
    """Variances of the points along the axes."""
    n_features: int
    frame: Frame = field(default_factory=Frame)
    """In which the points are."""

    @classmethod
    def of(cls, X) -> Axes:
        """The axes of given points: all of them, or the leading ones if there are many features."""
        frame = Frame.of(X)
        return replace(cls._of(frame.place(X)), frame=frame)

    @classmethod
    def _of(cls, X) -> Axes:
        if sparse.issparse(X):
            return cls._leading(X, None)
        centre = X.mean(axis=0, dtype=float)
        if X.shape[1] > MOST_AXES:
            return cls._leading(X, centre)
        centred = X - centre.astype(X.dtype)
        covariance = (centred.T @ centred).astype(float) / len(X)
        variances, axes = np.linalg.eigh(covariance)
        return cls(centre, axes, np.maximum(variances, 0), X.shape[1])

    @classmethod
    def _leading(cls, X, centre: NDArray | None) -> Axes:
        shifted = X if centre is None else X - centre.astype(X.dtype)
        n, d = shifted.shape
        count = min(LEADING, n, d)
        _, lengths, axes = randomized_svd(shifted, count, n_iter=2, random_state=0)
        return cls(centre, np.asarray(axes.T, dtype=float), lengths.astype(float) ** 2 / n, d)

    def coordinates(self, X) -> NDArray:
        """Coordinates of points along the axes."""
        X = self.frame.place(X)
        moved = X if self.centre is None else X - self.centre.astype(X.dtype)
        return np.asarray(moved @ self.axes.astype(X.dtype, copy=False))

    def shrunk(self, share: float) -> NDArray:
        """Variances along the axes, each with `share` times the mean variance of a feature added."""
        return self.variances + share * self.variances.sum() / self.n_features

    def rank(self, share: float) -> float:
        """The effective rank of the whitened points, as `effective_rank` counts modes."""
        g = np.divide(self.variances, self.shrunk(share), out=np.zeros_like(self.variances), where=self.variances > 0)
        squares = float((g**2).sum())
        return float(g.sum() ** 2 / squares) if squares > 0 else 1.0

    def features(self, coordinates: NDArray, share: float) -> NDArray:
        """Unit vectors whose inner products are the covariances, from the coordinates of points."""
        shrunk = self.shrunk(share)
        weights = np.divide(1, np.sqrt(shrunk), out=np.zeros_like(shrunk), where=shrunk > 0)
        return unit_rows(coordinates * weights.astype(coordinates.dtype))
