r"""Alpha-permanents and their gradients: exact by a sweep over subsets, and estimated by importance sampling.

The alpha-permanent is a sum over permutations,

.. math:: \operatorname{Per}_\alpha(A) = \sum_\sigma \alpha^{\#\text{cycles}(\sigma)} \prod_j A_{j\sigma(j)},

which is the permanent for alpha = 1 and (-1)^n det A for alpha = -1. A permutation is built cycle by cycle. Each cycle
is opened at the lowest element s that is not used yet. While this cycle is open, all elements below s are used. So the
state is a subset U of the elements above s, and the element j where the open cycle stands:

    F_s(U, s)     = alpha E_s(U)                          open a cycle at s
    F_s(U + k, k) = sum over j of F_s(U, j) A_jk          walk on to k
    G_s(U)        = sum over j of F_s(U, j) A_js          close the cycle

where E_s(U) is the sum over states without an open cycle that have not used s. Over all s there are 2^n pairs (s, U),
so a permanent costs O(2^n n^2) operations. The gradient is the same sweep backwards, at the same cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from coxfield.utils.numbers import logs_of, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# Checks of the arguments of the functions on alpha-permanents.


def check_square(A) -> NDArray:
    """A as a square matrix of finite float64 numbers; it may have no rows."""
    A = np.asarray(A, dtype=float) if np.size(A) == 0 else check_array(A, dtype=float, input_name="A")
    if A.shape == (0,):
        A = A.reshape(0, 0)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"a permanent needs a square matrix, got shape {A.shape}: give as many rows as columns")
    return A


def check_alpha(alpha, *, positive: bool) -> float:
    """Alpha as a finite float, above 0 if `positive`."""
    number = float(alpha)
    if not np.isfinite(number) or (positive and number <= 0):
        raise ValueError(f"alpha must be a {'positive ' if positive else ''}finite number, got {alpha!r}")
    return number


def check_covariances(A) -> NDArray:
    """A as a symmetric matrix without negative entries and with a positive diagonal."""
    A = check_square(A)
    if not np.allclose(A, A.T, rtol=1e-10, atol=0):
        raise ValueError("A must be symmetric, such as a matrix of covariances, but it is not: give (A + A.T) / 2")
    if (A < 0).any():
        raise ValueError(
            f"A must not have negative entries, got {A.min():.3g}: use alpha_permanent, which takes any sign"
        )
    if not (np.diagonal(A) > 0).all():
        raise ValueError(
            f"the diagonal of A must be positive, got {np.diagonal(A).min():.3g}: leave out points without variance"
        )
    return A


LARGEST = 20  # rows; the gradient then takes some seconds and 0.5 GB, and each additional row doubles both
RANGE = 600.0  # largest logarithm of what terms may differ by in floating point, which ends at 709


def walks(n: int) -> Iterator[tuple[int, NDArray, NDArray]]:
    """All steps (k, subsets with k, these subsets without k) on subsets of n elements, smaller subsets first."""
    subsets = np.arange(2**n)
    sizes = np.bitwise_count(subsets)
    for size in range(1, n + 1):
        layer = subsets[sizes == size]
        for k in range(n):
            reached = layer[layer >> k & 1 == 1]
            yield k, reached, reached ^ (1 << k)


@dataclass(frozen=True)
class Signed:
    """Numbers as their signs, and the logarithms of their absolute values."""

    signs: NDArray
    logs: NDArray

    @classmethod
    def of(cls, values) -> Signed:
        """Numbers as floating point has them."""
        return cls(np.sign(values), logs_of(np.abs(values)))

    @classmethod
    def zeros(cls, shape) -> Signed:
        """As many zeros."""
        return cls(np.zeros(shape), np.full(shape, -np.inf))

    def __getitem__(self, key) -> Signed:
        return Signed(self.signs[key], self.logs[key])

    def __setitem__(self, key, value: Signed) -> None:
        self.signs[key], self.logs[key] = value.signs, value.logs

    def __mul__(self, other: Signed) -> Signed:
        return Signed(self.signs * other.signs, self.logs + other.logs)

    def __add__(self, other: Signed) -> Signed:
        signs, logs = np.stack([self.signs, other.signs]), np.stack([self.logs, other.logs])
        return Signed(signs, logs).sum(axis=0)

    def sum(self, axis: int) -> Signed:
        """Sums along an axis, relative to the largest summand of each."""
        top = self.logs.max(axis=axis, keepdims=True, initial=-np.inf)
        top[np.isneginf(top)] = 0
        sums = Signed.of((self.signs * np.exp(self.logs - top)).sum(axis=axis))
        return Signed(sums.signs, sums.logs + top.squeeze(axis))


def log_sweep(A: NDArray, alpha: float) -> tuple[Signed, list[Signed]]:
    """The alpha-permanent and the arrays F_s, as `_sweep` has them, for alpha and entries of any size.

    The terms of an alpha-permanent of n rows are powers of alpha up to the n-th. If alpha is 1e-300, all but the first
    power are too small for a floating point number, although a higher power may be the only term there is. So this
    sweep adds logarithms. It takes about ten times as long as the plain one.
    """
    n, entries, weight = len(A), Signed.of(A), Signed.of(alpha)
    closed = Signed.of((np.arange(2**n) == 0).astype(float))
    opened = []
    for s in range(n):
        unused, used = closed[::2], closed[1::2]
        F = Signed.zeros((len(unused.logs), n - s))
        F[:, 0] = weight * unused
        for k, reached, before in walks(n - 1 - s):
            F[reached, 1 + k] = (F[before] * entries[s:, s + 1 + k]).sum(axis=1)
        closed = used + (F * entries[s:, s]).sum(axis=1)
        opened.append(F)
    return closed[0], opened


def log_gradient(A: NDArray, alpha: float, opened: list[Signed]) -> Signed:
    """The derivatives of the alpha-permanent with respect to the entries of A: `log_sweep` backwards."""
    n, entries, weight = len(A), Signed.of(A), Signed.of(alpha)
    gradient, closed_bar = Signed.zeros((n, n)), Signed.of(np.ones(1))
    for s in reversed(range(n)):
        F = opened[s]
        gradient[s:, s] += (F * closed_bar[:, None]).sum(axis=0)
        F_bar = closed_bar[:, None] * entries[s:, s]
        for k, reached, before in reversed(list(walks(n - 1 - s))):
            reached_bar = F_bar[reached, 1 + k][:, None]
            gradient[s:, s + 1 + k] += (F[before] * reached_bar).sum(axis=0)
            F_bar[before] += reached_bar * entries[s:, s + 1 + k]
        opening = weight * F_bar[:, 0]
        signs, logs = zip((opening.signs, opening.logs), (closed_bar.signs, closed_bar.logs), strict=True)
        closed_bar = Signed(np.stack(signs, axis=1).ravel(), np.stack(logs, axis=1).ravel())
    return gradient


def alpha_permanent(A, alpha=1.0) -> float:
    r"""The alpha-permanent of a matrix of at most 20 rows: exact, in O(2^n n^2) operations.

    .. math:: \operatorname{Per}_\alpha(A) = \sum_\sigma \alpha^{\#\text{cycles}(\sigma)} \prod_j A_{j\sigma(j)}

    Parameters
    ----------
    A : array-like of shape (n, n)
        Entries of any sign. A matrix without rows has the permanent 1.
    alpha : float, default=1.0
        1 for the permanent; -1 for (-1)^n det A.

    Returns
    -------
    float

    Examples
    --------
    >>> from coxfield.permanents import alpha_permanent
    >>> alpha_permanent([[1, 2], [3, 4]])  # 1 * 4 + 2 * 3
    10.0
    >>> alpha_permanent([[1, 2], [3, 4]], alpha=0.5)  # a quarter of 1 * 4, half of 2 * 3
    4.0
    """
    A, alpha, scale = _scaled(A, alpha)
    if _plain(A, alpha) and len(A) * abs(log(scale)) < RANGE:
        return _sweep(A, alpha)[0] * scale ** len(A)
    closed, _ = log_sweep(A, alpha)
    size = float(closed.logs) + len(A) * log(scale)
    if size > log(np.finfo(float).max):
        raise ValueError(
            f"the alpha-permanent of A is about 1e{size / log(10):+.0f}, too large for a floating point number: divide "
            f"A by some c, which divides it by c**{len(A)}"
        )
    return float(closed.signs) * exp(size)


def insertion_matrix(A, alpha=1.0) -> NDArray:
    r"""The gradient of log Per_alpha(A), which gives the ratio of permanents for any new point.

    A new point t enters a permutation as a cycle of its own, or between some j and its image k. Therefore

    .. math:: \frac{\operatorname{Per}_\alpha(A[x, t])}{\operatorname{Per}_\alpha(A[x])}
              = \alpha A_{tt} + \sum_{jk} A_{jt} Q_{jk} A_{tk}, \qquad
              Q_{jk} = \frac{\partial \log \operatorname{Per}_\alpha(A)}{\partial A_{jk}}.

    Once Q is known, a ratio costs O(n^2). For alpha = -1, Q is the transposed inverse of A.

    Parameters
    ----------
    A : array-like of shape (n, n)
        With at most 20 rows. It takes O(2^n n^2) operations and O(2^n n) memory.
    alpha : float, default=1.0

    Returns
    -------
    ndarray of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from coxfield.permanents import alpha_permanent, insertion_matrix
    >>> A, row = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0.5, 1.5])
    >>> ratio = 2.0 + row @ insertion_matrix(A) @ row
    >>> larger = np.block([[A, row[:, None]], [row, 2.0]])
    >>> bool(np.isclose(ratio, alpha_permanent(larger) / alpha_permanent(A)))
    True
    """
    A, alpha, scale = _scaled(A, alpha)
    if _plain(A, alpha):
        closed, opened = _sweep(A, alpha)
        _refuse_zero(closed)
        return _gradient(A, alpha, opened) / closed / scale
    total, paths = log_sweep(A, alpha)
    _refuse_zero(float(total.signs))
    gradient = log_gradient(A, alpha, paths)
    with np.errstate(over="ignore"):
        Q = gradient.signs * total.signs * np.exp(gradient.logs - total.logs) / scale
    if not np.isfinite(Q).all():
        raise ValueError(
            f"for alpha={alpha:g} the ratio to the alpha-permanent of A is too large for a floating point number: give "
            "an alpha that is nearer to 1"
        )
    return Q


def _refuse_zero(permanent: float) -> None:
    if permanent == 0:
        raise ValueError("the alpha-permanent of A is zero, so there is no ratio to it: give another A or alpha")


def _scaled(A, alpha) -> tuple[NDArray, float, float]:
    """The checked arguments, with A divided by its largest entry so that products do not overflow."""
    A, alpha = check_square(A), check_alpha(alpha, positive=False)
    if len(A) > LARGEST:
        raise ValueError(
            f"A has {len(A)} rows, and an exact alpha-permanent of more than {LARGEST} rows takes too long: "
            "try log_permanent_ratio_cyclic or importance_permanent"
        )
    scale = float(np.abs(A).max(initial=0)) or 1.0
    return A / scale, alpha, scale


def _plain(A: NDArray, alpha: float) -> bool:
    """Whether floating point can hold the terms beside each other, for a matrix with 1 as its largest entry.

    The term of the permutation without longer cycles is alpha^n times the diagonal. Where it is not too small, what
    underflows beside it does not count.
    """
    if alpha == 0:
        return True
    diagonal = np.diagonal(A)
    return len(A) * abs(log(abs(alpha))) + np.abs(np.log(np.abs(diagonal[diagonal != 0]))).sum() < RANGE


def _sweep(A: NDArray, alpha: float) -> tuple[float, list[NDArray]]:
    """The alpha-permanent, and for each s the array F_s over subsets of the elements above s and over s, ..., n - 1."""
    n = len(A)
    closed = np.zeros(2**n)
    closed[0] = 1.0
    opened = []
    for s in range(n):
        unused, used = closed[::2], closed[1::2]  # the lowest bit is s
        F = np.zeros((len(unused), n - s))
        F[:, 0] = alpha * unused
        for k, reached, before in walks(n - 1 - s):
            F[reached, 1 + k] = F[before] @ A[s:, s + 1 + k]
        closed = used + F @ A[s:, s]
        opened.append(F)
    return float(closed[0]), opened


def _gradient(A: NDArray, alpha: float, opened: list[NDArray]) -> NDArray:
    """The derivatives of the alpha-permanent with respect to the entries of A: `_sweep` backwards."""
    gradient = np.zeros_like(A)
    closed_bar = np.ones(1)
    for s in reversed(range(len(A))):
        F = opened[s]
        gradient[s:, s] += F.T @ closed_bar
        F_bar = np.outer(closed_bar, A[s:, s])
        for k, reached, before in reversed(list(walks(len(A) - 1 - s))):
            reached_bar = F_bar[reached, 1 + k]
            gradient[s:, s + 1 + k] += F[before].T @ reached_bar
            F_bar[before] += np.outer(reached_bar, A[s:, s + 1 + k])
        closed_bar = np.stack([alpha * F_bar[:, 0], closed_bar], axis=1).ravel()
    return gradient


# Importance sampling: permutations are drawn one image at a time. A cycle is opened at the lowest unused point. It goes
# from its current point c to k with a probability proportional to A_ck / sum of A_ik over the remaining i, the choice
# of Kou and McCullagh (2009): points that few of the remaining rows can reach are taken first. Closing the cycle is
# weighted by alpha, because it opens another cycle. The mean of alpha^cycles prod A / probability over the drawn
# permutations is an unbiased estimate of the alpha-permanent. Its relative error grows with n, so it serves as a check
# for tens of points.


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
