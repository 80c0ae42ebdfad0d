"""Training rows that come and go after `fit`: `partial_fit`, `forget` and `reselect` of `LGCPClassifier`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from coxfield import threads
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import Labelled
from coxfield.engine.training import Training
from coxfield.estimators import validation
from coxfield.kernels.namespace import as_numpy, detached, rows_of
from coxfield.kernels.protocol import PerClass, rows_named
from coxfield.selection.mixture.learn import log_shares
from coxfield.selection.mixture.loo_members import COLUMNS, LOUDER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Covariance


# What changes when training rows come and go, as one value: an estimator takes it over when it is complete.


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


FOLLOWED = 0.1  # share of the rows that may change before the weights of a learned mixture follow
GROWN = 1.5  # times the rows that the covariance was chosen from: then it is chosen again
FEW = 1000  # rows up to which a choice takes a second or two, so that it is made whenever weights would follow


class LiveData:
    """Add rows to a fitted `LGCPClassifier` and remove rows from it. The covariance stays as it was chosen."""

    classes_: NDArray
    mean_: NDArray
    mean: Any
    class_weight: Any
    _log_weights: Any
    _arrived: NDArray
    selection: str | None
    selection_part: float
    learn_mean: bool
    kernel: Any
    kernel_: Any
    n_jobs: int | None
    _training: Training
    _covariances: PerClass
    _choose: Any
    _fit: Any
    _reweighed: Any
    _draft: Any
    _take_over: Any
    _class_names: Any
    _means: Any
    _check_library: Any
    _show: Any

    if TYPE_CHECKING:

        @property
        def X_fit_(self) -> Any: ...  # noqa: D102, N802

        @property
        def y_fit_(self) -> NDArray: ...  # noqa: D102

    def partial_fit(self, X, y, classes=None, sample_weight=None) -> Self:
        """Add training rows. The first call on a new object is `fit`, so it also chooses the covariance.

        The result is that of `fit` with all rows and the covariance and means unchanged. The densities of a learned
        mixture are sums over the rows that are there, so they follow. The cost is that of the new rows against all
        others. The weights of its members and the means follow when a tenth of the rows has changed, or when a new row
        would hear far more than the fit has shown. When there are half as many rows again as a mixture was chosen
        from, or a tenth of up to 1,000 rows, it is chosen again, as `reselect` does.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, default=None
            New classes, which this or a later call may bring; known classes may be among them. Other new classes are
            refused, because a new class may be a mistake in y. If the means were learned, the mean of a new class is
            the logarithm of its share of the rows, and follows that share until `reselect`.
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`.

        Returns
        -------
        self

        Examples
        --------
        >>> from coxfield import LGCPClassifier
        >>> from coxfield.datasets import load_synth
        >>> X, y, *_ = load_synth(return_X_y=True)
        >>> clf = LGCPClassifier().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
        >>> len(clf.y_fit_)
        250
        >>> len(clf.forget([0, 1, 2]).y_fit_)
        247
        """
        if hasattr(self, "_training"):
            self._check_library(X, "partial_fit")
        if not hasattr(self, "_training"):
            return self._first_rows(X, y, classes, sample_weight)
        self._refuse_soft_labels("partial_fit")
        rows = self._training.rows
        X, y = validation.check_labelled_points(
            self, detached(X), y, accept_sparse="csr", dtype=rows.like.dtype, order="C", copy=True, reset=False
        )
        weights = validation.check_added_weights(as_numpy(sample_weight), X)
        if weights is not None:
            kept = weights > 0
            X, y, weights = rows_of(X, kept), y[kept], weights[kept]
        state = self._live_state().announcing(validation.announced_classes(classes, self._class_names))
        codes = validation.numbers_among(y, state.classes)
        X = validation.like(X, rows.like)
        with (
            threads.small_steps(self.n_jobs),
            rows_named({"new training points": X, "training points": lambda: self.X_fit_}),
        ):
            return self._become(state.grown(X, codes, weights), len(codes), X) if len(codes) else self._become(state, 0)

    def _first_rows(self, X, y, classes, sample_weight) -> Self:
        """Fit. Nothing is changed if that fails."""
        fitted = self._draft()._fit(X, y, sample_weight)
        if classes is not None:
            announced = validation.announced_classes(classes, fitted._class_names)
            validation.numbers_among(
                fitted._class_names, announced
            )  # sklearn's rule: the first call announces all classes
            fitted._become(fitted._live_state().announcing(announced), 0)
        return self._take_over(fitted)

    def forget(self, rows) -> Self:
        """Remove training rows for good. Afterwards they are in no part of the object, of its pickle or its model file.

        The result is that of `fit` with the rows that are left and the covariance and means unchanged. The covariance
        is a summary of all rows from which it was chosen; call `reselect` if it should not reflect the removed ones
        either. Rows that are left keep their order. A class whose last row leaves is no class any more, unless it was
        announced to `partial_fit`.

        Parameters
        ----------
        rows : array-like of int, or of bool
            Places among the training rows, counted from 0, as in `X_fit_` and `y_fit_`; or one bool per training row.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._refuse_soft_labels("forget")
        places = check_places(rows, len(self._training.rows))
        if not len(places):
            return self
        state = self._live_state()
        state.check_what_is_left(places)
        with threads.small_steps(self.n_jobs):
            self._become(state.without(places), len(places))
        training = self._training
        training.erase()
        self._training = replace(training, leaving=())  # so that nothing holds the arrays of rows that have left
        return self

    def reselect(self) -> Self:
        """Choose the covariance and the means again, from all training rows: `fit` without giving the rows again.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._refuse_soft_labels("reselect")
        draft = self._draft()
        draft._choose_again()
        return self._take_over(draft)

    def _choose_again(self) -> None:
        rows = self._training.rows
        present, codes = np.unique(rows.y, return_inverse=True)
        self.classes_ = self._class_names[present]
        self._choose(Labelled(rows.X, codes, len(present), rows.weights), rows.X)

    def _refuse_soft_labels(self, method: str) -> None:
        weights = self._training.rows.weights
        if weights is not None and weights.ndim == 2:
            raise ValueError(f"{method} needs one label per training row, but these have a distribution over classes")

    def _row_numbers(self) -> NDArray:
        """The number of each training row in the store."""
        return self._training.rows.numbers

    def _calibrators(self) -> NDArray:
        """Training rows that calibrate `predict_set`: if the covariance was chosen from a part of them, the others."""
        chosen = self._training.rows.chosen_from
        by_part = self.selection is not None and self.selection_part != 1
        return np.flatnonzero(~chosen) if by_part else np.arange(len(chosen))

    def _set_training(self) -> Training:
        """The training rows as `predict_set` uses them.

        If the covariance was chosen from a part of the rows, its densities are those of the part here. They treat all
        other rows and a new point alike, which makes the guarantee exact.
        """
        rows, mixture = self._training.rows, self._covariances[0]
        chosen = rows.chosen_from
        if self.selection != "mixture" or self.selection_part == 1:
            return self._training
        share = rows.counts[chosen].sum() / rows.counts.sum()
        places = np.flatnonzero(chosen) if share else np.zeros(1, int)  # a point that counts for nothing
        weights = None if rows.weights is None else rows.weights[places]
        apart = mixture.apart(rows_of(rows.X, places), weights, 1 / share if share else 0.0)
        training = Training.of(rows, PerClass.shared_by(apart, len(self._class_names)), learned=False)
        return training.with_point_weights(mixture)

    def _live_state(self) -> LiveState:
        n = len(self._class_names)
        return LiveState(
            self._training,
            self._covariances,
            self._class_names,
            self._means,
            announced=getattr(self, "_announced", np.zeros(n, bool)),
            arrived=getattr(self, "_arrived", np.zeros(n, bool)),
        )

    def _become(self, state: LiveState, changed: int, arrived=None) -> Self:
        """Take over a state that is complete at once, so that a failure before has changed nothing.

        `arrived` are rows that have come.
        """
        new = self._draft()
        new._training, new.classes_ = state.training, state.classes
        new._covariances = state.covariances
        new._announced, new._arrived = state.announced, state.arrived
        new.mean_ = state.settled_mean(self.mean, shares=self.selection == "mixture" and self.learn_mean)
        if self.class_weight is not None and state.arrived.any():
            shift = new._log_weights(state.training.rows.y, state.training.rows.weights)
            new.mean_ = np.where(state.arrived, new.mean_ + shift, new.mean_)
        for stale in ("_loo_log_probabilities", "loo_error_", "loo_log_loss_"):
            new.__dict__.pop(stale, None)
        new._changed = getattr(self, "_changed", 0) + changed
        if new._outgrown:
            new._choose_again()
            new._announced, new._arrived = state.announced, np.zeros_like(state.arrived)
            return self._take_over(new)
        if new._follows and (new._changed >= FOLLOWED * len(new._training.rows) or new._too_loud(arrived)):
            new._follow()
        kernels = new._covariances.map(lambda covariance: covariance.kernel)
        new.kernel_ = validation.shown_kernel(kernels, self.kernel, new.classes_)
        new._show()
        return self._take_over(new)

    @property
    def _follows(self) -> bool:
        """Whether weights follow rows that come and go."""
        # Weights of a part of the rows stay: the other rows calibrate sets of classes.
        mixture, n_classes = self._training.mixture, len(np.unique(self._training.rows.y))
        if mixture is None or n_classes < 2 or self.selection_part != 1:
            return False
        return len(self._class_names) <= COLUMNS or not mixture.support.any()

    @property
    def _outgrown(self) -> bool:
        """Whether there are half as many rows again as the mixture was chosen from; of few rows, a tenth.

        Few rows cannot show which columns matter, and no weight makes up for that. As many rows must grow by half each
        time, all choices before the last one take at most four fifths of its time, if it is quadratic.
        """
        rows, chosen_from = self._training.rows, getattr(self, "_n_chosen", np.inf)  # older model files do not have it
        learned = self.selection == "mixture" and self.selection_part == 1 and self._training.mixture is not None
        grown = 1 + FOLLOWED if len(rows) <= FEW else GROWN
        return learned and len(rows) >= grown * chosen_from and len(np.unique(rows.y)) == len(self._class_names) > 1

    def _too_loud(self, arrived) -> bool:
        """Whether rows that have come hear far more than the members have shown: no row was so much alone before."""
        shown = getattr(self, "_largest_evidence", np.inf)  # older model files do not have it
        if arrived is None or not np.isfinite(shown):
            return False
        sums = class_sums(self._training.store, arrived).values
        return bool(np.abs(sums - sums.mean(axis=1, keepdims=True)).max() > LOUDER * shown)

    def _follow(self) -> None:
        """Weigh the members of a learned mixture again, by the rows that are there now."""
        rows, mixture = self._training.rows, self._training.mixture
        labelled = Labelled(rows.X, rows.y, len(self._class_names), rows.weights)
        self._training = self._training.under(self._reweighed(labelled, mixture))
        self._covariances, self._changed = self._training.covariances, 0
        self._arrived = self._arrived & (np.bincount(rows.y, minlength=len(self._class_names)) == 0)
