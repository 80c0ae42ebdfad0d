"""One class's permanental process: its points, and the ratio of alpha-permanents that a new point gives.

Exact, cyclic and sampled ratios differ only in the matrix Q of alpha C(x*, x*) + a' Q a, with a the covariances of x*
to the points of the class. Alpha and variances may be of any size: their products are sums of logarithms here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from coxfield.engine.class_sums import ClassSums, Scores
from coxfield.permanents.cyclic import expand
from coxfield.permanents.exact import insertion_matrix
from coxfield.permanents.importance import importance_permanent
from coxfield.permanents.kernels import ScaledRows
from coxfield.progress import progress
from coxfield.selection.loo import SelectionPath
from coxfield.utils.numbers import logs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.kernels.per_class import PerClass
    from coxfield.permanents.kernels import LocalKernel, ProductKernel


ROWS = 1000  # queries at a time
FASTER = "fewer length_scales or cycles take less time"


@dataclass(frozen=True)
class Units:
    """Standard deviations of some points. In these units covariances are correlations, however large variances are."""

    relative: NDArray
    """Standard deviations divided by the largest."""
    log_largest: float

    @classmethod
    def of(cls, A: NDArray) -> Units:
        """The units of a matrix of covariances."""
        deviations = np.sqrt(np.diagonal(A))
        return cls(deviations / deviations.max(), float(np.log(deviations.max())))

    def matrix(self, A: NDArray) -> NDArray:
        """Correlations."""
        deviations = np.sqrt(np.diagonal(A))
        return A / deviations[:, None] / deviations

    def rows(self, rows: ScaledRows) -> ScaledRows:
        """Covariances of new points with these points, in the units of these points."""
        found = ScaledRows.of(rows.values / self.relative, leave_out=False)
        return ScaledRows(found.values, found.log_scale + rows.log_scale - self.log_largest)


@dataclass(frozen=True)
class ClassProcess:
    """The fitted process of one class; build it with `fit_class`."""

    kernel: ProductKernel | LocalKernel
    alpha: float
    points: NDArray
    method: str
    units: Units
    insertion: NDArray
    """Q of the correlations."""
    effective_samples: float | None = None

    def log_prior(self, X: NDArray) -> NDArray:
        """log of alpha C(x*, x*): the ratio far from all points."""
        return np.log(self.alpha) + np.log(self.kernel.diagonal(X))

    def log_excess(self, X: NDArray) -> tuple[NDArray, NDArray]:
        """Sign and log of a' Q a: what the points of the class add to the prior."""
        signs, logs = np.empty(len(X)), np.empty(len(X))
        for batch in gen_batches(len(X), ROWS):
            rows = self.units.rows(self.kernel.rows(X[batch], self.points))
            values = usable(rows.values, self.method)
            signs[batch], logs[batch] = sign_and_log(np.einsum("ij,ij->i", values @ self.insertion, values), rows)
        return signs, logs


def sign_and_log(forms: NDArray, rows: ScaledRows) -> tuple[NDArray, NDArray]:
    """Quadratic forms in scaled rows, as sign and log."""
    return np.sign(forms), logs_of(np.abs(forms)) + 2 * rows.log_scale


def usable(covariances: NDArray, method: str) -> NDArray:
    """C-tilde as a method can use it: the cyclic expansion and the sampler need its negative values to be zero."""
    return covariances if method == "exact" else np.maximum(covariances, 0)


def fit_class(kernel, X: NDArray, alpha: float, method: str, *, cycles: int, n_samples: int, rng) -> ClassProcess:
    """Compute Q for the points of a class by one of the methods "exact", "cyclic" and "importance"."""
    kernel.diagonal(X)  # refuses variances that are rounding
    A = usable(kernel.matrix(X), method)
    units = Units.of(A)
    correlations = units.matrix(A)
    if method == "exact":
        return ClassProcess(kernel, alpha, X, method, units, insertion_matrix(correlations, alpha))
    if method == "cyclic":
        return ClassProcess(kernel, alpha, X, method, units, expand(correlations, alpha, cycles).insertion())
    estimate = importance_permanent(correlations, alpha, n_samples=n_samples, random_state=rng)
    return ClassProcess(kernel, alpha, X, method, units, estimate.insertion, estimate.effective_samples)


