"""Labelled points arranged for class sums: each point once, with its weight for each class.

Classes that share a covariance form a group and use the same points in the same coordinates. A group holds its points
in one or more parts. Points that arrive later become a new part, and points that leave are overwritten, so that nothing
is rearranged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from scipy import sparse

from coxfield.kernels.namespace import Library, rows_of, to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Covariance, KernelPoints, PerClass

# The weight of each column of a tile for each class: the matrix W of the class sums K W.
#
# For given labels W has one entry per row. With columns sorted by class, the product becomes one sum per class, which
# is faster than a product of matrices. For soft labels (label distributions) W is a full matrix.


MANY_SEGMENTS = 32  # if one tile has more classes, one segmented sum is faster than one product per class


class ClassWeights(Protocol):
    """What class sums need from the weights; the classes are those of one group, numbered from 0."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

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
        return len(self.weights)

    @property
    def n_classes(self) -> int:
        return len(self.starts)

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
        return Segments(self.starts, _products(self.weights, factors))

    def without(self, columns: NDArray) -> Segments:
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
        return Segments(self.starts, self.weights.astype(dtype))


@dataclass(frozen=True)
class Shares:
    """Columns that may count for several classes, with one weight for each."""

    matrix: NDArray
    """Shape (n_columns, n_classes)."""

    @property
    def n_classes(self) -> int:
        return self.matrix.shape[1]

    def add(self, tile: NDArray, start: int, sums: NDArray) -> None:
        sums += _product(tile, self.matrix[start : start + tile.shape[1]])

    def add_entries(self, at: NDArray, columns: NDArray, values: NDArray, sums: NDArray) -> None:
        """One product with a sparse matrix."""
        shape = len(sums), len(self.matrix)
        sums += sparse.csr_array((values, (at, columns)), shape=shape) @ self.matrix

    def scaled(self, factors: NDArray) -> Shares:
        return Shares(_products(self.matrix, factors[:, None]))

    def without(self, columns: NDArray) -> Shares:
        matrix = self.matrix.copy()
        matrix[columns] = 0
        return Shares(matrix)

    def members(self) -> list[tuple[slice | NDArray, NDArray]]:
        """The columns of positive weight for each class."""
        found = [np.flatnonzero(column) for column in self.matrix.T]
        return [(columns, self.matrix[columns, c]) for c, columns in enumerate(found)]

    def among(self, columns: NDArray) -> Shares:
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


# Points with their weights: parts, groups, and the store of all groups.


GONE = -1  # the number of a row that was overwritten


@dataclass(frozen=True)
class Labelled:
    """Points with one label each, as they were given."""

    X: Any
    """Array or CSR array of shape (n, d)."""
    y: NDArray
    """Class numbers 0, ..., n_classes - 1."""
    n_classes: int
    weights: NDArray | None = None
    """Positive; a point of weight w counts as w points. None if every point counts once."""

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows) -> Labelled:
        weights = None if self.weights is None else self.weights[rows]
        return Labelled(rows_of(self.X, rows), self.y[rows], self.n_classes, weights)

    @property
    def counts(self) -> NDArray:
        """The weight of each point, in double precision."""
        return np.ones(len(self)) if self.weights is None else self.weights.astype(float)

    def under(self, covariances: PerClass[Covariance]) -> Store:
        return store_labels(self.X, self.y, covariances, self.weights)


@dataclass(frozen=True)
class Part:
    """Points of one group that arrived together, in the order of the columns of a tile."""

    rows: NDArray
    """Row of each column among all labelled points."""
    points: KernelPoints
    weights: ClassWeights
    classes: NDArray
    """The classes for which the points count, ascending; they are the columns of the sums over this part."""

    def column_of(self, rows: NDArray) -> NDArray:
        """The column of each of some rows, -1 for rows that are not in this part."""
        order = np.argsort(self.rows)
        place = np.minimum(np.searchsorted(self.rows, rows, sorter=order), len(order) - 1)
        column = order[place]
        return np.where((self.rows[column] == rows) & (rows >= 0), column, -1)

    def without(self, rows: NDArray, *, overwrite: bool = False) -> Part | None:
        """The part without some rows, and without the data that held them; None if nothing is left.

        With `overwrite`, points that leave stay where they are to be overwritten, unless half of the part is gone then.
        """
        gone = np.isin(self.rows, rows)
        if not gone.any():
            return self
        empty = gone | (self.rows == GONE)
        if overwrite and 2 * np.count_nonzero(empty) < len(empty):
            return self._overwritten(np.flatnonzero(gone))
        kept = np.flatnonzero(~empty)
        if not len(kept):
            return None
        return _part(self.points[kept], self.rows[kept], _matrix(self)[kept], self.classes)

    def _overwritten(self, columns: NDArray) -> Part:
        """The part with some columns that count for nothing; what is in them may be overwritten."""
        rows = self.rows.copy()
        rows[columns] = GONE
        return replace(self, rows=rows, weights=self.weights.without(columns))

    def compact(self) -> Part:
        """The part without columns that count for nothing, and without classes that have no column."""
        kept = np.flatnonzero(self.rows != GONE)
        return (
            self
            if len(kept) == len(self.rows)
            else _part(self.points[kept], self.rows[kept], _matrix(self)[kept], self.classes)
        )


def _matrix(part: Part) -> NDArray:
    """The weights of a part as a full matrix."""
    matrix = np.zeros((len(part.rows), len(part.classes)), part.points.dtype)
    for c, (columns, weights) in enumerate(part.weights.members()):
        matrix[columns, c] = weights
    return matrix


