"""Leave-one-out class sums of every member of a bank, and the densities of the points.

There are two passes over the pairs for each ladder. The first gives the density of every point. The second gives the
class sums, in which points are divided by their densities. In the sums of a point that is left out, its own density
omits its own term, and whitening omits its label. The densities of the other points are held: they use no labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from coxfield.engine.class_sums import COLUMNS as TILE
from coxfield.engine.class_sums import Adder, whole_rows
from coxfield.engine.store import Segments
from coxfield.kernels.mixture import log_totals
from coxfield.kernels.namespace import to_numpy
from coxfield.kernels.protocol import LogSums
from coxfield.threads import over_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.mixture import Ladder, LadderPoints


COLUMNS = 32  # if there are more classes, each point has so many columns: those it may have, and one for all others
FINISHED = 512  # points whose sums are divided by densities at a time
SMALLEST_LOG = np.finfo(np.float32).min  # of a factor in single precision
LOUDER = 1.75  # times the evidence that was shown may be heard at a copy; twice is the promise, as weights stay a while
NEAR = 24  # neighbours whose classes a point may have


@dataclass(frozen=True)
class MemberSums:
    """What a bank says about the labelled points.

    A column of the sums is a class. If there are more than `COLUMNS`, each point has columns of its own: its class,
    classes of its neighbours, and at last the mean over all other classes.
    """

    y: NDArray
    """The column of the label of each point that was left out, one after the other."""
    sums: NDArray
    """Leave-one-out class sums, shape (n_members, rows, columns); members are ordered by ladder, factor, power."""
    log_densities: tuple[NDArray, ...]
    """log q of every labelled point, shape (F, n) for each ladder."""
    at_copies: NDArray
    """The largest and the smallest distance of a class sum from the mean of all columns at a *copy* of a labelled
    point, to which the point itself speaks: shape (2, n_members, columns). Leave-one-out never sees that."""
    to_copies: NDArray
    """From the sums of a point that is left out to those at a copy of it, in logarithms: the factor by which its own
    term in the density lowers them, and what the point adds to its class. Shape (2, n_members, rows)."""
    by_fold: NDArray
    """What the labelled points of each fold bring to the sums, shape (n_members, rows, columns, folds); without
    folds the last axis is empty."""
    contenders: NDArray | None = None
    """The classes of the columns of each point but the last, if points have columns of their own."""

    @classmethod
    def of_none(cls, y: NDArray, n_classes: int, n_folds: int) -> MemberSums:
        """What no member says."""
        sums = np.empty((0, len(y), n_classes))
        of_points = np.empty((2, 0, len(y)), np.float32)
        return cls(y, sums, (), np.empty((2, 0, n_classes)), of_points, np.empty((*sums.shape, n_folds)))

    def largest_evidence(
        self, weights: NDArray, others: NDArray | float = 0.0, of_itself: NDArray | float = 0.0
    ) -> tuple[float, float]:
        """The largest evidence in nats of weighted members, at points that are left out and at copies of them.

        Other class sums at the points may come in addition, with what each point says to its own copy.
        """
        alive = np.flatnonzero(weights)
        w, sums, (factors, own) = weights[alive], self.sums[alive], np.exp(self.to_copies[:, alive], dtype=float)
        copies = np.einsum("m,mj,mjc->jc", w, factors, sums) + others
        copies[np.arange(len(copies)), self.y] += w @ own + of_itself
        left_out = np.tensordot(w, sums, 1) + others
        left_out -= left_out.mean(axis=1, keepdims=True)
        copies -= copies.mean(axis=1, keepdims=True)
        middle = left_out.mean(axis=0) if self.contenders is None else 0.0
        return float(np.abs(left_out - middle).max()), float(np.abs(copies - middle).max())

    def offset(self, mean: NDArray) -> NDArray | None:
        """The means of the columns of each point; None if they are those of the classes."""
        if self.contenders is None:
            return None
        own = mean[self.contenders]
        with np.errstate(divide="ignore"):
            others = np.log(np.maximum(np.exp(mean).sum() - np.exp(own).sum(axis=1), 0))
        return np.concatenate([own, others[:, None]], axis=1)


def member_sums(
    labelled: Labelled,
    bank: Sequence[Ladder],
    rows: NDArray,
    done=None,
    known: Sequence[NDArray] | None = None,
    fold: NDArray | None = None,
) -> MemberSums:
    """Leave-one-out class sums of every member at some labelled points, from all the others.

    `done` is called with numbers of rows, which add up to `work_units`. `known` are the `log_densities`, if they are.
    `fold` is the fold of each labelled point, if the sums are asked by fold too; not for more than `COLUMNS` classes.
    """
    source = getattr(labelled, "source", Here)(labelled, bank, rows, done, known)
    columns = _Columns.of(labelled, rows, fold, source)
    sums, by_fold, copies, to_copies = [], [], [], []
    for k, ladder in enumerate(bank):
        found = source.layers(k, columns)
        of_ladder, shares, extremes, terms = _finished(ladder, found, source.at_rows(k), columns, done)
        sums.append(of_ladder.reshape(ladder.weights.size, len(rows), columns.count))
        by_fold.append(shares.reshape(ladder.weights.size, len(rows), columns.count, shares.shape[-1]))
        copies.append(extremes.reshape(2, -1, columns.count))
        to_copies.append(terms.reshape(2, -1, len(rows)))
    return MemberSums(
        columns.y,
        np.concatenate(sums),
        source.log_densities,
        np.concatenate(copies, axis=1),
        np.concatenate(to_copies, axis=1),
        np.concatenate(by_fold),
        columns.contenders,
    )


@dataclass(frozen=True)
class AtRows:
    """What the points that are left out are divided by, and what they say to a copy of themselves."""

    log_q: NDArray
    """log of the density of each of them, shape (F, rows)."""
    others: NDArray
    """The same without its own term."""
    own: NDArray
    """log of what each adds to the density at its own place, shape (rows,)."""

    @classmethod
    def of(cls, others: NDArray, own: NDArray) -> AtRows:
        """From densities without the own term, which is exact however far the others are."""
        return cls(np.logaddexp(others, own), others, own)

    def __getitem__(self, rows) -> AtRows:
        return AtRows(self.log_q[:, rows], self.others[:, rows], self.own[rows])


class Here:
    """Labelled points that are all in one place, where the sums of one ladder after the other are taken."""

    density_columns: float = np.inf
    """Points that a density is summed over, if not all: the work, in rows that meet all points, is the same number."""
    density_at_rows = False
    """Whether the densities of the points that are left out are summed together with their class sums."""

    def __init__(self, labelled: Labelled, bank: Sequence[Ladder], rows: NDArray, done, known) -> None:
        self.labelled: Any = labelled
        self.bank, self.rows, self.done, self.known = bank, rows, done, known
        self._log_q: dict[int, NDArray] = {}
        self._at_rows: dict[int, AtRows] = {}

    def bound(self, k: int, rows: NDArray) -> LadderPoints:
        """Labelled points in the representation of a ladder."""
        return self.bank[k].bind(self.labelled.X, rows)

    def log_others(self, points: LadderPoints, counts: NDArray, y: NDArray) -> NDArray:
        """log of the density of each point without its own term, shape (F, n)."""
        return log_others_of(points, counts, self.done)

    def neighbours_among(self) -> tuple[list[LadderPoints], NDArray, NDArray]:
        """Points in every representation, their labels, and which of them are left out."""
        return [ladder.bind(self.labelled.X) for ladder in self.bank], self.labelled.y, self.rows

    def layers(self, k: int, columns: _Columns) -> LogSums:
        """The sums of one ladder, before they are divided by the densities of the points that are left out."""
        order = columns.order
        points, counts = self.bound(k, order), self.labelled.counts[order]
        own = np.log(counts) + np.log(points.points.diagonal())
        if self.known is None:
            found = AtRows.of(self.log_others(points, counts, self.labelled.y[order]), own)
        else:
            log_q = self.known[k][:, order]
            with np.errstate(divide="ignore"):  # a point without any other
                found = AtRows(log_q, log_q + np.log1p(-np.exp(np.minimum(own - log_q, 0))), own)
            if self.done is not None:
                self.done(len(self.labelled))
        place = np.argsort(order)
        at = place[self.rows]
        self._log_q[k], self._at_rows[k] = found.log_q[:, place], found[at]
        again = self.density_at_rows
        return ladder_layers(points, counts, found.log_q, points[at], self.rows, at, columns, self.done, again=again)

    def at_rows(self, k: int) -> AtRows:
        """The densities of the points that are left out."""
        return self._at_rows[k]

    @property
    def log_densities(self) -> tuple[NDArray, ...]:
        """log q of every labelled point, shape (F, n) for each ladder."""
        return tuple(self._log_q[k] for k in range(len(self.bank)))


def _contenders(banks: Sequence[LadderPoints], y: NDArray, rows: NDArray) -> NDArray:
    """For each of some points its own class, then classes of its neighbours, the nearest first."""
    votes = np.zeros((len(rows), y.max() + 1), np.float32)  # classes without points have none
    for points in banks:
        for rank, near in enumerate(points.points.neighbours(min(NEAR, len(y) - 1))[rows].T):
            votes[np.arange(len(rows)), y[near]] += 1 / (1 + rank)
    votes[np.arange(len(rows)), y[rows]] = np.inf
    return np.argsort(-votes, axis=1, kind="stable")[:, : COLUMNS - 1]


@dataclass(frozen=True)
class _Columns:
    """Which classes the columns of the sums are."""

    n_classes: int
    n_folds: int
    present: NDArray
    """Classes, times `n_folds` plus the fold, that have points."""
    contenders: NDArray | None
    labels: NDArray
    """The class of each point that is left out."""
    order: NDArray
    """All labelled points, sorted by class and fold."""
    groups: NDArray
    """Class, times `n_folds` plus the fold, of each labelled point."""

    @classmethod
    def of(cls, labelled: Labelled, rows: NDArray, fold: NDArray | None, source: Any) -> _Columns:
        """The classes of labelled points, or if there are very many, those that each point may have."""
        n_folds = 1 if fold is None else int(fold.max()) + 1
        groups = labelled.y if fold is None else labelled.y * n_folds + fold
        contenders = _contenders(*source.neighbours_among()) if labelled.n_classes > COLUMNS else None
        order = np.argsort(groups, kind="stable")
        return cls(labelled.n_classes, n_folds, np.unique(groups), contenders, labelled.y[rows], order, groups)

    @property
    def count(self) -> int:
        """Number of columns."""
        return self.n_classes if self.contenders is None else COLUMNS

    @property
    def y(self) -> NDArray:
        """The column of the label of each point."""
        return self.labels if self.contenders is None else np.zeros(len(self.labels), int)

    def weights(self, weights: Segments, present: NDArray, some: slice) -> Any:
        """How to sum over the columns of some points; `scaled` gives the same with other weights."""
        return weights if self.contenders is None else _NearClasses.of(weights, present, self.contenders[some])

    def total(self, sums: NDArray) -> NDArray:
        """The sum over all points from what `weights` has summed."""
        return sums.sum(axis=-1) if self.contenders is None else sums[..., -1]

    def by_fold(self, sums: NDArray) -> NDArray:
        """The columns by fold, from what `weights` has summed."""
        if self.contenders is None:
            found = np.zeros((*sums.shape[:-1], self.n_classes * self.n_folds))
            found[..., self.present] = sums
            return found.reshape(*sums.shape[:-1], self.n_classes, self.n_folds)
        others = np.maximum(sums[..., -1] - sums[..., :-1].sum(axis=-1), 0) / (self.n_classes - COLUMNS + 1)
        return np.concatenate([sums[..., :-1], others[..., None]], axis=-1)[..., None]


@dataclass(frozen=True)
class _NearClasses:
    """Class weights for sums over a few classes, which differ from row to row, and at last over all points.

    A product with a vector gives the sum over all points. The few points of the near classes are picked out of a tile.
    """

    values: NDArray
    """Weight of each point."""
    rows: NDArray
    columns: NDArray
    slots: NDArray
    """The row, the point and the column of the sums of each pair that is picked out; points are ascending."""
    slot_of: NDArray
    """The column of the sums of each row for each point, -1 for none."""
    n_classes = COLUMNS

    @classmethod
    def of(cls, weights: Segments, present: NDArray, contenders: NDArray) -> _NearClasses:
        """From points that are sorted by class."""
        segment = np.searchsorted(weights.starts, np.arange(weights.n_columns), side="right") - 1
        slot_of_class = np.full((len(contenders), len(present)), -1, np.int8)
        at, slot = np.nonzero(np.isin(contenders, present))  # a shard may have no point of a class
        slot_of_class[at, np.searchsorted(present, contenders[at, slot])] = slot
        slot_of = slot_of_class[:, segment]
        columns, rows = np.nonzero(slot_of.T >= 0)
        return cls(weights.weights, rows, columns, slot_of[rows, columns], slot_of)

    def scaled(self, factors: NDArray) -> _NearClasses:
        """The same sums with weights multiplied by a factor per point."""
        return replace(self, values=(self.values * factors).astype(self.values.dtype))

    def add(self, tile: NDArray, start: int, sums: NDArray) -> None:
        """Add what a tile brings."""
        tile = to_numpy(tile)
        some = slice(*np.searchsorted(self.columns, [start, start + tile.shape[1]]))
        rows, columns = self.rows[some], self.columns[some]
        self._add_to_slots(rows, columns, self.slots[some], tile[rows, columns - start], sums)
        sums[:, -1] += tile @ self.values[start : start + tile.shape[1]]

    def add_entries(self, at: NDArray, columns: NDArray, values: NDArray, sums: NDArray) -> None:
        """Add single values of a tile."""
        slots = self.slot_of[at, columns]
        near = slots >= 0
        self._add_to_slots(at[near], columns[near], slots[near], values[near], sums)
        sums[:, -1] += np.bincount(at, values * self.values[columns], minlength=len(sums))

    def _add_to_slots(self, rows, columns, slots, values, sums: NDArray) -> None:
        cells = np.bincount(rows * COLUMNS + slots, values * self.values[columns], minlength=sums.size)
        sums += cells.reshape(sums.shape)


def work_units(labelled: Labelled, bank: Sequence[Ladder], rows: NDArray) -> int:
    """Number of rows that `member_sums` reports to `done`."""
    source = getattr(labelled, "source", Here)
    return len(bank) * (int(min(len(labelled), source.density_columns)) + len(rows))


def log_others_of(points: LadderPoints, counts: NDArray, done) -> NDArray:
    """log of the density of each point without its own term, shape (F, n)."""
    n, dtype = len(points), points.points.dtype
    found, weights = np.empty((len(points.ladder.factors), n)), counts.astype(dtype)

    def work(some: slice) -> None:
        found[:, some] = log_totals(points[some], points, weights, np.arange(n)[some])

    over_rows(work, n, whole_rows(n, min(n, TILE), dtype.itemsize), done, serial=points.points.library.foreign)
    return found


def ladder_layers(
    points: LadderPoints,
    counts: NDArray,
    log_q: NDArray,
    mine: LadderPoints,
    rows: NDArray,
    leave_out: NDArray,
    columns: _Columns,
    done=None,
    groups: NDArray | None = None,
    *,
    again: bool = False,
) -> LogSums:
    """Class sums of one ladder over labelled points at others, one layer per power of the density.

    Parameters
    ----------
    points : LadderPoints
        Labelled points, sorted by group.
    counts, log_q : arrays
        Their weights and the logarithms of their densities.
    mine : LadderPoints
        The points that are left out.
    rows, leave_out : integer arrays
        The place of each of them among all labelled points, and among `points`, -1 if it is not there.
    columns : _Columns
    done : function, optional
    groups : array, optional
        The group of each of `points`; by default they are all labelled points.
    again : bool
        Whether the last layer is the density of the points that are left out. It always is if their distances are not
        those by which it was computed.
    """
    ladder, kernel_points = points.ladder, points.points
    groups = columns.groups[columns.order] if groups is None else groups
    present, starts = np.unique(groups, return_index=True)
    weights = Segments(starts, counts.astype(kernel_points.dtype))
    queries = mine.left_out(rows)
    # Distances that change when a point is left out change its density too, which is then summed again.
    again, n_alphas = again or queries is not mine, len(ladder.alphas)
    factors = [[np.exp(-ladder.log_divisor(a, each)) for a in range(n_alphas)] for each in log_q]
    width = len(present) if columns.contenders is None else COLUMNS
    found = LogSums(np.zeros((len(log_q), len(rows), 1)), np.zeros((len(log_q), n_alphas + again, len(rows), width)))

    def scaled(near: Any) -> list[list[Any]]:
        return [[*(near.scaled(each) for each in of_factor), *([near] * again)] for of_factor in factors]

    of_all = scaled(weights) if columns.contenders is None else None

    def work(some: slice) -> None:
        of_some = scaled(columns.weights(weights, present, some)) if of_all is None else of_all
        sink = Adder(of_some, found.sums[:, :, some])
        found.top[:, some, 0] = queries.points[some].walk(kernel_points, ladder.factors, leave_out[some], sink)

    # A thread holds one tile; where classes are very many, also what each row may be at every point.
    seen = len(points) if columns.contenders is not None else min(len(points), TILE)
    size = kernel_points.dtype.itemsize + 8 * len(log_q) * (n_alphas + 1) * columns.count // max(seen, 1)
    step = whole_rows(len(rows), seen, size)
    over_rows(work, len(rows), step, done, serial=kernel_points.library.foreign)
    if columns.contenders is not None or len(present) == len(columns.present):
        return found
    every = np.zeros((*found.sums.shape[:-1], len(columns.present)))
    every[..., np.searchsorted(columns.present, present)] = found.sums
    return LogSums(found.top, every)


def _finished(ladder: Ladder, found: LogSums, at: AtRows, columns: _Columns, done) -> tuple[NDArray, ...]:
    """Class sums of one ladder at the points that are left out, divided by their densities.

    They come with the part of each fold. Also, over all these points, the largest and the smallest distance of a class
    sum from the mean of the columns if a copy of the point asks, and how its sums follow from those of the point.
    """
    n_alphas, n = len(ladder.alphas), len(at.own)
    divisors = np.stack([[ladder.log_divisor(a, each) for a in range(n_alphas)] for each in at.log_q])
    own_terms = at.own - divisors  # what a copy hears of it
    whole = np.empty((len(at.log_q), n_alphas, n, columns.count))
    by_fold = np.empty((*whole.shape, columns.n_folds if columns.n_folds > 1 else 0), np.float32)
    to_copies = np.empty((2, *whole.shape[:-1]), np.float32)
    extremes = []
    for some in gen_batches(n, FINISHED):
        top = found.top[:, some, 0]
        sums, others = found.sums[:, :, some], at.others[:, some]
        if sums.shape[1] > n_alphas:
            with np.errstate(divide="ignore"):
                others = np.log(columns.total(sums[:, -1])) + top
        others = np.where(np.isneginf(others), 0, others)
        parts = columns.by_fold(sums[:, :n_alphas])
        totals = parts.sum(axis=-1)
        with np.errstate(divide="ignore"):
            logs = np.log(totals) + top[:, None, :, None]
        for a in range(n_alphas):
            log_divisor = ladder.log_divisor(a, others)
            whole[:, a, some] = np.exp(logs[:, a] - log_divisor[..., None])
            # A point that is far from all others lowers its own sums by a factor whose logarithm may overflow: it is 0.
            to_copies[0, :, a, some] = np.maximum(log_divisor - divisors[:, a, some], SMALLEST_LOG)
        if by_fold.size:
            share = parts / np.where(totals > 0, totals, 1)[..., None]
            by_fold[:, :, some] = whole[:, :, some, :, None] * share
        mine = (..., np.arange(logs.shape[2]), columns.y[some])
        logs[mine] = np.logaddexp(logs[mine], own_terms[:, :, some])
        extremes.append(_extremes(np.exp(logs - divisors[:, :, some, None])))
    to_copies[1] = np.maximum(own_terms - divisors, SMALLEST_LOG)
    largest, smallest = zip(*extremes, strict=True)
    return whole, by_fold, np.stack([np.max(largest, axis=0), np.min(smallest, axis=0)]), to_copies


def _extremes(sums: NDArray) -> tuple[NDArray, NDArray]:
    """The largest and the smallest distance of a class sum from the mean of the columns, over the points."""
    distances = sums - sums.mean(axis=-1, keepdims=True)
    return distances.max(axis=2), distances.min(axis=2)
