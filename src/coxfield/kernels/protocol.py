"""What everything else asks of a covariance function: two small interfaces.

A `Covariance` is a function C(x, x'). To compute values, bind it to points. A `Bound` holds points in the form that the
covariance needs, and gives values between its points and those of another `Bound` of the same covariance. Class sums,
label fields, selection and permanents use these methods and no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from scipy import sparse


class Covariance(Protocol):
    """A covariance function C(x, x')."""

    @property
    def kernel(self) -> Any:
        """The object that users see: a kernel of scikit-learn, or the covariance itself."""

    def bind(self, X, rows: NDArray | None = None) -> Bound:
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


class Bound(Protocol):
    """Points bound to a covariance.

    Values come in two forms. `tile` is fast. Its values are in units of `unit`, and `floor` stands for zero. `log_tile`
    is careful: nothing underflows, and rounding does not change which point is the nearest.
    """

    @property
    def unit(self) -> float:
        """The factor that turns the values of `tile` into covariances."""

    @property
    def floor(self) -> float:
        """The value in a tile that stands for zero. It is above 0 if that avoids subnormal numbers."""

    @property
    def covariance(self) -> Covariance:
        """The covariance function."""

    @property
    def dtype(self) -> np.dtype:
        """Precision of a tile."""

    @property
    def held(self) -> bool:
        """Whether values are looked up and not computed."""

    def __len__(self) -> int:
        """Number of points."""

    def __getitem__(self, rows) -> Self:
        """Some of the points, by a slice or an array of row numbers."""

    def at(self, X) -> Self:
        """Other points, in the same form as these."""

    def alone(self) -> Self:
        """The same points, holding nothing of the other rows of the data that they came from."""

    @property
    def erasable(self) -> bool:
        """Whether `erase` can be called."""

    def erase(self, rows: NDArray) -> None:
        """Overwrite some points, here and in the data that they came from. They must not count in any sum."""

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Self:
        """The same points under the rescaled covariance."""

    def diagonal(self) -> NDArray:
        """C(x, x) for each point; one entry stands for all points of a stationary covariance."""

    def tile(self, columns: Self, out: NDArray | None = None) -> NDArray:
        """Covariances between these points and others, in units of `unit` and never below `floor`.

        `out` is an array that may be used for the result.
        """

    def imprecise(self, columns: Self, factor: float = 1.0) -> NDArray:
        """Whether rounding spoils the row of each point in a tile, so that `log_tile` should be used instead.

        `factor` asks the same of the covariance with its length scales multiplied.
        """

    def faint(self, sums: NDArray) -> NDArray:
        """Whether sums of tiles, one row per point, have lost digits by underflow; `log_tile` keeps them."""

    def log_tile(self, columns: Self, *, groups: Sequence | None = None, leave_out: NDArray | None = None) -> NDArray:
        """Logarithms of the covariances between these points and others, in double precision.

        Parameters
        ----------
        columns : Bound
        groups : sequence of slices or index arrays, optional
            Groups of columns that will be summed. Then only the columns that count in the sum of their group must be
            right to the last digit. By default all columns must be.
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
        """Hand the tiles for each factor of the length scale to `sink`, relative to the largest value of each row.

        Parameters
        ----------
        columns : Bound
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

    def rungs(self, columns: Self, factors: NDArray, out: NDArray | None = None) -> Iterator[NDArray]:
        """The tile for each factor of the length scales, one after the other; each may overwrite the one before."""

    def log_rungs(self, columns: Self, factors: NDArray) -> Iterator[NDArray]:
        """The tile of logarithms for each factor of the length scales, as `log_tile` gives it."""

    def pair_rungs(self, rows: NDArray, columns: Self, of_columns: NDArray, factors: NDArray) -> Iterator[NDArray]:
        """`pairs` for one factor of the length scale after the other."""

    def left_out(self, rows: NDArray) -> Self:
        """These points as queries from which the covariance has learned nothing.

        Parameters
        ----------
        rows : integer array, one entry per point
            The row of each point among the labelled points that the covariance was learned from, -1 for none.
        """

    def summing(self, columns: Self, weights: Any) -> Summing:
        """How to sum these covariances over classes: `weights` are the `engine.weights.ClassWeights` of the columns."""

    def differentiate(self, columns: Self, weights: NDArray, leave_out: NDArray) -> Differentiated:
        """Weighted sums of C over `columns`, with their derivatives by the free parameters of the kernel.

        Parameters
        ----------
        columns : Bound
        weights : array, one entry per column
        leave_out : integer array, one entry per point
            A column that the point must not see, -1 for none.
        """

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        """Sum over the points x_j of weights_j dC(x_j, x_j) / d theta, one entry per free parameter of the kernel."""


class Sink(Protocol):
    """The receiver of the tiles of `Bound.walk`."""

    def add(self, k: int, start: int, tile: NDArray) -> None:
        """Receive a tile of factor k whose first column is `start`; the tile may be overwritten afterwards."""

    def add_entries(self, k: int, at: NDArray, columns: NDArray, values: NDArray) -> None:
        """Receive single values of factor k: their rows, their columns, and the values."""


class Summing(Protocol):
    """Class sums between bound points, tile by tile. They may need several layers until all columns were seen."""

    @property
    def layers(self) -> int:
        """Number of layers."""

    @property
    def tiled(self) -> bool:
        """Whether `add` makes tiles. Otherwise one call is enough for all rows and columns."""

    def add(self, some: slice, part: slice, own: NDArray | None, room: NDArray, sums: NDArray) -> NDArray | None:
        """Add the sums over some columns. The result is the tile, if the sums are those of one tile.

        Parameters
        ----------
        some, part : slice
            Rows and columns.
        own : integer array, optional
            For each row, a column that it must not see, -1 for none.
        room : array
            Memory that may be used for a tile.
        sums : array of shape (layers, rows of `some`, n_classes)
        """

    def total(self, sums: NDArray) -> NDArray:
        """The class sums from their layers, in units of `unit`; the layers may be overwritten."""


class Differentiated(Protocol):
    """Weighted sums of covariances, one per point, with their derivatives by the parameters of the kernel."""

    @property
    def sums(self) -> NDArray:
        """The sums."""

    def gradient(self, rows: NDArray) -> NDArray:
        """Sum over the points j of rows_j dsums_j / d theta, one entry per free parameter of the kernel."""


# Covariances of all pairs of points, plain and precise.


def values(rows: Bound, columns: Bound) -> NDArray:
    """C between all pairs: a tile in units of 1 and without its floor, computed with care where rounding spoils it.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.kernels.recognise import recognise
    >>> points = recognise(2.0 * RBF(1.0), 1).bind(np.array([[0.0], [1.0]]))
    >>> values(points, points).round(4).tolist()
    [[2.0, 1.2131], [1.2131, 2.0]]
    """
    tile = rows.tile(columns)
    if rows.floor:
        tile -= tile.dtype.type(rows.floor)
    if rows.unit != 1:
        if rows.unit > float(np.finfo(tile.dtype).max):  # no number in single precision
            tile = tile.astype(float)
        tile *= rows.unit
    again = np.flatnonzero(rows.imprecise(columns))
    if again.size:
        tile[again] = np.exp(rows[again].log_tile(columns))
    return tile


def bind_precisely(covariance: Covariance, X) -> Bound:
    """Bind all rows of X, in double precision if single precision is too coarse for this covariance."""
    for data in (X, X.astype(np.float64, copy=False)):
        bound = covariance.bind(data)
        if not bound.imprecise(bound).any():
            break
    return bound


# Leaving points out of tiles: where a point meets itself.


def cross_out(tile: NDArray, leave_out: NDArray, start: int, value) -> None:
    """Write `value`, one number or one per row, where a row meets the column that it must leave out.

    Parameters
    ----------
    tile : array of shape (rows, columns)
    leave_out : integer array of shape (rows,)
        The column that each row must not see, -1 for none, in the same numbering as `start`.
    start : int
        Number of the first column of the tile.
    value : float or array of shape (rows,)

    Examples
    --------
    >>> tile = np.ones((3, 2))
    >>> cross_out(tile, np.array([5, 6, -1]), 5, 0.0)
    >>> tile.tolist()
    [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    rows = np.flatnonzero((leave_out >= start) & (leave_out < start + tile.shape[1]))
    if rows.size:
        tile[rows, leave_out[rows] - start] = value if np.isscalar(value) else value[rows]
