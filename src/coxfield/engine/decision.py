"""From class sums to probabilities and decisions: eqs predictiveDistribution and activationFunction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.class_sums import ClassSums


def relative_scores(prior: NDArray, sums: ClassSums) -> NDArray:
    """F of eq. activationFunction up to a constant a row.

    `prior` holds mu_i + C_i(0)/2. What it shares between classes cancels in the softmax, and is dropped before the sums
    are added: a class sum of 1e-14 would be lost beside C(0)/2 = 1/2, and it is what decides.
    """
    return prior - prior.max(axis=1, keepdims=True) + sums.values


def log_probabilities(prior: NDArray, sums: ClassSums) -> NDArray:
    """Log of eq. predictiveDistribution."""
    return log_softmax(relative_scores(prior, sums), axis=1)


def decide(prior: NDArray, sums: ClassSums) -> NDArray:
    """Class of largest score; among scores that rounding has made equal, the class of largest log sum.

    When every kernel value underflows, all sums are 0 and the logarithms still tell the nearest neighbour's class.
    """
    scores = relative_scores(prior, sums)
    best = scores == scores.max(axis=1, keepdims=True)
    finite = np.maximum(sums.logs, np.finfo(float).min)  # a class without points may still win by its mean
    return np.where(best, finite, -np.inf).argmax(axis=1)
