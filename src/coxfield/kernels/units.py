"""Units of features: those of extreme size are divided by powers of two, so that their squares can be computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coxfield.utils.powers_of_two import units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def feature_sizes(X) -> NDArray:
    """The largest absolute value of each feature, in double precision."""
    if sparse.issparse(X):
        return abs(X).max(axis=0).toarray().ravel().astype(float)
    return np.maximum(X.max(axis=0), -X.min(axis=0)).astype(float)


def feature_units(X) -> NDArray:
    """A power of two for each feature: 1, unless squares of the feature would overflow or vanish.

    Examples
    --------
    >>> feature_units(np.array([[3.0, 1e200], [-5.0, 0.0]])).tolist() == [1, 2.0**664]
    True
    """
    return units_of(feature_sizes(X), X.dtype)


def in_units(X, units: NDArray):
    """The features divided by their units, in the precision of X; X itself if all units are 1."""
    if (units == 1).all():
        return X
    if sparse.issparse(X):
        found = sparse.csr_array(X, copy=True)
        found.data = _divided(found.data, units[found.indices])
        return found
    return _divided(X, units)


def _divided(values: NDArray, units: NDArray) -> NDArray:
    # In double precision, because a unit may be no number in single precision. Far from the points that the units
    # come from, the ratio may still overflow; it is then the largest number, which is far enough.
    largest = np.finfo(values.dtype).max
    with np.errstate(over="ignore"):
        return np.clip(values.astype(float) / units, -largest, largest).astype(values.dtype)


class Units(TransformerMixin, BaseEstimator):
    """Divide features of extreme size by powers of two.

    Attributes
    ----------
    units_ : array of shape (n_features,)

    Examples
    --------
    >>> Units().fit_transform(np.array([[1.0, 2.0**700], [3.0, 2.0**701]])).tolist()
    [[1.0, 0.5], [3.0, 1.0]]
    """

    def fit(self, X, y=None):
        """Learn the unit of each feature."""
        self.units_ = feature_units(X)
        return self

    def transform(self, X):
        """Points in these units."""
        check_is_fitted(self)
        return in_units(X, self.units_)
