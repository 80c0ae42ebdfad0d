"""Length scale and signal variance by closed-form leave-one-out: the paper's parameter training.

Removing a point from the training set only removes its own term from the class sums. So the n refits of leave-one-out
are one pass over the pairs. The sum of leave-one-out log probabilities is the log pseudo-likelihood of the Potts model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.engine.class_sums import LARGEST_LOG, ClassSums
from coxfield.engine.decision import Scores, prior_terms
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import variance_is_free
from coxfield.progress import progress
from coxfield.selection.grid import finer_factors
from coxfield.selection.loo_sums import loo_log_sums, work_units
from coxfield.selection.path import SelectionPath
from coxfield.selection.temperature import best_log_variance, log_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass

FASTER = "float32 points or fewer length_scales take less time"
CRITERIA = {"loo_error": ("loo_error", "loo_log_loss"), "loo_log_loss": ("loo_log_loss",)}


@dataclass(frozen=True)
class Search:
    """How to look for a length scale by leave-one-out."""

    mean: NDArray
    criterion: str
    """ "loo_error" or "loo_log_loss"."""
    bounded: bool
    """Whether length scales stay within the bounds of the kernels."""
    refine: bool
    """Whether finer factors are tried around the best."""
    set_variance: bool
    """Whether the signal variance is chosen with each length scale, if it is free."""
    verbose: int = 0
    log_sums: Callable[..., Iterator[NDArray]] = loo_log_sums
    """How leave-one-out class sums are computed."""

    def path(self, labelled: Labelled, kernels: PerClass, factors: NDArray) -> SelectionPath:
        """Leave-one-out losses for some factors of the length scales and, if asked for, finer ones near the best."""
        path = self._tried(labelled, kernels, factors)
        if not self.refine or len(factors) < 2:
            return path
        finer = finer_factors(path.chosen("factor"), kernels.distinct, bounded=self.bounded)
        return path.joined(self._tried(labelled, kernels, finer)) if finer.size else path

    def _tried(self, labelled: Labelled, kernels: PerClass, factors: NDArray) -> SelectionPath:
        free = self.set_variance and all(map(variance_is_free, kernels.distinct))
        covariances = kernels.map(lambda kernel: recognise(kernel, labelled.X.shape[1]))
        total = work_units(labelled, covariances, len(factors))
        with progress(f"leave-one-out, {len(factors)} length scales", total, self.verbose, FASTER) as done:
            logs = self.log_sums(labelled, covariances, factors, done)
            rows = _losses(labelled, covariances, self.mean, factors, logs, free_variance=free)
        return SelectionPath.of(rows, CRITERIA[self.criterion])


def _losses(
    labelled: Labelled, covariances: PerClass, mean: NDArray, factors, log_sums, *, free_variance: bool
) -> list:
    """Leave-one-out error and log loss for each factor, at the best variance for that factor if it is free."""
    weights = labelled.counts
    half = prior_terms(covariances, labelled.X, np.zeros(labelled.n_classes))
    with np.errstate(divide="ignore"):
        # The part of C(0)/2 that all classes share cancels. Dropping it keeps the digits of small sums.
        log_half = np.log(half - half.min(axis=1, keepdims=True))
    rows = []
    guess = 0.0  # the temperature moves little from one length scale to the next
    for factor, logs in zip(factors, log_sums, strict=True):
        log_scores = np.logaddexp(logs, log_half)
        log_v = 0.0
        if free_variance:
            log_v = best_log_variance(log_scores, mean, labelled.y, weights, guess)
            guess = log_v + log_scores.max()
        v = float(np.exp(log_v))
        of_prior = np.exp(np.minimum(log_half + log_v, LARGEST_LOG))
        wrong = Scores(mean + of_prior, ClassSums.of_logs(logs + log_v)).decisions != labelled.y
        loss = log_loss(log_scores, mean, labelled.y, weights, log_v)
        error = float(np.average(wrong, weights=weights))
        rows.append({"factor": float(factor), "variance": v, "loo_error": error, "loo_log_loss": loss})
    return rows