def _part(points: KernelPoints, rows: NDArray, matrix: NDArray, classes: NDArray) -> Part:
    """Points with one row of weights each; they are sorted by class if each counts for only one class."""
    if (np.count_nonzero(matrix, axis=1) > 1).any():
        return Part(rows, points, Shares(matrix), classes)
    codes = matrix.argmax(axis=1)
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    return Part(rows[order], points[order], Segments(starts, matrix.max(axis=1)[order]), classes[present])


@dataclass(frozen=True)
class Group:
    """All points of the classes that share one covariance."""

    covariance: Covariance
    classes: NDArray
    """The classes, ascending."""
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Store:
    """Labelled points; build it with `store_labels`, `store_distributions` or `store_bound`."""

    groups: tuple[Group, ...]
    n_classes: int
    n_rows: int
    """Number of rows that were ever added, including those that were removed."""

    def queries(self, X) -> list[KernelPoints | None]:
        """New points, in the coordinates of each group; None for a group without points."""
        return [group.parts[0].points.at(X) if group.parts else None for group in self.groups]

    def append(self, X, distributions: NDArray, rows: NDArray | None = None) -> Store:
        """The store with more points, each with a weight for every class, as new parts.

        The numbers of their rows start at `n_rows` by default. They are held in the coordinates of the points that are
        there.
        """
        numbers = self.n_rows + np.arange(len(distributions)) if rows is None else rows
        groups = []
        for group in self.groups:
            bind = group.parts[0].points.at if group.parts else group.covariance.bind
            groups.append(replace(group, parts=group.parts + _new_part(bind, X, distributions, group, numbers)))
        return replace(self, groups=tuple(groups), n_rows=max(self.n_rows, int(numbers.max(initial=-1)) + 1))

    def without(self, rows: NDArray, *, overwrite: bool = False) -> Store:
        """The store without some rows. Parts that have none of them are not changed, and every row keeps its number.

        With `overwrite`, what leaves stays where it is and counts for nothing; the caller overwrites it.
        """
        return self._each_part(lambda part: part.without(rows, overwrite=overwrite))

    def _each_part(self, function: Callable[[Part], Part | None]) -> Store:
        groups = []
        for group in self.groups:
            left = map(function, group.parts)
            groups.append(replace(group, parts=tuple(part for part in left if part is not None)))
        return replace(self, groups=tuple(groups))

    def renumbered(self, new: NDArray, left: NDArray) -> Store:
        """The store with other numbers of rows: `new` has one for each old one, and `left` are the old ones in use."""
        store = self._each_part(lambda part: replace(part, rows=new[part.rows]))
        return replace(store, n_rows=len(left))

    def with_classes(self, new: NDArray, covariances: PerClass[Covariance]) -> Store:
        """The store with other class numbers: `new` has one for each old one, -1 for a class without points."""

        def moved(part: Part) -> Part:
            part = part.compact() if (new[part.classes] < 0).any() else part
            return replace(part, classes=new[part.classes])

        groups = [
            replace(group, classes=covariances.classes(k)) for k, group in enumerate(self._each_part(moved).groups)
        ]
        return replace(self, groups=tuple(groups), n_classes=len(covariances))


def store_labels(X, y: NDArray, covariances: PerClass[Covariance], weights: NDArray | None = None) -> Store:
    """Points with one label each.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    y : array of shape (n,)
        Class numbers 0, ..., len(covariances) - 1.
    covariances : PerClass of Covariance
    weights : array of shape (n,), optional
        Positive; a point of weight w counts as w points.
    """

    def bind(k: int, rows: NDArray) -> KernelPoints:
        return covariances.distinct[k].bind(X, rows)

    return store_by_label(bind, y, covariances, weights)


def store_bound(
    points: Sequence[KernelPoints], y: NDArray, covariances: PerClass[Covariance], weights: NDArray | None = None
) -> Store:
    """Points with one label each that are already bound, once for each different covariance."""
    return store_by_label(lambda k, rows: points[k][rows], y, covariances, weights)


def store_by_label(
    bind: Callable[[int, NDArray], KernelPoints], y: NDArray, covariances: PerClass[Covariance], weights: NDArray | None
) -> Store:
    """Points with one label each that `bind` holds, once for each different covariance, in the order of given rows."""
    groups = []
    for k, covariance in enumerate(covariances.distinct):
        classes = covariances.classes(k)
        rows = np.flatnonzero(np.isin(y, classes))
        rows = rows[np.argsort(y[rows], kind="stable")]
        parts: tuple[Part, ...] = ()
        if len(rows):
            points = bind(k, rows)
            present, starts = np.unique(y[rows], return_index=True)
            own = np.ones(len(rows), points.dtype) if weights is None else weights[rows].astype(points.dtype)
            parts = (Part(rows, points, Segments(starts, own), present),)
        groups.append(Group(covariance, classes, parts))
    return Store(tuple(groups), len(covariances), len(y))


def store_distributions(X, distributions: NDArray, covariances: PerClass[Covariance]) -> Store:
    """Points with a weight for every class (soft labels). Points are held once per covariance, not once per class.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    distributions : array of shape (n, n_classes)
        Not negative.
    covariances : PerClass of Covariance
    """
    empty = (Group(covariance, covariances.classes(k), ()) for k, covariance in enumerate(covariances.distinct))
    return Store(tuple(empty), len(covariances), 0).append(X, distributions)


def _new_part(bind, X, distributions: NDArray, group: Group, numbers: NDArray) -> tuple[Part, ...]:
    """The points that count for a class of the group, as one part; no part if there is no such point."""
    matrix = distributions[:, group.classes]
    rows = np.flatnonzero((matrix > 0).any(axis=1))
    if not len(rows):
        return ()
    points = bind(X if len(rows) == len(distributions) else rows_of(X, rows))
    return (_part(points, numbers[rows], matrix[rows].astype(points.dtype), group.classes),)
