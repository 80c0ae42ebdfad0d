"""Features with heavy tails, outliers or codes such as 9999: normal scores of their ranks, and compression.

A few very large values make the standard deviation of a feature useless as its unit: almost all points are then at
the same place. Ranks do not see how large the values are. Compression is like a logarithm, but for numbers of either
sign: linear near the median and logarithmic far from it. Neither has a bound, so what is far from all points stays far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
FAR = 8.0  # spreads from the median: values beyond that say nothing about the unit of a feature
KNOTS = 100  # per feature; the line between two of them is shorter than the step from rank to rank of a few rows
LINEAR = 0.1  # of the distance between the quartiles: nearer to the median, the compression is linear


class NormalScores(TransformerMixin, BaseEstimator):
    """Ranks as normal scores, feature by feature, and linear between a few knots and beyond them.

    The value whose rank is the share p of all values becomes the p-quantile of the standard normal distribution. Equal
    values share their mean rank. Beyond the data, a unit is the spread of the middle half of the values. Knots are half
    way between two values, so that no value of a row is kept.

    Attributes
    ----------
    values_, scores_ : arrays of shape (n_knots, n_features)
        At most `KNOTS` places between values of each feature, ascending, and their scores; the last may be repeated.
    slopes_ : array of shape (n_features,)
        Of the lines beyond the data.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0], [1e6]])
    >>> NormalScores().fit(X).transform(X).round(1).ravel().tolist()
    [-1.2, -0.4, 0.0, 1.2]
    """

    def fit(self, X, y=None):
        """Learn the ranks of the values; weights of points play no part."""
        knots, slopes = [], []
        for column in np.asarray(X, dtype=float).T:
            values, counts = np.unique(column, return_counts=True)
            scores = ndtri((np.cumsum(counts) - counts / 2) / len(column))
            places, between = _half_way(values), _half_way(scores)
            kept = np.unique(np.searchsorted(between, np.linspace(between[0], between[-1], KNOTS)))
            kept = kept if len(places) > KNOTS else np.arange(len(places))
            knots.append((places[kept], between[kept]))
            low, high = np.quantile(column, [0.25, 0.75])
            spread = (high - low) / 1.349  # of a normal distribution, the standard deviation
            spread = spread if spread > 0 else np.ptp(values)
            slopes.append(1 / spread if spread > 0 else 1.0)
        most = max(len(values) for values, _ in knots)
        padded = [[np.pad(each, (0, most - len(each)), mode="edge") for each in pair] for pair in knots]
        self.values_, self.scores_ = np.transpose(padded, (1, 2, 0))
        self.slopes_ = np.minimum(slopes, np.finfo(X.dtype).max)
        return self

    def transform(self, X):
        """Scores of points."""
        check_is_fitted(self)
        found = np.empty(X.shape, X.dtype)
        largest = np.finfo(X.dtype).max / 4
        for k, (values, scores) in enumerate(zip(self.values_.T, self.scores_.T, strict=True)):
            column = X[:, k].astype(float)
            with np.errstate(over="ignore"):
                beyond = (column - np.clip(column, values[0], values[-1])) * self.slopes_[k]
                found[:, k] = np.clip(np.interp(column, values, scores) + beyond, -largest, largest)
        return found


def _half_way(values: NDArray) -> NDArray:
    """The middles of neighbouring values, and one place as far beyond either end."""
    if len(values) == 1:
        return values + np.array([-1.0, 1.0])
    middles = values[:-1] / 2 + values[1:] / 2
    return np.array([2 * values[0] - middles[0], *middles, 2 * values[-1] - middles[-1]])


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


def winsorised(X) -> NDArray:
    """The values of each feature, moved to within `FAR` spreads of its median.

    The spread is that of the middle half of the values, of nine tenths if the half is all the same, or of 98 per cent.

    Examples
    --------
    >>> winsorised(np.array([[1.0], [2.0], [3.0], [4.0], [1e6]])).round(1).ravel().tolist()
    [1.0, 2.0, 3.0, 4.0, 14.9]
    """
    levels = np.quantile(X, QUANTILES, axis=0)
    spread = np.full(X.shape[1], np.inf)
    for low, high in ((0, 6), (1, 5), (2, 4)):
        of_normal = ndtri(QUANTILES[high]) - ndtri(QUANTILES[low])
        width = (levels[high] - levels[low]) / of_normal
        spread = np.where(width > 0, width, spread)
    return np.clip(X, levels[3] - FAR * spread, levels[3] + FAR * spread).astype(X.dtype, copy=False)
