"""Leave-one-out class sums of every member of a bank, and the densities of the points.

There are two passes over the pairs for each ladder. The first gives the density of every point. The second gives the
class sums, in which points are divided by their densities. In the sums of a point that is left out, its own density
omits its own term, and whitening omits its label. The densities of the other points are held: they use no labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.engine.tiles import over_rows, whole_rows
from coxfield.engine.weights import Segments
from coxfield.kernels.mixture_ladder import log_totals
from coxfield.selection.loo_sums import Adder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.mixture_ladder import Ladder, LadderPoints


COLUMNS = 32  # if there are more classes, each point has so many columns: those it may have, and one for all others
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
    contenders: NDArray | None = None
    """The classes of the columns of each point but the last, if points have columns of their own."""

    def offset(self, mean: NDArray) -> NDArray | None:
        """The means of the columns of each point; None if they are those of the classes."""
        if self.contenders is None:
            return None
        own = mean[self.contenders]
        with np.errstate(divide="ignore"):
            others = np.log(np.maximum(np.exp(mean).sum() - np.exp(own).sum(axis=1), 0))
        return np.concatenate([own, others[:, None]], axis=1)


def member_sums(
    labelled: Labelled, bank: Sequence[Ladder], rows: NDArray, done=None, known: Sequence[NDArray] | None = None
) -> MemberSums:
    """Leave-one-out class sums of every member at some labelled points, from all the others.

    `done` is called with numbers of rows, which add up to `work_units`. `known` are the `log_densities`, if they are.
    """
    order = np.argsort(labelled.y, kind="stable")
    counts, y = labelled.counts[order], labelled.y[order]
    place = np.argsort(order)
    contenders = None
    if labelled.n_classes > COLUMNS:
        contenders = _contenders([ladder.bind(labelled.X) for ladder in bank], labelled.y, rows)
    columns = _Columns(labelled.n_classes, np.unique(y), contenders, y[place[rows]])
    weights_of = Segments(np.unique(y, return_index=True)[1], counts)
    sums, densities, copies = [], [], []
    for k, ladder in enumerate(bank):
        points = ladder.bind(labelled.X, order)
        own = np.log(counts) + np.log(points.points.diagonal())
        if known is None:
            others = _log_others(points, counts, done)
            log_q = np.logaddexp(others, own)
        else:
            log_q = known[k][:, order]
            with np.errstate(divide="ignore"):  # a point without any other
                others = log_q + np.log1p(-np.exp(np.minimum(own - log_q, 0)))
            if done is not None:
                done(len(labelled))
        weights = replace(weights_of, weights=counts.astype(points.points.dtype))
        found, extremes = _ladder_sums(points, weights, log_q, others, order, place[rows], columns, done)
        sums.append(found.reshape(-1, len(rows), columns.count))
        copies.append(extremes.reshape(2, -1, columns.count))
        densities.append(log_q[:, place])
    return MemberSums(
        columns.y, np.concatenate(sums), tuple(densities), np.concatenate(copies, axis=1), columns.contenders
    )


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
    present: NDArray
    """Classes that have points."""
    contenders: NDArray | None
    labels: NDArray
    """The class of each point that is left out."""

    @property
    def count(self) -> int:
        """Number of columns."""
        return self.n_classes if self.contenders is None else COLUMNS

    @property
    def y(self) -> NDArray:
        """The column of the label of each point."""
        return self.labels if self.contenders is None else np.zeros(len(self.labels), int)

    def weights(self, weights: Segments, some: slice) -> Any:
        """How to sum over the columns of some points; `scaled` gives the same with other weights."""
        return weights if self.contenders is None else _NearClasses.of(weights, self.present, self.contenders[some])

    def total(self, sums: NDArray) -> NDArray:
        """The sum over all points from what `weights` has summed."""
        return sums.sum(axis=-1) if self.contenders is None else sums[..., -1]

    def of(self, sums: NDArray) -> NDArray:
        """The columns from what `weights` has summed."""
        if self.contenders is None:
            found = np.zeros((*sums.shape[:-1], self.n_classes))
            found[..., self.present] = sums
            return found
        others = np.maximum(sums[..., -1] - sums[..., :-1].sum(axis=-1), 0) / (self.n_classes - COLUMNS + 1)
        return np.concatenate([sums[..., :-1], others[..., None]], axis=-1)


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
        np.put_along_axis(slot_of_class, np.searchsorted(present, contenders), np.arange(COLUMNS - 1), axis=1)
        slot_of = slot_of_class[:, segment]
        columns, rows = np.nonzero(slot_of.T >= 0)
        return cls(weights.weights, rows, columns, slot_of[rows, columns], slot_of)

    def scaled(self, factors: NDArray) -> _NearClasses:
        """The same sums with weights multiplied by a factor per point."""
        return replace(self, values=(self.values * factors).astype(self.values.dtype))

    def add(self, tile: NDArray, start: int, sums: NDArray) -> None:
        """Add what a tile brings."""
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
    return len(bank) * (len(labelled) + len(rows))


def _log_others(points: LadderPoints, counts: NDArray, done) -> NDArray:
    """log of the density of each point without its own term, shape (F, n)."""
    n, dtype = len(points), points.points.dtype
    found, weights = np.empty((len(points.ladder.factors), n)), counts.astype(dtype)

    def work(some: slice) -> None:
        found[:, some] = log_totals(points[some], points, weights, np.arange(n)[some])

    over_rows(work, n, whole_rows(n, n, dtype.itemsize), done)
    return found


def _ladder_sums(
    points: LadderPoints, weights: Segments, log_q, others, order, place, columns: _Columns, done
) -> tuple[NDArray, NDArray]:
    """Class sums of one ladder at some points, given by their place in the order of the points.

    Also, over all these points, the largest and the smallest distance of a class sum from the mean of the columns if a
    copy of the point asks.
    """
    ladder, bound, mine = points.ladder, points.points, points[place]
    queries = mine.left_out(order[place])
    # Distances that change when a point is left out change its density too, which is then summed again.
    again = queries is not mine
    n_alphas = len(ladder.alphas)
    divisors = np.stack([[ladder.log_divisor(a, each) for a in range(n_alphas)] for each in log_q])
    factors = [[np.exp(-each) for each in of_factor] for of_factor in divisors]
    found = np.empty((len(log_q), n_alphas, len(place), columns.count))
    own_terms = np.log(weights.weights.astype(float)) + np.log(bound.diagonal()) - divisors  # what a copy hears of it
    extremes = []

    def work(some: slice) -> None:
        near = columns.weights(weights, some)
        scaled = [[*(near.scaled(each) for each in of_factor), *([near] * again)] for of_factor in factors]
        sums = np.zeros((len(log_q), n_alphas + again, some.stop - some.start, near.n_classes))
        tops = queries.points[some].walk(bound, ladder.factors, place[some], Adder(scaled, sums))
        with np.errstate(divide="ignore"):
            own = np.log(columns.total(sums[:, -1])) + tops if again else others[:, place[some]]
            logs = np.log(columns.of(sums[:, :n_alphas])) + tops[:, None, :, None]
        own = np.where(np.isneginf(own), 0, own)
        for a in range(n_alphas):
            found[:, a, some] = np.exp(logs[:, a] - ladder.log_divisor(a, own)[..., None])
        at = (..., np.arange(some.stop - some.start), columns.y[some])
        logs[at] = np.logaddexp(logs[at], own_terms[:, :, place[some]])
        copies = np.exp(logs - divisors[:, :, place[some], None])
        copies -= copies.mean(axis=-1, keepdims=True)
        extremes.append((copies.max(axis=2), copies.min(axis=2)))

    size = bound.dtype.itemsize + 8 * len(log_q) * (n_alphas + 1) * columns.count // len(points)
    over_rows(work, len(place), whole_rows(len(place), len(points), size), done)
    largest, smallest = zip(*extremes, strict=True)
    return found, np.stack([np.max(largest, axis=0), np.min(smallest, axis=0)])
