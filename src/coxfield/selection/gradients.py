"""The log pseudo-likelihood and its derivatives, in one pass over the pairs.

The pseudo-likelihood is the product of the leave-one-out predictive probabilities. With the residuals
R_ji = w_j ([y_j = i] - p_ji), the derivative of its logarithm by any parameter t is the sum of R_ji dF_ji/dt over
points j and classes i. The derivative of a class sum is the class sum of the derivative of the covariance. So a block
of rows gives sums, probabilities and derivatives together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax
from sklearn.utils import gen_batches

from coxfield.engine.decision import prior_terms
from coxfield.engine.weights import COLUMNS, over_rows, whole_rows
from coxfield.kernels.namespace import rows_of
from coxfield.kernels.protocol import bind_precisely

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass
    from coxfield.kernels.protocol import Covariance, Differentiated, KernelPoints


@dataclass(frozen=True)
class PseudoLikelihood:
    """The log pseudo-likelihood at some parameters, with its derivatives."""

    value: float
    """Sum over points of weight times leave-one-out log probability."""
    smoothed: float
    """The same with the smoothing added. The derivatives are those of this value."""
    by_mean: NDArray
    """Derivatives by the class means. They sum to 0, because a common shift changes nothing."""
    by_theta: tuple[NDArray, ...]
    """Derivatives by `kernel.theta`, the logarithms of the free parameters, for each different covariance."""

    def __add__(self, other: PseudoLikelihood) -> PseudoLikelihood:
        return PseudoLikelihood(
            self.value + other.value,
            self.smoothed + other.smoothed,
            self.by_mean + other.by_mean,
            tuple(a + b for a, b in zip(self.by_theta, other.by_theta, strict=True)),
        )


def pseudo_likelihood(
    labelled: Labelled,
    covariances: PerClass[Covariance],
    mean: NDArray,
    *,
    rows: NDArray | None = None,
    smoothing: float = 0.0,
    done=None,
) -> PseudoLikelihood:
    """Log pseudo-likelihood of labelled points and its derivatives by means and kernel parameters.

    Parameters
    ----------
    labelled : Labelled
    covariances : PerClass of Covariance
    mean : array of shape (n_classes,)
    rows : array of int, optional
        The training rows whose probabilities count, each predicted without itself; None for all.
    smoothing : float
        To each point's log probability, add this times the mean of the log probabilities of all classes.
    done : function, optional
        Called with the number of rows done.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.engine.store import Labelled
    >>> from coxfield.kernels.per_class import PerClass
    >>> from coxfield.kernels.recognise import recognise
    >>> labelled = Labelled(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1]), 2)
    >>> covariances = PerClass.shared_by(recognise(RBF(0.01), 1), 2)
    >>> at = pseudo_likelihood(labelled, covariances, np.zeros(2))  # each sum is 1 for the own class, 0 for the other
    >>> print(f"{at.value:.4f}, 4 log sigmoid(1) = {-4 * np.log1p(np.exp(-1)):.4f}")
    -1.2530, 4 log sigmoid(1) = -1.2530
    """
    rows = np.arange(len(labelled)) if rows is None else rows
    views = [_View.of(labelled, covariances, k) for k in range(len(covariances.distinct))]
    found: dict[int, PseudoLikelihood] = {}

    def work(block: slice) -> None:
        found[block.start] = _block(labelled, covariances, mean, views, rows[block], smoothing)

    step = whole_rows(len(rows), len(labelled), views[0].points.dtype.itemsize, copies=4)
    over_rows(work, len(rows), step, done)
    first, *others = (found[start] for start in sorted(found))  # in order, so that rounding is always the same
    return sum(others, start=first)


@dataclass(frozen=True)
class _View:
    """All labelled points under one covariance, and the columns of each class that uses it."""

    points: KernelPoints
    columns: dict[int, NDArray]
    """Rows of each class."""
    weights: NDArray
    shared: bool
    """Whether all classes use this covariance, so that C(x, x) / 2 cancels."""

    @classmethod
    def of(cls, labelled: Labelled, covariances: PerClass[Covariance], k: int) -> _View:
        # Rounded distances spoil derivatives: if single precision is too coarse, all is done in double precision.
        points = bind_precisely(covariances.distinct[k], labelled.X)
        columns = {int(c): np.flatnonzero(labelled.y == c) for c in covariances.classes(k)}
        return cls(points, columns, labelled.counts, covariances.shared)

    def panels(self) -> Iterator[tuple[int, NDArray]]:
        """The columns, class by class, at most as many at a time as a tile has."""
        for c, columns in self.columns.items():
            for part in gen_batches(len(columns), COLUMNS):
                yield c, columns[part]

    def differentiate(self, rows: NDArray) -> list[tuple[int, Differentiated]]:
        """Sums of some rows over each panel without the row itself, with their derivatives."""
        mine, found = self.points[rows], []
        for c, columns in self.panels():
            place = np.minimum(np.searchsorted(columns, rows), len(columns) - 1)
            own = np.where(columns[place] == rows, place, -1)
            found.append((c, mine.differentiate(self.points[columns], self.weights[columns], own)))
        return found

    def gradient(self, rows: NDArray, found: list[tuple[int, Differentiated]], residual: NDArray) -> NDArray:
        """Derivatives of the pseudo-likelihood of some rows by `kernel.theta`."""
        halves = np.zeros(len(rows)) if self.shared else residual[:, list(self.columns)].sum(axis=1) / 2
        total = self.points[rows].diagonal_gradient(halves)
        for c, part in found:
            total = total + part.gradient(residual[:, c])
        return total


def _block(labelled: Labelled, covariances, mean, views: list[_View], rows: NDArray, smoothing: float):
    """Value and derivatives for a block of rows."""
    sums = np.zeros((len(rows), labelled.n_classes))
    parts = [view.differentiate(rows) for view in views]
    for found in parts:
        for c, part in found:
            sums[:, c] += part.sums
    prior = prior_terms(covariances, rows_of(labelled.X, rows), mean)
    value, smoothed, residual = _residuals(labelled, prior, sums, rows, smoothing)
    by_theta = tuple(view.gradient(rows, found, residual) for view, found in zip(views, parts, strict=True))
    return PseudoLikelihood(value, smoothed, residual.sum(axis=0), by_theta)


def _residuals(labelled: Labelled, prior, sums, rows, smoothing: float) -> tuple[float, float, NDArray]:
    """Log probabilities of the labels, summed without and with smoothing, and the derivatives by the scores."""
    # The part of the prior that all classes share cancels. It is dropped so that small sums keep their digits.
    log_p = log_softmax(prior - prior.max(axis=1, keepdims=True) + sums, axis=1)
    weights = labelled.counts[rows]
    own = np.arange(len(rows)), labelled.y[rows]
    value = float(weights @ log_p[own])
    smoothed = value + smoothing * float(weights @ log_p.mean(axis=1))
    residual = smoothing / labelled.n_classes - (1 + smoothing) * np.exp(log_p)
    residual[own] += 1
    return value, smoothed, residual * weights[:, None]
