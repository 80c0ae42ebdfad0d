"""From class sums to probabilities and decisions: eqs predictiveDistribution and activationFunction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.class_sums import ClassSums
    from coxfield.kernels.per_class import PerClass
    from coxfield.kernels.protocol import Covariance


def prior_terms(covariances: PerClass[Covariance], X, mean: NDArray) -> NDArray:
    """The terms mu_i + C_i(x*, x*) / 2 of eq. activationFunction, shape (1 or n, n_classes).

    If all classes share a covariance that is not stationary, C(x*, x*) is the same number for all of them. It cancels,
    takes time to compute, and may grow without bound away from the data. So it is left out.
    """
    if covariances.shared and not covariances[0].stationary:
        return mean[None].copy()
    halves = covariances.map(lambda covariance: covariance.diagonal(X) / 2)
    n = np.broadcast_shapes(*(half.shape for half in halves.distinct))[0]
    return np.stack([mean[c] + np.broadcast_to(half, n) for c, half in enumerate(halves)], axis=1)


@dataclass(frozen=True)
class Scores:
    """F of eq. activationFunction in two parts. They are kept apart so that small sums keep their digits."""

    prior: NDArray
    """mu_i + C_i(x*, x*) / 2, shape (1 or n, n_classes)."""
    sums: ClassSums

    @property
    def values(self) -> NDArray:
        """F itself, shape (n, n_classes)."""
        return self.prior + self.sums.values

    @property
    def relative(self) -> NDArray:
        """F up to a constant per row.

        The part of the prior that all classes share cancels in the softmax. It is dropped before the sums are added:
        a class sum of 1e-14 would lose its digits beside C(0)/2 = 1/2, although it decides.
        """
        return self.prior - self.prior.max(axis=1, keepdims=True) + self.sums.values

    @property
    def log_probabilities(self) -> NDArray:
        """Log of eq. predictiveDistribution."""
        return log_softmax(self.relative, axis=1)

    @property
    def decisions(self) -> NDArray:
        """Class of largest score; if rounding has made scores equal, the one with the largest log sum among them.

        If every kernel value underflows, all sums are 0. Their logarithms still tell the nearest class.
        """
        scores = self.relative
        best = scores == scores.max(axis=1, keepdims=True)
        finite = np.maximum(self.sums.logs, np.finfo(float).min)  # a class without points may still win by its mean
        return np.where(best, finite, -np.inf).argmax(axis=1)


@dataclass(frozen=True)
class StatedScores:
    """Scores that are log probabilities, of classifiers that average probabilities. The same questions as `Scores`."""

    log_probabilities: NDArray

    @property
    def values(self) -> NDArray:
        """The log probabilities."""
        return self.log_probabilities

    @property
    def relative(self) -> NDArray:
        """The log probabilities."""
        return self.log_probabilities

    @property
    def decisions(self) -> NDArray:
        """Class of largest probability."""
        return self.log_probabilities.argmax(axis=1)
