"""Any kernel of scikit-learn, called block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.kernels.checked import diagonal_of, gradient_of, values_of
from coxfield.kernels.distances import stacked
from coxfield.kernels.ladder import walk_one_by_one
from coxfield.kernels.leave_out import cross_out
from coxfield.kernels.nearest import nearest
from coxfield.kernels.nonnegative import check_nonnegative
from coxfield.kernels.plain import PlainBound
from coxfield.kernels.sklearn_tree import rescale

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.gaussian_process import kernels

ROWS_PER_CALL = 64  # rows evaluated together for listed pairs


@dataclass(frozen=True)
class Called:
    """A kernel that can only be called."""

    kernel: kernels.Kernel

    def bind(self, X, rows: NDArray | None = None) -> CalledPoints:
        """Hold the rows as they are."""
        return CalledPoints(self, X if rows is None else X[rows])

    def diagonal(self, X) -> NDArray:
        """C(x, x) for each row, by the kernel's own `diag`."""
        return diagonal_of(self.kernel, X)

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Called:
        """The kernel with its free length scales and its variance multiplied."""
        return Called(rescale(self.kernel, length, variance))

    @property
    def stationary(self) -> bool:
        """What the kernel says."""
        return bool(self.kernel.is_stationary())

    def check_nonnegative(self) -> None:
        """Raise ValueError if the kernel may take negative values."""
        check_nonnegative(self.kernel)


@dataclass(frozen=True)
class CalledPoints(PlainBound):
    """Points as they were given; `Bound` says what the methods are for."""

    covariance: Called
    X: Any
    unit = 1.0
    floor = 0.0

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows) -> CalledPoints:
        return CalledPoints(self.covariance, self.X[rows])

    @property
    def dtype(self) -> np.dtype:
        """Kernels of scikit-learn compute in double precision."""
        return np.dtype(np.float64)

    def at(self, X) -> CalledPoints:
        """Other points."""
        return CalledPoints(self.covariance, X)

    def joined(self, other: CalledPoints) -> CalledPoints:
        """These points and others."""
        return CalledPoints(self.covariance, stacked([self.X, other.X]))

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> CalledPoints:
        """The same points under the rescaled kernel."""
        return CalledPoints(self.covariance.rescaled(length, variance), self.X)

    def diagonal(self) -> NDArray:
        """C(x, x) for each point."""
        return self.covariance.diagonal(self.X)

    def tile(self, columns: CalledPoints, out: NDArray | None = None) -> NDArray:
        """One call of the kernel."""
        return values_of(self.covariance.kernel, self.X, columns.X)

    def imprecise(self, columns: CalledPoints, factor: float = 1.0) -> NDArray:
        """Never, because there is no better way to compute the kernel."""
        return np.zeros(len(self), dtype=bool)

    def faint(self, sums: NDArray) -> NDArray:
        """Never, because there are no better logarithms than those of the values."""
        return np.zeros(len(self), dtype=bool)

    def log_tile(self, columns: CalledPoints, *, groups=None, leave_out: NDArray | None = None) -> NDArray:
        """Logarithms of the values; negative values are refused."""
        values = self.tile(columns)
        if leave_out is not None:
            cross_out(values, leave_out, 0, 0)
        if (values < 0).any():
            raise ValueError(
                f"{self.covariance.kernel!r} takes negative values, such as {values.min():.3g}, but a covariance that "
                "is never negative is needed here: try RBF, Matern or RationalQuadratic, or give selection=None"
            )
        with np.errstate(divide="ignore"):
            return np.log(values)

    def pairs(self, rows: NDArray, columns: CalledPoints, of_columns: NDArray) -> NDArray:
        """C of listed pairs; the kernel is called on a few rows at a time."""
        values = np.empty(len(rows))
        order = np.argsort(rows, kind="stable")
        different, starts = np.unique(rows[order], return_index=True)
        for first in range(0, len(different), ROWS_PER_CALL):
            stop = first + ROWS_PER_CALL
            mine = order[starts[first] : starts[stop] if stop < len(different) else None]
            wanted, column = np.unique(of_columns[mine], return_inverse=True)
            block = self[different[first:stop]].tile(columns[wanted])
            values[mine] = block[np.searchsorted(different[first:stop], rows[mine]), column]
        return values

    def neighbours(self, count: int) -> NDArray:
        """The nearest points, by Euclidean distance."""
        return nearest(self.X, count)

    def walk(self, columns: CalledPoints, factors: NDArray, leave_out: NDArray, sink) -> NDArray:
        """One factor after the other."""
        return walk_one_by_one(self, columns, factors, leave_out, sink)

    def differentiate(self, columns: CalledPoints, weights: NDArray, leave_out: NDArray) -> CalledSums:
        """Sums and derivatives.

        scikit-learn gives gradients only for all pairs of one set, so the rows and the columns become one set.
        """
        values, gradient = gradient_of(self.covariance.kernel, stacked([self.X, columns.X]))
        n = len(self)
        everything = np.concatenate([values[:n, n:, None], gradient[:n, n:]], axis=2)
        seen = np.flatnonzero((leave_out >= 0) & (leave_out < len(columns)))
        everything[seen, leave_out[seen]] = 0
        sums = np.einsum("jkp,k->jp", everything, weights)
        return CalledSums(sums[:, 0], sums[:, 1:])

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        """Weighted sum of the derivatives of C(x, x)."""
        _, gradient = gradient_of(self.covariance.kernel, self.X)
        return np.einsum("j,jjp->p", weights, gradient)


@dataclass(frozen=True)
class CalledSums:
    """Weighted sums of covariances with their derivatives."""

    sums: NDArray
    derivatives: NDArray
    """Shape (rows, parameters)."""

    def gradient(self, rows: NDArray) -> NDArray:
        """Sum over the points of rows_j dsums_j / d theta."""
        return rows @ self.derivatives
