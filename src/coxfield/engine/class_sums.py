"""The hot path: the sum of covariances over labelled points, class by class, tile by tile.

For a query x* and class i the class sum S_i(x*) is the sum of C_i(x*, x) over the points x of class i. It is the last
term of eq. activationFunction. A tile of the kernel matrix takes one matrix product, a few passes in place, and a
product with the weights of the classes. The whole matrix of queries x points is never held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from coxfield.engine.weights import over_rows, tile_shape, whole_rows
from coxfield.kernels.protocol import cross_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Group, Part, Store
    from coxfield.kernels.protocol import Bound

LARGEST_LOG = 700.0  # exp of more than this overflows


@dataclass(frozen=True)
class ClassSums:
    """Class sums of a set of queries, shape (n, n_classes) each."""

    values: NDArray
    logs: NDArray
    """log S, correct even where S itself underflows; -inf for a class without points."""

    @classmethod
    def of_logs(cls, logs: NDArray) -> ClassSums:
        """Class sums from their logarithms."""
        return cls(np.exp(np.minimum(logs, LARGEST_LOG)), logs)

    def __getitem__(self, rows) -> ClassSums:
        return ClassSums(self.values[rows], self.logs[rows])


class Watch(Protocol):
    """Somebody who looks at the covariances while they are summed."""

    def see(self, part: Part, rows: slice, start: int, tile: NDArray) -> None:
        """Look at a tile between some queries and the columns of a part from `start` on, in units of `unit`."""

    def look_again(self, part: Part, rows: NDArray, logs: NDArray) -> None:
        """Look at logarithms of covariances of some queries with all of a part: tiles have lost digits."""


def class_sums(store: Store, X, leave_out: NDArray | None = None) -> ClassSums:
    """Sum covariances between each row of X and the labelled points, class by class.

    Parameters
    ----------
    store : Store
    X : array or CSR array of shape (n, d)
    leave_out : array of shape (n,), optional
        For leave-one-out: for each row of X, the row of the store that must not count, whatever its weight.
    """
    return sums_at(store, queries_of(store, X, leave_out), X.shape[0], leave_out)


def queries_of(store: Store, X, leave_out: NDArray | None = None) -> list[Bound | None]:
    """Points in the coordinates of each group, without what covariances have learned from rows that are left out."""
    queries = store.queries(X)
    if leave_out is None:
        return queries
    return [None if points is None else points.left_out(leave_out) for points in queries]


def sums_at(
    store: Store,
    queries: Sequence[Bound | None],
    n: int,
    leave_out: NDArray | None = None,
    watch: Watch | None = None,
) -> ClassSums:
    """`class_sums` of n queries that are already in the coordinates of each group."""
    quick = quick_sums(store, queries, n, leave_out, watch)
    for group, points, wrong in zip(store.groups, queries, quick.imprecise, strict=True):
        again = np.flatnonzero(quick.faint & ~wrong)  # rows that are imprecise were taken again before
        if points is not None and again.size:
            _take_again(quick.sums, group, points, again, leave_out, watch)
    return quick.sums


@dataclass(frozen=True)
class QuickSums:
    """Class sums before rows that are faint are summed again with care."""

    sums: ClassSums
    """Rows that are imprecise in a group were summed again with care."""
    faint: NDArray
    """Whether the sums of all classes have lost digits by underflow, for each row."""
    imprecise: list[NDArray]
    """For each group, whether rounding spoils the row."""


def quick_sums(
    store: Store,
    queries: Sequence[Bound | None],
    n: int,
    leave_out: NDArray | None = None,
    watch: Watch | None = None,
) -> QuickSums:
    """`sums_at`, except for rows that are faint."""
    values = np.zeros((n, store.n_classes))
    faint, imprecise = np.ones(n, dtype=bool), []
    for group, points in zip(store.groups, queries, strict=True):
        wrong = np.zeros(n, dtype=bool)
        if points is not None and n:
            sums = _group_sums(group, points, leave_out, watch)
            values[:, group.classes] = sums * points.unit
            faint &= points.faint(sums)
            for part in group.parts:
                wrong |= points.imprecise(part.points)
        imprecise.append(wrong)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), -np.inf)
    found = ClassSums(values, logs)
    for group, points, wrong in zip(store.groups, queries, imprecise, strict=True):
        again = np.flatnonzero(wrong)
        if points is not None and again.size:
            _take_again(found, group, points, again, leave_out, watch)
    return QuickSums(found, faint, imprecise)


def _group_sums(group: Group, queries: Bound, leave_out, watch: Watch | None) -> NDArray:
    """Class sums over one group in units of its tiles, shape (n, number of classes in the group)."""
    sums = np.zeros((len(queries), len(group.classes)))
    for part in group.parts:
        columns = np.searchsorted(group.classes, part.classes)
        sums[:, columns] += _part_sums(part, queries, leave_out, watch)
    return sums


def _part_sums(part: Part, queries: Bound, leave_out, watch: Watch | None) -> NDArray:
    n, columns = len(queries), len(part.rows)
    own = None if leave_out is None else part.column_of(leave_out)
    summing = queries.summing(part.points, part.weights)
    sums = np.zeros((summing.layers, n, len(part.classes)))
    if not summing.tiled:
        summing.add(slice(0, n), slice(0, columns), own, np.empty((0, 0)), sums)
        return summing.total(sums)
    step, width = tile_shape(n, columns, queries.dtype.itemsize)

    def work(rows: slice) -> None:
        room = np.empty((rows.stop - rows.start, width), queries.dtype)
        for start in range(0, columns, width):
            some = slice(start, min(start + width, columns))
            tile = summing.add(rows, some, own, room, sums[:, rows])
            if watch is not None:
                watch.see(part, rows, start, _tile(queries, rows, part, some, own) if tile is None else tile)

    over_rows(work, n, step)
    return summing.total(sums)


def _tile(queries: Bound, rows: slice, part: Part, some: slice, own: NDArray | None) -> NDArray:
    """A tile of covariances that are not summed as such."""
    tile = queries[rows].tile(part.points[some])
    if own is not None:
        cross_out(tile, own[rows], some.start, 0)
    return tile


def _take_again(found: ClassSums, group: Group, queries: Bound, again: NDArray, leave_out, watch) -> None:
    """Replace the sums of some queries by careful ones."""
    left = None if leave_out is None else leave_out[again]
    logs = careful_log_sums(group, queries[again], left, None if watch is None else _Again(watch, again))
    place = np.ix_(again, group.classes)
    found.logs[place], found.values[place] = logs, ClassSums.of_logs(logs).values


@dataclass(frozen=True)
class _Again:
    """Hands logarithms of some queries to a watch."""

    watch: Watch
    rows: NDArray

    def __call__(self, part: Part, some: slice, logs: NDArray) -> None:
        self.watch.look_again(part, self.rows[some], logs)


def careful_log_sums(group: Group, queries: Bound, leave_out, again: _Again | None = None) -> NDArray:
    """Log class sums in double precision, relative to the nearest point of each class, so that nothing underflows."""
    logs = np.full((len(queries), len(group.classes)), -np.inf)
    for part in group.parts:
        columns = np.searchsorted(group.classes, part.classes)
        logs[:, columns] = np.logaddexp(logs[:, columns], _careful_part(part, queries, leave_out, again))
    return logs


def _careful_part(part: Part, queries: Bound, leave_out, again: _Again | None) -> NDArray:
    own = np.full(len(queries), -1) if leave_out is None else part.column_of(leave_out)
    members = part.weights.members()
    logs = np.empty((len(queries), len(part.classes)))

    def work(rows: slice) -> None:
        tile = queries[rows].log_tile(part.points, groups=[columns for columns, _ in members], leave_out=own[rows])
        for c, (columns, weights) in enumerate(members):
            logs[rows, c] = log_sum(tile[:, columns], weights)
        if again is not None:
            again(part, rows, tile)

    over_rows(work, len(queries), whole_rows(len(queries), len(part.rows), 8, copies=6))
    return logs


def log_sum(logs: NDArray, weights: NDArray) -> NDArray:
    """Log of the weighted sum of exp(logs) along each row, without underflow."""
    top = logs.max(axis=1, initial=-np.inf)
    top[np.isneginf(top)] = 0
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top[:, None]) @ weights.astype(float)) + top
