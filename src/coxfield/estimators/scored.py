"""Labels, probabilities and decision functions from scores, for all classifiers of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ScoredClassifier(ClassifierMixin):
    """A classifier whose scores are `Scores`; a subclass has `classes_` and the first two methods below.

    The next ones are replaced by classifiers that take arrays of other libraries than NumPy.
    """

    classes_: Any

    def _scores(self, X) -> Any:
        """Scores of new points, after checking them: `Scores`, `StatedScores` or `ArrayScores`."""
        raise NotImplementedError

    @property
    def _precision(self):
        """The dtype of the returned numbers."""
        raise NotImplementedError

    def _returned(self, values):
        largest = np.finfo(self._precision).max
        return np.clip(values, -largest, largest).astype(self._precision, copy=False)

    def _exponentials(self, logs):
        return np.exp(logs)

    def _named(self, codes):
        """The classes of some class numbers."""
        return self.classes_[codes]

    def _check_library(self, X, method: str) -> None:
        """Refuse points of another array library than those of `fit`, for classifiers that take several libraries."""

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
