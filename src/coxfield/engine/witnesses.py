"""The training points that speak loudest for each class: the largest terms of the class sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.engine.class_sums import LARGEST_LOG, ClassSums, queries_of, sums_at
from coxfield.engine.tiles import over_rows
from coxfield.engine.weights import Segments
from coxfield.kernels.mixture_points import MixturePoints

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    shape = X.shape[0], store.n_classes, top
    # One more than asked for: the row that is left out may be among them, with 0 as its value in a tile.
    watch = _Loudest(top + (leave_out is not None), X.shape[0], {}, {})
    queries = queries_of(store, X, leave_out)
    for points in queries:
        if isinstance(points, MixturePoints):
            points.log_densities  # noqa: B018  # once for all queries
    sums = sums_at(store, queries, X.shape[0], leave_out, watch)
    rows, terms = np.full(shape, -1), np.full(shape, -np.inf)
    for group, points in zip(store.groups, queries, strict=True):
        for part in group.parts:
            found = watch.of(part)
            found.compute(points, part)
            for c, k in enumerate(part.classes):
                columns = found.columns[:, c]
                if leave_out is not None:
                    columns = np.where(part.rows[columns] == leave_out[:, None], -1, columns)
                _merge(rows[:, k], terms[:, k], part.rows, columns, found.terms[:, c])
    terms[rows < 0] = 0
    return Witnesses(sums, rows, terms)


def _merge(rows: NDArray, terms: NDArray, numbers: NDArray, columns: NDArray, new: NDArray) -> None:
    """Keep the largest of the terms so far and of those of another part."""
    top = rows.shape[1]
    both = np.concatenate([terms, np.where(columns < 0, -np.inf, new)], axis=1)
    of_rows = np.concatenate([rows, np.where(columns < 0, -1, numbers[columns])], axis=1)
    order = np.argsort(-both, axis=1, kind="stable")[:, :top]
    rows[:] = np.take_along_axis(of_rows, order, axis=1)
    terms[:] = np.take_along_axis(both, order, axis=1)


@dataclass
class _Found:
    """The loudest columns of one part for each query and class, in no order; -1 for none."""

    columns: NDArray
    terms: NDArray
    """What they are chosen by: values of tiles, and after `compute` the terms themselves."""
    logs: dict[int, NDArray]
    """Logarithms of the terms of queries that were looked at again."""

    def compute(self, queries: Any, part: Part) -> None:
        """The terms in double precision."""
        matrix = _weights_of(part)
        at, c, k = np.nonzero(self.columns >= 0)
        columns = self.columns[at, c, k]
        terms = np.empty(len(at))

        def work(some: slice) -> None:
            values = queries.pairs(at[some], part.points, columns[some])
            terms[some] = values * matrix(columns[some], c[some])

        over_rows(work, len(at), PAIRS)
        self.terms[at, c, k] = terms
        for row, logs in self.logs.items():
            self.terms[row] = np.exp(np.minimum(logs, LARGEST_LOG))


def _weights_of(part: Part) -> Any:
    """A function that gives the weight of columns for classes, both as arrays."""
    weights = part.weights
    if isinstance(weights, Segments):
        return lambda columns, classes: weights.weights[columns].astype(float)
    return lambda columns, classes: weights.matrix[columns, classes].astype(float)  # type: ignore[attr-defined]


@dataclass
class _Loudest:
    """A `Watch` that keeps the largest weighted values of each query and class."""

    top: int
    n: int
    found: dict[int, _Found]
    parts: dict[int, Any]
    """Parts by their identity; they are kept so that the identity stays theirs."""

    def of(self, part: Part) -> _Found:
        """What was found in a part."""
        key = id(part)
        if key not in self.found:
            shape = self.n, len(part.classes), self.top
            self.parts[key] = part
            self.found[key] = _Found(np.full(shape, -1), np.full(shape, -np.inf), {})
        return self.found[key]

    def see(self, part: Part, rows: slice, start: int, tile: NDArray) -> None:
        """Compare the largest values of a tile with those so far."""
        found = self.of(part)
        for c, first, values in _of_classes(part, start, tile):
            _keep(found.columns[rows, c], found.terms[rows, c], values, start + first)

    def look_again(self, part: Part, rows: NDArray, logs: NDArray) -> None:
        """Choose again by logarithms, which do not vanish."""
        found = self.of(part)
        for c, (columns, weights) in enumerate(part.weights.members()):
            with np.errstate(divide="ignore"):
                values = logs[:, columns] + np.log(weights.astype(float))
            numbers = np.arange(columns.start, columns.stop) if isinstance(columns, slice) else columns
            chosen, best = np.full((len(rows), self.top), -1), np.full((len(rows), self.top), -np.inf)
            _keep(chosen, best, values, 0)
            found.columns[rows, c] = np.where(chosen < 0, -1, numbers[chosen])
            for row, row_logs in zip(rows.tolist(), best, strict=True):
                found.logs.setdefault(row, np.full(found.columns.shape[1:], -np.inf))[c] = row_logs


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
    top, runs = columns.shape[1], _run_tops(values)
    improved = np.flatnonzero(runs.max(axis=1) > terms.min(axis=1))
    if not improved.size:
        return
    if improved.size < len(values):
        values, runs = values[improved], runs[improved]
    place = _largest(values, runs, min(top, values.shape[1]))
    both = np.concatenate([terms[improved], np.take_along_axis(values, place, axis=1)], axis=1)
    of_columns = np.concatenate([columns[improved], first + place], axis=1)
    order = np.argpartition(-both, top - 1, axis=1)[:, :top]
    kept = np.take_along_axis(both, order, axis=1)
    terms[improved] = kept
    columns[improved] = np.where(np.isneginf(kept), -1, np.take_along_axis(of_columns, order, axis=1))


def _run_tops(values: NDArray) -> NDArray:
    """The largest value of each run: of `RUN` columns that lie far apart, because NumPy compares whole rows fastest.

    The columns that are left over are runs of their own.
    """
    n, runs = len(values), values.shape[1] // RUN
    tops = values[:, : runs * RUN].reshape(n, RUN, runs).max(axis=1) if runs else values[:, :0]
    return np.concatenate([tops, values[:, runs * RUN :]], axis=1)


def _largest(values: NDArray, runs: NDArray, count: int) -> NDArray:
    """Columns of the `count` largest values of each row, in no order; `runs` are the tops of the runs of columns.

    They lie in the `count` runs with the largest tops, so that most values are looked at only once.
    """
    n, whole = len(values), values.shape[1] // RUN
    if runs.shape[1] <= 2 * count:
        return _last(values, count)
    best = _last(runs, count)
    near = best[:, :, None] + whole * np.arange(RUN)
    single = best >= whole  # a column that is a run of its own
    near[single] = (best[single] - whole + whole * RUN)[:, None]
    candidates = np.take_along_axis(values, near.reshape(n, -1), axis=1).reshape(near.shape)
    candidates[:, :, 1:][single] = -np.inf
    return np.take_along_axis(near.reshape(n, -1), _last(candidates.reshape(n, -1), count), axis=1)


def _last(values: NDArray, count: int) -> NDArray:
    """Columns of the `count` largest values of each row, in no order."""
    return np.argpartition(values, values.shape[1] - count, axis=1)[:, values.shape[1] - count :]
