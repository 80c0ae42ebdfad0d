"""Training rows beside the store that sums over them: rows come and go in both at a time."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from coxfield.engine.near_sums import NearSums
from coxfield.engine.store import GONE, Segments, Store, store_bound, store_by_label, store_distributions, store_labels
from coxfield.kernels.mixture import (
    VALUES,
    LadderPoints,
    Mixture,
    MixturePoints,
    in_single,
    log_densities,
    own_log_densities,
)
from coxfield.kernels.namespace import precision, rows_of, stacked, to_numpy
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import Radial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Covariance

# Training rows as they were given, in blocks, so that rows can come and go without moving the others.
#
# Rows that arrive form a new block. Blocks of similar size are joined, so that each row is moved a few times at most,
# however many calls bring rows. A row that leaves is overwritten where it is, or the others are copied without it:
# nobody else holds the arrays.


ALIKE = 8  # blocks of similar size that become one


@dataclass(frozen=True)
class Block:
    """Rows that are held together."""

    X: Any
    """Array or CSR array of shape (n, d)."""
    numbers: NDArray
    """The number of each row in the `Store`; `GONE` for a row that was overwritten."""

    @property
    def left(self) -> NDArray:
        return np.flatnonzero(self.numbers != GONE)

    @property
    def whole(self) -> bool:
        return bool((self.numbers != GONE).all())

    def compact(self) -> Block:
        """The block without room for rows that are gone."""
        return self if self.whole else Block(rows_of(self.X, self.left), self.numbers[self.left])

    def copied_without(self, rows: NDArray) -> Block:
        """A copy of the other rows."""
        kept = np.setdiff1d(self.left, rows, assume_unique=True)
        return Block(rows_of(self.X, kept), self.numbers[kept])

    def erase(self, rows: NDArray) -> None:
        """Write zeros in place of some rows, which must not count any more."""
        self.X[rows] = 0

    def overwritten(self, rows: NDArray) -> Block:
        """The same array, in which some rows do not count any more and may be overwritten."""
        left = self.numbers.copy()
        left[rows] = GONE
        return replace(self, numbers=left)


@dataclass(frozen=True)
class TrainingRows:
    """All training rows, with their classes and weights in the order in which they arrived."""

    blocks: tuple[Block, ...]
    y: NDArray
    """Class numbers."""
    weights: NDArray | None
    """One number per row, or one per row and class; None if every row counts once."""
    chosen_from: NDArray
    """Whether the covariance was chosen from each row."""

    @classmethod
    def of(cls, X, y: NDArray, weights: NDArray | None, chosen_from: NDArray | None) -> TrainingRows:
        """Rows that arrive together, in an array that nobody else holds.

        `chosen_from` is None if the covariance was chosen from all of them.
        """
        chosen = np.ones(len(y), bool) if chosen_from is None else chosen_from
        return cls((Block(X, np.arange(len(y))),), y, weights, chosen)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def X(self) -> Any:  # noqa: N802
        """The points: the array itself if there is only one, a new array otherwise."""
        parts = [block.compact().X for block in self.blocks]
        return parts[0] if len(parts) == 1 else stacked(parts)

    @property
    def numbers(self) -> NDArray:
        """The number of each row in the store."""
        return np.concatenate([block.numbers[block.numbers != GONE] for block in self.blocks])

    @property
    def counts(self) -> NDArray:
        """The weight of each row, in double precision; of soft labels, the sum over classes."""
        if self.weights is None:
            return np.ones(len(self))
        weights = self.weights.astype(float)
        return weights if weights.ndim == 1 else weights.sum(axis=1)

    @property
    def dtype(self) -> np.dtype:
        return precision(self.blocks[0].X)

    @property
    def n_features(self) -> int:
        return self.blocks[0].X.shape[1]

    @property
    def like(self) -> Any:
        """Some of the points, to see whether they are sparse."""
        return self.blocks[0].X

    @property
    def dense(self) -> bool:
        """Whether rows can be overwritten: in NumPy, unless they are sparse, where columns would tell of a row."""
        return isinstance(self.like, np.ndarray)

    def appended(self, X, y: NDArray, weights: NDArray | None, first: int) -> TrainingRows:
        """The rows with more of them, whose numbers start at `first`. Nobody else may hold X."""
        block = Block(X, first + np.arange(len(y)))
        together = _joined_weights(self.weights, weights, len(self), len(y), self.dtype)
        chosen = np.concatenate([self.chosen_from, np.zeros(len(y), bool)])
        return TrainingRows((*self.blocks, block), np.concatenate([self.y, y]), together, chosen)

    def to_join(self) -> int:
        """How many of the last blocks should become one: `ALIKE` that are of similar size, and so on with the result.

        So a row is moved once per power of `ALIKE`, and there are fewer than `ALIKE` blocks per such power.
        """
        sizes, count = [len(block.numbers) for block in self.blocks], 1
        while True:
            alike = _alike(sizes[:-count], sum(sizes[-count:]))
            if alike + 1 < ALIKE:
                return count
            count += alike

    def joined(self, count: int) -> TrainingRows:
        """The same rows with the last `count` blocks as one."""
        last = [block.compact() for block in self.blocks[-count:]]
        block = Block(stacked([b.X for b in last]), np.concatenate([b.numbers for b in last]))
        return replace(self, blocks=(*self.blocks[:-count], block))

    def only(self, places: NDArray) -> TrainingRows:
        """A copy of some rows, numbered from 0."""
        weights = None if self.weights is None else self.weights[places]
        return TrainingRows.of(rows_of(self.X, places), self.y[places], weights, self.chosen_from[places])

    def with_classes(self, new: NDArray) -> TrainingRows:
        """The rows with other class numbers: `new` has one for each old one."""
        return replace(self, y=new[self.y])

    def renumbered(self, new: NDArray) -> TrainingRows:
        """The same rows with other numbers: `new` has one for each old one."""
        return replace(self, blocks=tuple(replace(block, numbers=new[block.numbers]) for block in self.blocks))

    def without(self, rows: NDArray, numbers: NDArray, *, overwrite: bool) -> TrainingRows:
        """The rows without some of them, given by place and by number."""
        blocks = [_left_of(block, numbers, overwrite) for block in self.blocks]
        weights = None if self.weights is None else np.delete(self.weights, rows, axis=0)
        left = tuple(block for block in blocks if (block.numbers != GONE).any())
        return TrainingRows(left, np.delete(self.y, rows), weights, np.delete(self.chosen_from, rows))


def _left_of(block: Block, numbers: NDArray, overwrite: bool) -> Block:
    """What is left of a block; a block of which half is gone is copied, so that memory is freed at last."""
    rows = np.flatnonzero(np.isin(block.numbers, numbers))
    if not len(rows):
        return block
    few = 2 * (len(rows) + np.count_nonzero(block.numbers == GONE)) < len(block.numbers)
    return block.overwritten(rows) if overwrite and few else block.copied_without(rows)


def _alike(sizes: list[int], size: int) -> int:
    """How many of the last sizes are no power of `ALIKE` larger than another one that follows them."""
    larger = (count for count, other in enumerate(reversed(sizes)) if other >= ALIKE * size)
    return next(larger, len(sizes))


def _joined_weights(old: NDArray | None, new: NDArray | None, n_old: int, n_new: int, dtype) -> NDArray | None:
    """Weights of all rows; where one of the two has none, its rows count once."""
    if old is None and new is None:
        return None
    return np.concatenate(
        [
            np.ones(n_old, dtype) if old is None else old,
            np.ones(n_new, dtype) if new is None else new,
        ]
    )


# Reference points of a mixture that come and go: densities are sums over the points that are there.
#
# A point that arrives adds its terms to the densities of all others, and a point that leaves takes its terms away. So
# the evidence of a region does not grow with the number of points in it, and no point has a density that lacks
# itself. Where most of a density goes, it is computed again: a small difference of large numbers has no digits.


MOST = 0.5  # share of a density that may be subtracted


def gain(points: MixturePoints, X: Any, counts: NDArray | None, rows: Any) -> MixturePoints:
    """The reference points of a mixture with more of them at the end, bound to the mixture over all of them.

    Parameters
    ----------
    points : MixturePoints
        All reference points, in their order, with their densities.
    X : array or CSR array
        All reference points as they are, with the new ones at the end.
    counts : array, optional
        The weight of each of them.
    rows : array or CSR array
        The new ones.
    """
    mixture, fresh, n = points.covariance, points.at(rows), len(points)
    before, arrived = (None, None) if counts is None else (counts[:n], counts[n:])
    joined = []
    for old, new in zip(points.ladders, fresh.ladders, strict=True):
        assert old.known is not None
        if old.ladder.free:
            grown, own = old.known, np.zeros((len(old.known), len(new)))
        else:
            grown = np.logaddexp(old.known, log_densities(old, new, arrived))
            own = np.logaddexp(log_densities(new, old, before), own_log_densities(new, arrived))
        joined.append(LadderPoints(old.ladder, old.points.joined(new.points), np.hstack([grown, own])))
    origin = np.concatenate([np.arange(n), np.full(len(fresh), -1)])
    return mixture.over(X, counts, origin, tuple(joined))


def lose(points: MixturePoints, places: NDArray, X: Any, counts: NDArray | None) -> MixturePoints:
    """The reference points of a mixture without some of them, bound to the mixture over those that stay.

    Parameters
    ----------
    points : MixturePoints
        All reference points, in their order, with their densities.
    places : integer array
        The places of those that go.
    X : array or CSR array
        Those that stay, as they are.
    counts : array, optional
        The weight of each point, those that go included.
    """
    kept = np.setdiff1d(np.arange(len(points)), places)
    stay, gone = points[kept], points[places]
    weights = np.ones(len(points)) if counts is None else counts
    left = tuple(
        replace(old, known=_less(old, lost, weights[kept], weights[places]))
        for old, lost in zip(stay.ladders, gone.ladders, strict=True)
    )
    return points.covariance.over(X, None if counts is None else counts[kept], kept, left)


def _less(stay: LadderPoints, gone: LadderPoints, counts: NDArray, lost: NDArray) -> NDArray:
    """log q of the points that stay, without the terms of those that go, shape (F, n)."""
    log_q = stay.known
    assert log_q is not None
    if stay.ladder.free:
        return log_q
    new = np.empty_like(log_q)
    for some in gen_batches(len(stay), max(1, VALUES // max(1, len(gone)))):
        share = _share(stay[some], gone, lost)
        with np.errstate(divide="ignore"):
            new[:, some] = log_q[:, some] + np.log1p(-np.minimum(share, 1))
        again = some.start + np.flatnonzero((share > MOST).any(axis=0))
        if again.size:
            new[:, again] = log_densities(stay[again], stay, counts)
    return new


def _share(stay: LadderPoints, gone: LadderPoints, lost: NDArray) -> NDArray:
    """The share of each density that comes from the points that go, shape (F, n)."""
    points, log_q = stay.points, stay.known
    assert log_q is not None
    share = np.empty_like(log_q)
    for f, tile in enumerate(points.tiles_at(gone.points, stay.ladder.factors)):
        sums = to_numpy(tile).astype(float) @ lost
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            ratio = np.exp(np.log(np.maximum(sums, 0)) - log_q[f])
        # Where the density itself has vanished, it is computed again.
        share[f] = np.where(np.isneginf(log_q[f]) | np.isnan(ratio), 1.0, ratio)
    return share


# Rows and store together.


ERASING = threading.Lock()  # rows are not overwritten while they are copied
SPARE = 1024  # numbers of rows that have left, before rows are numbered anew


@dataclass(frozen=True)
class Training:
    """Rows as they were given, and the same rows arranged for class sums."""

    rows: TrainingRows
    store: Store
    leaving: tuple[tuple[Callable[[NDArray], None], NDArray], ...] = ()
    """Where rows that have left are still written, and how to overwrite them. They count for nothing any more."""

    @classmethod
    def of(cls, rows: TrainingRows, covariances: PerClass[Covariance], *, learned: bool) -> Training:
        """Arrange rows; `learned` says whether the covariance is a mixture that was learned from some of them."""
        if learned:
            mixture = covariances[0]
            assert isinstance(mixture, Mixture)
            if mixture.n_reference == len(rows) and mixture.log_densities is not None:
                shared: PerClass[Covariance] = PerClass.shared_by(mixture, len(covariances))
                # In the order of the classes at once, so that no points are held twice.
                return cls(
                    rows, store_by_label(lambda _, order: mixture.bind_reference(order), rows.y, shared, rows.weights)
                )
            return cls._learned(rows, _over_all(rows, mixture), len(covariances))
        X, y, weights = rows.X, rows.y, rows.weights
        if weights is not None and weights.ndim == 2:
            return cls(rows, store_distributions(X, weights, covariances))
        return cls(rows, store_labels(X, y, covariances, weights))

    @classmethod
    def _learned(cls, rows: TrainingRows, points: MixturePoints, n_classes: int) -> Training:
        """Rows that are the reference points of a mixture, in their order."""
        covariances: PerClass[Covariance] = PerClass.shared_by(points.covariance, n_classes)
        return cls(rows, store_bound([points], rows.y, covariances, rows.weights))

    @property
    def covariances(self) -> PerClass[Covariance]:
        """The covariance of each class. A mixture changes with the rows: its densities are sums over them."""
        groups, owner = self.store.groups, np.empty(self.store.n_classes, int)
        for k, group in enumerate(groups):
            owner[group.classes] = k
        return PerClass(tuple(group.covariance for group in groups), owner)

    def appended(self, X, y: NDArray, weights: NDArray | None) -> Training:
        """More rows with one label each. Nobody else may hold X."""
        rows, points = self.rows.appended(X, y, weights, self.store.n_rows), self._reference
        if points is not None:
            rows = rows.joined(len(rows.blocks))
            return self._learned(rows, gain(points, rows.X, rows.weights, X), self.store.n_classes)
        store = self.store.append(X, _distributions(y, weights, self.store.n_classes))
        # The first block stays as it is: it is large.
        count = min(rows.to_join(), len(rows.blocks) - 1)
        return Training(rows, store) if count < 2 else Training(rows, store)._joined(count)

    def _joined(self, count: int) -> Training:
        """The last blocks as one, here and in the store."""
        rows = self.rows.joined(count)
        block = rows.blocks[-1]
        last = slice(len(rows) - len(block.numbers), None)
        weights = None if rows.weights is None else rows.weights[last]
        distributions = _distributions(rows.y[last], weights, self.store.n_classes)
        return Training(rows, self.store.without(block.numbers).append(block.X, distributions, block.numbers))

    def without(self, places: NDArray) -> Training:
        """The rows without those at some places. What they held is overwritten by `erased`, and not before."""
        points = self._reference
        if points is not None:
            kept = np.setdiff1d(np.arange(len(self.rows)), places)
            rows = self.rows.only(kept)
            return self._learned(rows, lose(points, places, rows.X, self.rows.weights), self.store.n_classes)
        numbers = self.rows.numbers[places]
        # Other covariances may be asked for any of their points.
        overwrite = self.rows.dense and all(isinstance(group.covariance, Radial) for group in self.store.groups)
        store = self.store.without(numbers, overwrite=overwrite)
        left = Training(self.rows.without(places, numbers, overwrite=overwrite), store)._with_few_numbers()
        return replace(left, leaving=self._leaving(left))

    def _leaving(self, left: Training) -> tuple:
        """What must be overwritten once nobody needs the rows that are not left any more."""
        before, after = ({id(held): (each, numbers) for held, each, numbers in one._numbered()} for one in (self, left))
        found = []
        for held, (each, numbers) in after.items():
            gone = (numbers == GONE) & (before[held][1] != GONE) if held in before else np.zeros(0, bool)
            if gone.any():
                found.append((each.erase, np.flatnonzero(gone)))
        return (*self.leaving, *found)

    def _numbered(self) -> Iterator[tuple]:
        """What holds rows: an array or points, who can erase some of them, and the number of each."""
        yield from ((block.X, block, block.numbers) for block in self.rows.blocks)
        for group in self.store.groups:
            yield from ((part.points, part.points, part.rows) for part in group.parts)

    def erase(self) -> None:
        """Overwrite rows that have left, where they are. It may be called again if it was interrupted."""
        with ERASING:
            for erase, rows in self.leaving:
                erase(rows)

    def _with_few_numbers(self) -> Training:
        """The same rows, numbered anew if most numbers are those of rows that have left."""
        if self.store.n_rows <= SPARE + 2 * len(self.rows):
            return self
        numbers = self.rows.numbers
        new = np.full(self.store.n_rows + 1, GONE)  # the last entry is for rows that were overwritten
        new[numbers] = np.arange(len(numbers))
        return Training(self.rows.renumbered(new), self.store.renumbered(new, numbers))

    @cached_property
    def single(self) -> Store:
        """The store with the points of a learned mixture in single precision: sums over them take half the time.

        Coordinates have been moved to the origin and scaled before, so few digits are lost. The store itself, if the
        coordinates are beyond the numbers of that precision, or not those of NumPy.
        """
        (group,) = self.store.groups
        (part,) = group.parts
        assert isinstance(part.points, MixturePoints)
        assert isinstance(part.weights, Segments)
        ladders = tuple(in_single(points) for points in part.points.ladders)
        if any(new is old for new, old in zip(ladders, part.points.ladders, strict=True)):
            return self.store
        points = replace(part.points, ladders=ladders)
        held = replace(part, points=points, weights=part.weights.astype(points.dtype))
        return replace(self.store, groups=(replace(group, parts=(held,)),))

    def near(self, n_near: int) -> NearSums:
        """Class sums over `single` by near cells and a sample. The first call divides the points into cells."""
        found = self.__dict__.get("_near")
        if found is None:
            found = self.__dict__["_near"] = NearSums.of(self.single, n_near)
        return found if found.n_near == n_near else replace(found, n_near=n_near)

    @property
    def mixture(self) -> Mixture | None:
        """The mixture that was learned from the rows, None if the covariance is another one."""
        group = self.store.groups[0]
        points = group.parts[0].points if group.parts else None
        if isinstance(points, MixturePoints) and points.learned and isinstance(group.covariance, Mixture):
            return group.covariance
        return None

    def under(self, mixture: Mixture) -> Training:
        """The same rows under the mixture with other weights."""
        (group,) = self.store.groups
        parts = tuple(replace(part, points=part.points.under(mixture)) for part in group.parts)  # type: ignore[attr-defined]
        store = replace(self.store, groups=(replace(group, covariance=mixture, parts=parts),))
        return replace(self, store=store).with_point_weights(mixture)

    def with_point_weights(self, mixture: Mixture) -> Training:
        """The same rows with their weights in the free ladders of a mixture over all rows."""
        (group,) = self.store.groups
        parts = tuple(
            replace(part, points=part.points.with_point_weights(mixture.ladders, part.rows))  # type: ignore[attr-defined]
            for part in group.parts
        )
        return replace(self, store=replace(self.store, groups=(replace(group, parts=parts),)))

    @property
    def _reference(self) -> MixturePoints | None:
        """The rows as reference points of the mixture that was learned from them, in their order; None otherwise."""
        if self.mixture is None:
            return None
        (part,) = self.store.groups[0].parts
        assert isinstance(part.points, MixturePoints)
        return part.points[np.argsort(part.rows)]

    def with_classes(self, new: NDArray, covariances: PerClass[Covariance]) -> Training:
        """The same rows with other class numbers: `new` has one for each old one, -1 for a class without rows."""
        return Training(self.rows.with_classes(new), self.store.with_classes(new, covariances))


def _distributions(y: NDArray, weights: NDArray | None, n_classes: int) -> NDArray:
    """One weight per row and class."""
    matrix = np.zeros((len(y), n_classes))
    matrix[np.arange(len(y)), y] = 1 if weights is None else weights
    return matrix


def _over_all(rows: TrainingRows, mixture: Mixture) -> MixturePoints:
    """The mixture with densities over all rows, whichever it was learned from."""
    if mixture.n_reference == len(rows):
        return mixture.bind_reference()
    origin = np.where(rows.chosen_from, np.cumsum(rows.chosen_from) - 1, -1)
    return mixture.over(rows.X, rows.weights, origin)
