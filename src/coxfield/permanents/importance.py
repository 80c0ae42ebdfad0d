r"""Alpha-permanents by importance sampling: permutations are drawn one image at a time.

A cycle is opened at the lowest unused point. It goes from its current point c to k with a probability proportional to

.. math:: g_{ck} = \frac{A_{ck}}{\sum_{i \text{ remaining}} A_{ik}},

the choice of Kou and McCullagh (2009): points that few of the remaining rows can reach are taken first. Closing the
cycle is weighted by alpha, because it opens another cycle. The mean of alpha^cycles prod A / probability over the drawn
permutations is an unbiased estimate of the alpha-permanent. Its relative error grows with n, so it serves as a check
for tens of points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from coxfield.permanents.exact import check_alpha, check_covariances
from coxfield.utils.numbers import logs_of, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOOR = 1e-9  # smallest sum of the remaining rows, relative to the largest entry; below it there is only rounding


@dataclass(frozen=True)
class PermanentEstimate:
    """An estimate of an alpha-permanent by importance sampling."""

    log_value: float
    relative_error: float
    """Standard error of the value, divided by the value."""
    effective_samples: float
    """Number of permutations from the exact distribution that would be as good."""
    insertion: NDArray
    """Estimate of `insertion_matrix`, symmetric."""

    @property
    def value(self) -> float:
        """The unbiased estimate."""
        return float(np.exp(self.log_value))

    @property
    def standard_error(self) -> float:
        """Standard error of `value`."""
        return self.value * self.relative_error


def importance_permanent(A, alpha=1.0, *, n_samples=1000, random_state=None) -> PermanentEstimate:
    """Estimate the alpha-permanent of a symmetric non-negative matrix, with its standard error.

    It takes O(n_samples n^2) operations and O(n_samples n) memory.

    Parameters
    ----------
    A : array-like of shape (n, n)
        Symmetric, without negative entries, with a positive diagonal.
    alpha : float, default=1.0
    n_samples : int, default=1000
        Number of permutations drawn.
    random_state : int, RandomState instance, numpy Generator or None, default=None

    Returns
    -------
    PermanentEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from coxfield.permanents import importance_permanent
    >>> estimate = importance_permanent(np.exp(-np.square(np.subtract.outer(range(6), range(6)))), random_state=0)
    >>> print(f"{estimate.value:.2f} +- {estimate.standard_error:.2f}")
    1.83 +- 0.01
    """
    A, alpha = check_covariances(A), check_alpha(alpha, positive=True)
    n_samples = whole_number("n_samples", n_samples, least=2)
    # Not `utils.randomness.generator`: an integer gives the numbers that it always gave here, those of RandomState.
    rng = random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)
    images, log_weights = _draw(A, alpha, n_samples, rng)
    log_value = float(logsumexp(log_weights) - np.log(n_samples))
    relative = np.exp(log_weights - log_value)
    return PermanentEstimate(
        log_value,
        float(relative.std(ddof=1) / np.sqrt(n_samples)),
        float(n_samples / np.mean(np.square(relative))),
        _insertion(A, images, relative / n_samples),
    )


def _draw(A: NDArray, alpha: float, n_samples: int, rng) -> tuple[NDArray, NDArray]:
    """Permutations as images of 0, ..., n - 1, and the logarithm of weight / probability for each."""
    n, each = len(A), np.arange(n_samples)
    remaining = np.tile(A.sum(axis=0), (n_samples, 1))
    unused = np.ones((n_samples, n), dtype=bool)
    images = np.zeros((n_samples, n), dtype=int)
    log_weights, opening = np.zeros(n_samples), np.ones(n_samples, dtype=bool)
    first = current = np.zeros(n_samples, dtype=int)
    for _ in range(n):
        lowest = unused.argmax(axis=1)
        first, current = np.where(opening, lowest, first), np.where(opening, lowest, current)
        unused[each, current] = False
        log_weights += np.where(opening, np.log(alpha), 0)
        remaining -= A[current]
        chosen, log_probability = _step(A, alpha, current, first, unused, remaining, rng)
        log_weights += logs_of(A[current, chosen]) - log_probability
        images[each, current] = chosen
        opening, current = chosen == first, chosen
    return images, log_weights


def _step(A, alpha, current, first, unused, remaining, rng) -> tuple[NDArray, NDArray]:
    """The next point of each permutation, and the logarithm of its probability."""
    each = np.arange(len(current))
    chances = A[current] / np.maximum(remaining, FLOOR * A.max())
    closing = min(alpha, 1.0) * chances[each, first]  # one of the two is divided by alpha, so that neither overflows
    chances *= unused * min(1 / alpha, 1.0)
    # If there is nowhere else to go, close the cycle. If all chances have underflowed, the weight will be zero.
    chances[each, first] = np.where(chances.any(axis=1), closing, 1)
    total = chances.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(chances / total, axis=1)
    draws = rng.uniform(size=(len(each), 1)) * cumulative[:, -1:]
    chosen = (cumulative <= draws).sum(axis=1)
    return chosen, np.log(chances[each, chosen] / total[:, 0])


def _insertion(A: NDArray, images: NDArray, shares: NDArray) -> NDArray:
    """The gradient of log Per_alpha(A): the mean of 1 / A[j, image of j] over the permutations."""
    n = len(A)
    cells = (np.arange(n) * n + images).ravel()
    visits = np.bincount(cells, np.repeat(shares, n), minlength=n * n).reshape(n, n)
    Q = np.divide(visits, A, out=np.zeros_like(A), where=visits > 0)
    return (Q + Q.T) / 2
