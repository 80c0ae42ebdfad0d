"""What changes when training rows come and go, as one value: an estimator takes it over when it is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import column_or_1d

from coxfield.kernels.per_class import PerClass
from coxfield.selection.mixture.learn import log_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.training import Training
    from coxfield.kernels.protocol import Covariance


@dataclass(frozen=True)
class LiveState:
    """Training rows, classes, covariances and means."""

    training: Training
    covariances: PerClass[Covariance]
    classes: NDArray
    """Labels, sorted."""
    mean: NDArray
    announced: NDArray
    """Whether each class was announced, so that it stays without rows."""
    arrived: NDArray
    """Whether each class has come after the covariance and the means were chosen."""

    def announcing(self, announced: NDArray) -> LiveState:
        """The state with announced classes; those that are known already are only marked."""
        classes = np.union1d(self.classes, announced) if len(announced) else self.classes
        if len(classes) > len(self.classes):
            self = self._with_classes(classes, np.searchsorted(classes, self.classes))
        return replace(self, announced=self.announced | np.isin(self.classes, announced))

    def _with_classes(self, classes: NDArray, new: NDArray) -> LiveState:
        """The state with other classes: `new` is the number of each old one among them, -1 for one that has left."""
        kept = new >= 0
        arrived, announced, mean = np.ones(len(classes), bool), np.zeros(len(classes), bool), np.zeros(len(classes))
        for values, old in ((arrived, self.arrived), (announced, self.announced), (mean, self.mean)):
            values[new[kept]] = old[kept]
        covariances = self._covariances_of(classes, new)
        training = self.training.with_classes(new, covariances)
        return LiveState(training, covariances, classes, mean, announced, arrived)

    def _covariances_of(self, classes: NDArray, new: NDArray) -> PerClass[Covariance]:
        old = self.covariances
        if old.shared:
            return PerClass.shared_by(old[0], len(classes))
        without = np.setdiff1d(np.arange(len(classes)), new)
        if len(without):
            raise ValueError(
                f"the class {classes.tolist()[without[0]]!r} has no kernel, because each class has one of its own: fit "
                "again with a kernel for it"
            )
        owner = np.empty(len(classes), int)
        owner[new[new >= 0]] = old.owner[new >= 0]
        return PerClass(old.distinct, owner)

    def grown(self, X, codes: NDArray, weights: NDArray | None) -> LiveState:
        """The state with more rows."""
        return self._with(self.training.appended(X, codes, weights))

    def _with(self, training: Training) -> LiveState:
        """The state with other rows. The densities of a mixture are sums over them, so it changes too."""
        covariances = (
            PerClass.shared_by(training.covariances[0], len(self.classes)) if self.covariances.shared else None
        )
        return replace(self, training=training, covariances=covariances or self.covariances)

    def check_what_is_left(self, places: NDArray) -> None:
        """Refuse to remove so many rows that nothing is left to classify by."""
        rows = self.training.rows
        y = np.delete(rows.y, places)
        left = self.announced | (np.bincount(y, minlength=len(self.classes)) > 0)
        if not len(y) or left.sum() < 2:
            raise ValueError(
                f"{len(y)} training rows of {len(np.unique(y))} classes would be left, and at least two classes are "
                "needed: delete the whole model, or fit it again to other rows"
            )

    def without(self, places: NDArray) -> LiveState:
        """The state without some rows, and without classes that have no other."""
        state = self._with(self.training.without(places))
        kept = self.announced | (np.bincount(state.training.rows.y, minlength=len(self.classes)) > 0)
        if kept.all():
            return state
        return state._with_classes(self.classes[kept], np.where(kept, np.cumsum(kept) - 1, -1))

    def settled_mean(self, given, *, shares: bool) -> NDArray:
        """The means; of classes that have arrived, the given one, relative to the class shares if `shares`."""
        if not self.arrived.any():
            return self.mean
        rows, mean = self.training.rows, self.mean.copy()
        shared = log_shares(rows.y, rows.counts, len(mean)) if shares else np.zeros(len(mean))
        for c in np.flatnonzero(self.arrived):
            mean[c] = given.get(self.classes.tolist()[c], 0.0) if isinstance(given, Mapping) else float(given)
            mean[c] += shared[c]
        return mean


def check_places(rows, n: int) -> NDArray:
    """Places among n training rows, each once and sorted, from integers or from a mask."""
    return np.unique(listed_places(rows, n))


def listed_places(rows, n: int) -> NDArray:
    """Places among n training rows, in the order in which they are given, from integers or from a mask."""
    found = column_or_1d(np.asarray(rows) if np.size(rows) else np.empty(0, int))
    if found.dtype == bool:
        if len(found) != n:
            raise ValueError(f"rows has {len(found)} entries, but there are {n} training rows: give one bool for each")
        return np.flatnonzero(found)
    if found.dtype.kind not in "iu":
        raise ValueError(f"rows must be places of training rows, such as [0, 5], got {found.tolist()[:3]}")
    wrong = found[(found < 0) | (found >= n)]
    if len(wrong):
        raise ValueError(f"there is no training row {wrong[0]}: rows are counted from 0 to {n - 1}")
    return found
