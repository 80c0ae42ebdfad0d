"""A mixture that is learned from shards: densities and leave-one-out class sums of its members are sums over shards.

The points stay where they are. Representations are learned from a large sample of the rows. Each pair of shards gives
a part of the densities of one of them, which are kept beside the shard. The rows whose probabilities count meet all
shards once more, and what comes to this process is one number for each of these rows, each class and each member.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield import threads
from coxfield.dask.chunks import count_bytes
from coxfield.dask.leave_one_out import LabelledBlock, block_at, block_of, training_block
from coxfield.dask.plan import Plan, computed, persisted
from coxfield.engine.cells import Cells, near_log_others
from coxfield.engine.store import Labelled
from coxfield.engine.training import MOST
from coxfield.kernels.mixture import Mixture, in_single, log_densities
from coxfield.kernels.namespace import stacked
from coxfield.selection.mixture.loo_members import AtRows, ladder_layers
from coxfield.selection.mixture.sampling import cells_of, positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dask.delayed import Delayed
    from numpy.typing import NDArray

    from coxfield.dask.pair_sums import Model
    from coxfield.dask.shards import Shards
    from coxfield.kernels.mixture import Ladder
    from coxfield.kernels.protocol import LogSums

SAMPLE = 100_000  # rows from which representations and length scales are learned; if there are more, so many are drawn

count_bytes(AtRows)


@dataclass(frozen=True)
class ShardedPoints(Labelled):
    """`Labelled` points in shards: labels and weights are here, and the points are where they were."""

    shards: Shards | None = None
    model: Model | None = None
    sample: Labelled | None = None
    """Some of the points, in memory."""
    sample_rows: NDArray | None = None
    """Their places among all points."""
    seed: int | None = None
    """If there is one, densities are summed over the sample, of which those that are far are drawn once more."""

    @classmethod
    def of(cls, shards: Shards, model: Model, sample: NDArray, verbose: int) -> ShardedPoints:
        """Look at the labels of all rows, and at some of the points, which are given by their places."""
        plan = shards.plan()
        known = plan.value("model", model)
        labels = [plan.add("labels", labels_of, known, *parts) for parts in shards.references]
        some = block_at(plan, known, shards, sample)
        *found, drawn = computed(plan.delayed([*labels, some]), verbose)
        y, counts = (np.concatenate(each) for each in zip(*found, strict=True))
        weights = counts if shards.weighted else None
        kept = None if weights is None else drawn.weights.astype(drawn.block.X.dtype)
        here = Labelled(drawn.block.X, drawn.y, len(model.classes), kept)
        return cls(shards.X, y, len(model.classes), weights, shards, model, here, sample)


def labels_of(model: Model, number: int, X, y, weights, densities=None) -> tuple[NDArray, NDArray]:
    """Class numbers and weights of the points of a shard."""
    labelled = model.shard(number, X, y, weights).labelled
    return labelled.y, labelled.counts


class ShardedSource:
    """What `member_sums` asks of labelled points, if they are in shards."""

    density_columns = np.inf

    def __init__(self, labelled: ShardedPoints, bank: Sequence[Ladder], rows: NDArray, done, known=None) -> None:
        assert labelled.shards is not None
        assert labelled.model is not None
        self.labelled, self.shards, self.bank, self.rows, self.done = labelled, labelled.shards, bank, rows, done
        self.model = replace(labelled.model, covariances=labelled.model.covariances.map(lambda _: tuple(bank)))
        self.densities = self.shards.densities or self._densities()
        plan = self.shards.plan(*self.densities)
        known = plan.value("model", self.model)
        asked = block_at(plan, known, self.shards, rows)
        of = np.searchsorted(np.cumsum(self.shards.known.kept), rows, side="right")
        mine = [
            plan.add("density-rows", densities_at, self.densities[k].key, rows[of == k] - self.shards.places[k])
            for k in np.unique(of)
        ]
        self.asked, *at = computed(plan.delayed([asked, *mine]))
        self._at_rows = [_joined_rows(of_ladder) for of_ladder in zip(*at, strict=True)]
        self._layers: list[LogSums] | None = None

    def _densities(self) -> tuple[Delayed, ...]:
        labelled, sample = self.labelled, self.labelled.sample
        if labelled.seed is None:
            return shard_densities(self.shards, self.model)
        assert sample is not None
        assert labelled.sample_rows is not None
        weights = sample.counts * (labelled.counts.sum() / sample.counts.sum())
        stands_for_all = replace(sample, weights=weights)
        return sampled_densities(self.shards, self.model, stands_for_all, labelled.sample_rows, labelled.seed)

    def neighbours_among(self) -> tuple[list, NDArray, NDArray]:
        """The sample and the points that are left out, in every representation."""
        sample, asked = self.labelled.sample, self.asked
        assert sample is not None
        if len(sample) == len(self.labelled):
            return [ladder.bind(sample.X) for ladder in self.bank], sample.y, self.rows
        X, y = stacked([sample.X, asked.block.X]), np.concatenate([sample.y, asked.y])
        return [ladder.bind(X) for ladder in self.bank], y, len(sample) + np.arange(len(asked.y))

    def layers(self, k: int, columns: Any) -> LogSums:
        """The sums of one ladder over all shards; the first call computes those of all ladders."""
        if self._layers is None:
            plan = self.shards.plan(*self.densities)
            nothing = np.empty(0, int)
            here = replace(columns, order=nothing, groups=nothing)  # as many as all points
            again = self.labelled.seed is not None
            shared = plan.value("members", (self.model, self.asked, here, self.rows, again))
            starts = self.shards.places
            folds = [
                None if columns.n_folds == 1 else columns.groups[start : start + kept]
                for start, kept in zip(starts, self.shards.known.kept, strict=True)
            ]
            keys = [
                plan.add("member-sums", pair_layers, shared, groups, held.key, *parts)
                for groups, held, parts in zip(folds, self.densities, self.shards.references, strict=True)
            ]
            (self._layers,) = computed(plan.delayed([plan.tree("member-join", joined_layers, keys)]))
        return self._layers[k]

    def at_rows(self, k: int) -> AtRows:
        """The densities of the points that are left out."""
        return self._at_rows[k]

    @property
    def log_densities(self) -> tuple[KeptDensities, ...]:
        """The densities of all points, which stay where they are."""
        return kept_densities(self.densities, self.bank)


ShardedPoints.source = ShardedSource  # type: ignore[attr-defined]


@dataclass(frozen=True)
class KeptDensities:
    """Densities of one ladder at some of its length scales, on the workers."""

    held: tuple[Delayed, ...]
    k: int
    factors: NDArray

    def __getitem__(self, factors: NDArray) -> KeptDensities:
        return replace(self, factors=factors)


def kept_densities(held: tuple[Delayed, ...], bank: Sequence[Ladder]) -> tuple[KeptDensities, ...]:
    """The densities of all ladders at all their length scales."""
    return tuple(KeptDensities(held, k, np.ones(len(ladder.factors), bool)) for k, ladder in enumerate(bank))


def shard_densities(shards: Shards, model: Model, held: Sequence[Delayed] = ()) -> tuple[Delayed, ...]:
    """`AtRows` of each ladder for the points of each shard, over all shards; they stay where they are computed.

    The covariance of the model is a tuple of ladders. `held` are those of the first shards over each other, if they
    are known: then the terms of the other shards are added to them.
    """
    plan = shards.plan(*held)
    known = plan.value("model", model)
    keys = []
    for k, parts in enumerate(shards.references):
        mine = plan.add("rows", training_block, known, None, *parts)
        added = shards.references[len(held) if k < len(held) else 0 :]
        totals = [plan.add("density", pair_densities, known, mine, *each) for each in added]
        joined = plan.tree("density-join", joined_densities, totals)
        if k < len(held):
            keys.append(plan.add("density-more", with_more, held[k].key, joined))
        else:
            keys.append(plan.add("density-own", with_own, known, mine, joined))
    return tuple(persisted(plan.delayed(keys)))


def sampled_densities(
    shards: Shards, model: Model, sample: Labelled, places: NDArray, seed: int
) -> tuple[Delayed, ...]:
    """`shard_densities` over a sample that stands for all points, so that the time grows with their number only.

    Near points of the sample are visited one by one, and of those that are far some are drawn.
    """
    plan = shards.plan()
    known = plan.value("model", model)
    among = plan.add("density-cells", SampledCells.of, known, plan.value("sample", (sample, places)), seed)
    keys = []
    for parts in shards.references:
        mine = plan.add("rows", training_block, known, None, *parts)
        others = plan.add("density", near_densities, known, mine, among)
        keys.append(plan.add("density-own", with_own, known, mine, others))
    return tuple(persisted(plan.delayed(keys)))


@dataclass(frozen=True)
class SampledCells:
    """Labelled points that stand for all others."""

    sample: Labelled
    places: NDArray
    """Of the sample among all points, ascending."""
    cells: list[Cells]
    """Of the sample in the representation of every ladder."""

    @classmethod
    def of(cls, model: Model, drawn: tuple[Labelled, NDArray], seed: int) -> SampledCells:
        """Divide the points into cells."""
        sample, places = drawn
        bound = (in_single(ladder.bind(sample.X)) for ladder in model.covariances[0])
        return cls(sample, places, [cells_of(points, sample.y, sample.n_classes, seed) for points in bound])


count_bytes(SampledCells)


def near_densities(model: Model, asked: LabelledBlock, among: SampledCells) -> list[NDArray]:
    """log of the density of each point of a block over a sample without its own term, for each ladder."""
    if not len(asked.y):
        return [np.full((len(ladder.factors), 0), -np.inf) for ladder in model.covariances[0]]
    assert asked.block.places is not None
    own, counts, found = positions(asked.block.places, among.places), among.sample.counts, []
    with threads.use(model.n_jobs):
        for ladder, cells in zip(model.covariances[0], among.cells, strict=True):
            points = ladder.bind(among.sample.X)
            mine, points = in_single(points.at(asked.block.X)), in_single(points)
            found.append(near_log_others(mine, own, points, counts, cells))
    return found


def pair_densities(model: Model, asked: LabelledBlock, number: int, X, y, weights, densities=None) -> list[NDArray]:
    """log of the density of each point of a block over one shard without its own term, shape (F, n) for each ladder."""
    bank, block, found = model.covariances[0], block_of(asked), []
    shard = model.shard(number, X, y, weights) if len(block) else None
    if shard is None or not len(shard.labelled):
        return [np.full((len(ladder.factors), len(block)), -np.inf) for ladder in bank]
    left, block = block.leave_out(number, shard), block.beside(shard.labelled.X)
    for ladder in bank:
        with threads.use(model.n_jobs):
            points = ladder.bind(shard.labelled.X)
            found.append(log_densities(points.at(block.X), points, shard.labelled.counts, left))
    return found


def joined_densities(parts: Sequence[list[NDArray]]) -> list[NDArray]:
    """Log densities over several sets of shards."""
    return [reduce(np.logaddexp, of_ladder) for of_ladder in zip(*parts, strict=True)]


def with_own(model: Model, asked: LabelledBlock, others: list[NDArray]) -> list[AtRows]:
    """The densities with the own term of each point."""
    found = []
    for ladder, each in zip(model.covariances[0], others, strict=True):
        own = np.log(asked.weights) + (np.log(ladder.bind(asked.block.X).points.diagonal()) if len(asked.y) else 0)
        found.append(AtRows.of(each, own))
    return found


def with_more(found: list[AtRows], more: list[NDArray]) -> list[AtRows]:
    """The densities with the terms of points that have arrived."""
    return [AtRows.of(np.logaddexp(at.others, each), at.own) for at, each in zip(found, more, strict=True)]


# Points that leave take their terms away. Where most of a density goes, it is computed again: a small difference of
# large numbers has no digits.


def remaining_densities(
    before: Shards, old: Model, shards: Shards, model: Model, gone: NDArray, kept: Sequence[NDArray]
) -> tuple[Delayed, ...]:
    """`shard_densities` after some points have left.

    Parameters
    ----------
    before, old : Shards, Model
        With the points that leave.
    shards, model : Shards, Model
        Without them; the covariance of the model is a tuple of ladders.
    gone : integer array
        The places of those that leave, among all rows of positive weight.
    kept : sequence of integer arrays
        Which points of each shard stay.
    """
    assert before.densities is not None
    plan = Plan(*before.inputs, *shards.inputs)
    known = plan.value("model", model)
    lost = block_at(plan, plan.value("model", old), before, gone)
    keys = []
    for held, rows, parts in zip(before.densities, kept, shards.references, strict=True):
        mine = plan.add("rows", training_block, known, None, *parts)
        left = plan.add("density-less", with_less, known, mine, lost, held.key, rows)
        again = plan.add("density-rows", rows_again, left)
        totals = [plan.add("density", pair_densities, known, again, *each) for each in shards.references]
        joined = plan.tree("density-join", joined_densities, totals)
        keys.append(plan.add("density-left", with_again, left, joined))
    return tuple(persisted(plan.delayed(keys)))


@dataclass(frozen=True)
class Less:
    """Densities without the terms of some points, and the rows where most of one is gone."""

    found: list[AtRows]
    rows: NDArray
    block: LabelledBlock


count_bytes(Less)


def with_less(model: Model, asked: LabelledBlock, lost: LabelledBlock, found: list[AtRows], rows: NDArray) -> Less:
    """The densities of the points of a shard that stay, without the terms of the points that leave."""
    left, again = [], np.zeros(len(asked.y), bool)
    block = lost.block.beside(asked.block.X)
    for ladder, at in zip(model.covariances[0], densities_at(found, rows), strict=True):
        others = at.others
        if len(asked.y):
            points = ladder.bind(asked.block.X)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.exp(log_densities(points, points.at(block.X), lost.weights) - others)
                again |= (~(share <= MOST)).any(axis=0)
                others = others + np.log1p(-np.minimum(share, 1))
        left.append(AtRows.of(others, at.own))
    numbers = np.flatnonzero(again)
    return Less(left, numbers, asked[numbers])


def rows_again(less: Less) -> LabelledBlock:
    """The points whose densities are computed again."""
    return less.block


def with_again(less: Less, again: list[NDArray]) -> list[AtRows]:
    """The densities with those that were computed again."""
    found = []
    for at, each in zip(less.found, again, strict=True):
        others = at.others.copy()
        others[:, less.rows] = each
        found.append(AtRows.of(others, at.own))
    return found


def densities_at(found: list[AtRows], rows: NDArray) -> list[AtRows]:
    """The densities of some points of a shard."""
    return [at[rows] for at in found]


def _joined_rows(parts: Sequence[AtRows]) -> AtRows:
    return AtRows(
        *(np.concatenate([getattr(at, name) for at in parts], axis=-1) for name in ("log_q", "others", "own"))
    )


def pair_layers(shared: tuple, groups, densities: list[AtRows], number: int, X, y, weights, _=None) -> list[LogSums]:
    """The sums of every ladder over one shard, at the points that are left out."""
    model, asked, columns, rows, again = shared
    shard = model.shard(number, X, y, weights)
    labelled, block = shard.labelled, asked.block.beside(shard.labelled.X)
    groups = labelled.y if groups is None else groups
    order = np.argsort(groups, kind="stable")
    own = block.leave_out(number, shard)
    column = np.concatenate([np.argsort(order), [-1]])[own]  # the last entry is that of -1
    found = []
    with threads.use(model.n_jobs):
        for ladder, at in zip(model.covariances[0], densities, strict=True):
            points = ladder.bind(labelled.X, order)
            mine = points.at(block.X)
            if again:
                points, mine = in_single(points), in_single(mine)
            counts, log_q = labelled.counts[order], at.log_q[:, order]
            found.append(
                ladder_layers(points, counts, log_q, mine, rows, column, columns, groups=groups[order], again=again)
            )
    return found


def joined_layers(parts: Sequence[list[LogSums]]) -> list[LogSums]:
    """The sums of every ladder over several sets of shards."""
    return [reduce(add, of_ladder) for of_ladder in zip(*parts, strict=True)]


def sharded_mixture(shards: Shards, mixture: Mixture) -> tuple[Mixture, tuple[Delayed, ...]]:
    """A learned mixture without its points, and the densities of its members, beside each shard."""
    kept: Any = mixture.log_densities
    chosen, plan = [(each.k, each.factors) for each in kept], shards.plan(*kept[0].held)
    keys = [plan.add("density-kept", kept_of, held.key, chosen) for held in kept[0].held]
    nothing = np.empty((0, shards.form.n_features), shards.form.precision)
    return Mixture(mixture.ladders, nothing), tuple(persisted(plan.delayed(keys)))


def kept_of(found: list[AtRows], chosen: list[tuple[int, NDArray]]) -> list[AtRows]:
    """The densities of some ladders at some of their length scales."""
    picked = ((found[k], factors) for k, factors in chosen)
    return [AtRows(at.log_q[factors], at.others[factors], at.own) for at, factors in picked]
