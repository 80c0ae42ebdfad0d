"""The weight of each column of a tile for each class: the matrix W of the class sums K W.

For given labels W has one entry per row. With columns sorted by class, the product becomes one sum per class, which is
faster than a product of matrices. For soft labels (label distributions) W is a full matrix.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from scipy import sparse
from sklearn import get_config

from coxfield import threads
from coxfield.kernels.namespace import NUMPY, Library, to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


# Work in tiles: how large a tile may be, and how threads share the rows.
#
# Each tile is a small matrix product followed by cheap passes that stay in cache. One thread per block of rows, with
# single-threaded BLAS inside, is faster than multi-threaded BLAS and single-threaded NumPy (see `benchmarks/`).


ROWS, COLUMNS = 512, 2048  # a tile of a million numbers was fastest on 60,000 x 784; sizes nearby are as good
# Of libraries with their own threads, all of which share one tile; a GPU needs much work at a time.
ON_CPU, ELSEWHERE = (1024, 2048), (8192, 2048)
COPIES = 6  # of a tile that may be alive at a time there
SMALL = 2**19  # numbers in total, up to which starting threads costs as much time as it saves


def _budget(itemsize: int) -> int:
    """Numbers that each thread may hold, so that all threads together stay within scikit-learn's `working_memory`."""
    return max(1, int(get_config()["working_memory"] * 2**20) // (itemsize * threads.count()))


def tile_shape(n_rows: int, n_columns: int, itemsize: int, library: Library = NUMPY) -> tuple[int, int]:
    """Rows and columns of a tile."""
    if library.foreign:
        rows, columns = ON_CPU if str(library.device).lower().startswith("cpu") else ELSEWHERE
        held = max(1, int(get_config()["working_memory"] * 2**20) // (itemsize * COPIES))
        columns = max(1, min(columns, n_columns, held))
        return max(1, min(rows, held // columns)), columns
    columns = max(1, min(COLUMNS, n_columns, _budget(itemsize)))
    share = n_rows if n_rows * n_columns <= SMALL else -(-n_rows // threads.count())
    return max(1, min(ROWS, share, _budget(itemsize) // columns)), columns


def whole_rows(n_rows: int, n_columns: int, itemsize: int, copies: int = 2) -> int:
    """How many whole rows of `n_columns` numbers a block may hold, with `copies` of them alive at a time."""
    cap = max(1, 16 * ROWS * COLUMNS // max(1, n_columns))
    fitting = _budget(itemsize * copies) // max(1, n_columns)
    return max(1, min(ROWS, cap, -(-n_rows // threads.count()), fitting))


def over_rows(work: Callable[[slice], None], n_rows: int, step: int, done=None, *, serial: bool = False) -> None:
    """Call `work` on slices of rows, in several threads; after each slice call `done` with its number of rows.

    `serial` says that the work has its own threads, such as that of another array library.
    """
    slices = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    def run(part: slice) -> None:
        work(part)
        if done is not None:
            done(part.stop - part.start)

    workers = threads.count()  # before the limit on the BLAS, which may be what it goes by
    if len(slices) <= 1 or workers == 1 or serial:
        for part in slices:
            run(part)
        return
    with threads.one_each(), ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(run, slices):
            pass


MANY_SEGMENTS = 32  # if one tile has more classes, one segmented sum is faster than one product per class


class ClassWeights(Protocol):
    """What class sums need from the weights; the classes are those of one group, numbered from 0."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    def totals(self) -> NDArray:
        """Sum of the weights of each class."""

    def add(self, tile: NDArray, start: int, sums: NDArray) -> None:
        """Add to `sums` the weighted sums of a tile over each class; `start` is the first column of the tile."""

    def add_entries(self, at: NDArray, columns: NDArray, values: NDArray, sums: NDArray) -> None:
        """Add to `sums` single values of the tile: their rows, their columns, and the values."""

    def scaled(self, factors: NDArray) -> Self:
        """The weights with those of each column multiplied by a factor."""

    def without(self, columns: NDArray) -> Self:
        """The weights with those of some columns 0."""

    def members(self) -> list[tuple[slice | NDArray, NDArray]]:
        """For each class, the columns that count for it and their weights."""

    def among(self, columns: NDArray) -> Shares:
        """The weights of some columns alone."""


@dataclass(frozen=True)
class Segments:
    """Columns sorted by class; each column counts for one class."""

    starts: NDArray
    """First column of each class, ascending."""
    weights: NDArray
    """Weight of each column."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.weights)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.starts)

    @property
    def totals(self) -> NDArray:
        """Sum of the weights of each class."""
        return np.array([weights.sum(dtype=float) for _, weights in self.members()])

    def add(self, tile: NDArray, start: int, sums: NDArray) -> None:
        """One product with a vector for each class in the tile."""
        stop = start + tile.shape[1]
        first = np.searchsorted(self.starts, start, side="right") - 1
        last = np.searchsorted(self.starts, stop, side="left")
        begins = np.maximum(self.starts[first:last] - start, 0)
        weights = self.weights[start:stop]
        if not isinstance(tile, np.ndarray):
            sums[:, first:last] += self._elsewhere(tile, weights, begins)
            return
        if last - first > MANY_SEGMENTS:
            sums[:, first:last] += np.add.reduceat(tile * weights, begins, axis=1)
            return
        # A product with a vector is two to four times faster than a sum along rows.
        for segment, begin, end in zip(range(first, last), begins, [*begins[1:], tile.shape[1]], strict=True):
            sums[:, segment] += tile[:, begin:end] @ weights[begin:end]

    def _elsewhere(self, tile, weights: NDArray, begins: NDArray) -> NDArray:
        """The sums of a tile of another library, of which one small array comes home."""
        ends = [*begins[1:].tolist(), len(weights)]
        if len(begins) > MANY_SEGMENTS:
            matrix = np.zeros((len(weights), len(begins)), weights.dtype)
            matrix[np.arange(len(weights)), np.repeat(np.arange(len(begins)), np.subtract(ends, begins))] = weights
            return _product(tile, matrix)
        library = Library.of(tile)
        there = library.array(weights, tile.dtype)
        parts = zip(begins.tolist(), ends, strict=True)
        return to_numpy(library.xp.stack([tile[:, begin:end] @ there[begin:end] for begin, end in parts], axis=1))

    def add_entries(self, at: NDArray, columns: NDArray, values: NDArray, sums: NDArray) -> None:
        """Add the values up by row and class."""
        segment = np.searchsorted(self.starts, columns, side="right") - 1
        cells = np.bincount(at * self.n_classes + segment, values * self.weights[columns], minlength=sums.size)
        sums += cells.reshape(sums.shape)

    def scaled(self, factors: NDArray) -> Segments:
        """The same classes with other weights."""
        return Segments(self.starts, _products(self.weights, factors))

    def without(self, columns: NDArray) -> Segments:
        """The same classes, with columns that do not count."""
        weights = self.weights.copy()
        weights[columns] = 0
        return Segments(self.starts, weights)

    def members(self) -> list[tuple[slice | NDArray, NDArray]]:
        """A slice for each class; the columns that count, if some do not."""
        ends = [*self.starts[1:].tolist(), self.n_columns]
        slices = [slice(start, end) for start, end in zip(self.starts.tolist(), ends, strict=True)]
        if self.weights.all():
            return [(part, self.weights[part]) for part in slices]
        counting = [part.start + np.flatnonzero(self.weights[part]) for part in slices]
        return [(columns, self.weights[columns]) for columns in counting]

    def among(self, columns: NDArray) -> Shares:
        """The columns with their weights as a matrix: there may be none of a class."""
        matrix = np.zeros((len(columns), self.n_classes), self.weights.dtype)
        segment = np.searchsorted(self.starts, columns, side="right") - 1
        matrix[np.arange(len(columns)), segment] = self.weights[columns]
        return Shares(matrix)

    def astype(self, dtype) -> Segments:
        """The same weights in another precision."""
        return Segments(self.starts, self.weights.astype(dtype))


@dataclass(frozen=True)
class Shares:
    """Columns that may count for several classes, with one weight for each."""

    matrix: NDArray
    """Shape (n_columns, n_classes)."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.matrix.shape[0]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.matrix.shape[1]

    @property
    def totals(self) -> NDArray:
        """Sum of the weights of each class."""
        return self.matrix.sum(axis=0, dtype=float)

    def add(self, tile: NDArray, start: int, sums: NDArray) -> None:
        """One product of matrices."""
        sums += _product(tile, self.matrix[start : start + tile.shape[1]])

    def add_entries(self, at: NDArray, columns: NDArray, values: NDArray, sums: NDArray) -> None:
        """One product with a sparse matrix."""
        shape = len(sums), self.n_columns
        sums += sparse.csr_array((values, (at, columns)), shape=shape) @ self.matrix

    def scaled(self, factors: NDArray) -> Shares:
        """Every row of the matrix multiplied by a factor."""
        return Shares(_products(self.matrix, factors[:, None]))

    def without(self, columns: NDArray) -> Shares:
        """The same matrix with empty rows."""
        matrix = self.matrix.copy()
        matrix[columns] = 0
        return Shares(matrix)

    def members(self) -> list[tuple[slice | NDArray, NDArray]]:
        """The columns of positive weight for each class."""
        found = [np.flatnonzero(column) for column in self.matrix.T]
        return [(columns, self.matrix[columns, c]) for c, columns in enumerate(found)]

    def among(self, columns: NDArray) -> Shares:
        """Some rows of the matrix."""
        return Shares(self.matrix[columns])


def _product(tile, matrix: NDArray) -> NDArray:
    """The product of a tile of any library with a matrix of NumPy, as NumPy has it."""
    if isinstance(tile, np.ndarray):
        return tile @ matrix
    return to_numpy(tile @ Library.of(tile).array(matrix, tile.dtype))


def _products(weights: NDArray, factors: NDArray) -> NDArray:
    """Weights times factors, in the precision of the weights; so limited that sums of them are finite."""
    with np.errstate(over="ignore"):
        return np.minimum(weights * factors, np.finfo(weights.dtype).max / 1e9).astype(weights.dtype, copy=False)
