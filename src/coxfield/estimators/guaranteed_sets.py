"""Sets of classes with a guarantee: full conformal prediction in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.engine.conformal import (
    Calibrators,
    Odds,
    calibrating_points,
    count_worse,
    covariance_errors,
    odds_against,
    relative_errors,
    slack,
)
from coxfield.estimators.scored import scores_in_parts
from coxfield.kernels.protocol import rows_named
from coxfield.progress import progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.class_sums import Scores
    from coxfield.engine.store import Group
    from coxfield.engine.training import Training
    from coxfield.kernels.protocol import KernelPoints


@dataclass(frozen=True)
class LeaveOneOut:
    """What the training points say about each other. It takes as long as predicting all of them, so it is kept."""

    fitted: Training
    """The training points of the classifier at the time."""
    training: Training
    """The same points under the covariance that sets use."""
    log_probabilities: NDArray
    slack: NDArray
    """How far rounding can move the log odds of each row."""
    points: dict[tuple[int, int], list[KernelPoints]] = field(default_factory=dict)
    """Points of a covariance that learned from them, without what it learned from each."""


class GuaranteedSets:
    """`predict_set` and `set_p_values` of `LGCPClassifier`."""

    if TYPE_CHECKING:
        classes_: NDArray
        mean_: NDArray
        _training: Training
        n_jobs: int | None
        _means: Any
        _class_names: Any
        _check_library: Any
        _shown: Any

        @property
        def X_fit_(self) -> Any:  # noqa: N802
            """The training points."""

        @property
        def y_fit_(self) -> NDArray:
            """The class number of each training point."""

        @property
        def _weights(self) -> NDArray | None: ...

        def _queries(self, X) -> Any: ...

        def _set_training(self) -> Training: ...

        def _row_numbers(self) -> NDArray: ...

        def _calibrators(self) -> NDArray: ...

    def predict_set(self, X, coverage: float = 0.9, *, per_class: bool = False) -> NDArray:
        """Sets of classes that hold the true class with a probability of at least `coverage`.

        A class is in the set of a point if its p-value is above 1 - coverage; see `set_p_values`. This is full
        conformal prediction: all training points are used to predict and to calibrate, and nothing is fitted again.

        A set may hold several classes: then the point could be any of them. It may be empty: then the point is
        unlike the training points of every class, or lies where classes are mixed more than they usually are.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        coverage : float between 0 and 1, default=0.9
            How often a set must hold the true class.
        per_class : bool, default=False
            Whether each class is covered with this probability. Otherwise only all classes together are, and rare
            classes may be covered less often than frequent ones.

        Returns
        -------
        boolean array of shape (n_samples, n_classes)
            Whether each class is in the set; the columns are in the order of `classes_`.

        Notes
        -----
        **What is guaranteed.** If the training points and the new point are exchangeable, such as independent draws
        from the same distribution, the true class is in the set with a probability of at least `coverage`. The
        probability is over training points and new point together. It holds for any distribution, any number of points
        and any covariance, whether the model is right or not. A worse model has larger sets, not a lower coverage.

        **When.** The covariance and the means must have been chosen without the labels that calibrate: with
        `selection=None` and a kernel that was chosen beforehand, or with `selection_part` below 1. Then the rows from
        which the covariance was chosen still count in all sums, but they do not calibrate. If the covariance was chosen
        from all rows, nothing is proved. In practice the coverage is then slightly off, and often lower;
        `docs/guaranteed_sets.md` has figures.

        A row with a sample weight counts with its weight in the sums, and calibrates once. The new point has the weight
        1. So with other weights on rows that calibrate, the guarantee is not exact.

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from coxfield import LGCPClassifier
        >>> from coxfield.datasets import load_synth
        >>> X, y, X_test, y_test = load_synth(return_X_y=True)
        >>> clf = LGCPClassifier(0.3 * RBF(0.2), selection=None).fit(X, y)
        >>> clf.predict_set([[-0.7, 0.3], [0.0, 0.45]], coverage=0.95)
        array([[ True, False],
               [ True,  True]])
        """
        excluded = excluded_share(coverage)
        return self._shown(in_sets(*self._ranks(X, per_class), excluded))

    def set_p_values(self, X, *, per_class: bool = False) -> NDArray:
        """The p-value of each class: the share of points that fit their label as badly as the new point fits this one.

        The new point joins the training points with the class as its label. How badly a point fits its label is minus
        the log of the leave-one-out probability of the label. The new point itself counts among those that fit as
        badly. The class is in the sets of `predict_set` for all coverages above 1 minus its p-value. So one pass gives
        the sets of all coverages.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        per_class : bool, default=False
            Whether a class is compared with its own training points only. A class of which no point calibrates has the
            p-value 1, so it is in every set.

        Returns
        -------
        array of shape (n_samples, n_classes)

        Notes
        -----
        Points that are equal up to rounding count as ties, so p-values are never too small by rounding. The first call
        computes the leave-one-out probabilities of all training points, which takes as long as predicting them. They
        are kept for the next calls.

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from coxfield import LGCPClassifier
        >>> from coxfield.datasets import load_synth
        >>> X, y, X_test, y_test = load_synth(return_X_y=True)
        >>> clf = LGCPClassifier(0.3 * RBF(0.2), selection=None).fit(X, y)
        >>> clf.set_p_values([[-0.7, 0.3], [0.0, 0.45]]).round(2)
        array([[0.92, 0.  ],
               [0.18, 0.1 ]])
        """
        counts, calibrating = self._ranks(X, per_class)
        return self._shown(counts / (calibrating + 1))

    def _ranks(self, X, per_class: bool) -> tuple[NDArray, NDArray]:
        """For each row and class, 1 + the number of calibrating rows that fit as badly; and how many calibrate."""
        check_is_fitted(self)
        self._check_library(X, "set_p_values")
        if self._weights is not None and self._weights.ndim == 2:
            raise ValueError(
                "sets with a guarantee need one label per training row, but these rows have soft labels, with a weight "
                f"for each of {len(self._class_names)} classes: fit an LGCPClassifier to rows with labels"
            )
        X = self._queries(X)
        rows = self._calibrators()
        rows = rows[np.argsort(self._training.rows.y[rows], kind="stable")]
        y, n_classes = self._training.rows.y[rows], len(self._class_names)
        calibrating = np.bincount(y, minlength=n_classes) if per_class else np.full(n_classes, len(rows))
        with threads.use(self.n_jobs), rows_named({"queries": X, "training points": lambda: self.X_fit_}):
            return 1 + self._count(X, rows, per_class), calibrating

    def _count(self, X, rows: NDArray, per_class: bool) -> NDArray:
        """For each row of X and each class, the number of calibrating rows that fit as badly."""
        loo, n = self._leave_one_out(), X.shape[0]
        store = loo.training.store
        scores, found = self._set_scores(loo.training, X), np.zeros((n, len(self._class_names)), dtype=np.int64)
        queries = store.queries(X)
        least = odds_against(scores.log_probabilities) - slack(scores, relative_errors(store, queries, n))[:, None]
        work = n * len(store.groups)
        with progress(f"sets of {n} points", work, None, "float32 points take less time") as done:
            for k, group in enumerate(store.groups):
                own = rows[np.isin(self._training.rows.y[rows], group.classes)] if per_class else rows
                calibrators = self._calibrators_of(k, group, own, loo)
                if not calibrators.blocks:
                    done(n)
                    continue
                points = queries[k]
                if points is None:  # the group has no points, so the coordinates are those of the calibrators
                    points = calibrators.blocks[0].at(X)
                errors = covariance_errors(points, calibrators.blocks)
                found[:, group.classes] = count_worse(
                    calibrators, points, least[:, group.classes], errors, per_class=per_class, done=done
                )
        return found

    def _calibrators_of(self, k: int, group: Group, rows: NDArray, loo: LeaveOneOut) -> Calibrators:
        """Some training rows, sorted by class, under the covariance of a group."""
        y, name = self._training.rows.y[rows], (k, len(rows))
        blocks = loo.points.get(name)
        if blocks is None:
            blocks = calibrating_points(group, self.X_fit_, rows, self._row_numbers()[rows])
            if any(block.left_out(np.full(len(block), -1)) is not block for block in blocks[:1]):
                loo.points[name] = blocks  # they hold densities, which take time
        odds = Odds.of(loo.log_probabilities[rows], y, loo.slack[rows])
        return Calibrators(blocks, y, odds, group.classes)

    def _set_scores(self, training: Training, X, leave_out: NDArray | None = None) -> Scores:
        return scores_in_parts(training.store, training.covariances, self._means, X, leave_out)

    def _leave_one_out(self) -> LeaveOneOut:
        found, fitted = getattr(self, "_loo_log_probabilities", None), self._training
        if found is None or found.fitted is not fitted:
            training = self._set_training()
            X, numbers = training.rows.X, training.rows.numbers
            scores = self._set_scores(training, X, numbers)
            errors = relative_errors(training.store, training.store.queries(X), X.shape[0])
            found = LeaveOneOut(fitted, training, scores.log_probabilities, slack(scores, errors))
            self._loo_log_probabilities = found
        return found


def in_sets(ranks: NDArray, calibrating: NDArray, excluded: Fraction) -> NDArray:
    """Whether each class is in the set of each row; `calibrating` says how many rows the class was compared with."""
    # Whole numbers are compared with whole numbers: 1 - 0.9 is not 0.1 in binary digits.
    return ranks > np.array([excluded * (m + 1) // 1 for m in calibrating.tolist()], dtype=np.int64)


def excluded_share(coverage) -> Fraction:
    """1 - coverage, exactly: the coverage is the decimal number that is printed for it."""
    number = isinstance(coverage, Real) and not isinstance(coverage, bool)
    if not number or not 0 < float(coverage) < 1:
        raise ValueError(f"coverage must be a number between 0 and 1, such as 0.9; got {coverage!r}")
    return 1 - (coverage if isinstance(coverage, Fraction) else Fraction(str(float(coverage))))
