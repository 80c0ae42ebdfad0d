"""What everything else asks of a covariance function: two small interfaces.

A `Covariance` is a function C(x, x'). To compute values, bind it to points. `KernelPoints` hold points in the form
that the covariance needs, and give values between their points and others of the same covariance. Class sums, label
fields, selection and permanents use these methods and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from coxfield.kernels.namespace import NUMPY, cross_out, doubled
from coxfield.utils.numbers import logs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from coxfield.kernels.namespace import Library


class Covariance(Protocol):
    """A covariance function C(x, x')."""

    @property
    def kernel(self) -> Any:
        """The object that users see: a kernel of scikit-learn, or the covariance itself."""

    def bind(self, X, rows: NDArray | None = None) -> KernelPoints:
        """Hold rows of X, all by default, in the form from which values are computed."""

    def diagonal(self, X) -> NDArray:
        """C(x, x) for each row; one entry stands for all rows of a stationary covariance."""

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Covariance:
        """The covariance with its free length scales and its signal variance multiplied."""

    @property
    def stationary(self) -> bool:
        """Whether only x - x' counts. Then C(x, x) is the same for all points."""

    def check_nonnegative(self) -> None:
        """Raise ValueError if the covariance may take negative values, which Theorem 2 does not allow."""


class KernelPoints(Protocol):
    """Points bound to a covariance.

    Values come in three forms. `tile` is fast. `log_tile` is in the log domain: nothing underflows, and rounding does
    not change which point is the nearest. `walk` hands values to sums, relative to the largest value of each row.

    Tiles are arrays in the library of the points. Everything else is NumPy.
    """

    @property
    def covariance(self) -> Covariance:
        """The covariance function."""

    @property
    def dtype(self) -> np.dtype:
        """Precision of a tile."""

    @property
    def library(self) -> Library:
        """Where tiles are."""

    @property
    def precomputed(self) -> bool:
        """Whether values are looked up and not computed."""

    def __len__(self) -> int:
        """Number of points."""

    def __getitem__(self, rows) -> Self:
        """Some of the points, by a slice or an array of row numbers; the latter hold nothing of the others."""

    def at(self, X) -> Self:
        """Other points, in the same form as these."""

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Self:
        """The same points under the rescaled covariance."""

    def diagonal(self) -> NDArray:
        """C(x, x) for each point; one entry stands for all points of a stationary covariance."""

    def tile(self, columns: Self, out: NDArray | None = None) -> NDArray:
        """Covariances between these points and others. `out` is an array that may be used for the result."""

    def imprecise(self, columns: Self, factor: float = 1.0) -> NDArray:
        """Whether cancellation spoils the row of each point in a tile, so that `precisely` should be used.

        `factor` asks the same of the covariance with its length scales multiplied.
        """

    def precisely(self) -> Self:
        """The same points, whose `walk` is right to the last digit, and takes longer."""

    def log_tile(self, columns: Self, *, leave_out: NDArray | None = None) -> NDArray:
        """Logarithms of the covariances between these points and others, in double precision.

        Parameters
        ----------
        columns : KernelPoints
        leave_out : integer array, optional
            For each point a column that it must not see, -1 for none. The logarithm there is -inf.
        """

    def pairs(self, rows: NDArray, columns: Self, of_columns: NDArray) -> NDArray:
        """C between listed pairs of these points and others, in double precision."""

    def neighbours(self, count: int) -> NDArray:
        """For each point, `count` other points whose covariance with it is likely to be large, shape (n, count)."""

    def links(self) -> sparse.csr_array | None:
        """All covariances between different points that are not 0, if they are listed; None if they are not.

        The matrix is symmetric and has no diagonal. Do not write to it.
        """

    def walk(self, columns: Self, factors: NDArray, leave_out: NDArray, sink: Sink) -> NDArray:
        """Hand the tiles for each factor of the length scale to `sink`, relative to a value of each row.

        Parameters
        ----------
        columns : KernelPoints
        factors : array of shape (K,)
            Factors of the free length scales, taken one after the other.
        leave_out : integer array of shape (n,)
            For each point a column that it must not see, -1 for none.
        sink : Sink

        Returns
        -------
        array of shape (K, n)
            Logarithms of the numbers by which the values of each row were divided.
        """

    def tiles_at(self, columns: Self, factors: NDArray) -> Iterator[NDArray]:
        """`tile` for one factor of the length scales after the other."""

    def log_tiles_at(self, columns: Self, factors: NDArray) -> Iterator[NDArray]:
        """`log_tile` for one factor of the length scales after the other."""

    def pairs_at(self, rows: NDArray, columns: Self, of_columns: NDArray, factors: NDArray) -> Iterator[NDArray]:
        """`pairs` for one factor of the length scale after the other."""

    def left_out(self, rows: NDArray) -> Self:
        """These points as queries from which the covariance has learned nothing.

        Parameters
        ----------
        rows : integer array, one entry per point
            The row of each point among the labelled points that the covariance was learned from, -1 for none.
        """

    def paths(self, columns: Self, weights: Any) -> list[Path]:
        """The sums over `columns` of which class sums consist; `weights` are their `engine.weights.ClassWeights`."""

    def total(self, sums: Sequence[LogSums]) -> LogSums:
        """The class sums of these points from the sums of `paths`, with one layer."""

    def differentiate(self, columns: Self, weights: NDArray, leave_out: NDArray) -> Differentiated:
        """Weighted sums of C over `columns`, with their derivatives by the free parameters of the kernel.

        Parameters
        ----------
        columns : KernelPoints
        weights : array, one entry per column
        leave_out : integer array, one entry per point
            A column that the point must not see, -1 for none.
        """

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        """Sum over the points x_j of weights_j dC(x_j, x_j) / d theta, one entry per free parameter of the kernel."""


class Sink(Protocol):
    """The receiver of the tiles of `KernelPoints.walk`."""

    def add(self, k: int, start: int, tile: NDArray) -> None:
        """Receive a tile of factor k whose first column is `start`; the tile may be overwritten afterwards."""

    def add_entries(self, k: int, at: NDArray, columns: NDArray, values: NDArray) -> None:
        """Receive single values of factor k: their rows, their columns, and the values."""

    def rescale(self, scale: NDArray) -> None:
        """Multiply what was received so far by a number for each factor and row, shape (K, n)."""


@dataclass(frozen=True)
class Path:
    """Sums over columns at some length scales, with one or more weights of the columns for each."""

    rows: Any
    columns: Any
    factors: NDArray | None
    """Factors of the length scales; None for the covariance as it is, whose values may be negative."""
    weights: Sequence[Sequence[Any]]
    """`ClassWeights` of each layer of each factor."""
    numbers: NDArray | None = None
    """The number of each column among those of the points, ascending, if not all are summed over."""

    def columns_of(self, numbers: NDArray) -> NDArray:
        """The columns of some points, -1 for those that are not summed over."""
        if self.numbers is None:
            return numbers
        place = np.searchsorted(self.numbers, numbers)
        found = np.append(self.numbers, -1)[place] == numbers
        return np.where(found & (numbers >= 0), place, -1)


@dataclass(frozen=True)
class LogSums:
    """Sums S = sums * exp(top), so that nothing underflows. Those over two sets of columns add: an online log-sum-exp.

    A row has one top for all classes, or one for each class if all its sums have vanished.
    """

    top: NDArray
    """Shape (factors, n, 1) or (factors, n, n_classes)."""
    sums: NDArray
    """Shape (factors, layers, n, n_classes)."""

    def __add__(self, other: LogSums) -> LogSums:
        top = np.maximum(self._reached, other._reached)
        mine, others = (np.exp(np.minimum(each.top - top, 0))[:, None] * each.sums for each in (self, other))
        return LogSums(np.where(top == LOWEST, 0, top), mine + others)

    @property
    def _reached(self) -> NDArray:
        """The tops of sums that have a term; those of others must not count when sums are added."""
        there = (self.sums != 0).any(axis=1)
        return np.where(there if self.top.shape[2] > 1 else there.any(axis=2, keepdims=True), self.top, LOWEST)

    @property
    def logs(self) -> NDArray:
        """log S; -inf where S is not positive."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.sums > 0, np.log(self.sums), -np.inf) + self.top[:, None]

    @property
    def values(self) -> NDArray:
        """S itself, limited so that it is a number."""
        with np.errstate(over="ignore"):
            return np.clip(self.sums * np.exp(np.minimum(self.top, LARGEST_LOG))[:, None], -LARGEST, LARGEST)


LOWEST = float(np.finfo(float).min)
LARGEST_LOG = 700.0  # exp of more than this overflows
LARGEST = float(np.exp(LARGEST_LOG))


class PlainPoints:
    """What only covariances that are learned, precomputed or listed need to write themselves; see `KernelPoints`."""

    precomputed = False

    @property
    def library(self) -> Library:
        """NumPy."""
        return NUMPY

    def links(self) -> sparse.csr_array | None:
        """None, because any two points may have a covariance that is not 0."""
        return None

    def left_out(self, rows: NDArray) -> Self:
        """The points unchanged: nothing in the covariance was learned from the rows."""
        return self

    def imprecise(self, columns: Any, factor: float = 1.0) -> NDArray:
        """Never, because there is no better way to compute the values."""
        return np.zeros(len(self), dtype=bool)  # type: ignore[arg-type]

    def precisely(self) -> Self:
        """The points themselves: there is no better way to compute the values."""
        return self

    def log_tile(self: Any, columns: Any, *, leave_out: NDArray | None = None) -> NDArray:
        """Logarithms of the values."""
        tile = self.tile(columns).astype(float, copy=False)
        if leave_out is not None:
            tile = cross_out(tile, leave_out, 0, 0)
        return logs_of(tile)

    def walk(self: Any, columns: Any, factors: NDArray, leave_out: NDArray, sink: Sink) -> NDArray:
        """One factor after the other, relative to the largest value of each row."""
        tops = np.empty((len(factors), len(self)))
        for k, factor in enumerate(factors):
            logs = self.rescaled(factor).log_tile(columns.rescaled(factor), leave_out=leave_out)
            top = logs.max(axis=1, initial=-np.inf)
            tops[k] = np.where(np.isneginf(top), 0, top)
            sink.add(k, 0, np.exp(logs - tops[k][:, None]))
        return tops

    def tiles_at(self: Any, columns: Any, factors: NDArray) -> Iterator[NDArray]:
        """One factor after the other: the length scales share no work."""
        for factor in factors:
            yield self.rescaled(factor).tile(columns.rescaled(factor))

    def log_tiles_at(self: Any, columns: Any, factors: NDArray) -> Iterator[NDArray]:
        """One factor after the other."""
        for factor in factors:
            yield self.rescaled(factor).log_tile(columns.rescaled(factor))

    def pairs_at(self: Any, rows: NDArray, columns: Any, of_columns: NDArray, factors: NDArray) -> Iterator[NDArray]:
        """One factor after the other."""
        for factor in factors:
            yield self.rescaled(factor).pairs(rows, columns.rescaled(factor), of_columns)

    def paths(self, columns: Any, weights: Any) -> list[Path]:
        """One sum of the values as they are."""
        return [Path(self, columns, None, [[weights]])]

    def total(self, sums: Sequence[LogSums]) -> LogSums:
        """The only sum."""
        return sums[0]


class Differentiated(Protocol):
    """Weighted sums of covariances, one per point, with their derivatives by the parameters of the kernel."""

    @property
    def sums(self) -> NDArray:
        """The sums."""

    def gradient(self, rows: NDArray) -> NDArray:
        """Sum over the points j of rows_j dsums_j / d theta, one entry per free parameter of the kernel."""


# Covariances of all pairs of points, plain and precise.


def values(rows: KernelPoints, columns: KernelPoints) -> NDArray:
    """C between all pairs: a tile, computed in the log domain where rounding spoils it.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.kernels.radial import recognise
    >>> points = recognise(2.0 * RBF(1.0), 1).bind(np.array([[0.0], [1.0]]))
    >>> values(points, points).round(4).tolist()
    [[2.0, 1.2131], [1.2131, 2.0]]
    """
    tile = rows.tile(columns)
    again = np.flatnonzero(rows.imprecise(columns))
    if again.size:
        tile[again] = np.exp(rows[again].log_tile(columns))
    return tile


def bind_precisely(covariance: Covariance, X) -> KernelPoints:
    """Bind all rows of X, in double precision if single precision is too coarse for this covariance."""
    for data in (X, doubled(X)):
        bound = covariance.bind(data)
        if not bound.imprecise(bound).any():
            break
    return bound
