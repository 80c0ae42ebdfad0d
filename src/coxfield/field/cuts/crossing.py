"""One pass over the pairs that a labelling separates: the weight that the sparse graph lacks, and edges to add."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from coxfield.engine.tiles import over_rows, tile_shape
from coxfield.field.graph import NO_EDGES, Edges
from coxfield.kernels.leave_out import cross_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.couplings import Coupling


@dataclass(frozen=True)
class Crossing:
    """Pairs that a labelling separates and that are not edges of the sparse graph."""

    sums: NDArray
    """For each node, the weight of its separated pairs."""
    edges: Edges
    """The heaviest of those pairs that the reference labelling does not separate the same way."""


@dataclass
class _Heaviest:
    """The heaviest pairs seen so far, at most `budget` of them after `settle`."""

    budget: int
    threshold: float = 0.0
    kept: list[Edges] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def offer(self, tile: NDArray, rows: NDArray, columns: NDArray) -> None:
        """Keep the pairs of a tile that may be among the heaviest."""
        if not tile.size or not self.budget:
            return
        above = tile > self.threshold
        if np.count_nonzero(above) > self.budget:  # at most `budget` of these can stay
            above = tile >= np.partition(tile[above], -self.budget)[-self.budget]
        at, to = np.nonzero(above)
        new = Edges(rows[at], columns[to], tile[at, to].astype(float))
        with self.lock:
            self.kept.append(new)
            if sum(map(len, self.kept)) > 4 * self.budget:
                self.settle()

    def settle(self) -> Edges:
        """Drop all but the heaviest pairs, and remember the weight that a new pair must exceed."""
        edges = sum(self.kept, start=NO_EDGES)
        if len(edges) > self.budget:
            top = np.argpartition(edges.weight, -self.budget)[-self.budget :]
            edges = Edges(edges.i[top], edges.j[top], edges.weight[top])
            self.threshold = float(edges.weight.min())
        self.kept = [edges]
        return edges


def crossing(coupling: Coupling, labels: NDArray, reference: NDArray, edges: Edges, budget: int) -> Crossing:
    """Sum the pairs that `labels` separates and that are not in `edges`, and find heavy ones to add.

    Parameters
    ----------
    coupling : Coupling
    labels, reference : boolean arrays of shape (n,)
    edges : Edges
        The sparse graph.
    budget : int
        The largest number of heavy pairs to return.
    """
    # Nodes with label 1 in the reference come first on both sides. So the pairs that it separates the same way are
    # one corner of the matrix.
    rows = np.concatenate([np.flatnonzero(labels & reference), np.flatnonzero(labels & ~reference)])
    columns = np.concatenate([np.flatnonzero(~labels & reference), np.flatnonzero(~labels & ~reference)])
    corner = int((labels & reference).sum()), int((~labels & reference).sum())
    sums, heaviest, lock = np.zeros(len(labels)), _Heaviest(budget), Lock()
    if edges.complete or not len(rows) or not len(columns):
        return Crossing(sums, NO_EDGES)
    left, right = coupling[rows], coupling[columns]
    held = _Held.of(edges.cut_by(labels), rows, columns)
    step, width = tile_shape(len(rows), len(columns), coupling.dtype.itemsize)

    def work(part: slice) -> None:
        block = left[part]
        for start in range(0, len(columns), width):
            across = slice(start, min(start + width, len(columns)))
            tile = block.tile(right[across])
            held.cross_out(tile, part, across)
            sums[rows[part]] += tile.sum(axis=1, dtype=float)
            with lock:
                sums[columns[across]] += tile.sum(axis=0, dtype=float)
            a, c = max(corner[0] - part.start, 0), max(corner[1] - start, 0)
            heaviest.offer(tile[a:], rows[part][a:], columns[across])
            heaviest.offer(tile[:a, :c], rows[part][:a], columns[across][:c])

    over_rows(work, len(rows), step)
    return Crossing(sums, heaviest.settle())


def row_sums(coupling: Coupling) -> NDArray:
    """Sum of w_ij over all other nodes j, for each node."""
    n = len(coupling)
    step, width = tile_shape(n, n, coupling.dtype.itemsize)
    sums = np.zeros(n)

    def work(part: slice) -> None:
        block, own = coupling[part], np.arange(part.start, part.stop)
        for start in range(0, n, width):
            tile = block.tile(coupling[start : start + width])
            cross_out(tile, own, start, 0)
            sums[part] += tile.sum(axis=1, dtype=float)

    over_rows(work, n, step)
    return sums


@dataclass(frozen=True)
class _Held:
    """Edges of the sparse graph by their place in the rows and columns of a pass, sorted by row."""

    row: NDArray
    column: NDArray

    @staticmethod
    def of(edges: Edges, rows: NDArray, columns: NDArray) -> _Held:
        place = np.empty(len(rows) + len(columns), int)
        place[rows], place[columns] = np.arange(len(rows)), np.arange(len(columns))
        order = np.argsort(place[edges.i], kind="stable")
        return _Held(place[edges.i][order], place[edges.j][order])

    def cross_out(self, tile: NDArray, rows: slice, columns: slice) -> None:
        """Write 0 at the edges of the sparse graph, because they are counted there."""
        first, last = np.searchsorted(self.row, [rows.start, rows.stop])
        column = self.column[first:last]
        mine = np.flatnonzero((column >= columns.start) & (column < columns.stop))
        tile[self.row[first:last][mine] - rows.start, column[mine] - columns.start] = 0
