"""Tables in parts: what their columns are is learned from all parts, and each part becomes points where it is.

How many cells have which level, and between which dates they lie, are sums and unions over parts. Medians are exact:
the first look takes some order statistics of each part, which say between which two numbers a median lies, and the
second look takes the numbers between these. The rows from which the Gaussian of all numbers is learned come here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import isqrt
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

import dask
from coxfield.dask.chunks import Recipe, count_bytes, in_chunk, references
from coxfield.dask.plan import Plan, computed
from coxfield.estimators.tables import MOST_ROWS, Joint, Seen, TableColumns, chosen_columns, columns_of
from coxfield.kernels.namespace import is_foreign, to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import dask.array as da
    from dask.delayed import Delayed
    from numpy.typing import NDArray

    from coxfield.dask.chunks import Given


def learned_columns(given: Given, categorical_features: Any, verbose: int = 0) -> tuple[TableColumns, bool]:
    """What the columns of a table are, and whether all are numbers without blanks, so that nothing is to be done.

    They are those of `TableColumns.of` on all rows.
    """
    promised, parts = list(columns_of(given.like)), _parts(given)
    chosen = chosen_columns(categorical_features, [cells.name for cells in promised])
    plan = Plan(*parts)
    how = plan.value("promised", ([cells._replace(values=()) for cells in promised], chosen))
    keys = [plan.add("columns", partial_seen, how, number, part.key) for number, part in enumerate(parts)]
    ((lengths, seen),) = computed(plan.delayed([plan.tree("columns-join", joined_seen, keys)]), verbose)
    if not sum(lengths):
        raise ValueError("Found array with 0 sample(s) in all chunks of X: give at least one row of each class")
    columns = tuple(each.column(k in chosen) for k, each in enumerate(seen))
    found = _with_fillings(parts, TableColumns(columns), lengths, verbose)
    found.check(stacklevel=6)
    both = zip(seen, found.columns, strict=True)
    return found, all(each.kind == column.kind == "number" and not column.blanks for each, column in both)


def table_points(given: Given, columns: TableColumns) -> da.Array:
    """The points of a table, not computed yet."""
    parts = _parts(given)
    plan = Plan(*parts)
    how = plan.value("table", columns)
    keys = [plan.add("table-points", partial_points, how, number, part.key) for number, part in enumerate(parts)]
    width, dtype = columns.n_numbers + columns.n_categories, float if given.table is not None else given.precision
    return plan.array("points", _itself, keys, given.lengths, tail=(width,), dtype=dtype)


def held(points: da.Array) -> da.Array:
    """The points, computed once if what they are made of is held anyway."""
    return points if all(isinstance(each, Recipe) for each in references(points)) else dask.persist(points)[0]


def _parts(given: Given) -> list[Delayed]:
    return np.ravel(given.rows.to_delayed()).tolist()


def _itself(part: Any) -> Any:
    return part


def _table(part: Any, width: int, number: int) -> Any:
    """A part as a table in memory."""
    if part.shape[1] != width:
        raise ValueError(
            f"chunk {number} of X has the shape {part.shape}, where {width} columns were promised: correct the "
            "function that makes the chunks, or the shape that was declared"
        )
    if sparse.issparse(part):
        return part.toarray()
    return to_numpy(part) if is_foreign(part) else part


def partial_points(columns: TableColumns, number: int, part: Any) -> NDArray:
    """The points of one part."""
    table = _table(part, len(columns.columns), number)
    with in_chunk(number):
        return columns.points(table)


def partial_seen(how: tuple, number: int, part: Any) -> tuple[tuple[int, ...], list[Seen]]:
    """The number of rows of one part, and what its columns hold."""
    promised, chosen = how
    pairs = zip(promised, columns_of(_table(part, len(promised), number)), strict=True)
    with in_chunk(number):
        # A part without words has another type than it should.
        cells = [here._replace(name=declared.name, kind=declared.kind) for declared, here in pairs]
        return (part.shape[0],), [Seen.of(each, k in chosen) for k, each in enumerate(cells)]


def joined_seen(parts: Sequence[tuple]) -> tuple[tuple[int, ...], list[Seen]]:
    """The same of several parts, in their order."""
    lengths, seen = zip(*parts, strict=True)
    return sum(lengths, ()), [reduce(add, of_column) for of_column in zip(*seen, strict=True)]


def _with_fillings(parts: list[Delayed], columns: TableColumns, lengths: Sequence[int], verbose: int) -> TableColumns:
    """The columns with what stands for blank numbers, and how these follow from others."""
    if not columns.n_numbers:
        return columns
    n, starts = sum(lengths), np.cumsum([0, *lengths])
    looked = _of_each(parts, "orders", partial_orders, (columns, starts, -(-n // MOST_ROWS)), verbose)
    orders = [list(of_column) for of_column in zip(*(part.orders for part in looked), strict=True)]
    limits = [between(of_column) for of_column in orders]
    counted = _of_each(parts, "medians", partial_counts, (columns, limits), verbose)
    present = [sum(each.n for each in of_column) for of_column in orders]
    medians = np.array([median(count, part) for count, part in zip(present, zip(*counted, strict=True), strict=True)])
    found, kept, at = [], np.repeat(True, columns.n_numbers), 0
    for column in columns.columns:
        mine = slice(at, at := at + column.n_numbers)
        if column.n_numbers:
            count = present[mine.start]
            kept[mine] = count > 0
            column = column.with_filling(medians[mine] if count else None, count < n)
        found.append(column)
    rows = np.concatenate([part.rows for part in looked])
    return TableColumns(tuple(found), Joint.of(np.ascontiguousarray(rows[:, kept]), medians[kept]))


def _of_each(parts: list[Delayed], step: str, function: Callable, how: tuple, verbose: int) -> list:
    """A function of each part, computed where the part is."""
    plan = Plan(*parts)
    shared = plan.value("how", how)
    keys = [plan.add(step, function, shared, number, part.key) for number, part in enumerate(parts)]
    return computed(plan.delayed(keys), verbose)


def _numbers(columns: TableColumns, number: int, part: Any) -> NDArray:
    table = _table(part, len(columns.columns), number)
    with in_chunk(number):
        return columns.numbers(table)


@dataclass(frozen=True)
class Looked:
    """What the first look at the numbers of a part takes."""

    rows: NDArray
    """Those from which the Gaussian is learned."""
    orders: list[Orders]
    """Of each column."""


@dataclass(frozen=True)
class Orders:
    """Some order statistics of the numbers in one part, among them the least and the largest."""

    n: int
    """Numbers that are there."""
    places: NDArray
    """Their ranks, from 0, ascending."""
    values: NDArray

    @classmethod
    def of(cls, numbers: NDArray) -> Orders:
        """About as many as leave as many numbers between two of them."""
        present = np.sort(numbers[~np.isnan(numbers)])
        n = len(present)
        places = np.unique(np.linspace(0, n - 1, isqrt(n) + 2).astype(int)) if n else np.empty(0, int)
        return cls(n, places, present[places])

    def at_most(self, values: NDArray) -> tuple[NDArray, NDArray]:
        """Bounds of how many numbers are at most each value."""
        rank = np.searchsorted(self.values, values, side="right")
        return np.append(0, self.places + 1)[rank], np.append(self.places, self.n)[rank]


count_bytes(Seen, Looked, Orders)


def partial_orders(how: tuple, number: int, part: Any) -> Looked:
    """The first look at one part."""
    columns, starts, step = how
    numbers = _numbers(columns, number, part)
    return Looked(numbers[-starts[number] % step :: step], [Orders.of(each) for each in numbers.T])


def between(parts: Sequence[Orders]) -> tuple[float, float]:
    """Two numbers such that the median of all parts is above the first and at most the second."""
    n, values = sum(part.n for part in parts), np.unique(np.concatenate([part.values for part in parts]))
    least, most = np.sum([part.at_most(values) for part in parts], axis=0)
    below, above = values[most <= (n - 1) // 2], values[least > n // 2]
    return below.max(initial=-np.inf), above.min(initial=np.inf)


def partial_counts(how: tuple, number: int, part: Any) -> list[tuple[int, NDArray, NDArray]]:
    """For each column how many numbers are not above the limits, and which numbers are within them, how often."""
    columns, limits = how
    found = []
    for numbers, (low, high) in zip(_numbers(columns, number, part).T, limits, strict=True):
        within = np.unique(numbers[(numbers > low) & (numbers <= high)], return_counts=True)
        found.append((int((numbers <= low).sum()), *within))
    return found


def median(n: int, parts: Sequence[tuple[int, NDArray, NDArray]]) -> float:
    """The median of n numbers of all parts; NaN if there is none."""
    below, values, counts = zip(*parts, strict=True)
    if not n:
        return np.nan
    different, of = np.unique(np.concatenate(values), return_inverse=True)
    up_to = sum(below) + np.cumsum(np.bincount(of, np.concatenate(counts)))
    return float(np.median(different[np.searchsorted(up_to, [(n - 1) // 2, n // 2], side="right")]))
