"""What makes learning a mixture linear in the number of points: which rows are left out, and densities by cells.

A pilot on a few thousand rows says which members are worth a look and how sure each row is. The members' neighbours on
the ladder are candidates, shorter ones above all: the best length scale shrinks as points become more. Rows with an
uncertain label teach most about weights, so they are drawn more often and count less. They meet all points. Only the
densities of the points themselves, of which there are n, are sums over near points and a sample of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coxfield.engine.cells import LEAST, Cells, has_cells, near_log_others, sampled_rows
from coxfield.engine.store import Labelled
from coxfield.kernels.mixture import in_single
from coxfield.selection.mixture.cross_fitting import CrossFitted
from coxfield.selection.mixture.loo_members import Here, log_others_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.kernels.mixture import Ladder, LadderPoints

MANY = 10_000  # with fewer rows all pairs take little more time
PILOT, OF_CLASS = 4000, 5  # rows of the pilot, and of each class at least; 2,000 rows miss members on pendigits
POOL, OF_CLASS_IN_POOL = 50_000, 200  # rows among which those that are left out are drawn
POOL_VALUES = 2**24  # class sums of the pilot at the rows of the pool: fewer rows if there are many classes
LEFT_OUT, LEFT_OUT_VALUES = 8000, 2**23  # rows that are left out, and class sums of all members at them
LONGER, SHORTER = 1, 3  # rungs beside a member of the pilot that are candidates
CELL, NEAR, FAR = 128, 10, 1000  # points of a cell, near cells, and points that stand for all others
# Rows, and rows of each class, among which neighbours are looked for, to know which of many classes a row may have.
NEIGHBOURS_AMONG, NEAR_OF_CLASS = 10_000, 5


@dataclass(frozen=True)
class ManyPoints(Labelled):
    """`Labelled` points that are so many that densities are summed by cells."""

    seed: int = 0
    """Of the samples that stand for far points."""


class ByCells(Here):
    """What `member_sums` asks of labelled points, if they are many."""

    labelled: ManyPoints
    density_columns = CELL * NEAR + FAR
    density_at_rows = True  # rows that are left out meet all points, so they know their own densities better

    def bound(self, k: int, rows: NDArray) -> LadderPoints:
        """In single precision, which takes half the time."""
        return in_single(super().bound(k, rows))

    def log_others(self, points: LadderPoints, counts: NDArray, y: NDArray) -> NDArray:
        """By cells, if there are coordinates."""
        share, done = self.density_columns / len(points), self.done
        told = None if done is None else lambda rows: done(rows * share)
        if not has_cells(points):
            return log_others_of(points, counts, told)
        cells = cells_of(points, y, self.labelled.n_classes, self.labelled.seed)
        return near_log_others(points, np.arange(len(points)), points, counts, cells, told)

    def neighbours_among(self) -> tuple[list[LadderPoints], NDArray, NDArray]:
        """Some points, and those that are left out."""
        drawn, _ = sampled_rows(
            self.labelled.y, NEIGHBOURS_AMONG, np.random.default_rng(self.labelled.seed), NEAR_OF_CLASS
        )
        some = np.union1d(drawn, self.rows)
        X, y = self.labelled[some].X, self.labelled.y[some]
        return [ladder.bind(X) for ladder in self.bank], y, np.searchsorted(some, self.rows)


def cells_of(points: LadderPoints, y: NDArray, n_classes: int, seed: int) -> Cells:
    """Labelled points in cells, and a sample of them that stands for those that are far."""
    least = max(1, min(LEAST, FAR // n_classes))
    sample = sampled_rows(y, FAR, np.random.default_rng(seed), least)
    return Cells.of(points.points, CELL, NEAR, sample)


ManyPoints.source = ByCells  # type: ignore[attr-defined]


def at_hand(labelled: Labelled) -> tuple[Labelled, NDArray]:
    """The points that are here, and their places among all of them."""
    found = getattr(labelled, "sample", None)
    return (labelled, np.arange(len(labelled))) if found is None else (found, labelled.sample_rows)  # type: ignore[attr-defined]


def many(labelled: Labelled, seed: int) -> Labelled:
    """The same points, which are so many that densities are summed over samples that are drawn by `seed`."""
    if getattr(labelled, "sample", None) is None:
        return ManyPoints(labelled.X, labelled.y, labelled.n_classes, labelled.weights, seed)
    return replace(labelled, seed=seed)  # type: ignore[call-arg]


def of_rows(ladder: Ladder, rows: NDArray) -> Ladder:
    """A ladder without weights whose labelled points are some of the rows."""
    found = ladder.reindexed(rows)
    return replace(found, fold=found.fold[rows]) if isinstance(found, CrossFitted) and found.fold is not None else found


def beside(bank: Sequence[Ladder], members: Sequence[NDArray]) -> list[Ladder]:
    """The rungs of a bank that are candidates, if `members` says which members of each ladder a pilot has found."""
    found = []
    for ladder, weights in zip(bank, members, strict=True):
        rungs = np.flatnonzero(weights.any(axis=1))
        near = (rungs[:, None] + np.arange(-LONGER, SHORTER + 1)).ravel()
        kept = np.unique(near[(near >= 0) & (near < len(ladder.factors))])
        if len(kept):
            found.append(replace(ladder, factors=ladder.factors[kept], weights=np.zeros((len(kept), weights.shape[1]))))
    return found


def informative_rows(
    probability: NDArray, pool_counts: NDArray, count: int, random: np.random.Generator
) -> tuple[NDArray, NDArray]:
    """Places in a pool that are drawn, ascending, and how many rows each of them stands for.

    Parameters
    ----------
    probability : array of shape (pool,)
        Of the label of each row of the pool, by leave-one-out.
    pool_counts : array of shape (pool,)
        How many rows each of them stands for.
    count : int
        How many to draw.
    random : numpy.random.Generator
    """
    doubt = 1 - probability
    worth = (doubt + max(doubt.mean(), np.finfo(float).tiny)) * pool_counts
    chance = _chances(worth, count)
    # Systematic sampling: a comb of unit width over the added-up chances has the wanted number of teeth.
    teeth = np.ceil(np.concatenate([[0], np.cumsum(chance)]) - random.random())
    drawn = np.flatnonzero(np.diff(teeth) > 0)
    return drawn, pool_counts[drawn] / chance[drawn]


def _chances(worth: NDArray, count: int) -> NDArray:
    """Chances to be drawn, in proportion to `worth` and at most 1, that add up to a number of rows."""
    chance = np.ones(len(worth))
    open_ = np.arange(len(worth))
    while len(open_) and count > len(worth) - len(open_):
        left = count - (len(worth) - len(open_))
        share = left * worth[open_] / worth[open_].sum()
        if (share <= 1).all():
            chance[open_] = share
            break
        open_ = open_[share < 1]
    return chance


def positions(values: NDArray, among: NDArray) -> NDArray:
    """The place of each value among others, which are ascending; -1 for those that are not there."""
    place = np.minimum(np.searchsorted(among, values), len(among) - 1)
    return np.where(among[place] == values, place, -1)