def log_ratios(processes: Sequence[ClassProcess], X: NDArray) -> Scores:
    """Log ratios of alpha-permanents for each query and class, as prior + sums.values, arrays (n, n_classes).

    The logs of what the points add are kept apart, for decisions far from all points.
    """
    prior = np.stack([process.log_prior(X) for process in processes], axis=1)
    excess = []
    with progress(f"ratios of {len(X)} points", len(processes), None) as done:
        for process in processes:
            excess.append(process.log_excess(X))
            done(1)
    signs, logs = map(np.array, zip(*excess, strict=True))
    return Scores(prior, excess_sums(prior, signs.T, logs.T))


def excess_sums(prior: NDArray, signs: NDArray, logs: NDArray) -> ClassSums:
    """Log of (prior + excess) / prior, beside the log of the excess itself."""
    if ((signs < 0) & (logs >= prior)).any():
        raise ValueError(
            "a ratio of alpha-permanents is not positive, so that there is no permanental process for this alpha and "
            'covariance: give an alpha that is a multiple of 1/2, or method="cyclic"'
        )
    relative = logs - prior
    # If alpha is small, the excess may exceed the prior by more than floating point can say.
    gained = np.logaddexp(0, np.where(signs > 0, relative, -np.inf))
    lost = np.log1p(-np.exp(np.where(signs < 0, relative, -np.inf)))
    return ClassSums(gained + lost, np.where(signs > 0, logs, -np.inf))


def loo_log_ratios(X: NDArray, y: NDArray, kernels: PerClass, alpha: NDArray, cycles: int, done=None) -> Scores:
    """Log ratios of each training point from all the others, for each class, as from `log_ratios`.

    The cyclic approximation leaves a point out of its own class in its expansion; to the other classes it is a new
    point. That takes O(n^3) operations, where n refits would be O(n^4). `done` is called with the share of each
    class in the work.
    """
    n, n_classes = len(y), len(kernels)
    prior, signs, logs = (np.empty((n, n_classes)) for _ in range(3))
    for c, kernel in enumerate(kernels):
        own, other = y == c, y != c
        A = usable(kernel.matrix(X[own]), "cyclic")
        units = Units.of(A)
        expansion = expand(units.matrix(A), alpha[c], cycles)
        process = ClassProcess(kernel, alpha[c], X[own], "cyclic", units, expansion.insertion())
        prior[:, c] = process.log_prior(X)
        signs[other, c], logs[other, c] = process.log_excess(X[other])
        rows = units.rows(kernel.rows(X[own], X[own], leave_out=True))
        forms = expansion.leave_one_out(usable(rows.values, "cyclic"))
        # Nothing here is negative but by rounding, in what is taken away.
        signs[own, c], logs[own, c] = sign_and_log(np.maximum(forms, 0), rows)
        if done is not None:
            done(float(own.mean()))
    return Scores(prior, excess_sums(prior, signs, logs))


def loo_path(X: NDArray, y: NDArray, alpha: NDArray, cycles: int, factors: NDArray, at: Callable, criteria):
    """Leave-one-out losses for factors of the length scale, longest first, as a `SelectionPath`.

    `at(factor)` gives one covariance per class, or None when the length scale is too short for the window: the path
    then ends there. `criteria` are those of the path.
    """
    rows = []
    with progress(f"leave-one-out, {len(factors)} length scales", len(factors), None, FASTER) as done:
        for factor in factors.tolist():
            kernels = at(factor)
            if kernels is None:
                break
            scores = loo_log_ratios(X, y, kernels, alpha, cycles, done)
            losses = -scores.log_probabilities[np.arange(len(y)), y]
            error = float(np.mean(scores.decisions != y))
            rows.append({"factor": factor, "variance": 1.0, "loo_error": error, "loo_log_loss": float(losses.mean())})
    return SelectionPath.of(rows, criteria)
