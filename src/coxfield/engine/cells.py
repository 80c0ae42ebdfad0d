"""Sums over many points without a visit to each: near points one by one, far points by a sample that stands for all.

Points are divided into cells by halving: a cell is cut at the median along its longest direction until it is small. So
cells have equal numbers of points, and making them takes n log n steps. All points in a cell have the same *near*
cells. Of all other points only a sample counts, each of them for as many as it stands for:

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

from coxfield.kernels.mixture import log_totals
from coxfield.kernels.radial import RadialPoints
from coxfield.threads import over_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.mixture import LadderPoints

DIRECTION_ROWS = 256  # points of a cell by which its longest direction is found
DIRECTION_STEPS = 4  # of the power method: any long direction does
LEAST = 32  # points of each class in a sample; all, if there are fewer
BLOCK = 16  # cells that a thread takes at a time
MOST_ASKED = 1024  # points of a cell that are asked at a time


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
    def _near(self) -> NDArray:
        """The near cells of each cell, itself among them, shape (cells, n_near)."""
        distances = distances_to(self.centres, self.centres)
        np.fill_diagonal(distances, -np.inf)
        return np.argpartition(distances, self.n_near - 1, axis=1)[:, : self.n_near]

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

    def columns(self, cell: int) -> tuple[NDArray, NDArray]:
        """The points that count for those in a cell, ascending, and for how many each counts."""
        near = self._near[cell]
        close = np.concatenate([self.members(each) for each in near])
        away = ~np.isin(self.cell_of[self.far], near)
        columns = np.concatenate([close, self.far[away]])
        counts = np.concatenate([np.ones(len(close)), self.far_counts[away]])
        order = np.argsort(columns)
        return columns[order], counts[order]


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
    starts = np.searchsorted(cell_of[order], np.arange(len(cells) + 1))

    def work(some: slice) -> None:
        for cell in range(some.start, some.stop):
            rows = order[starts[cell] : starts[cell + 1]]
            if not len(rows):
                continue
            columns, stands_for = cells.columns(cell)
            weights = (counts[columns] * stands_for).astype(points.points.dtype)
            place = np.minimum(np.searchsorted(columns, own[rows]), len(columns) - 1)
            left_out = np.where(columns[place] == own[rows], place, -1)
            for part in gen_batches(len(rows), MOST_ASKED):
                found[:, rows[part]] = log_totals(asked[rows[part]], points[columns], weights, left_out[part])
            if done is not None:
                done(len(rows))

    over_rows(work, len(cells), BLOCK)
    return found


def has_cells(points: LadderPoints) -> bool:
    """Whether points of a ladder can be divided into cells: dense coordinates of NumPy, and weights that they share."""
    dense = isinstance(points.points, RadialPoints) and isinstance(points.points.points.coordinates, np.ndarray)
    return dense and not points.ladder.free
