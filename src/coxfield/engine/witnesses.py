"""The training points that contribute most to each class: the largest terms of the class sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.engine.class_sums import LARGEST_LOG, UNDERFLOWED, ClassSums, queries_of, sums_at, tile_shape, whole_rows
from coxfield.engine.store import Segments
from coxfield.kernels.mixture import MixturePoints
from coxfield.kernels.namespace import cross_out, to_numpy
from coxfield.threads import over_rows
from coxfield.utils.numbers import logs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Part, Store

RUN = 16  # columns of which only the largest value is looked at first
PAIRS = 2**14  # pairs whose covariance is computed at a time


@dataclass(frozen=True)
class Witnesses:
    """Class sums of queries, and their largest terms."""

    sums: ClassSums
    rows: NDArray
    """Row of the store of each term, shape (n, n_classes, top), largest first; -1 where a class has fewer points."""
    terms: NDArray
    """The terms, weight times covariance, in double precision; 0 where there is no row."""


def witnesses(store: Store, X, top: int, leave_out: NDArray | None = None) -> Witnesses:
    """Class sums as from `class_sums`, with the `top` largest terms of each, in one pass.

    Parameters
    ----------
    store : Store
    X : array or CSR array of shape (n, d)
    top : int
    leave_out : array of shape (n,), optional
        For each row of X, the row of the store that must not count.
    """
    return witnesses_at(store, queries_of(store, X, leave_out), X.shape[0], top, leave_out)


def witnesses_at(store: Store, queries: Sequence, n: int, top: int, leave_out: NDArray | None = None) -> Witnesses:
    """`witnesses` of n queries that are already in the coordinates of each group."""
    shape = n, store.n_classes, top
    # One more than asked for: the row that is left out may be among them, with 0 as its value in a tile.
    watch = _LargestTerms.among(store, n, top + (leave_out is not None))
    for points in queries:
        if isinstance(points, MixturePoints):
            points.log_densities  # noqa: B018  # once for all queries
    sums = watch.summed(store, queries, n, leave_out)
    best = _Best(np.full(shape, -1), np.zeros(shape), np.full(shape, np.nan))
    for group, points in zip(store.groups, queries, strict=True):
        for part in group.parts:
            found = watch.of(part)
            if leave_out is not None:
                found.leave_out(part, leave_out)
            found.compute(points, part)
            best.merge(part, found)
    return Witnesses(sums, best.rows, best.terms)


@dataclass(frozen=True)
class _Best:
    """The largest terms of all parts so far, with the rows of the store and what they are ordered by."""

    rows: NDArray
    terms: NDArray
    keys: NDArray
    """See `_Found.keys`."""

    def merge(self, part: Part, found: _Found) -> None:
        """Keep the largest of the terms so far and of those of another part."""
        numbers = np.where(found.columns < 0, -1, part.rows[found.columns])
        old = [mine[:, part.classes] for mine in (self.keys, self.rows, self.terms)]
        new = found.keys, numbers, found.terms
        keys, *others = (np.concatenate(pair, axis=2) for pair in zip(old, new, strict=True))
        order = np.argsort(-keys, axis=2, kind="stable")[:, :, : self.rows.shape[2]]  # NaN comes last
        for mine, values in zip((self.keys, self.rows, self.terms), (keys, *others), strict=True):
            mine[:, part.classes] = np.take_along_axis(values, order, axis=2)


@dataclass(frozen=True)
class _Found:
    """The columns of the largest terms of one part for each query and class, in no order; -1 for none."""

    columns: NDArray
    terms: NDArray
    """What they are chosen by: values of tiles, and after `compute` the terms themselves, 0 for none."""
    keys: NDArray
    """What the terms are ordered by, NaN for none: logarithms for queries that were looked at again, because terms may
    have vanished, and after `compute` the terms for other queries. All parts of a class treat a query alike."""

    @classmethod
    def nothing(cls, shape: tuple[int, int, int]) -> _Found:
        """No column yet, for a number of queries, classes and columns."""
        return cls(np.full(shape, -1), np.full(shape, -np.inf), np.full(shape, np.nan))

    def leave_out(self, part: Part, rows: NDArray) -> None:
        """Drop, for each query, the column of one row of the store."""
        own = part.rows[self.columns] == rows[:, None, None]
        self.columns[own], self.keys[own] = -1, np.nan

    def compute(self, queries: Any, part: Part) -> None:
        """The terms in double precision."""
        with np.errstate(invalid="ignore"):
            self.terms[:] = np.where(np.isnan(self.keys), 0, np.exp(np.minimum(self.keys, LARGEST_LOG)))
        matrix = _weights_of(part)
        at, c, k = np.nonzero((self.columns >= 0) & np.isnan(self.keys))
        columns = self.columns[at, c, k]
        terms = np.empty(len(at))

        def work(some: slice) -> None:
            values = queries.pairs(at[some], part.points, columns[some])
            terms[some] = values * matrix(columns[some], c[some])

        over_rows(work, len(at), PAIRS)
        self.terms[at, c, k] = self.keys[at, c, k] = terms


def _weights_of(part: Part) -> Any:
    """A function that gives the weight of columns for classes, both as arrays."""
    weights = part.weights
    if isinstance(weights, Segments):
        return lambda columns, classes: weights.weights[columns].astype(float)
    return lambda columns, classes: weights.matrix[columns, classes].astype(float)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _LargestTerms:
    """The largest weighted values of each query and class, and the sums of all of them."""

    top: int
    found: dict[int, _Found]
    """By the identity of a part. All entries are there before threads ask for them."""

    @classmethod
    def among(cls, store: Store, n: int, top: int) -> _LargestTerms:
        """Nothing found yet for n queries."""
        parts = [part for group in store.groups for part in group.parts]
        return cls(top, {id(part): _Found.nothing((n, len(part.classes), top)) for part in parts})

    def of(self, part: Part) -> _Found:
        """What was found in a part."""
        return self.found[id(part)]

    def summed(self, store: Store, queries: Sequence, n: int, leave_out: NDArray | None) -> ClassSums:
        """Class sums of the queries from the tiles that are looked at, so that there is one pass over the pairs.

        Rows with values that underflow, or that cancellation has spoilt, are looked at again in the log domain.
        """
        values, wrong, least = np.zeros((n, store.n_classes)), np.zeros(n, bool), 0.0
        for group, points in zip(store.groups, queries, strict=True):
            for part in group.parts if points is not None else ():
                own = np.full(n, -1) if leave_out is None else part.column_of(leave_out)
                wrong |= points.imprecise(part.points)
                values[:, part.classes] += self._look(part, points, own)
                least = max(least, np.exp(UNDERFLOWED[points.dtype.name]))
        with np.errstate(divide="ignore", invalid="ignore"):
            sums = ClassSums(values, np.where(values > 0, np.log(values), -np.inf))
        again = np.flatnonzero(wrong | (values.max(axis=1, initial=0) < least) & (values.min(axis=1, initial=0) >= 0))
        if again.size:
            left = None if leave_out is None else leave_out[again]
            some = [None if points is None else points[again] for points in queries]
            self._look_again(store, some, again, left)
            exact = sums_at(store, some, len(again), left)  # so that the terms and the rest add up to the class sums
            sums.logs[again], values[again] = exact.logs, exact.values
        return sums

    def _look(self, part: Part, points: Any, own: NDArray) -> NDArray:
        """Sums over a part, whose largest terms are kept."""
        n, library = len(own), points.library
        step, width = tile_shape(n, len(part.rows), points.dtype.itemsize, library)
        sums, found = np.zeros((n, len(part.classes))), self.of(part)

        def work(rows: slice) -> None:
            room = np.empty((rows.stop - rows.start, width), points.dtype)
            for start in range(0, len(part.rows), width):
                tile = points[rows].tile(part.points[start : start + width], room)
                tile = to_numpy(cross_out(tile, own[rows], start, 0.0))
                part.weights.add(tile, start, sums[rows])
                for c, first, values in _of_classes(part, start, tile):
                    _keep(found.columns[rows, c], found.terms[rows, c], values, start + first)

        over_rows(work, n, step, serial=library.foreign)
        return sums

    def _look_again(self, store: Store, queries: Sequence, again: NDArray, leave_out: NDArray | None) -> None:
        """Choose the largest terms of some queries again, in the log domain."""
        for group, points in zip(store.groups, queries, strict=True):
            for part in group.parts if points is not None else ():
                own = None if leave_out is None else part.column_of(leave_out)
                step = whole_rows(len(again), len(part.rows), 8, copies=6)
                for start in range(0, len(again), step):
                    some = slice(start, start + step)
                    logs = points[some].log_tile(part.points)
                    logs = logs if own is None else cross_out(logs, own[some], 0, -np.inf)
                    self.look_again(part, again[some], logs)

    def look_again(self, part: Part, rows: NDArray, logs: NDArray) -> None:
        """Choose again by logarithms, which do not vanish."""
        found = self.of(part)
        for c, (columns, weights) in enumerate(part.weights.members()):
            values = logs[:, columns] + logs_of(weights.astype(float))
            numbers = np.arange(columns.start, columns.stop) if isinstance(columns, slice) else columns
            if not len(numbers):  # all points of the class have left
                continue
            chosen, best = np.full((len(rows), self.top), -1), np.full((len(rows), self.top), -np.inf)
            _keep(chosen, best, values, 0)
            found.columns[rows, c] = np.where(chosen < 0, -1, numbers[chosen])
            found.keys[rows, c] = np.where(chosen < 0, np.nan, best)


def _of_classes(part: Part, start: int, tile: NDArray) -> Iterator[tuple[int, int, NDArray]]:
    """The weighted values of a tile for each class: number of the class in the part, first column, values."""
    weights, stop = part.weights, start + tile.shape[1]
    if isinstance(weights, Segments):
        ends = [*weights.starts[1:].tolist(), weights.n_columns]
        for c, (begin, end) in enumerate(zip(weights.starts.tolist(), ends, strict=True)):
            first, last = max(begin, start) - start, min(end, stop) - start
            if first < last:
                yield c, first, _weighted(tile[:, first:last], weights.weights[start + first : start + last])
        return
    for c in range(weights.n_classes):
        yield c, 0, _weighted(tile, weights.matrix[start:stop, c])  # type: ignore[attr-defined]


def _weighted(values: NDArray, weights: NDArray) -> NDArray:
    """Values times weights; a column without weight is never chosen."""
    if (weights == 1).all():
        return values
    return np.where(weights > 0, values * weights, -np.inf)


def _keep(columns: NDArray, terms: NDArray, values: NDArray, first: int) -> None:
    """Overwrite columns and terms by the largest of them and of new values, whose columns start at `first`."""
    top = columns.shape[1]
    at, place = _candidates(values, terms.min(axis=1).astype(values.dtype), top)
    if not len(at):
        return
    improved, starts, row = np.unique(at, return_index=True, return_inverse=True)
    number = top + np.arange(len(at)) - starts[row]
    both = np.full((len(improved), number.max() + 1), -np.inf)
    of_columns = np.full(both.shape, -1)
    both[:, :top], of_columns[:, :top] = terms[improved], columns[improved]
    both[row, number], of_columns[row, number] = values[at, place], first + place
    order = np.argpartition(both, both.shape[1] - top, axis=1)[:, -top:]
    terms[improved] = np.take_along_axis(both, order, axis=1)
    columns[improved] = np.take_along_axis(of_columns, order, axis=1)


def _candidates(values: NDArray, low: NDArray, top: int) -> tuple[NDArray, NDArray]:
    """Rows and columns of values above `low`, among them the `top` largest of each row, sorted by row.

    The largest values of `top` runs are `top` values, so no smaller value needs to be looked at. Of values that equal
    the least of these, `top` are enough.
    """
    runs = _run_tops(values)
    bar = np.nextafter(low, np.inf, dtype=values.dtype)
    if runs.shape[1] >= top:
        bar = np.maximum(bar, np.partition(runs, runs.shape[1] - top, axis=1)[:, -top])
    at, place = np.divmod(np.flatnonzero(values >= bar[:, None]), values.shape[1])
    equal = values[at, place] == bar[at]
    before = np.cumsum(equal) - equal
    of_rows_before = np.maximum.accumulate(np.where(np.diff(at, prepend=-1) > 0, before, 0))
    kept = ~equal | (before - of_rows_before < top)
    return at[kept], place[kept]


def _run_tops(values: NDArray) -> NDArray:
    """The largest value of each run: of `RUN` columns that lie far apart, because NumPy compares whole rows fastest.

    The columns that are left over are runs of their own.
    """
    n, runs = len(values), values.shape[1] // RUN
    tops = values[:, : runs * RUN].reshape(n, RUN, runs).max(axis=1) if runs else values[:, :0]
    return np.concatenate([tops, values[:, runs * RUN :]], axis=1)
