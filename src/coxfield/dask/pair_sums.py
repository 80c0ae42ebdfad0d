"""Class sums of a block of queries over one shard, and joined over shards: sums relative to the nearest point add."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield import threads
from coxfield.dask.chunks import count_bytes
from coxfield.dask.shards import Shard, read
from coxfield.engine.class_sums import ClassSums, Scores, added, prior_terms, shard_sums, total
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
from coxfield.engine.store import Group, Store, store_bound
from coxfield.kernels.mixture import LadderPoints, Mixture, MixturePoints
from coxfield.kernels.namespace import Library, at_home, is_foreign, like
from coxfield.kernels.protocol import KernelPoints, LogSums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.dask.chunks import Form
    from coxfield.dask.plan import Plan
    from coxfield.dask.shards import Shards
    from coxfield.engine.store import Labelled
    from coxfield.kernels.protocol import PerClass


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
    densities: tuple[NDArray, ...] | None = None
    """Under a mixture, log q of each point over all shards, shape (F, n) for each ladder."""

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


def fits(model: Model, scores: Scores, sums: Partial) -> Fits:
    """The fits of a block from its scores, and from the errors of its sums over all shards."""
    assert sums.errors is not None
    return Fits(scores.log_probabilities, slack(scores, sums.errors), densities_of(model, sums))


def densities_of(model: Model, sums: Partial) -> tuple[NDArray, ...] | None:
    """Under a mixture, log q of each point of a block over all shards."""
    (first, *_), points = sums.sums, model.summed[0]
    return points.densities(first) if isinstance(points, MixturePoints) and first is not None else None


def pair_counts(
    model: Model, block: Block, asked: Fits, per_class: bool, left_out: Fits, number: int, X, y, weights, densities=None
) -> Counts:
    """Counts of a block over one shard, whose points have the leave-one-out fits `left_out`."""
    labelled = model.shard(number, X, y, weights).labelled
    n_classes, least, block = len(model.classes), asked.least, block.beside(labelled.X)
    worse = np.zeros((len(block), n_classes), dtype=np.int64)
    calibrating = np.bincount(labelled.y, minlength=n_classes) if per_class else np.full(n_classes, len(labelled))
    with threads.use(model.n_jobs):
        store = model.store(labelled, densities)
        for group in store.groups:
            own = calibrators(model, store, group, labelled, left_out, number, per_class=per_class)
            if not own.blocks or not len(block):
                continue
            points = own.blocks[0].at(block.X)
            if isinstance(points, MixturePoints) and asked.densities is not None:
                points = points.knowing(asked.densities)
            errors = covariance_errors(points, own.blocks)
            worse[:, group.classes] = count_worse(own, points, least[:, group.classes], errors, per_class=per_class)
    return Counts(worse, calibrating)


def calibrators(
    model: Model, store: Store, group: Group, labelled: Labelled, left_out: Fits, number: int, *, per_class: bool
) -> Calibrators:
    """The points of a shard under the covariance of a group; with `per_class`, only those of its classes."""
    rows = np.flatnonzero(np.isin(labelled.y, group.classes)) if per_class else np.arange(len(labelled))
    rows = rows[np.argsort(labelled.y[rows], kind="stable")]
    blocks = calibrating_points(group, labelled.X, rows, model.places[number] + rows if left_out.densities else rows)
    if left_out.densities is not None:
        ends = np.cumsum([0, *map(len, blocks)])
        known = [[log_q[:, rows[a:b]] for log_q in left_out.densities] for a, b in pairwise(ends)]
        blocks = [block.knowing(of_block) for block, of_block in zip(blocks, known, strict=True)]  # type: ignore[attr-defined]
    y = labelled.y[rows]
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
    places: NDArray
    """Place among all rows of positive weight at which each shard begins."""

    @classmethod
    def of(cls, shards: Shards, covariances: PerClass, mean: NDArray, n_jobs: int | None) -> Model:
        """A model of points that were surveyed."""
        assert shards.classes is not None
        return cls(shards.form, shards.classes, covariances, mean, n_jobs, shards.places)

    @cached_property
    def groups(self) -> list[Group]:
        """The classes of each covariance, without points."""
        distinct = enumerate(self.covariances.distinct)
        return [Group(covariance, self.covariances.classes(k), ()) for k, covariance in distinct]

    @cached_property
    def summed(self) -> list:
        """What turns the sums over all shards into class sums, for each group."""
        return [
            MixturePoints(each, tuple(LadderPoints(ladder, None) for ladder in each.ladders), shard=True)
            if isinstance(each, Mixture)
            else KernelPoints()
            for each in self.covariances.distinct
        ]

    def store(self, labelled: Labelled, densities) -> Store:
        """The points of a shard, arranged for class sums; those of a mixture with their densities over all shards."""
        if densities is None:
            return labelled.under(self.covariances)
        if not len(labelled):
            return Store(tuple(self.groups), len(self.classes), 0)
        mixture = self.covariances[0]
        ladders = [
            replace(ladder.bind(labelled.X), known=at.log_q)
            for ladder, at in zip(mixture.ladders, densities, strict=True)
        ]
        points = MixturePoints(mixture, tuple(ladders), learned=True, shard=True)
        return store_bound([points], labelled.y, self.covariances, labelled.weights)

    def queries(self, store: Store, block: Block) -> list:
        """A block in the coordinates of each group, without what covariances have learned from its points."""
        asked = store.queries(block.X)
        if block.places is None:
            return asked
        if block.own is None or not isinstance(asked[0], MixturePoints):
            return [None if points is None else points.left_out(block.places) for points in asked]
        own: Any = store.queries(block.own)[0]
        return [asked[0].left_out(block.places, own)]

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
    places: NDArray | None = None
    """And its place among all rows of positive weight."""
    own: Any = None
    """The features that covariances have learned from, if those of X are others."""

    def __len__(self) -> int:
        return self.X.shape[0]

    def beside(self, X) -> Block:
        """The block in the library and on the device of the points of a shard, which it visits there."""
        if Library.of(self.X) == Library.of(X):
            return self
        moved = [None if each is None else _beside(each, X) for each in (self.X, self.own)]
        return replace(self, X=moved[0], own=moved[1])

    def leave_out(self, number: int, shard: Shard) -> NDArray | None:
        """For each query the point of a shard that it must not see, -1 for none."""
        if self.shards is None or self.rows is None:
            return None
        place = np.full(int(max(self.rows.max(initial=-1), shard.rows.max(initial=-1))) + 1, -1)
        place[shard.rows] = np.arange(len(shard.rows))
        return np.where(self.shards == number, place[self.rows], -1)


@dataclass(frozen=True)
class Partial:
    """Sums of some queries over some shards."""

    sums: list
    """For each group `LogSums`, one for each path; None for a group without points."""
    errors: NDArray | None = None
    """Bound on the relative rounding error of the sums of each row, if it was asked for."""


count_bytes(Block, Partial, LogSums, ClassSums, Scores)


def _beside(X, other) -> Any:
    return like(at_home(X), other) if is_foreign(other) else at_home(X)


def queries(form: Form, number: int, X) -> Block:
    """New points after checking them."""
    return Block(form.points(X, number))


def pair_sums(
    model: Model, block: Block, number: int, X, y, weights, densities=None, *, bounded: bool = False
) -> Partial:
    """Sums of a block over one shard; with `bounded`, also a bound on what rounding did to them."""
    shard = model.shard(number, X, y, weights)
    left, block = block.leave_out(number, shard), block.beside(shard.labelled.X)
    with threads.use(model.n_jobs):
        store = model.store(shard.labelled, densities)
        asked = model.queries(store, block)
        found = shard_sums(store, asked, left)
        errors = relative_errors(store, asked, len(block)) if bounded else None
    return Partial(found, errors)


def joined(parts: Sequence[Partial]) -> Partial:
    """Sums over several sets of shards."""
    errors = _joined_errors([part.errors for part in parts if part.errors is not None])
    return Partial(added([part.sums for part in parts]), errors)


def _joined_errors(errors: Sequence[NDArray]) -> NDArray | None:
    """Bound for a sum of sums: that of the worst of them, and one rounding for each addition."""
    return np.maximum.reduce(errors) + EPS * len(errors) if errors else None


def scores(model: Model, block: Block, found: Partial) -> Scores:
    """Scores of a block from its sums over all shards."""
    sums = total(model.groups, model.summed, len(block), len(model.classes), found.sums)
    return Scores(prior_terms(model.covariances, block.X, model.mean), sums)


def planned_sums(plan: Plan, model: Any, block: Any, shards: Sequence[tuple], *, bounded: bool = False) -> Any:
    """Add the tasks that sum one block over all shards, and return the key of the `Partial`."""
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
    return plan.add("scores", scores, model, block, sums)
