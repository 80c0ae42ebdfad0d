"""One class's permanental process: its points, and the ratio of alpha-permanents that a new point gives.

Exact, cyclic and sampled ratios differ only in the matrix Q of alpha C(x*, x*) + a' Q a, with a the covariances of x*
to the points of the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from coxfield.engine.class_sums import ClassSums
from coxfield.engine.decision import Scores
from coxfield.permanents.cyclic import expand
from coxfield.permanents.exact import insertion_matrix
from coxfield.permanents.importance import importance_permanent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.permanents.kernels import LocalKernel, ProductKernel, ScaledRows

ROWS = 1000  # queries at a time


@dataclass(frozen=True)
class ClassProcess:
    """The fitted process of one class; build it with `fit_class`."""

    kernel: ProductKernel | LocalKernel
    alpha: float
    points: NDArray
    method: str
    insertion: NDArray
    """Q."""
    effective_samples: float | None = None

    def log_prior(self, X: NDArray) -> NDArray:
        """log of alpha C(x*, x*): the ratio far from all points."""
        return np.log(self.alpha * self.kernel.diagonal(X))

    def log_excess(self, X: NDArray) -> tuple[NDArray, NDArray]:
        """Sign and log of a' Q a: what the points of the class add to the prior."""
        signs, logs = np.empty(len(X)), np.empty(len(X))
        for batch in gen_batches(len(X), ROWS):
            rows = self.kernel.rows(X[batch], self.points)
            values = usable(rows.values, self.method)
            signs[batch], logs[batch] = sign_and_log(np.einsum("ij,ij->i", values @ self.insertion, values), rows)
        return signs, logs


def sign_and_log(forms: NDArray, rows: ScaledRows) -> tuple[NDArray, NDArray]:
    """Quadratic forms in scaled rows, as sign and log."""
    with np.errstate(divide="ignore"):
        return np.sign(forms), np.log(np.abs(forms)) + 2 * rows.log_scale


def usable(covariances: NDArray, method: str) -> NDArray:
    """C-tilde as a method can use it: the cyclic expansion and the sampler need its negative values to be zero."""
    return covariances if method == "exact" else np.maximum(covariances, 0)


def fit_class(kernel, X: NDArray, alpha: float, method: str, *, cycles: int, n_samples: int, rng) -> ClassProcess:
    """Compute Q for the points of a class by one of the methods "exact", "cyclic" and "importance"."""
    A = usable(kernel.matrix(X), method)
    if method == "exact":
        return ClassProcess(kernel, alpha, X, method, insertion_matrix(A, alpha))
    if method == "cyclic":
        return ClassProcess(kernel, alpha, X, method, expand(A, alpha, cycles).insertion())
    estimate = importance_permanent(A, alpha, n_samples=n_samples, random_state=rng)
    return ClassProcess(kernel, alpha, X, method, estimate.insertion, estimate.effective_samples)


def log_ratios(processes: Sequence[ClassProcess], X: NDArray) -> Scores:
    """Log ratios of alpha-permanents for each query and class, as prior + sums.values, arrays (n, n_classes).

    The logs of what the points add are kept apart, for decisions far from all points.
    """
    prior = np.stack([process.log_prior(X) for process in processes], axis=1)
    signs, logs = map(np.array, zip(*(process.log_excess(X) for process in processes), strict=True))
    return Scores(prior, excess_sums(prior, signs.T, logs.T))


def excess_sums(prior: NDArray, signs: NDArray, logs: NDArray) -> ClassSums:
    """Log of (prior + excess) / prior, beside the log of the excess itself."""
    relative = signs * np.exp(logs - prior)
    if (relative <= -1).any():
        raise ValueError(
            "a ratio of alpha-permanents is not positive, so that there is no permanental process for this alpha and "
            'covariance: give an alpha that is a multiple of 1/2, or method="cyclic"'
        )
    return ClassSums(np.log1p(relative), np.where(signs > 0, logs, -np.inf))
