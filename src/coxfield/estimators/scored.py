"""Labels, probabilities and decision functions from scores, for all classifiers of the package."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from coxfield.engine.class_sums import ClassSums, Scores, class_sums, prior_terms
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.namespace import NUMPY, Library, at_home, is_dispatched, is_foreign, rows_of, to_numpy
from coxfield.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.engine.store import Store
    from coxfield.kernels.protocol import Covariance, PerClass


# Scores of many points, part by part, so that somebody can be told how far they are.


ROWS = 8192  # points of a part: several tiles for each thread


def scores_in_parts(
    store: Store,
    covariances: PerClass[Covariance],
    mean: NDArray,
    X,
    leave_out: NDArray | None = None,
    sums: Callable[..., ClassSums] = class_sums,
) -> Scores:
    """Scores of each row of X from labelled points.

    Parameters
    ----------
    store : Store
        The labelled points.
    covariances : PerClass of Covariance
    mean : array of shape (n_classes,)
    X : array or CSR array of shape (n, d)
    leave_out : array of shape (n,), optional
        For each row of X, the row of the store that must not count.
    sums : function
        `class_sums`, or `NearSums` of the store.
    """
    found = []
    with progress(f"scores of {X.shape[0]} points", X.shape[0], None, "float32 points take less time") as done:
        for part in gen_batches(X.shape[0], ROWS):
            some, left = rows_of(X, part), None if leave_out is None else leave_out[part]
            found.append(Scores(prior_terms(covariances, some, mean), sums(store, some, left)))
            done(part.stop - part.start)
    return found[0] if len(found) == 1 else _joined(found)


def _joined(parts: list[Scores]) -> Scores:
    sums = ClassSums(*(np.concatenate([getattr(part.sums, name) for part in parts]) for name in ("values", "logs")))
    priors = [np.broadcast_to(part.prior, part.sums.values.shape) for part in parts]  # one row may stand for all
    return Scores(np.concatenate(priors), sums)


def _home(value) -> Any:
    """A fitted attribute without arrays of other libraries."""
    if isinstance(value, Mixture):
        return replace(value, X=at_home(value.X))
    return to_numpy(value) if is_foreign(value) else value


def _held_classes(classes: NDArray, library: Library) -> Any:
    """Classes that are numbers, in the library; others stay as they are."""
    if classes.dtype.kind == "u" and classes.max() <= np.iinfo(np.int64).max:
        classes = classes.astype(np.int64)  # torch can hardly use other unsigned integers than bytes
    return library.array(classes) if classes.dtype.kind in "bif" else classes


# Labels and probabilities, in the library of the points and on their device.


class ScoredClassifier(ClassifierMixin):
    """A classifier whose scores are `Scores`; a subclass has `classes_` and the first two methods below."""

    classes_: Any
    mean_: Any
    columns_: Any = None
    """How the columns of a table become points; None if all are numbers."""
    _training: Any
    _library: Any = None
    """The library of the training points, for classifiers that take arrays of other libraries than NumPy."""

    def _scores(self, X) -> Any:
        """Scores of new points, after checking them: `Scores` or `StatedScores`."""
        raise NotImplementedError

    @property
    def _precision(self):
        """The dtype of the returned numbers."""
        raise NotImplementedError

    @property
    def _foreign(self) -> bool:
        """Whether the training points are in another library than NumPy."""
        return self._library is not None and self._library.foreign

    @property
    def _class_names(self) -> Any:
        """The classes, as NumPy has them."""
        return to_numpy(self.classes_)

    @property
    def _means(self) -> Any:
        """The class means, as NumPy has them."""
        return to_numpy(self.mean_)

    def _show(self) -> None:
        """Hold classes and means, which users see, in the library of the training points."""
        if self._foreign:
            self.classes_ = _held_classes(self._class_names, self._library)
            self.mean_ = self._library.array(self._means)

    def _shown(self, values: NDArray) -> Any:
        """Numbers of NumPy in the library of the training points."""
        return self._library.array(values) if self._foreign else values

    def _check_library(self, X, method: str) -> None:
        """Refuse points of another library or on another device than those of `fit`."""
        if type(self)._library is None:  # `check_points` refuses them
            return
        check_is_fitted(self)
        fitted = self._library
        given = Library.of(X) if is_dispatched(X) else NUMPY
        off = is_foreign(X) and not given.foreign
        if given == fitted and not (off and fitted.foreign):
            return
        raise ValueError(
            f"Inputs passed to {type(self).__name__}.{method}() must use the same namespace and the same device as "
            f"those passed to fit(), which were {fitted if fitted.foreign else 'NumPy arrays'}; got "
            + (
                "arrays without dispatch: use sklearn.config_context(array_api_dispatch=True)"
                if off
                else f"{given if given.foreign else 'NumPy arrays'}: convert them, or fit again"
            )
        )

    def _returned(self, values):
        if self._foreign:
            return self._library.finite(values, self._training.rows.like.dtype)
        largest = np.finfo(self._precision).max
        return np.clip(values, -largest, largest).astype(self._precision, copy=False)

    def _exponentials(self, logs):
        return self._library.xp.exp(logs) if self._foreign else np.exp(logs)

    def _named(self, codes):
        """The classes of some class numbers: in the library of the points, unless they are text."""
        if isinstance(self.classes_, np.ndarray):
            return self.classes_[codes]
        return self._library.xp.take(self.classes_, self._library.array(codes))

    def _in_numpy(self) -> Self:
        """The same classifier on NumPy arrays; this one, if it is."""
        if not self._foreign:
            return self
        this: Any = self
        found: Any = type(self).__new__(type(self))
        found.__setstate__({name: _home(value) for name, value in this.__getstate__().items()})
        return found

    def class_scores(self, X) -> NDArray:
        """The score of each class. The probabilities are the softmax of the scores.

        For log Gaussian Cox processes it is F of eq. activationFunction: mean plus half the variance plus class sum.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_library(X, "class_scores")
        return self._returned(self._scores(X).values)

    def decision_function(self, X) -> NDArray:
        """Score of class 1 minus score of class 0 for two classes; scores up to a constant per row for more.

        Unlike `class_scores`, it omits the terms that all classes share, so that small differences keep their digits.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        self._check_library(X, "decision_function")
        scores = self._returned(self._scores(X).relative)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_log_proba(self, X) -> NDArray:
        """Log probabilities of the classes; see `predict_proba`."""
        self._check_library(X, "predict_log_proba")
        return self._returned(self._scores(X).log_probabilities)

    def predict_proba(self, X) -> NDArray:
        """Probabilities of the classes, eq. predictiveDistribution.

        Far from all data they tend to the probabilities without data, such as softmax(mu + C(0)/2).

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_library(X, "predict_proba")
        return self._exponentials(self.predict_log_proba(X))

    def predict(self, X) -> NDArray:
        """Most probable class of each row; if every covariance underflows, the class of the nearest neighbour.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._check_library(X, "predict")
        return self._named(self._scores(X).decisions)

    def predict_with_proba(self, X) -> tuple[NDArray, NDArray]:
        """Labels and probabilities together, in one pass over the training points.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            As by `predict`.
        probabilities : ndarray of shape (n_samples, n_classes)
            As by `predict_proba`.
        """
        self._check_library(X, "predict_with_proba")
        scores = self._scores(X)
        probabilities = self._exponentials(self._returned(scores.log_probabilities))
        return self._named(scores.decisions), probabilities
