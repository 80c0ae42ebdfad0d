"""Counts of training points that fit as badly as a query: over one shard, and joined over shards.

`engine/conformal.py` has the formulas. They need the leave-one-out probabilities of the points of a shard over all
shards, and the scores of the queries over all shards. Given both, the counts are sums over shards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield import threads
from coxfield.dask.sizes import count_bytes
from coxfield.engine.conformal import (
    Calibrators,
    Odds,
    calibrating_points,
    count_worse,
    covariance_errors,
    odds_against,
    slack,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.dask.pair_sums import Block, Model, Partial
    from coxfield.engine.decision import Scores
    from coxfield.engine.store import Group, Labelled, Store


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
