"""`SLGCPClassifier`: many points and few labels, by the most probable labelling of the label field."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from coxfield import covariance
from coxfield.class_sums import arrange, class_sums
from coxfield.classifier import LGCPClassifier
from coxfield.field import LabelField, MapResult, map_labels
from coxfield.progress import progress
from coxfield.selection.cross_validation import cv_path, folds
from coxfield.selection.length_scale_path import candidate_factors
from coxfield.selection.temperature import best_log_variance
from coxfield.validation import by_class, class_kernels, separate_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

SELECTIONS = ("cv_error", None)


class TrivialLabellingWarning(UserWarning):
    """The most probable labelling gives every unlabelled point to one class."""


class SLGCPClassifier(ClassifierMixin, BaseEstimator):
    r"""Label the unlabelled points by the exact MAP of the log Gaussian Cox process model, and know that it is exact.

    Given where all points are, the labels follow a Potts model whose weights are the covariance function (eq.
    explicitMRF). Fitting finds the most probable labels of the unlabelled points: for two classes exactly, by minimum
    cuts; for more by alpha-expansion, with a bound on what may be missing. New points are classified as
    `LGCPClassifier` does, with those labels as data.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, or mapping class -> kernel, default=None
        Covariance function without negative values, shared or one a class. None stands for `RBF(1.0)`, whose length
        scale is set by the selection and whose signal variance by leave-one-out log loss of the labelled points.
    mean : float or mapping class -> float, default=0.0
        Means mu_i of the Gaussian processes: a prior bias between classes.
    selection : {"cv_error", None}, default="cv_error"
        "cv_error" chooses a factor for the length scales by the error in cross validation of the labelled points, with
        all other points at hand (the paper's rule): the longest length scale that errs on at most one label more than
        the best, and does not give all unlabelled points to one class.
        None takes the kernel as it is. When every point is labelled, leave-one-out decides as in `LGCPClassifier`.
    length_scales : array-like, default=None
        Factors tried for the length scales; with the default kernel, the length scales themselves. None for 24 of them,
        from twice the root mean square distance downwards, each shorter by sqrt(2).
    n_folds : int, default=10
        Folds of the cross validation; at most one a labelled point.
    missing_label : int, float, str or None, default=-1
        What stands in y for an unknown label. None and NaN stand for each other.
    tolerance : float, default=1e-9
        A gap between energy and lower bound that counts as none, relative to what the labelling pays.
    n_jobs : int, default=None
        Threads; None for as many as a matrix product takes, -1 for all processors.
    verbose : int, default=0
        Above 0, show the progress of the selection.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_samples,)
        Label of every training point: the given one, or the most probable.
    certified_ : ndarray of bool, shape (n_samples,)
        Whether the label is given, or proven to belong to a labelling of least energy.
    energy_ : float
        Energy of the labelling, -log of its unnormalised probability.
    lower_bound_ : float
        No labelling has less energy than this.
    gap_ : float
        `energy_ - lower_bound_`.
    result_ : MapResult
        All that the solver reports of the labelling.
    kernel_ : kernel, or dict class -> kernel
        The covariance in use.
    mean_ : ndarray of shape (n_classes,)
    selection_path_ : dict of arrays
        What was tried: "length_scale", "cv_error", "trivial" and "chosen". A trivial length scale, at which one class
        takes all unlabelled points, is not cross-validated and has NaN. Absent with `selection=None`.
    classifier_ : LGCPClassifier
        The classifier of new points.

    Examples
    --------
    Two rings, one label in twenty:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield import SLGCPClassifier
    >>> from coxfield.datasets import make_circles
    >>> X, truth = make_circles(2, random_state=3)
    >>> y = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    >>> clf = SLGCPClassifier(0.25 * RBF(1.0), selection=None).fit(X, y)
    >>> print(f"{np.sum(clf.transduction_ != truth)} of {len(X)} wrong, all certified: {clf.certified_.all()}")
    0 of 300 wrong, all certified: True
    """

    def __init__(
        self,
        kernel=None,
        *,
        mean=0.0,
        selection="cv_error",
        length_scales=None,
        n_folds=10,
        missing_label=-1,
        tolerance=1e-9,
        n_jobs=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.mean = mean
        self.selection = selection
        self.length_scales = length_scales
        self.n_folds = n_folds
        self.missing_label = missing_label
        self.tolerance = tolerance
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y):
        """Label the unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels, with `missing_label` where they are unknown.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("selection_path_", None)  # an earlier fit's
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.classes_, codes = self._labels(X, y)
        self.mean_ = by_class(self.mean, self.classes_, "mean", default=0.0)
        if (codes >= 0).all():
            return self._fit_supervised(X, codes)
        kernels = class_kernels(RBF(1.0) if self.kernel is None else self.kernel, self.classes_)
        if self.selection is not None:
            kernels = self._select(X, codes, kernels)
        field = LabelField.from_points(
            X, kernels, codes, mean=self.mean_, n_classes=len(self.classes_), n_jobs=self.n_jobs
        )
        self._set_result(field, codes)
        if self.kernel is None and np.ptp(self.mean_) == 0:
            kernels = self._temper(X, codes, kernels)
        self._set_classifier(X, kernels)
        self._warn_if_trivial(codes)
        return self

    def _check_parameters(self) -> None:
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection must be one of {', '.join(map(repr, SELECTIONS))}; got {self.selection!r}")
        if not isinstance(self.n_folds, int | np.integer) or self.n_folds < 2:
            raise ValueError(f"n_folds must be an integer of at least 2, got {self.n_folds!r}")

    def _labels(self, X, y) -> tuple[NDArray, NDArray]:
        """The classes, and the class number of each row, -1 where it is unknown."""
        y, known = separate_labels(y, self.missing_label, X)
        if not known.any():
            raise ValueError(
                f"no point is labelled: every entry of y is missing_label={self.missing_label!r}; label at least one "
                "of each class, or give another missing_label"
            )
        check_classification_targets(y[known])
        classes, numbers = np.unique(y[known], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"SLGCPClassifier needs labels of at least two classes, got only one class: {classes.tolist()[0]!r}"
            )
        codes = np.full(len(known), -1)
        codes[known] = numbers
        return classes, codes

    def _fit_supervised(self, X, codes):
        """With nothing to label, this is the supervised classifier."""
        selection = None if self.selection is None else "loo_error"
        self.classifier_ = LGCPClassifier(
            self.kernel,
            mean=self.mean,
            selection=selection,
            length_scales=self.length_scales,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        ).fit(X, self.classes_[codes])
        self.kernel_ = self.classifier_.kernel_
        kernels = class_kernels(self.kernel_, self.classes_)
        self._set_result(LabelField.from_points(X, kernels, codes, mean=self.mean_), codes)
        return self

    def _select(self, X, codes, kernels) -> list:
        """The kernels with the length scale that cross validation prefers."""
        described = {id(kernel): covariance.recognise(kernel, X.shape[1]) for kernel in kernels}
        spread = arrange(X, np.zeros(X.shape[0], dtype=int), [described[id(kernels[0])]])
        factors = candidate_factors(spread, kernels, self.length_scales, bounded=self.kernel is not None)
        total = len(factors) * (1 + len(folds(codes, self.n_folds)))
        with progress(f"cross validation, {len(factors)} length scales", total, self.verbose) as done:
            path = cv_path(
                X,
                codes,
                kernels,
                self.mean_,
                factors,
                n_folds=self.n_folds,
                done=done,
                tolerance=self.tolerance,
                n_jobs=self.n_jobs,
            )
        scale = described[id(kernels[0])].length_scale
        self.selection_path_ = path.columns(scale if len(described) == 1 and isinstance(scale, float) else 1.0)
        return [covariance.rescale_length(kernel, path.factor[path.best()]) for kernel in kernels]

    def _temper(self, X, codes, kernels) -> list:
        """The kernels with the signal variance that predicts the labelled points best, each from all the others."""
        known = np.flatnonzero(codes >= 0)
        training = arrange(X, self._codes, [covariance.recognise(kernels[0], X.shape[1])] * len(kernels))
        sums = class_sums(training, X[known], leave_out=known, n_jobs=self.n_jobs)
        variance = float(np.exp(best_log_variance(sums.logs, self.mean_, codes[known], np.ones(len(known)))))
        # Equal means are the only part of the energy that the variance does not multiply; no label changes.
        self._report(self.result_.rescaled(variance, constant=-self.mean_[0] * (codes < 0).sum()))
        return [covariance.rescale_variance(kernels[0], variance)] * len(kernels)

    def _report(self, result: MapResult) -> None:
        self.result_ = result
        self.energy_, self.lower_bound_, self.gap_ = result.energy, result.lower_bound, result.gap

    def _set_result(self, field: LabelField, codes) -> None:
        self._report(map_labels(field, tolerance=self.tolerance, n_jobs=self.n_jobs))
        self._codes = codes.copy()
        self._codes[field.nodes] = self.result_.labels
        self.transduction_ = self.classes_[self._codes]
        self.certified_ = np.ones(len(codes), dtype=bool)
        self.certified_[field.nodes] = self.result_.certified

    def _set_classifier(self, X, kernels) -> None:
        shared = not isinstance(self.kernel, Mapping)
        self.kernel_ = kernels[0] if shared else dict(zip(self.classes_.tolist(), kernels, strict=True))
        self.classifier_ = LGCPClassifier(self.kernel_, mean=self.mean, selection=None, n_jobs=self.n_jobs)
        self.classifier_.fit(X, self.transduction_)

    def _warn_if_trivial(self, codes) -> None:
        found = np.unique(self._codes[codes < 0])
        if len(found) == 1 and (codes < 0).sum() > 1:
            warnings.warn(
                f"the most probable labelling gives all {(codes < 0).sum()} unlabelled points to class "
                f"{self.classes_[found].tolist()[0]!r}, as minimum cuts do when labels are few and the "
                "length scale is long; try a shorter length scale, class means that speak for the other classes, or "
                "more labels",
                TrivialLabellingWarning,
                stacklevel=3,
            )

    def predict(self, X):
        """Most probable class of new points, with `transduction_` as data."""
        check_is_fitted(self)
        return self.classifier_.predict(self._points(X))

    def predict_proba(self, X):
        """Probabilities of the classes for new points, with `transduction_` as data."""
        check_is_fitted(self)
        return self.classifier_.predict_proba(self._points(X))

    def predict_log_proba(self, X):
        """Log probabilities of the classes for new points, with `transduction_` as data."""
        check_is_fitted(self)
        return self.classifier_.predict_log_proba(self._points(X))

    def decision_function(self, X):
        """F of class 1 minus F of class 0 for two classes; F up to a constant a row for more."""
        check_is_fitted(self)
        return self.classifier_.decision_function(self._points(X))

    def class_scores(self, X):
        """F of eq. activationFunction for new points, with `transduction_` as data."""
        check_is_fitted(self)
        return self.classifier_.class_scores(self._points(X))

    def _points(self, X):
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
