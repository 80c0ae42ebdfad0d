"""The temperature: choosing the signal variance by leave-one-out log loss.

Multiplying the covariance by v changes every probability, but not the arg-max (section 'Parameters'). The log loss of
softmax(mu + v G) is convex in v, so its derivative changes sign once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


# One observation of a uniform label, mixed into the labels that were seen.
#
# If every decision is right, the log loss alone has no minimum: it falls for ever as the signal variance grows. So
# one point's worth of labels, uniform over the classes, is distributed over all points. This keeps the variance
# finite. It is defined only here.


def share(total: float) -> float:
    """The share of the uniform label if the points have this total weight."""
    return 1 / (1 + total)


def mixed(values: NDArray, y: NDArray, total: float) -> NDArray:
    """Expected value of each row under its label with the uniform label mixed in.

    Parameters
    ----------
    values : array of shape (..., n, n_classes)
        Such as log probabilities.
    y : array of shape (n,), class numbers
    total : float
        Weight of all points.

    Examples
    --------
    >>> mixed(np.array([[1.0, 0.0]]), np.array([0]), total=1.0).tolist()  # half of it is the mean over the classes
    [0.75]
    """
    own = values[..., np.arange(len(y)), y]
    return (1 - share(total)) * own + share(total) * values.mean(axis=-1)


# Bounds of the log of v times the largest score. At the lower one, probabilities are practically uniform. The upper one
# covers sums that differ by many orders of magnitude.
LOWEST, HIGHEST = -15.0, 250.0
LARGEST = 600.0  # of log v, so that v does not overflow


def log_loss(log_scores: NDArray, mean: NDArray, y: NDArray, weights: NDArray, log_variance: float) -> float:
    """Mean negative log probability of y under softmax(mean + v exp(log_scores))."""
    log_p = log_softmax(mean + _scores(log_scores, log_variance), axis=1)
    return float(-np.average(log_p[np.arange(len(y)), y], weights=weights))


def best_log_variance(log_scores: NDArray, mean: NDArray, y: NDArray, weights: NDArray, guess: float = 0.0) -> float:
    """Log of the factor v that minimises the log loss of softmax(mean + v exp(log_scores)).

    The uniform label is mixed in. Without it v may grow to infinity; see `uniform_label`.

    Parameters
    ----------
    log_scores : array of shape (n, n_classes)
        Log of the scores at unit variance, C_i(0)/2 + S_i, up to a constant per row.
    mean : array of shape (n_classes,)
    y : array of shape (n,), class numbers
    weights : array of shape (n,)
    guess : float
        Where to look first: log v plus the largest of `log_scores`.
    """
    largest = float(log_scores.max())
    if np.isneginf(largest):
        return 0.0
    return least_loss(Slope.of(log_scores, mean, y, weights, largest, weights.sum()).at, largest, guess)


@dataclass(frozen=True)
class Slope:
    """Derivative by v of the loss of some rows. Those of several sets of rows add up."""

    scores: NDArray
    """In units of the largest score of all rows."""
    wanted: NDArray
    """The score of each row under its label, with the uniform label mixed in."""
    mean: NDArray
    weights: NDArray

    @classmethod
    def of(cls, log_scores: NDArray, mean: NDArray, y: NDArray, weights: NDArray, largest: float, total: float):
        """From log scores; `largest` is the largest of all rows, and `total` the weight of all rows."""
        scores = np.exp(log_scores - largest)
        return cls(scores, mixed(scores, y, total), mean, weights)

    def at(self, log_v: float) -> float:
        """The derivative, in units of the largest score."""
        expected = np.einsum("ij,ij->i", softmax(self.mean + np.exp(log_v) * self.scores, axis=1), self.scores)
        return float(self.weights @ (expected - self.wanted))


def least_loss(slope: Callable[[float], float], largest: float, guess: float) -> float:
    """The log of v where the slope of the loss of all rows changes its sign; `largest` is the largest log score."""
    highest = min(HIGHEST, LARGEST + largest)
    # Where sums have logarithms of -1e18, the difference is rounded by more than the range of log v.
    return min(_sign_change(slope, guess, min(LOWEST, highest), highest) - largest, LARGEST)


def _sign_change(slope, guess: float, lowest: float, highest: float) -> float:
    """The zero of a function that changes sign from minus to plus, or the bound nearest to it."""
    low = high = float(np.clip(guess, lowest, highest))
    step = 0.5
    rising = slope(low) > 0
    # Walk downhill with growing steps until the slope changes sign; a good guess brackets it at once.
    while True:
        if rising:
            low, high = max(low - step, lowest), low
            if slope(low) <= 0:
                break
            if low == lowest:
                return low
        else:
            low, high = high, min(high + step, highest)
            if slope(high) > 0:
                break
            if high == highest:
                return high
        step *= 2
    return float(brentq(slope, low, high, xtol=1e-4))


def _scores(log_scores: NDArray, log_variance: float) -> NDArray:
    """v exp(log_scores), limited so that exp does not overflow."""
    return np.exp(np.minimum(log_scores + log_variance, 600.0))
