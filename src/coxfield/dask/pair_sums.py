"""Class sums of a block of queries: over one shard, joined over shards, and again with care where they are faint.

On one machine a row is faint if the sums of all classes over all points have lost digits. No shard can know that. So
each shard returns quick sums and says which rows are faint for it. The rows that are faint for every shard are summed
again, as logarithms, in a second turn. The decision is the same as on one machine, and costs nothing if no row is
faint: shards that are not held are not even read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield import threads
from coxfield.dask.chunks import count_bytes
from coxfield.dask.shards import Shard, read
from coxfield.engine.class_sums import ClassSums, careful_log_sums, queries_of, quick_sums
from coxfield.engine.conformal import (
    EPS,
    Calibrators,
    Odds,
    calibrating_points,
    count_worse,
    covariance_errors,
    odds_against,
    relative_errors,
    slack,
)
from coxfield.engine.decision import Scores, prior_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.dask.checks import Form
    from coxfield.dask.shards import Plan
    from coxfield.engine.store import Group, Labelled, Store
    from coxfield.kernels.per_class import PerClass


# Counts of training points that fit as badly as a query: over one shard, and joined over shards.
#
# `engine/conformal.py` has the formulas. They need the leave-one-out probabilities of the points of a shard over all
# shards, and the scores of the queries over all shards. Given both, the counts are sums over shards.


@dataclass(frozen=True)
class Fits:
    """How well each point of a block fits each class, from all shards."""

    log_probabilities: NDArray
    slack: NDArray
    """How far rounding can move the log odds of each point."""

    @property
    def least(self) -> NDArray:
        """Log odds against each class, lowered by what rounding may have added to them."""
        return odds_against(self.log_probabilities) - self.slack[:, None]


@dataclass(frozen=True)
class Counts:
    """Calibrating points of some shards."""

    worse: NDArray
    """How many fit as badly as each query fits each class, shape (n, n_classes)."""
    calibrating: NDArray
    """How many each class was compared with, shape (n_classes,)."""

    @property
    def ranks(self) -> NDArray:
        """The counts with the query itself among those that fit as badly."""
        return 1 + self.worse

    @property
    def p_values(self) -> NDArray:
        """The share of points that fit as badly, the query included."""
        return self.ranks / (1 + self.calibrating)


count_bytes(Fits, Counts)


def fits(scores: Scores, sums: Partial) -> Fits:
    """The fits of a block from its scores, and from the errors of its sums over all shards."""
    assert sums.errors is not None
    return Fits(scores.log_probabilities, slack(scores, sums.errors))


def pair_counts(
    model: Model, block: Block, asked: Fits, per_class: bool, left_out: Fits, number: int, X, y, weights
) -> Counts:
    """Counts of a block over one shard, whose points have the leave-one-out fits `left_out`."""
    labelled = model.shard(number, X, y, weights).labelled
    n_classes, least = len(model.classes), asked.least
    worse = np.zeros((len(block), n_classes), dtype=np.int64)
    calibrating = np.bincount(labelled.y, minlength=n_classes) if per_class else np.full(n_classes, len(labelled))
    with threads.use(model.n_jobs):
        store = labelled.under(model.covariances)
        for group in store.groups:
            own = calibrators(store, group, labelled, left_out, per_class=per_class)
            if not own.blocks or not len(block):
                continue
            points = own.blocks[0].at(block.X)
            errors = covariance_errors(points, own.blocks)
            worse[:, group.classes] = count_worse(own, points, least[:, group.classes], errors, per_class=per_class)
    return Counts(worse, calibrating)


def calibrators(store: Store, group: Group, labelled: Labelled, left_out: Fits, *, per_class: bool) -> Calibrators:
    """The points of a shard under the covariance of a group; with `per_class`, only those of its classes."""
    rows = np.flatnonzero(np.isin(labelled.y, group.classes)) if per_class else np.arange(len(labelled))
    rows = rows[np.argsort(labelled.y[rows], kind="stable")]
    y, blocks = labelled.y[rows], calibrating_points(group, labelled.X, rows, rows)
    return Calibrators(blocks, y, Odds.of(left_out.log_probabilities[rows], y, left_out.slack[rows]), group.classes)


def joined_counts(parts: Sequence[Counts]) -> Counts:
    """Counts over several sets of shards."""
    return Counts(np.sum([part.worse for part in parts], axis=0), np.sum([part.calibrating for part in parts], axis=0))


@dataclass(frozen=True)
class Model:
    """What every task needs to know."""

    form: Form
    classes: NDArray
    covariances: PerClass
    mean: NDArray
    n_jobs: int | None

    def shard(self, number: int, X, y, weights) -> Shard:
        """A shard in memory."""
        return read(self.form, self.classes, number, X, y, weights)


@dataclass(frozen=True)
class Block:
    """Queries in memory, and which training row each of them is."""

    X: Any
    shards: NDArray | None = None
    """For leave-one-out, the number of the shard that holds each query."""
    rows: NDArray | None = None
    """And its row there."""

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows) -> Block:
        if self.shards is None or self.rows is None:
            return Block(self.X[rows])
        return Block(self.X[rows], self.shards[rows], self.rows[rows])

    def leave_out(self, number: int, shard: Shard) -> NDArray | None:
        """For each query the point of a shard that it must not see, -1 for none."""
        if self.shards is None or self.rows is None:
            return None
        place = np.full(int(max(self.rows.max(initial=-1), shard.rows.max(initial=-1))) + 1, -1)
        place[shard.rows] = np.arange(len(shard.rows))
        return np.where(self.shards == number, place[self.rows], -1)


@dataclass(frozen=True)
class Partial:
    """Class sums of some queries over some shards."""

    sums: ClassSums
    faint: NDArray
    """Whether each row has lost digits by underflow in all of these shards."""
    errors: NDArray | None = None
    """Bound on the relative rounding error of the sums of each row, if it was asked for."""


count_bytes(Block, Partial, ClassSums, Scores)


def queries(form: Form, number: int, X) -> Block:
    """New points after checking them."""
    return Block(form.points(X, number))


def pair_sums(model: Model, block: Block, number: int, X, y, weights, *, bounded: bool = False) -> Partial:
    """Class sums of a block over one shard; with `bounded`, also a bound on what rounding did to them."""
    shard = model.shard(number, X, y, weights)
    left = block.leave_out(number, shard)
    with threads.use(model.n_jobs):
        store = shard.labelled.under(model.covariances)
        asked = queries_of(store, block.X)
        found = quick_sums(store, asked, len(block), left)
        errors = relative_errors(store, asked, len(block)) if bounded else None
    return Partial(found.sums, found.faint, errors)


def joined(parts: Sequence[Partial]) -> Partial:
    """Class sums over several sets of shards."""
    found, faint = parts[0].sums, parts[0].faint
    for part in parts[1:]:
        found, faint = added(found, part.sums), faint & part.faint
    return Partial(found, faint, _joined_errors([part.errors for part in parts if part.errors is not None]))


def _joined_errors(errors: Sequence[NDArray]) -> NDArray | None:
    """Bound for a sum of sums: that of the worst of them, and one rounding for each addition."""
    return np.maximum.reduce(errors) + EPS * len(errors) if errors else None


def added(one: ClassSums, other: ClassSums) -> ClassSums:
    """Sums over two sets of points; the logarithm of the sum is exact even where the values underflow."""
    values, logs = one.values + other.values, np.logaddexp(one.logs, other.logs)
    negative = (one.values < 0) | (other.values < 0)
    if negative.any():  # some kernels may be negative, and then logarithms of parts say nothing of the whole
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(negative, np.where(values > 0, np.log(values), -np.inf), logs)
    return ClassSums(values, logs)


def faint_rows(found: Partial) -> NDArray:
    """The rows that must be summed again."""
    return np.flatnonzero(found.faint)


def pair_logs(model: Model, block: Block, again: NDArray, number: int, X, y, weights) -> NDArray | None:
    """Careful log class sums of some rows of a block over one shard; None if there is no such row."""
    if not len(again):
        return None
    shard, block = model.shard(number, X, y, weights), block[again]
    left = block.leave_out(number, shard)
    logs = np.full((len(block), len(model.classes)), -np.inf)
    with threads.use(model.n_jobs):
        store = shard.labelled.under(model.covariances)
        for group, points in zip(store.groups, queries_of(store, block.X), strict=True):
            if points is not None:
                logs[:, group.classes] = careful_log_sums(group, points, left)
    return logs


def joined_logs(parts: Sequence[NDArray | None]) -> NDArray | None:
    """Log class sums over several sets of shards."""
    return None if parts[0] is None else np.logaddexp.reduce([part for part in parts if part is not None])


def scores(model: Model, block: Block, found: Partial, again: NDArray, logs: NDArray | None) -> Scores:
    """Scores of a block from its sums, and from the logarithms of the rows that were summed again."""
    sums = found.sums
    if logs is not None:
        values, all_logs = sums.values.copy(), sums.logs.copy()
        values[again], all_logs[again] = ClassSums.of_logs(logs).values, logs
        sums = ClassSums(values, all_logs)
    return Scores(prior_terms(model.covariances, block.X, model.mean), sums)


def planned_sums(plan: Plan, model: Any, block: Any, shards: Sequence[tuple], *, bounded: bool = False) -> Any:
    """Add the tasks that sum one block over all shards, but for faint rows, and return the key of the `Partial`."""
    task = partial(pair_sums, bounded=True) if bounded else pair_sums
    return plan.tree("join", joined, [plan.add("sums", task, model, block, *parts) for parts in shards])


def planned_scores(plan: Plan, model: Any, block: Any, shards: Sequence[tuple], sums: Any = None) -> tuple:
    """Add the tasks that score one block against all shards, and return the key of the scores.

    Parameters
    ----------
    plan : Plan
    model, block : keys of a `Model` and of a `Block`
    shards : sequence of references
    sums : key of a `Partial`, optional
        From `planned_sums`, if that was called for this block before.
    """
    sums = planned_sums(plan, model, block, shards) if sums is None else sums
    again = plan.add("faint", faint_rows, sums)
    logs = [plan.add("faint-sums", pair_logs, model, block, again, *parts) for parts in shards]
    return plan.add("scores", scores, model, block, sums, again, plan.tree("faint-join", joined_logs, logs))
