"""Class sums over very many points of a learned mixture: the points of near cells one by one, of all others a sample.

Points of each representation are divided into cells of equal size. A query visits all points in the cells with the
nearest centres. Of the other cells it visits a sample, in which each point of weight w stands for w points:

    sum over the sample of w k + sum over near cells of (1 - [in the sample] w) k

So one sum over the sample serves all queries. The sample is every 16th point along the cells, class by class, so that
each class and each region has its share of it; of a class with few points it has all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield import threads
from coxfield.engine.cells import distances_to, halved, has_cells
from coxfield.engine.class_sums import ClassSums, log_sums, on_classes, queries_of, total
from coxfield.engine.store import Segments
from coxfield.kernels.mixture import MixturePoints, ladder_paths
from coxfield.kernels.protocol import LogSums, Path
from coxfield.threads import over_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.engine.store import Store
    from coxfield.kernels.mixture import LadderPoints
    from coxfield.kernels.radial import RadialPoints

CELL = 512  # points of a cell, at most
SHARE, LEAST = 1 / 16, 1000  # share of each class in the sample, and points of each class at least
CELL_BY_CELL = 8  # queries of a cell, on average, from which cells are visited one by one, and not queries


@dataclass(frozen=True)
class NearLadder:
    """The labelled points of one representation, cell by cell and in a cell by class, and a sample of them."""

    points: RadialPoints
    factors: NDArray
    classes: NDArray
    """The class of each point."""
    place: NDArray
    """The place here of each point of the store."""
    starts: NDArray
    """First place of each cell, and at last the number of points."""
    centres: NDArray
    far: Path
    """Sums over the sample; its rows are not used."""
    far_column: NDArray
    """The column of each point in the sample; -1 for points that are not in it."""
    near: list[list[NDArray]]
    """The weights of all points as near ones, for each factor and layer."""

    @classmethod
    def of(cls, ladder: LadderPoints, weights: Segments) -> NearLadder:
        """Divide the points of a ladder, which are sorted by class."""
        n = len(ladder)
        classes = np.searchsorted(weights.starts, np.arange(n), side="right") - 1
        order, starts = halved(ladder.points.points.coordinates, CELL)
        cell_of = np.empty(n, int)
        cell_of[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        order = np.lexsort((classes, cell_of))
        drawn, stands_for = every(order, classes, SHARE, LEAST)
        (path,) = ladder_paths(ladder, ladder, weights, dense=True)
        first = np.searchsorted(classes[drawn], np.arange(len(weights.starts)))
        far = [[Segments(first, each.weights[drawn] * stands_for) for each in layers] for layers in path.weights]
        rest = np.ones(n, np.float32)
        rest[drawn] -= stands_for
        place, column = np.empty(n, int), np.full(n, -1)
        place[order], column[drawn] = np.arange(n), np.arange(len(drawn))
        held = ladder.points[order]
        Z = held.points.coordinates
        return cls(
            held,
            path.factors,  # type: ignore[arg-type]
            classes[order],
            place,
            starts,
            np.stack([Z[a:b].mean(axis=0) for a, b in pairwise(starts)]),
            Path(None, ladder.points[drawn], path.factors, far),
            column[order],
            [[(each.weights * rest)[order] for each in layers] for layers in path.weights],
        )

    def sums(self, rows: RadialPoints, leave_out: NDArray, n_near: int) -> LogSums:
        """Sums at some queries, of which each visits `n_near` cells; `leave_out` are points of the store, or -1."""
        own = np.where(leave_out >= 0, self.place[leave_out], -1)
        far = np.where(own >= 0, self.far_column[own], -1)
        found = log_sums(replace(self.far, rows=rows), far, precise=True)
        distances = distances_to(rows.points.coordinates, self.centres)
        cells = np.argpartition(distances, n_near - 1, axis=1)[:, :n_near]
        step = -(-len(rows) // threads.count())
        parts: list = [None] * -(-len(rows) // max(1, step))

        def work(some: slice) -> None:
            so_far = LogSums(found.top[:, some], found.sums[:, :, some])
            with threads.use(1):
                parts[some.start // step] = self._with_near(so_far, rows[some], own[some], cells[some])

        with threads.one_each():  # products are so small that more threads of the BLAS would wait for each other
            over_rows(work, len(rows), max(1, step))
        return _side_by_side(parts) if parts else found

    def _with_near(self, found: LogSums, rows: RadialPoints, own: NDArray, cells: NDArray) -> LogSums:
        """Sums over the sample, and those over near cells added to them."""
        top, sums = found.top.copy(), found.sums.copy()
        for queries, columns in self._visits(cells):
            classes = self.classes[columns]
            starts = np.flatnonzero(np.diff(classes, prepend=-1))
            weights = [[Segments(starts, each[columns]) for each in layers] for layers in self.near]
            path = Path(rows[queries], self.points[columns], self.factors, weights)
            new = on_classes(
                log_sums(path, _place_in(columns, own[queries]), precise=True), classes[starts], sums.shape[3]
            )
            added = LogSums(top[:, queries], sums[:, :, queries]) + new
            if added.top.shape[2] > top.shape[2]:  # a query that is so far away that each class has a top of its own
                top = np.repeat(top, added.top.shape[2], axis=2)
            top[:, queries], sums[:, :, queries] = added.top, added.sums
        return LogSums(top, sums)

    def _visits(self, cells: NDArray) -> Iterator[tuple[NDArray, Any]]:
        """Queries, and the places of points that they visit, sorted by class; `cells` are those of each query."""
        n_cells = len(self.centres)
        if cells.size >= CELL_BY_CELL * n_cells:
            flat = cells.ravel()
            queries = np.argsort(flat, kind="stable") // cells.shape[1]
            of_cell = np.cumsum(np.bincount(flat, minlength=n_cells))
            for cell, some in enumerate(np.split(queries, of_cell[:-1])):
                if len(some):
                    yield some, slice(self.starts[cell], self.starts[cell + 1])
            return
        for query, mine in enumerate(cells):
            columns = np.concatenate([np.arange(self.starts[cell], self.starts[cell + 1]) for cell in np.sort(mine)])
            yield np.array([query]), columns[np.argsort(self.classes[columns], kind="stable")]


def every(order: NDArray, classes: NDArray, share: float, least: int) -> tuple[NDArray, NDArray]:
    """Points at equal steps along an order, class by class; and for how many points of its class each stands.

    Parameters
    ----------
    order : array of shape (n,)
    classes : array of shape (n,)
    share : float
    least : int
        Points of each class, if it has so many.

    Returns
    -------
    Points that are ascending within each class, and classes that are ascending; and numbers in single precision.
    """
    sizes = np.bincount(classes)
    wanted = np.minimum(sizes, np.maximum(np.ceil(sizes * share).astype(int), least))
    by_class = order[np.argsort(classes[order], kind="stable")]
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    count, size = wanted[classes[by_class]], sizes[classes[by_class]]
    drawn = by_class[(rank + 1) * count // size > rank * count // size]
    drawn = drawn[np.lexsort((drawn, classes[drawn]))]
    return drawn, (sizes[classes[drawn]] / wanted[classes[drawn]]).astype(np.float32)


def _place_in(columns: Any, own: NDArray) -> NDArray:
    """Where points are among some columns, -1 for none."""
    if isinstance(columns, slice):
        return np.where((own >= columns.start) & (own < columns.stop), own - columns.start, -1)
    same = columns == own[:, None]
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _side_by_side(parts: list[LogSums]) -> LogSums:
    """Sums at some queries and at others."""
    width = max(part.top.shape[2] for part in parts)
    tops = [np.broadcast_to(part.top, (*part.top.shape[:2], width)) for part in parts]
    return LogSums(np.concatenate(tops, axis=1), np.concatenate([part.sums for part in parts], axis=2))


@dataclass(frozen=True)
class NearSums:
    """`class_sums` of a learned mixture, in which queries visit near cells and a sample."""

    ladders: tuple[NearLadder | None, ...]
    """None for ladders whose points are all visited."""
    n_near: int

    @classmethod
    def of(cls, store: Store, n_near: int) -> NearSums:
        """Divide the points of a store, which are in one part."""
        (part,) = store.groups[0].parts
        weights, points = part.weights, part.points
        assert isinstance(points, MixturePoints)
        assert isinstance(weights, Segments)
        found = (NearLadder.of(each, weights) if has_cells(each) else None for each in points.ladders)
        return cls(tuple(found), n_near)

    def __call__(self, store: Store, X, leave_out: NDArray | None = None) -> ClassSums:
        """Class sums at each row of X; `store` is the one that was divided."""
        (group,), (queries,) = store.groups, queries_of(store, X, leave_out)
        (part,), n = group.parts, X.shape[0]
        own = np.full(n, -1) if leave_out is None else part.column_of(leave_out)
        columns: Any = part.points
        found: list[LogSums] = []
        for mine, others, near in zip(queries.ladders, columns.ladders, self.ladders, strict=True):  # type: ignore[union-attr]
            if near is not None:
                found.append(near.sums(mine.points, own, min(self.n_near, len(near.centres))))
                continue
            paths = ladder_paths(mine, others, part.weights, dense=True)
            found += [log_sums(path, path.columns_of(own), precise=True) for path in paths]
        present = np.searchsorted(group.classes, part.classes)
        sums = [on_classes(each, present, len(group.classes)) for each in found]
        return total(store.groups, [queries], n, store.n_classes, [sums])
