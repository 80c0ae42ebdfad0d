"""Sums over many points without a visit to each: near points one by one, far points by a sample that stands for all.

Points are divided into cells by halving: a cell is cut at the median along its longest direction until it is small. So
cells have equal numbers of points, and making them takes n log n steps. Each point has *near* cells of its own: those
with the nearest centres. With the same near cells for all points of a cell, those at its rim would miss neighbours. Of
all other points only a sample counts, each of them for as many as it stands for:

    sum over near points + sum over sampled far points / (share that was drawn of their class)

The kernel is smooth where points are far, so the second sum has a small error. It is unbiased whatever is near.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from coxfield.kernels.mixture import Total
from coxfield.kernels.protocol import LogSums
from coxfield.kernels.radial import RadialPoints
from coxfield.threads import over_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.mixture import LadderPoints

DIRECTION_ROWS = 256  # points of a cell by which its longest direction is found
DIRECTION_STEPS = 4  # of the power method: any long direction does
LEAST = 32  # points of each class in a sample; all, if there are fewer
BLOCK, BLOCK_VALUES = 2**16, 2**24  # points that a thread takes at a time, and coordinates of them, at most
MOST_ASKED = 1024  # points that are asked at a time
BESIDE = 6  # times the number of near cells: so many lie beside a cell, and each of its points chooses among them


def sampled_rows(y: NDArray, count: int, random: np.random.Generator, least: int = LEAST) -> tuple[NDArray, NDArray]:
    """Rows drawn at random within classes, ascending, and how many rows of its class each stands for.

    Parameters
    ----------
    y : array of shape (n,)
        Class numbers.
    count : int
        How many rows to draw. There are more if rare classes need them.
    random : numpy.random.Generator
    least : int
        Rows of each class, if it has so many.
    """
    sizes = np.bincount(y)
    wanted = np.minimum(sizes, np.maximum(np.ceil(sizes * (count / len(y))).astype(int), least))
    # The first of each class in a random order of all rows.
    shuffled = random.permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    rank = np.arange(len(y)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.sort(by_class[rank < wanted[y[by_class]]])
    return rows, sizes[y[rows]] / wanted[y[rows]]


@dataclass(frozen=True)
class Cells:
    """Points of one representation in cells, and a sample of them."""

    order: NDArray
    """All points, cell by cell."""
    starts: NDArray
    """First place of each cell in `order`, and at last the number of points."""
    centres: NDArray
    n_near: int
    """Number of cells whose points are visited one by one."""
    far: NDArray
    """The sample, ascending."""
    far_counts: NDArray
    """How many points each of them stands for."""

    @classmethod
    def of(cls, points: RadialPoints, size: int, n_near: int, sample: tuple[NDArray, NDArray]) -> Cells:
        """Cells of at most `size` points, of which `n_near` are near."""
        Z = points.points.coordinates
        order, starts = halved(Z, size)
        centres = np.stack([Z[order[a:b]].mean(axis=0) for a, b in pairwise(starts)])
        return cls(order, starts, centres, min(n_near, len(centres)), *sample)

    def __len__(self) -> int:
        return len(self.centres)

    @cached_property
    def cell_of(self) -> NDArray:
        """The cell of each point."""
        found = np.empty(len(self.order), np.int32)
        found[self.order] = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return found

    @cached_property
    def _beside(self) -> NDArray:
        """The cells that may be near the points of each cell, itself first, shape (cells, `BESIDE` * n_near)."""
        count = min(BESIDE * self.n_near, len(self))
        found = np.empty((len(self), count), np.int32)
        for some in gen_batches(len(self), MOST_ASKED):
            distances = distances_to(self.centres[some], self.centres)
            distances[np.arange(len(distances)), np.arange(len(self))[some]] = -np.inf
            nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
            first = nearest == np.arange(len(self))[some, None]
            found[some] = np.take_along_axis(nearest, np.argsort(~first, axis=1, kind="stable"), axis=1)
        return found

    def cells_at(self, asked: RadialPoints, own: NDArray) -> NDArray:
        """The cell of each of some points: its own, or if it is not among the points in cells, the nearest."""
        found = np.where(own >= 0, self.cell_of[own], -1)
        others = np.flatnonzero(own < 0)
        for some in gen_batches(len(others), MOST_ASKED) if len(others) else ():
            rows = others[some]
            found[rows] = distances_to(asked.points.coordinates[rows], self.centres).argmin(axis=1)
        return found

    def members(self, cell: int) -> NDArray:
        """The points of a cell."""
        return self.order[self.starts[cell] : self.starts[cell + 1]]

    def near(self, asked: RadialPoints, cell_of: NDArray) -> NDArray:
        """The near cells of each of some points, among them its own; `cell_of` are the cells that they lie in."""
        found = np.empty((len(cell_of), self.n_near), np.int32)
        for cell in np.unique(cell_of):
            rows, beside = np.flatnonzero(cell_of == cell), self._beside[cell]
            distances = distances_to(asked.points.coordinates[rows], self.centres[beside])
            distances[:, 0] = -np.inf
            found[rows] = beside[np.argpartition(distances, self.n_near - 1, axis=1)[:, : self.n_near]]
        return found


def halved(Z: NDArray, size: int) -> tuple[NDArray, NDArray]:
    """Points in an order such that cells are contiguous, and where each cell starts."""
    order, starts, waiting = np.arange(len(Z)), [len(Z)], [(0, len(Z))]
    while waiting:
        start, stop = waiting.pop()
        if stop - start <= size:
            starts.append(start)
            continue
        some = order[start:stop]
        rows = Z[some]
        along = rows @ _long_direction(rows[:: max(1, len(rows) // DIRECTION_ROWS)])
        half = len(some) // 2
        order[start:stop] = some[np.argpartition(along, half)]
        waiting += [(start, start + half), (start + half, stop)]
    return order, np.sort(starts)


def _long_direction(rows: NDArray) -> NDArray:
    """A direction in which points lie far apart."""
    rows = rows - rows.mean(axis=0)
    direction = rows[np.argmax(np.square(rows).sum(axis=1))]
    for _ in range(DIRECTION_STEPS):
        size = np.abs(direction).max(initial=0)
        direction = rows.T @ (rows @ (direction / (size or 1)))
    return direction / (np.abs(direction).max(initial=0) or 1)


def distances_to(a: NDArray, b: NDArray) -> NDArray:
    """Squared distances up to a constant per row."""
    found = a @ (-2 * b.T)
    found += np.square(b).sum(axis=1)
    return found


def near_log_others(
    asked: LadderPoints, own: NDArray, points: LadderPoints, counts: NDArray, cells: Cells, done=None
) -> NDArray:
    """log of the density of each of some points without its own term, by near points and a sample, shape (F, n).

    Parameters
    ----------
    asked : LadderPoints
    own : array of shape (n,)
        The place of each among `points`, which does not count; -1 for none.
    points : LadderPoints
        The points that are in cells.
    counts : array
        Weights of these.
    cells : Cells
    done : function, optional
    """
    found = np.empty((len(points.ladder.factors), len(asked)))
    cell_of = cells.cells_at(asked.points, own)
    order = np.argsort(cell_of, kind="stable")
    cell_of_far, dtype = cells.cell_of[cells.far], points.points.dtype
    stands_for, ones = (counts[cells.far] * cells.far_counts).astype(dtype), counts.astype(dtype)

    def work(some: slice) -> None:
        rows = order[some]
        mine, near = asked[rows], cells.near(asked.points[rows], cell_of[rows])
        apart = own[rows, None] == cells.far
        for part in gen_batches(len(rows), MOST_ASKED):
            is_near = np.zeros((part.stop - part.start, len(cells)), bool)
            np.put_along_axis(is_near, near[part], True, axis=1)
            apart[part] |= is_near[:, cell_of_far]
        total = _over(mine, points, cells.far, stands_for, apart)
        queries = np.argsort(near, axis=None, kind="stable") // cells.n_near
        ends = np.cumsum(np.bincount(near.ravel(), minlength=len(cells)))
        for cell, places in enumerate(np.split(queries, ends[:-1])):
            if len(places):
                columns = np.sort(cells.members(cell))
                place = np.minimum(np.searchsorted(columns, own[rows[places]]), len(columns) - 1)
                itself = np.where(columns[place] == own[rows[places]], place, -1)
                new = _over(mine[places], points, columns, ones[columns], itself)
                added = LogSums(total.top[:, places], total.sums[:, :, places]) + new
                total.top[:, places], total.sums[:, :, places] = added.top, added.sums
        found[:, rows] = total.logs[:, 0, :, 0]

    most = max(1, min(BLOCK, BLOCK_VALUES // points.points.points.shape[1]))
    blocks = 2 * max(1, -(-len(asked) // (2 * most)))  # an even number, whatever threads there are
    over_rows(work, len(asked), max(1, -(-len(asked) // blocks)), done)
    return found


def _over(asked: LadderPoints, points: LadderPoints, columns: NDArray, weights: NDArray, leave_out: NDArray) -> LogSums:
    """Weighted sums over some points at others; `leave_out` says what each of these does not see, see `cross_out`."""
    some, sums = points[columns].points, np.zeros((len(points.ladder.factors), 1, len(asked), 1))
    top = np.empty((len(sums), len(asked), 1))
    for start in range(0, len(asked), MOST_ASKED):
        part = slice(start, start + MOST_ASKED)
        adder = Total(weights, sums[:, 0, part, 0])
        top[:, part, 0] = asked[part].points.walk(some, points.ladder.factors, leave_out[part], adder)
    return LogSums(top, sums)


def has_cells(points: LadderPoints) -> bool:
    """Whether points of a ladder can be divided into cells: dense coordinates of NumPy, and weights that they share."""
    dense = isinstance(points.points, RadialPoints) and isinstance(points.points.points.coordinates, np.ndarray)
    return dense and not points.ladder.free
