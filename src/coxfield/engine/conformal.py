"""Full conformal prediction in closed form: how many labelled points fit worse than a new point with a candidate label.

The new point x* joins the labelled points with a candidate class c. Then only the sum of class c changes, and at each
labelled point x_i it grows by k_i = C_c(x_i, x*). So the leave-one-out probability of every label in the larger set
follows from those in the smaller set. It is written in odds against the label, w = (1 - p) / p, because then every term
is positive and nothing cancels. With the softmax p of point i without itself, its label y and w_* of x* for class c:

- y = c: the odds against become w_i exp(-k_i);
- y != c: they become r_i + u_i exp(k_i), where u_i = p_c / p_y, and r_i is the sum of p_j / p_y over all other j.

A point counts if its new odds are w_* or more: then it fits as badly as the new point, or worse. The p-value of class c
is the share of points that count, the new point included.

Rounding moves logarithms of odds by an amount that is bounded below, in `slack`. A point that is nearer than that to
the new point counts as a tie, so rounding can make a set larger but not smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from coxfield.engine.class_sums import COLUMNS, LARGEST_LOG, tile_shape
from coxfield.kernels.namespace import rows_of, to_numpy
from coxfield.kernels.protocol import TOLERABLE
from coxfield.threads import over_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from coxfield.engine.class_sums import Scores
    from coxfield.engine.store import Group, Store
    from coxfield.kernels.protocol import KernelPoints

HEIGHT = 128  # labelled points compared at a time: so few that the numbers stay in cache, and counts fit into a byte
EPS = float(np.finfo(float).eps)
UNITS = 16  # rounding errors of a product or an exponential and what is done with it, as in `tests/tolerances.py`
# Within these limits the comparison of odds is right, whatever the odds of the labelled points: what is clipped or
# underflows is out of reach of all that is not, because EXTREME + STEEP < HIGHEST < 700 - STEEP.
EXTREME, STEEP, HIGHEST = 250.0, 150.0, 450.0
LOWEST = -1e305  # of log probabilities, so that sums of some of them do not overflow
# Bounds of errors are rounded up to one of these, so that their last digits, which no two CPUs share, decide nothing.
STEPS = TOLERABLE * 0.25 ** np.arange(24.0, -1, -1)


def log_without_each(logs: NDArray) -> NDArray:
    """For each column, the log of the sum of exp over all other columns of the row; -inf if there are none.

    Examples
    --------
    >>> np.exp(log_without_each(np.log([[1.0, 2.0, 4.0]]))).round(12)
    array([[6., 5., 3.]])
    """
    nothing = np.full((len(logs), 1), -np.inf)
    before = np.logaddexp.accumulate(np.hstack([nothing, logs[:, :-1]]), axis=1)
    after = np.logaddexp.accumulate(np.hstack([nothing, logs[:, :0:-1]]), axis=1)[:, ::-1]
    return np.logaddexp(before, after)


def odds_against(log_probabilities: NDArray) -> NDArray:
    """Logarithms of (1 - p) / p for each class, shape (n, n_classes)."""
    logs = np.maximum(log_probabilities, LOWEST)
    return log_without_each(logs) - logs


@dataclass(frozen=True)
class Odds:
    """Logarithms of the odds against the labels of labelled points, and of the terms they consist of."""

    against: NDArray
    """log w, shape (n,)."""
    rivals: NDArray
    """log u of each class, shape (n, n_classes); of no meaning for the label itself."""
    others: NDArray
    """log r of each class: what is left of w without the class."""

    @classmethod
    def of(cls, log_probabilities: NDArray, y: NDArray, slack: NDArray) -> Odds:
        """Odds from leave-one-out log probabilities, raised by what rounding may have taken from them."""
        own = np.arange(len(y)), y
        logs = np.maximum(log_probabilities, LOWEST)
        rivals = logs - logs[own][:, None]
        rivals[own] = -np.inf
        raised = rivals + slack[:, None]
        return cls(np.logaddexp.reduce(raised, axis=1), raised, log_without_each(raised))

    def __getitem__(self, rows) -> Odds:
        return Odds(self.against[rows], self.rivals[rows], self.others[rows])


@dataclass(frozen=True)
class Calibrators:
    """Labelled points that new points are compared with, under one covariance, sorted by class."""

    blocks: Sequence[KernelPoints]
    """The points, some at a time. They stay the same objects, because some compute their densities only once."""
    y: NDArray
    """Class numbers of all points, ascending."""
    odds: Odds
    classes: NDArray
    """The classes that have the covariance: the candidates."""

    def batches(self) -> Iterator[tuple[KernelPoints, list[Batch]]]:
        """The blocks, each with batches of its points. A batch has points of one class with similar odds.

        Most queries have so different odds that one look at a batch decides for all its points.
        """
        start = 0
        for block in self.blocks:
            rows = np.arange(start, start + len(block))
            rows = rows[np.lexsort((self.odds.against[rows], self.y[rows]))]
            cuts = np.flatnonzero(np.diff(self.y[rows])) + 1
            parts = [part[some] for part in np.split(rows, cuts) for some in gen_batches(len(part), HEIGHT)]
            yield block, [Batch(part - start, int(self.y[part[0]]), self.odds[part]) for part in parts]
            start += len(block)


@dataclass(frozen=True)
class Batch:
    """Some calibrators of one class, in the order of their odds."""

    rows: NDArray
    """Their rows in the block."""
    label: int
    odds: Odds


def relative_errors(store: Store, queries: Sequence[KernelPoints | None], n: int) -> NDArray:
    """Bound on the relative rounding error of the class sums of each query.

    Sums are taken in the precision of the tiles, over at most one tile at a time. The distances in a tile are wrong by
    what `error` tells. Rows for which that is too much were summed again with care, and have precise distances.
    """
    found = np.zeros(n)
    for group, points in zip(store.groups, queries, strict=True):
        for part in group.parts if points is not None else ():
            assert points is not None
            summed = np.finfo(points.dtype).eps * (UNITS + min(len(part.rows), COLUMNS))
            distances = np.where(points.imprecise(part.points), 0, distance_errors(points, part.points))
            np.maximum(found, summed + distances, out=found)
    return found


def distance_errors(points: KernelPoints, columns: KernelPoints) -> NDArray:
    """Bound on the error of the squared distances in the row of each point, but for those that are taken with care."""
    error = points.error(columns)
    above = np.searchsorted(STEPS, error)
    return np.where(above, STEPS[np.minimum(above, len(STEPS) - 1)], 0.0)


def covariance_errors(points: KernelPoints, blocks: Sequence[KernelPoints]) -> NDArray:
    """Bound on the relative error of the covariances of each query with calibrators.

    The bound of the sums does not serve here. A far point may have forced the sums of a query to be taken with care,
    while its covariances with nearer points come from products.
    """
    distances = [distance_errors(points, block) for block in blocks]
    return np.finfo(points.dtype).eps * UNITS + np.maximum.reduce(distances)


def slack(scores: Scores, errors: NDArray) -> NDArray:
    """How far rounding can move the log odds of each row: they are differences of scores, and both may err."""
    sums, relative = (np.abs(values).max(axis=1) for values in (scores.sums.values, scores.relative))
    return 2 * (errors * sums + EPS * UNITS * (1 + relative))


def calibrating_points(group: Group, X, rows: NDArray, numbers: NDArray) -> list[KernelPoints]:
    """Labelled points under the covariance of a group, without what it learned from them, in blocks.

    Parameters
    ----------
    group : Group
    X : array or CSR array of shape (n, d)
        All labelled points.
    rows : array
        Rows of X that are wanted.
    numbers : array, one entry per wanted row
        Its number in the store.
    """
    points = _as_stored(group, numbers)
    if points is None:
        bind = group.parts[0].points.at if group.parts else group.covariance.bind
        points = bind(rows_of(X, rows)).left_out(numbers)
    _, step = tile_shape(1, len(points), points.dtype.itemsize)
    return [points[some] for some in gen_batches(len(points), step)] if len(points) else []


def _as_stored(group: Group, numbers: NDArray) -> KernelPoints | None:
    """The points of the store itself, if they are the same ones in the same order and nothing was learned from them."""
    if len(group.parts) != 1 or not np.array_equal(group.parts[0].rows, numbers):
        return None
    points = group.parts[0].points
    one = points[:1]
    return points if one.left_out(numbers[:1]) is one else None


def count_worse(
    calibrators: Calibrators, queries: KernelPoints, against: NDArray, errors: NDArray, *, per_class: bool, done=None
) -> NDArray:
    """For each query and candidate class, the number of calibrators that fit as badly as the query, or worse.

    Parameters
    ----------
    calibrators : Calibrators
    queries : KernelPoints
    against : array of shape (n, number of candidates)
        Log odds against each candidate, lowered by what rounding may have added to them.
    errors : array of shape (n,)
        Relative errors of covariances; see `covariance_errors`.
    per_class : bool
        Whether only calibrators of the candidate class count.
    done : function, optional
        Called with the number of queries that are finished.

    Returns
    -------
    integer array of shape (n, number of candidates)
    """
    found = np.zeros(against.shape, dtype=np.int64)
    n, blocks = len(queries), list(calibrators.batches())
    height = max((len(block) for block, _ in blocks), default=1)
    step, _ = tile_shape(n, height, queries.dtype.itemsize)

    def work(some: slice) -> None:
        columns = queries[some]
        counts = _Counts(calibrators.classes, against[some], errors[some], found[some], per_class)
        room = np.empty((height, len(columns)), queries.dtype)
        for block, batches in blocks:
            tile, wrong = to_numpy(block.tile(columns, room[: len(block)])), block.imprecise(columns)
            for batch in batches:
                counts.add(batch, _covariances(block, columns, tile, wrong, batch.rows))

    over_rows(work, n, step, done, serial=queries.library.foreign)
    return found


def _covariances(block: KernelPoints, columns: KernelPoints, tile: NDArray, wrong: NDArray, rows: NDArray) -> NDArray:
    """Some rows of a tile as covariances in double precision, those that are imprecise computed again."""
    values = tile[rows].astype(float, copy=False)
    again = np.flatnonzero(wrong[rows])
    if again.size:
        values[again] = np.exp(np.minimum(block[rows[again]].log_tile(columns), LARGEST_LOG))
    return values


@dataclass(frozen=True)
class _Counts:
    """`count_worse` for some queries, batch after batch."""

    classes: NDArray
    against: NDArray
    errors: NDArray
    found: NDArray
    per_class: bool

    def add(self, batch: Batch, k: NDArray) -> None:
        """Count the points of a batch; k are their covariances with the queries."""
        high, low = np.maximum(k.max(axis=0), 0), np.minimum(k.min(axis=0), 0)
        # A covariance has the same relative error as a sum of them; what is so near counts as a tie.
        least = self.against - (2 * (self.errors + 4 * EPS) * np.maximum(high, -low))[:, None]
        own = np.flatnonzero(self.classes == batch.label)
        for j in own:
            self.found[:, j] += _totals(least[:, j] + k <= batch.odds.against[:, None])
        if self.per_class:
            return
        # The log odds of rivals, log(r + u exp(k)), are between log w and log w + k. Most queries need no more.
        sure = least <= (batch.odds.against[0] + low)[:, None]
        unsure = (least <= (batch.odds.against[-1] + high)[:, None]) & ~sure
        sure[:, own] = unsure[:, own] = False
        self.found[...] += sure * len(k)
        powers = np.exp(np.clip(k, -STEEP, STEEP))
        steep = np.maximum(high, -low) > STEEP
        for j in np.flatnonzero(unsure.any(axis=0)):
            some = np.flatnonzero(unsure[:, j])
            c, bound = self.classes[j], least[some, j]
            extreme = steep[some] | (np.abs(bound) > EXTREME)
            plain, others = some[~extreme], some[extreme]
            self.found[plain, j] += _worse(batch.odds, c, powers[:, plain], bound[~extreme])
            if others.size:
                self.found[others, j] += _extremely_worse(batch.odds, c, k[:, others], bound[extreme])


def _totals(answers: NDArray) -> NDArray:
    """Number of true entries in each column of at most `HEIGHT` rows; much faster than a sum of booleans."""
    return answers.view(np.uint8).sum(axis=0, dtype=np.uint8)


def _worse(odds: Odds, c: int, powers: NDArray, least: NDArray) -> NDArray:
    """For each query, how many r + u exp(k) are `least` or more."""
    above = np.maximum(odds.against - HIGHEST, 0)
    after = powers * np.exp(odds.rivals[:, c] - above)[:, None]
    after += np.exp(odds.others[:, c] - above)[:, None]
    return _totals(after >= np.exp(least))


def _extremely_worse(odds: Odds, c: int, k: NDArray, least: NDArray) -> NDArray:
    """The same in logarithms, which are computed only where the size of k does not decide."""
    against = odds.against[:, None]
    answers = against + np.minimum(k, 0) >= least
    i, j = np.nonzero((against + np.maximum(k, 0) >= least) & ~answers)
    answers[i, j] = np.logaddexp(odds.others[i, c], odds.rivals[i, c] + k[i, j]) >= least[j]
    return _totals(answers)
