"""Covariances that were computed before: a matrix of values, addressed by row number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.kernels.ladder import walk_one_by_one
from coxfield.kernels.leave_out import cross_out
from coxfield.kernels.plain import PlainBound
from coxfield.kernels.values import values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Bound, Covariance

MOST = 2**24  # values that may be held: 128 MB in double precision, 4096 points


@dataclass(frozen=True)
class HeldPoints(PlainBound):
    """Some points of a fixed set whose covariances are held; `Bound` says what the methods are for."""

    origin: Bound
    """All points of the set, for everything that is not held."""
    matrix: NDArray
    """C between all points of the set."""
    rows: NDArray
    """Number of each point in the set."""
    unit = 1.0
    floor = 0.0
    held = True

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows) -> HeldPoints:
        return HeldPoints(self.origin, self.matrix, self.rows[rows])

    @cached_property
    def _whole(self) -> bool:
        return len(self.rows) == len(self.matrix) and bool((self.rows == np.arange(len(self.rows))).all())

    @property
    def covariance(self) -> Covariance:
        """The covariance function of the values."""
        return self.origin.covariance

    @property
    def dtype(self) -> np.dtype:
        """Precision of the values."""
        return self.matrix.dtype

    def at(self, X) -> Any:
        """Other points: nothing is held for them."""
        return self.origin.at(X)

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Any:
        """The same points under the rescaled covariance; a new variance alone only rescales the held values."""
        if length == 1:
            return HeldPoints(self.origin.rescaled(variance=variance), self.matrix * variance, self.rows)
        return self.origin[self.rows].rescaled(length, variance)

    def diagonal(self) -> NDArray:
        """C(x, x) of each point."""
        return self.origin[self.rows].diagonal()

    def tile(self, columns: HeldPoints, out: NDArray | None = None) -> NDArray:
        """A copy of the values."""
        if self._whole and columns._whole:
            return self.matrix.copy()
        if len(columns) < len(self):  # the matrix is symmetric, and whole rows are the fastest to read
            return np.take(self.matrix[columns.rows], self.rows, axis=1).T
        return np.take(self.matrix if self._whole else self.matrix[self.rows], columns.rows, axis=1)

    def imprecise(self, columns: HeldPoints, factor: float = 1.0) -> NDArray:
        """Never, because the held values were computed with care."""
        return np.zeros(len(self), dtype=bool)

    def faint(self, sums: NDArray) -> NDArray:
        """Never, because a held value that underflowed cannot be recovered."""
        return np.zeros(len(self), dtype=bool)

    def log_tile(self, columns: HeldPoints, *, groups=None, leave_out: NDArray | None = None) -> NDArray:
        """Logarithms of the values."""
        tile = self.tile(columns).astype(float, copy=False)
        if leave_out is not None:
            cross_out(tile, leave_out, 0, 0)
        with np.errstate(divide="ignore"):
            return np.log(tile)

    def pairs(self, rows: NDArray, columns: HeldPoints, of_columns: NDArray) -> NDArray:
        """The values of listed pairs."""
        return self.matrix[self.rows[rows], columns.rows[of_columns]].astype(float)

    def neighbours(self, count: int) -> NDArray:
        """Neighbours by the covariance itself."""
        return self.origin[self.rows].neighbours(count)

    def walk(self, columns: HeldPoints, factors: NDArray, leave_out: NDArray, sink) -> NDArray:
        """One factor after the other."""
        return walk_one_by_one(self, columns, factors, leave_out, sink)

    def differentiate(self, columns: HeldPoints, weights: NDArray, leave_out: NDArray):
        """Derivatives of the covariance itself."""
        return self.origin[self.rows].differentiate(self.origin[columns.rows], weights, leave_out)

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        """Derivatives of the covariance itself."""
        return self.origin[self.rows].diagonal_gradient(weights)


def hold(points: Bound) -> Bound:
    """The same points with all their covariances held if they are few enough, otherwise unchanged.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.kernels.recognise import recognise
    >>> points = hold(recognise(RBF(1.0), 1).bind(np.array([[0.0], [1.0], [2.0]])))
    >>> points[[0, 2]].tile(points[[1]]).round(4).tolist()
    [[0.6065], [0.6065]]
    """
    n = len(points)
    if points.held or n**2 > MOST:
        return points
    return HeldPoints(points, values(points, points), np.arange(n))


def all_held(points: Iterable[Bound]) -> bool:
    """Whether the covariances of all these points are held."""
    return all(bound.held for bound in points)
