r"""Alpha-permanents by importance sampling: permutations drawn one image at a time.

A cycle is opened at the lowest unused point and walks from its current point c to k with probability proportional to

.. math:: g_{ck} = \frac{A_{ck}}{\sum_{i \text{ to come}} A_{ik}},

the choice of Kou and McCullagh (2009): points that few of the rows to come could reach are taken first. Closing the
cycle counts alpha times, because it opens another. The mean of alpha^cycles prod A / probability over the permutations
drawn is the alpha-permanent, without bias. The relative error grows with n: a check for tens of points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from coxfield.permanents.checks import check_alpha, check_covariances

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOOR = 1e-9  # least sum of the rows to come, in units of the largest entry: below it rounding decides


@dataclass(frozen=True)
class PermanentEstimate:
    """An alpha-permanent as importance sampling sees it."""

    log_value: float
    relative_error: float
    """Standard error of the value, divided by it."""
    effective_samples: float
    """As many permutations drawn from the right distribution would be as good."""
    insertion: NDArray
    """Estimate of `insertion_matrix`, symmetric."""

    @property
    def value(self) -> float:
        """The estimate; unbiased."""
        return float(np.exp(self.log_value))

    @property
    def standard_error(self) -> float:
        """Standard error of `value`."""
        return self.value * self.relative_error


def importance_permanent(A, alpha=1.0, *, n_samples=1000, random_state=None) -> PermanentEstimate:
    """Estimate the alpha-permanent of a symmetric non-negative matrix, with its standard error.

    O(n_samples n^2) operations and O(n_samples n) memory.

    Parameters
    ----------
    A : array-like of shape (n, n)
        Symmetric, without negative entries, of positive diagonal.
    alpha : float, default=1.0
    n_samples : int, default=1000
        Permutations drawn.
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
    if not isinstance(n_samples, int | np.integer) or n_samples < 2:
        raise ValueError(f"n_samples must be a whole number of at least 2, got {n_samples!r}")
    # Not `utils.randomness.generator`: an integer gives the numbers that it always gave here, those of RandomState.
    rng = random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)
    images, log_weights = _draw(A, alpha, int(n_samples), rng)
    log_value = float(logsumexp(log_weights) - np.log(n_samples))
    relative = np.exp(log_weights - log_value)
    return PermanentEstimate(
        log_value,
        float(relative.std(ddof=1) / np.sqrt(n_samples)),
        float(n_samples / np.mean(np.square(relative))),
        _insertion(A, images, relative / n_samples),
    )


def _draw(A: NDArray, alpha: float, n_samples: int, rng) -> tuple[NDArray, NDArray]:
    """Permutations as images of 0, ..., n - 1, and the logs of what they weigh over their probability."""
    n, each = len(A), np.arange(n_samples)
    to_come = np.tile(A.sum(axis=0), (n_samples, 1))
    unused = np.ones((n_samples, n), dtype=bool)
    images = np.zeros((n_samples, n), dtype=int)
    log_weights, opening = np.zeros(n_samples), np.ones(n_samples, dtype=bool)
    first = current = np.zeros(n_samples, dtype=int)
    for _ in range(n):
        lowest = unused.argmax(axis=1)
        first, current = np.where(opening, lowest, first), np.where(opening, lowest, current)
        unused[each, current] = False
        log_weights += np.where(opening, np.log(alpha), 0)
        to_come -= A[current]
        chosen, log_probability = _step(A, alpha, current, first, unused, to_come, rng)
        with np.errstate(divide="ignore"):
            log_weights += np.log(A[current, chosen]) - log_probability
        images[each, current] = chosen
        opening, current = chosen == first, chosen
    return images, log_weights


def _step(A, alpha, current, first, unused, to_come, rng) -> tuple[NDArray, NDArray]:
    """Where each permutation goes next, and the log probability of that."""
    each = np.arange(len(current))
    chances = A[current] / np.maximum(to_come, FLOOR * A.max())
    closing = alpha * chances[each, first]
    chances *= unused
    chances[each, first] = closing
    total = chances.sum(axis=1, keepdims=True)
    stuck = total[:, 0] == 0  # every way on has underflowed: close, at weight zero
    chances[stuck, first[stuck]] = total[stuck] = 1
    cumulative = np.cumsum(chances / total, axis=1)
    draws = rng.uniform(size=(len(each), 1)) * cumulative[:, -1:]
    chosen = (cumulative <= draws).sum(axis=1)
    return chosen, np.log(chances[each, chosen] / total[:, 0])


def _insertion(A: NDArray, images: NDArray, shares: NDArray) -> NDArray:
    """Mean over the permutations of one over A at (j, image of j): the gradient of log Per_alpha(A)."""
    n = len(A)
    cells = (np.arange(n) * n + images).ravel()
    visits = np.bincount(cells, np.repeat(shares, n), minlength=n * n).reshape(n, n)
    Q = np.divide(visits, A, out=np.zeros_like(A), where=visits > 0)
    return (Q + Q.T) / 2
