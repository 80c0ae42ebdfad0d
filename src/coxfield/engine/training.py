"""Training rows beside the store that sums over them: rows come and go in both at a time."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.engine.store import Store, store_bound, store_distributions, store_labels
from coxfield.engine.training_rows import GONE
from coxfield.engine.weights import Segments
from coxfield.kernels.mixture import Mixture, gain, lose
from coxfield.kernels.mixture_ladder import in_single
from coxfield.kernels.mixture_points import MixturePoints
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.radial import Radial

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.engine.training_rows import TrainingRows
    from coxfield.kernels.protocol import Covariance

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
            return cls._learned(rows, _over_all(rows, covariances[0]), len(covariances))
        radial = all(isinstance(covariance, Radial) for covariance in covariances.distinct)
        if radial and isinstance(rows.like, np.ndarray):
            rows = rows.owned()  # so that a row can be overwritten when it leaves
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
        overwrite = self.rows.can_be_overwritten
        store = self.store.without(numbers, overwrite=overwrite)
        left = Training(self.rows.without(places, numbers, overwrite=overwrite), store)._with_few_numbers()
        return replace(left, leaving=self._leaving(left))

    def _leaving(self, left: Training) -> tuple:
        """What must be overwritten once nobody needs the rows that are not left any more."""
        here = {id(block.X): block for block in self.rows.blocks}
        found: list = []
        for block in left.rows.blocks:
            if id(block.X) in here:
                gone = (block.numbers == GONE) & (here[id(block.X)].numbers != GONE)
                found.append((block.erase, np.flatnonzero(gone)))
        parts = {id(part.points): part for group in self.store.groups for part in group.parts}
        for part in (part for group in left.store.groups for part in group.parts):
            if id(part.points) in parts:
                gone = (part.rows == GONE) & (parts[id(part.points)].rows != GONE)
                found.append((part.points.erase, np.flatnonzero(gone)))
        return (*self.leaving, *((erase, gone) for erase, gone in found if len(gone)))

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


def _over_all(rows: TrainingRows, mixture: Any) -> MixturePoints:
    """The mixture with densities over all rows, whichever it was learned from."""
    assert isinstance(mixture, Mixture)
    if mixture.n_reference == len(rows):
        return mixture.bind_reference()
    origin = np.where(rows.chosen_from, np.cumsum(rows.chosen_from) - 1, -1)
    return mixture.over(rows.X, rows.weights, origin)
