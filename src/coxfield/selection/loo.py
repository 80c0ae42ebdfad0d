"""Length scale and signal variance by closed-form leave-one-out: the paper's parameter training.

Removing a point from the training set removes its own term from the class sums and nothing else, so the n refits of
leave-one-out are one pass over the pairs. The sum of leave-one-out log probabilities is the log pseudo-likelihood of
the Potts model.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.engine.class_sums import ClassSums
from coxfield.engine.decision import decide
from coxfield.selection.length_scale_path import loo_log_sums
from coxfield.selection.temperature import best_log_variance, log_loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.class_sums import TrainingPoints


@dataclass(frozen=True)
class LooPath:
    """What leave-one-out said of each length scale tried; every field is an array over the path."""

    factor: NDArray
    """What the kernel's length scales were multiplied by."""
    variance: NDArray
    """What the signal variance was multiplied by: the best for that length scale, or 1 when it is not free."""
    loo_error: NDArray
    loo_log_loss: NDArray

    def best(self, criterion: str) -> int:
        """Index of the winner: least error with ties broken by log loss, or least log loss."""
        if criterion == "loo_error":
            # Sums of weights differ by rounding where the errors are the same.
            return int(np.lexsort((self.loo_log_loss, np.round(self.loo_error, 12)))[0])
        return int(np.argmin(self.loo_log_loss))

    def joined(self, other: LooPath) -> LooPath:
        """Both paths as one, longest length scale first."""
        order = np.argsort(-np.concatenate([self.factor, other.factor]), kind="stable")
        return LooPath(
            *(
                np.concatenate([getattr(self, field.name), getattr(other, field.name)])[order]
                for field in dataclasses.fields(self)
            )
        )

    def columns(self, training: TrainingPoints, chosen: int) -> dict[str, NDArray]:
        """The path as named columns, with length scales in place of factors when the kernel has just one."""
        scale = training.groups[0].covariance.length_scale
        single = len(training.groups) == 1 and isinstance(scale, float)
        return {
            "length_scale": self.factor * scale if single else self.factor,
            "variance": self.variance,
            "loo_error": self.loo_error,
            "loo_log_loss": self.loo_log_loss,
            "chosen": np.arange(len(self.factor)) == chosen,
        }


def loo_path(
    training: TrainingPoints, mean: NDArray, factors: NDArray, *, free_variance: bool, n_jobs=None, done=None
) -> LooPath:
    """Leave-one-out error and log loss along a path of length scales."""
    weights = np.ones(len(training.y)) if training.weights is None else training.weights.astype(float)
    half = training.prior(training.X, np.zeros(training.n_classes))
    with np.errstate(divide="ignore"):
        # What classes share of C(0)/2 cancels; dropping it keeps the digits of small sums.
        log_half = np.log(half - half.min(axis=1, keepdims=True))
    rows = []
    guess = 0.0  # the temperature moves little from one length scale to the next
    for logs in loo_log_sums(training, factors, n_jobs, done):
        log_scores = np.logaddexp(logs, log_half)
        log_v = 0.0
        if free_variance:
            log_v = best_log_variance(log_scores, mean, training.y, weights, guess)
            guess = log_v + log_scores.max()
        v = np.exp(log_v)
        sums = ClassSums(np.exp(np.minimum(logs + log_v, 700)), logs + log_v)
        wrong = decide(mean + v * half, sums) != training.y
        loss = log_loss(log_scores, mean, training.y, weights, log_v)
        rows.append((v, np.average(wrong, weights=weights), loss))
    variance, error, losses = np.array(rows).T
    return LooPath(np.asarray(factors, dtype=float), variance, error, losses)
