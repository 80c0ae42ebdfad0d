"""Compression of features with heavy tails: like a logarithm, but for numbers of either sign.

A few very large values make the standard deviation of a feature useless as its unit: almost all points are then at
the same place. The inverse hyperbolic sine is linear near the median and logarithmic far from it. It has no bound, so
what is far from all points stays far.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coxfield.kernels.units import feature_units, in_units

LINEAR = 0.1  # of the distance between the quartiles: nearer to the median, the compression is linear
HEAVY = 8.0  # range from the 1st to the 99th percentile, in distances between the quartiles; 3.4 if normal
SOME = 0.25  # of the features: if so many have heavy tails, compression is worth its time


class Compression(TransformerMixin, BaseEstimator):
    """asinh((x - median) / (0.1 times the distance between the quartiles)), feature by feature.

    Attributes
    ----------
    centre_, scale_ : arrays of shape (n_features,)

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [1e6]])
    >>> Compression().fit(X).transform(X).round(1).ravel().tolist()
    [-3.0, -2.3, 0.0, 2.3, 16.1]
    """

    def fit(self, X, y=None):
        """Learn the median and the unit of each feature; weights of points play no part."""
        low, self.centre_, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0).astype(X.dtype)
        scale = LINEAR * (high - low)
        # If half of the values are the same, the standard deviation of the feature has to do.
        self.scale_ = np.where(scale > 0, scale, X.std(axis=0))
        self.scale_[~(self.scale_ > 0)] = 1
        return self

    def transform(self, X):
        """Compressed points."""
        check_is_fitted(self)
        largest = np.finfo(X.dtype).max
        with np.errstate(over="ignore"):
            return np.arcsinh(np.clip((X - self.centre_) / self.scale_, -largest, largest))


def heavy_tailed(X) -> bool:
    """Whether enough features have heavy tails.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> heavy_tailed(X), heavy_tailed(np.exp(2 * X))
    (False, True)
    """
    lowest, low, high, highest = np.quantile(in_units(X, feature_units(X)), [0.01, 0.25, 0.75, 0.99], axis=0)
    varied = high > low
    if not varied.any():
        return False
    return bool(np.mean((highest - lowest)[varied] > HEAVY * (high - low)[varied]) >= SOME)
