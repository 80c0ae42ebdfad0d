"""Leave-one-out over all pairs of chunks: blocks of training points meet all shards, for a whole path of length scales.

The rows that are asked are all training points, chunk by chunk, or some of them drawn at random. All points are in the
sums. The sums of a block stay where they were computed: losses are asked for, and not the sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield import threads
from coxfield.dask.chunks import count_bytes
from coxfield.dask.pair_sums import Block, Model
from coxfield.dask.plan import Plan, computed, persisted
from coxfield.kernels.namespace import at_home, rows_of, stacked
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import variance_is_free
from coxfield.selection.loo import (
    CRITERIA,
    Asked,
    JudgedRows,
    Search,
    SelectionPath,
    judge,
    log_half_variances,
    path_log_sums,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.dask.shards import Shards
    from coxfield.kernels.protocol import PerClass


@dataclass(frozen=True)
class LabelledBlock:
    """Training points that are asked, with their labels and weights."""

    block: Block
    y: NDArray
    weights: NDArray

    def __getitem__(self, rows: NDArray) -> LabelledBlock:
        block = self.block
        where = (None if each is None else each[rows] for each in (block.shards, block.rows, block.places))
        return LabelledBlock(Block(rows_of(block.X, rows), *where), self.y[rows], self.weights[rows])

    def at_home(self) -> LabelledBlock:
        """The same with its points in NumPy."""
        return replace(self, block=replace(self.block, X=at_home(self.block.X)))


@dataclass(frozen=True)
class PathBlock:
    """Leave-one-out log sums of some rows at all length scales; of one length scale, see `JudgedRows`."""

    logs: NDArray
    """Shape (factors, n, n_classes)."""
    log_half: NDArray
    y: NDArray
    weights: NDArray

    def at(self, k: int) -> JudgedRows:
        """The rows at one length scale."""
        return JudgedRows(self.logs[k], self.log_half, self.y, self.weights)


count_bytes(LabelledBlock, PathBlock)


def training_block(model: Model, chosen: NDArray | None, number: int, X, y, weights, densities=None) -> LabelledBlock:
    """Rows of a shard as queries, all of them or some."""
    shard = model.shard(number, X, y, weights)
    points, rows = shard.labelled, shard.rows
    places = model.places[number] + np.arange(len(rows))
    block = Block(points.X, np.full(len(rows), number), rows, places)
    found = LabelledBlock(block, points.y, points.counts)
    return found if chosen is None else found[chosen]


def kept_rows(model: Model, gone: NDArray, number: int, X, y, weights, densities=None) -> NDArray:
    """Which points of a shard stay if some rows of its chunk leave."""
    return np.flatnonzero(~np.isin(model.shard(number, X, y, weights).rows, gone))


def block_of(asked: LabelledBlock) -> Block:
    """The rows without their labels."""
    return asked.block


def gathered(parts: Sequence[LabelledBlock]) -> LabelledBlock:
    """Rows of several shards as one block, in NumPy: it travels to all shards, wherever they are."""
    parts = [part.at_home() for part in parts if len(part.y)] or [parts[0].at_home()]
    blocks = [part.block for part in parts]
    Xs = [block.X for block in blocks]
    where = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("shards", "rows", "places"))
    y, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("y", "weights"))
    return LabelledBlock(Block(stacked(Xs), *where), y, weights)


def block_at(plan: Plan, model: Any, shards: Shards, places: NDArray) -> tuple:
    """The key of a block of training points, given by their places among all rows of positive weight."""
    of = np.searchsorted(np.cumsum(shards.known.kept), places, side="right")
    blocks = [
        plan.add("rows", training_block, model, places[of == k] - shards.places[k], *shards.references[k])
        for k in np.unique(of)
    ]
    return plan.add("rows-gather", gathered, blocks)


def path_sums(
    model: Model, factors: NDArray, asked: LabelledBlock, number: int, X, y, weights, densities=None
) -> NDArray:
    """Log class sums of a block over one shard for each factor, shape (factors, n, n_classes)."""
    shard = model.shard(number, X, y, weights)
    block = asked.block.beside(shard.labelled.X)
    labelled, left = shard.labelled, block.leave_out(number, shard)
    if not len(labelled) or not len(block) or left is None:
        return np.full((len(factors), len(block), labelled.n_classes), -np.inf)
    with threads.use(model.n_jobs):
        at = Asked(block.X, left)
        return np.stack(list(path_log_sums(labelled, model.covariances, factors, at)))


def joined_paths(parts: Sequence[NDArray]) -> NDArray:
    """Log class sums over several sets of shards."""
    found = np.logaddexp(parts[0], parts[1])
    for part in parts[2:]:
        np.logaddexp(found, part, out=found)
    return found


def path_block(model: Model, asked: LabelledBlock, logs: NDArray) -> PathBlock:
    """A block with its sums over all shards."""
    log_half = log_half_variances(model.covariances, asked.block.X, len(model.classes))
    return PathBlock(logs, log_half, asked.y, asked.weights)


@dataclass(frozen=True)
class SomewhereElse:
    """Blocks on workers at one length scale; `SumsOverRows` says what is asked of them."""

    blocks: Sequence[Any]
    """Dask objects whose results are `PathBlock`."""
    k: int

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self._sum("weights", _total_weight))

    @property
    def largest(self) -> float:
        """The largest log score."""
        return float(self._joined("largest", max, _largest))

    def slope(self, mean: NDArray, largest: float, total: float, log_v: float) -> float:
        """Sum of the derivatives."""
        return float(self._sum("slope", _slope, mean, largest, total, log_v))

    def losses(self, mean: NDArray, log_v: float) -> NDArray:
        """Sum of the losses."""
        return self._sum("losses", _losses, mean, log_v)

    def _sum(self, step: str, function: Callable, *arguments) -> Any:
        return self._joined(step, sum, function, *arguments)

    def _joined(self, step: str, join: Callable, function: Callable, *arguments) -> Any:
        plan = Plan(*self.blocks)
        keys = [plan.add(step, function, block.key, self.k, *arguments) for block in self.blocks]
        return computed(plan.delayed([plan.tree(f"{step}-join", join, keys)]))[0]


def _total_weight(block: PathBlock, k: int) -> float:
    return block.at(k).total_weight


def _largest(block: PathBlock, k: int) -> float:
    return block.at(k).largest


def _slope(block: PathBlock, k: int, *arguments) -> float:
    return block.at(k).slope(*arguments) if len(block.y) else 0.0


def _losses(block: PathBlock, k: int, *arguments) -> NDArray:
    return block.at(k).losses(*arguments) if len(block.y) else np.zeros(2)


def judged_here(block: PathBlock, mean: NDArray, free: bool) -> list[dict[str, float]]:
    """Losses of all length scales of a block that has all rows."""
    return _judged(block.at, len(block.logs), mean, free)


def _judged(rows_at: Callable, count: int, mean: NDArray, free: bool) -> list[dict[str, float]]:
    found, guess = [], 0.0
    for k in range(count):
        row, guess = judge(rows_at(k), mean, guess, free_variance=free)
        found.append(row)
    return found


@dataclass(frozen=True)
class ShardedSearch(Search):
    """`Search` over shards."""

    rows: dict[int, NDArray] | None = None
    """Rows of each shard whose losses count; None for all rows."""
    n_jobs: int | None = None

    def _tried(self, shards: Shards, kernels: PerClass, factors: NDArray) -> SelectionPath:  # type: ignore[override]
        free = self.set_variance and all(map(variance_is_free, kernels.distinct))
        covariances = kernels.map(lambda kernel: recognise(kernel, shards.form.n_features))
        assert shards.classes is not None
        model = Model.of(shards, covariances, self.mean, self.n_jobs)
        rows = self._losses(shards, model, factors, free)
        both = [{"factor": float(factor), **row} for factor, row in zip(factors, rows, strict=True)]
        return SelectionPath.of(both, CRITERIA[self.criterion])

    def _losses(self, shards: Shards, model: Model, factors: NDArray, free: bool) -> list[dict[str, float]]:
        plan = shards.plan()
        known = plan.value("model", model)
        blocks = []
        for asked in self._asked(plan, known, shards):
            logs = [plan.add("path-sums", path_sums, known, factors, asked, *parts) for parts in shards.references]
            blocks.append(plan.add("path", path_block, known, asked, plan.tree("path-join", joined_paths, logs)))
        if len(blocks) == 1:
            return computed(plan.delayed([plan.add("judge", judged_here, blocks[0], self.mean, free)]), self.verbose)[0]
        held = persisted(plan.delayed(blocks), self.verbose)
        return _judged(lambda k: SomewhereElse(held, k), len(factors), self.mean, free)

    def _asked(self, plan: Plan, known, shards: Shards) -> list:
        """The keys of the blocks whose losses count."""
        if self.rows is None:
            return [plan.add("rows", training_block, known, None, *parts) for parts in shards.references]
        parts = [
            plan.add("rows", training_block, known, self.rows[reference[0]], *reference)
            for reference in shards.references
            if len(self.rows.get(reference[0], ()))
        ]
        return [plan.add("rows-gather", gathered, parts)]
