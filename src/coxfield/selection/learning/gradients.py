"""The log pseudo-likelihood and its derivatives, in one pass over the pairs.

The pseudo-likelihood is the product of the leave-one-out predictive probabilities. With the residuals
R_ji = w_j ([y_j = i] - p_ji), its derivative by any parameter t is the sum of R_ji dF_ji/dt over points j and classes
i, and the derivative of a class sum is the class sum of the derivative of the covariance. So a block of rows yields
sums, probabilities and derivatives together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax

from coxfield.engine import tiles as blocks
from coxfield.selection.learning.called_gradient import CalledGroup
from coxfield.selection.learning.profile_gradient import ProfileGroup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.class_sums import TrainingPoints


@dataclass(frozen=True)
class PseudoLikelihood:
    """The log pseudo-likelihood at some parameters, with its derivatives."""

    value: float
    """Sum over points of weight times leave-one-out log probability."""
    smoothed: float
    """The same with the smoothing added; this is what the derivatives are of."""
    by_mean: NDArray
    """Derivatives by the class means; they sum to 0, as a common shift changes nothing."""
    by_theta: tuple[NDArray, ...]
    """Derivatives by `kernel.theta`, the logarithms of what is free, for each group of the training points."""

    def __add__(self, other: PseudoLikelihood) -> PseudoLikelihood:
        return PseudoLikelihood(
            self.value + other.value,
            self.smoothed + other.smoothed,
            self.by_mean + other.by_mean,
            tuple(a + b for a, b in zip(self.by_theta, other.by_theta, strict=True)),
        )


def pseudo_likelihood(
    training: TrainingPoints,
    mean: NDArray,
    *,
    rows: NDArray | None = None,
    smoothing: float = 0.0,
    n_jobs: int | None = None,
    done=None,
) -> PseudoLikelihood:
    """Log pseudo-likelihood of labelled points and its derivatives by means and kernel parameters.

    Parameters
    ----------
    training : TrainingPoints
    mean : array of shape (n_classes,)
    rows : array of int, optional
        The training rows whose probabilities count, each leaving out itself; None for all.
    smoothing : float
        To each point's log probability, add this times the mean of the log probabilities of all classes.
    n_jobs : int, optional
        Threads; None for as many as a matrix product would take.
    done : function, optional
        Told how many rows were done.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.engine.class_sums import arrange
    >>> from coxfield.kernels.covariance import recognise
    >>> X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1])
    >>> training = arrange(X, y, [recognise(RBF(0.01), 1)] * 2)
    >>> at = pseudo_likelihood(training, np.zeros(2))  # each sum is 1 for the own class, 0 for the other
    >>> print(f"{at.value:.4f}, 4 log sigmoid(1) = {-4 * np.log1p(np.exp(-1)):.4f}")
    -1.2530, 4 log sigmoid(1) = -1.2530
    """
    rows = np.arange(len(training.y)) if rows is None else rows
    shared = len(training.groups) == 1
    groups = [
        (ProfileGroup if group.covariance.recognised else CalledGroup).of(training, group, rows, shared=shared)
        for group in training.groups
    ]
    found: dict[int, PseudoLikelihood] = {}

    def work(block: slice) -> None:
        found[block.start] = _block(training, mean, groups, rows, block, smoothing)

    threads = blocks.n_threads(n_jobs)
    step = blocks.whole_rows(len(rows), len(training.y), training.X.dtype.itemsize, threads, copies=4)
    blocks.over_rows(work, len(rows), step, threads, done)
    first, *others = (found[start] for start in sorted(found))  # in order, so that rounding is always the same
    return sum(others, start=first)


def _block(training: TrainingPoints, mean, groups, rows: NDArray, block: slice, smoothing: float) -> PseudoLikelihood:
    """Value and derivatives for a block of rows."""
    X = training.X[rows[block]]
    parts = [group.part(X, block) for group in groups]
    sums = np.zeros((X.shape[0], training.n_classes))
    for group, part in zip(training.groups, parts, strict=True):
        sums[:, group.classes] = part.sums
    value, smoothed, residual = _residuals(training, training.prior(X, mean), sums, rows[block], smoothing)
    by_theta = tuple(
        part.by_theta(residual[:, group.classes]) for group, part in zip(training.groups, parts, strict=True)
    )
    return PseudoLikelihood(value, smoothed, residual.sum(axis=0), by_theta)


def _residuals(training: TrainingPoints, prior, sums, rows, smoothing: float) -> tuple[float, float, NDArray]:
    """Log probabilities of the labels, summed without and with smoothing, and the derivatives by the scores."""
    # What classes share of the prior cancels, and is dropped before it drowns the sums.
    log_p = log_softmax(prior - prior.max(axis=1, keepdims=True) + sums, axis=1)
    weights = np.ones(len(rows)) if training.weights is None else training.weights[rows].astype(float)
    own = np.arange(len(rows)), training.y[rows]
    value = float(weights @ log_p[own])
    smoothed = value + smoothing * float(weights @ log_p.mean(axis=1))
    residual = smoothing / training.n_classes - (1 + smoothing) * np.exp(log_p)
    residual[own] += 1
    return value, smoothed, residual * weights[:, None]
