"""Length scale and signal variance by closed-form leave-one-out: the paper's parameter training.

Removing a point from the training set only removes its own term from the class sums. So the n refits of leave-one-out
are one pass over the pairs. The sum of leave-one-out log probabilities is the log pseudo-likelihood of the Potts model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from coxfield.engine.class_sums import LARGEST_LOG, ClassSums
from coxfield.engine.decision import Scores, prior_terms
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import variance_is_free
from coxfield.progress import progress
from coxfield.selection.grid import finer_factors
from coxfield.selection.loo_sums import loo_log_sums, work_units
from coxfield.selection.path import SelectionPath
from coxfield.selection.temperature import Slope, least_loss, log_loss

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
    log_half, weights = log_half_variances(covariances, labelled.X, labelled.n_classes), labelled.counts
    rows = []
    guess = 0.0
    for factor, logs in zip(factors, log_sums, strict=True):
        row, guess = judge(JudgedRows(logs, log_half, labelled.y, weights), mean, guess, free_variance=free_variance)
        rows.append({"factor": float(factor), **row})
    return rows


def log_half_variances(covariances: PerClass, X, n_classes: int) -> NDArray:
    """Logarithms of C_i(x, x) / 2 above the least of all classes, shape (1 or n, n_classes).

    The part of C(0)/2 that all classes share cancels. Dropping it keeps the digits of small sums.
    """
    half = prior_terms(covariances, X, np.zeros(n_classes))
    with np.errstate(divide="ignore"):
        return np.log(half - half.min(axis=1, keepdims=True))


class SumsOverRows(Protocol):
    """What `judge` asks of leave-one-out sums. The rows may be in several places: every answer is a sum over rows."""

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""

    @property
    def largest(self) -> float:
        """The largest log score."""

    def slope(self, mean: NDArray, largest: float, total: float, log_v: float) -> float:
        """Sum of the derivatives of the log loss by v; see `Slope`."""

    def losses(self, mean: NDArray, log_v: float) -> NDArray:
        """Weight of the rows that are wrong, and the sum of the weighted log losses."""


@dataclass(frozen=True)
class JudgedRows:
    """Rows in one place, with leave-one-out log sums at one length scale; `SumsOverRows` says what is asked."""

    logs: NDArray
    """Shape (n, n_classes)."""
    log_half: NDArray
    """From `log_half_variances`."""
    y: NDArray
    weights: NDArray

    @cached_property
    def log_scores(self) -> NDArray:
        """Logarithms of C_i(x, x) / 2 plus class sum, up to a constant per row."""
        return np.logaddexp(self.logs, self.log_half)

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @property
    def largest(self) -> float:
        """The largest log score."""
        return float(self.log_scores.max(initial=-np.inf))

    @cached_property
    def _slopes(self) -> dict[tuple[float, float], Slope]:
        return {}

    def slope(self, mean: NDArray, largest: float, total: float, log_v: float) -> float:
        """The derivative; what does not depend on v is computed once."""
        key = largest, total
        if key not in self._slopes:
            self._slopes[key] = Slope.of(self.log_scores, mean, self.y, self.weights, largest, total)
        return self._slopes[key].at(log_v)

    def losses(self, mean: NDArray, log_v: float) -> NDArray:
        """Both losses at a variance."""
        of_prior = np.exp(np.minimum(self.log_half + log_v, LARGEST_LOG))
        wrong = Scores(mean + of_prior, ClassSums.of_logs(self.logs + log_v)).decisions != self.y
        loss = log_loss(self.log_scores, mean, self.y, self.weights, log_v)
        return np.array([self.weights @ wrong, loss * self.total_weight])


def judge(rows: SumsOverRows, mean: NDArray, guess: float, *, free_variance: bool) -> tuple[dict[str, float], float]:
    """Variance, error and log loss of one length scale, and a guess for the next one.

    Parameters
    ----------
    rows : SumsOverRows
    mean : array of shape (n_classes,)
    guess : float
        Log of the variance times the largest score, as returned for the length scale before: it moves little.
    free_variance : bool
        Whether the variance is chosen by log loss. Otherwise it is 1.
    """
    log_v, total, largest = 0.0, rows.total_weight, rows.largest
    if free_variance:
        if not np.isneginf(largest):
            log_v = least_loss(lambda x: rows.slope(mean, largest, total, x), largest, guess)
        guess = log_v + largest
    wrong, loss = rows.losses(mean, log_v) / total
    return {"variance": float(np.exp(log_v)), "loo_error": float(wrong), "loo_log_loss": float(loss)}, guess
