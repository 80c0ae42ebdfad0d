"""What the baselines share: checks of points, the length scales that they try, and the squared exponential."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from coxfield.estimators.validation import check_labelled_points, check_points, class_numbers
from coxfield.kernels.transforms import feature_sizes
from coxfield.selection.grid import default_factors, given_factors, typical_distance
from coxfield.utils.numbers import ORDINARY, units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Baseline(ClassifierMixin, BaseEstimator):
    """Points and labels checked once, and the class of the largest score as the prediction."""

    classes_: NDArray

    def _labelled_points(self, X, y) -> tuple[NDArray, NDArray]:
        """The points, checked, and their class numbers; sets the classes, and drops what an earlier fit selected."""
        self.__dict__.pop("selection_path_", None)
        X, y = check_labelled_points(self, X, y, dtype=np.float64)
        self.classes_, codes = class_numbers(y, self)
        return X, codes

    def _queries(self, X) -> NDArray:
        """New points of a fitted estimator, checked."""
        check_is_fitted(self)
        return check_points(self, X, dtype=np.float64, reset=False)

    def _decisions(self, X) -> NDArray:
        """Scores of the classes, shape (n, classes); for two classes also the score of the second one alone, (n,)."""
        raise NotImplementedError

    def predict(self, X) -> NDArray:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._decisions(X)
        return self.classes_[scores.argmax(axis=1) if scores.ndim > 1 else (scores > 0).astype(int)]


def check_length_scale(length_scale) -> float:
    """The length scale that the user gives; a wrong one is refused."""
    if not isinstance(length_scale, Real) or not 0 < float(length_scale) < np.inf:
        raise ValueError(f"length_scale must be a positive finite number, or None to choose it; got {length_scale!r}")
    return float(length_scale)


def candidates(X, length_scales) -> NDArray:
    """The length scales to try, longest first: the given ones, or the 24 of `LGCPClassifier`.

    They are in steps of sqrt(2) and suit the data, and no method has a better search than another.
    """
    if length_scales is not None:
        return given_factors(length_scales)
    if not (X[:1] != X).any():  # a range may be too large for a number
        raise ValueError("all points are the same, so there is no length scale to choose: give length_scale")
    return default_factors(typical_distance(X))


def log_kernel(d2: NDArray, length_scale: float) -> NDArray:
    """-d2 / (2 l^2); -inf if that is not a number, and 0 for the same point.

    Examples
    --------
    >>> log_kernel(np.array([0.0, 2.0]), 1.0).tolist(), log_kernel(np.array([0.0, 2.0]), 1e-200).tolist()
    ([0.0, -1.0], [0.0, -inf])
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        logs = d2 / (-2 * np.square(np.float64(length_scale)))
    return np.where(d2 == 0, 0.0, logs)


def unit_of(X: NDArray) -> float:
    """A power of two in which squared distances of the points neither overflow nor vanish; 1 for ordinary points."""
    return float(units_of(feature_sizes(X).max(keepdims=True), X.dtype)[0])


def in_unit(X: NDArray, unit: float) -> NDArray:
    """Points in a unit; those so far away that squares would overflow are brought nearer."""
    limit = ORDINARY[X.dtype]
    with np.errstate(over="ignore"):
        return np.clip(X / unit, -limit, limit)
