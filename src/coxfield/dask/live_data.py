"""Training rows that come and go on shards: chunks that arrive are new shards, and shards that lose rows are made anew.

Densities of a mixture are sums over shards. So those of the shards that stay gain the terms of new rows, and lose the
terms of rows that leave, as on one machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield.dask.leave_one_out import kept_rows
from coxfield.dask.mixture import kept_densities, remaining_densities, shard_densities
from coxfield.dask.pair_sums import Model
from coxfield.dask.plan import computed
from coxfield.dask.reasons import HELD
from coxfield.estimators import validation
from coxfield.estimators.live_data import FOLLOWED, LiveState, check_places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.dask.shards import Shards
    from coxfield.kernels.mixture import Mixture
    from coxfield.kernels.protocol import PerClass


@dataclass(frozen=True)
class ClassTotals:
    """What `LiveState` asks of training rows: which classes have some, and what these weigh."""

    y: NDArray
    counts: NDArray

    @classmethod
    def of(cls, shards: Shards) -> ClassTotals:
        """The totals of shards that were looked at."""
        number, weight = shards.of_class
        present = np.flatnonzero(number)
        return cls(present, weight[present])

    @property
    def rows(self) -> ClassTotals:
        """The same."""
        return self

    def with_classes(self, new: NDArray, covariances: PerClass) -> ClassTotals:
        """The same with other class numbers."""
        return replace(self, y=new[self.y])


class DaskLiveData:
    """`partial_fit`, `forget` and `reselect` of `DaskLGCPClassifier`."""

    if TYPE_CHECKING:
        kernel: Any
        mean: Any
        selection: str | None
        learn_mean: bool
        n_jobs: int | None
        verbose: int
        classes_: NDArray
        mean_: NDArray
        _shards: Shards
        _model: Model
        fit: Any
        _draft: Any
        _take_over: Any
        _fit_shards: Any
        _shards_of: Any
        _labelled: Any
        _keep: Any
        _keep_learned: Any
        _weighed_again: Any

    def partial_fit(self, X, y, classes=None, sample_weight=None) -> Self:
        """Add training rows as new shards; see `LGCPClassifier.partial_fit`. This is computed at once.

        The densities of a learned mixture are sums over shards, so they follow: the new shards meet all shards.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
        y : Dask array or series of shape (n_samples,)
        classes : array-like, default=None
            New classes, which this or a later call may bring.
        sample_weight : Dask array or series of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        draft = self._draft()
        if not hasattr(self, "_shards"):
            draft.fit(X, y, sample_weight)
            announced = validation.announced_classes(classes, draft.classes_)
            if classes is not None:
                validation.numbers_among(draft.classes_, announced)  # the first call announces all classes
                draft._become_shards(draft._state().announcing(announced), draft._shards, 0)
            return self._take_over(draft)
        old = self._shards
        more = draft._shards_of(X, y, sample_weight, old.form).looked_at(self, self.verbose)
        state = self._state().announcing(validation.announced_classes(classes, self.classes_))
        validation.numbers_among(more.known.labels, state.classes)
        arrived = sum(more.known.kept)
        shards = replace(old.joined(more), classes=state.classes) if arrived else replace(old, classes=state.classes)
        if arrived and old.densities is not None:
            origin = np.concatenate([np.arange(sum(old.known.kept)), np.full(arrived, -1)])
            state = _reindexed(state, origin)
            held, shards = old.densities, replace(shards, densities=None)
            model = Model.of(shards, state.covariances.map(_ladders), self.mean_, self.n_jobs)
            shards = replace(shards, densities=shard_densities(shards, model, held))
        return self._take_over(draft._become_shards(state, shards, arrived))

    def forget(self, rows) -> Self:
        """Remove training rows; see `LGCPClassifier.forget`. This is computed at once.

        Shards that hold such a row are made anew without it, together with all shards that were given with them.
        Shards that are read when they are needed, such as parts of a file, leave the row out each time they are read:
        delete it there too. Your own Dask collections do not change.

        Parameters
        ----------
        rows : array-like of int, or of bool
            Rows of `X_fit_`, counted from 0; or one bool per row.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        old, draft = self._shards, self._draft()
        gone = check_places(rows, sum(old.known.lengths))
        if not len(gone):
            return self
        kept = self._kept(gone)
        shards = old.without(gone, self, self.verbose)
        state = draft._left(shards)
        shards = replace(shards, classes=state.classes)
        places = np.concatenate([start + rows for start, rows in zip(old.places, kept, strict=True)])
        left = np.setdiff1d(np.arange(sum(old.known.kept)), places)
        if old.densities is not None and len(left):
            state = _reindexed(state, places)
            model = Model.of(shards, state.covariances.map(_ladders), state.mean, self.n_jobs)
            shards = replace(shards, densities=remaining_densities(old, self._model, shards, model, left, kept))
        else:
            shards = replace(shards, densities=old.densities)
        return self._take_over(draft._become_shards(state, shards, len(left)))

    def _kept(self, gone: NDArray) -> list[NDArray]:
        """Which points of positive weight of each shard stay, by their places in it."""
        shards, plan = self._shards, self._shards.plan()
        model = plan.value("model", self._model)
        of = np.searchsorted(np.cumsum(shards.known.lengths), gone, side="right")
        touched = np.unique(of)
        keys = [
            plan.add("kept", kept_rows, model, gone[of == k] - shards.starts[k], *shards.references[k]) for k in touched
        ]
        found = [np.arange(count) for count in shards.known.kept]
        for k, rows in zip(touched, computed(plan.delayed(keys)), strict=True):
            found[k] = rows
        return found

    def _left(self, shards: Shards) -> LiveState:
        """The state with other rows, of which some have left, and without classes that have no other row."""
        state = self._state()
        number = shards.of_class[0]
        kept = state.announced | (number > 0)
        if not number.any() or kept.sum() < 2:
            raise ValueError(
                f"{int(number.sum())} training rows of {np.count_nonzero(number)} classes would be left, and at least "
                "two classes are needed: delete the whole model, or fit it again to other rows"
            )
        totals: Any = ClassTotals.of(shards)
        state = replace(state, training=totals)
        return (
            state if kept.all() else state._with_classes(state.classes[kept], np.where(kept, np.cumsum(kept) - 1, -1))
        )

    def reselect(self) -> Self:
        """Choose the covariance and the means again, from all shards: `fit` without giving the rows again.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        return self._take_over(self._draft()._fit_shards(replace(self._shards, densities=None)))

    def _state(self) -> LiveState:
        nobody = np.zeros(len(self.classes_), bool)
        announced, arrived = getattr(self, "_announced", nobody), getattr(self, "_arrived", nobody)
        training: Any = ClassTotals.of(self._shards)
        return LiveState(training, self._model.covariances, self.classes_, self.mean_, announced, arrived)

    def _become_shards(self, state: LiveState, shards: Shards, changed: int) -> Self:
        """Take over other shards, with their classes and covariances. Means and weights of members follow."""
        shards = replace(shards, classes=state.classes)
        totals: Any = ClassTotals.of(shards)
        state = replace(state, training=totals)
        self.classes_, self._announced, self._arrived = state.classes, state.announced, state.arrived
        self.mean_ = state.settled_mean(self.mean, shares=self.selection == "mixture" and self.learn_mean)
        for stale in ("loo_error_", "loo_log_loss_", HELD):
            self.__dict__.pop(stale, None)
        self._keep(shards, state.covariances)
        self._changed = getattr(self, "_changed", 0) + changed
        if shards.densities is not None and self._changed >= FOLLOWED * sum(shards.known.kept) and len(totals.y) > 1:
            self._reweigh(totals)
        return self

    def _reweigh(self, totals: ClassTotals) -> None:
        """Weigh the members of the mixture again, by the rows that are there now."""
        mixture, (labelled, _), held = self._model.covariances[0], self._labelled(self._shards), self._shards.densities
        assert held is not None
        mixture = replace(mixture, log_densities=kept_densities(held, mixture.ladders))
        self._keep_learned(self._shards, self._weighed_again(labelled, mixture))
        self._changed, self._arrived = 0, self._arrived & ~np.isin(np.arange(len(self.classes_)), totals.y)


def _ladders(mixture: Any) -> tuple:
    return mixture.ladders


def _reindexed(state: LiveState, origin: NDArray) -> LiveState:
    """The state with a mixture of other reference points; `origin` has the old place of each."""

    def moved(mixture: Any) -> Mixture:
        return replace(mixture, ladders=tuple(ladder.reindexed(origin) for ladder in mixture.ladders))

    return replace(state, covariances=state.covariances.map(moved))
