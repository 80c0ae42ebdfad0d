r"""How far chains can be trusted: effective sample size, split R-hat, standard errors of means.

A series has shape (n_chains, n_draws, ...). Everything is computed for each of the trailing entries. Let W be the mean
variance within chains, B / n_draws the variance of the means of the chains, and V = (1 - 1 / n_draws) W + B / n_draws.
Then

.. math:: \hat R = \sqrt{V / W}, \qquad N_{\mathrm{eff}} = \frac{m n}{-1 + 2 \sum_k P_k}, \qquad
          P_k = \rho_{2k} + \rho_{2k+1}, \qquad \rho_t = 1 - \frac{W - \bar\gamma_t}{V},

where :math:`\bar\gamma_t` are the mean autocovariances of the chains. The sum stops at the first negative P_k, and each
P_k is reduced to the one before if it is larger: Geyer's (1992) initial monotone sequence. Chains are split in half
first, so that a drift shows as a difference between chains (Gelman et al., Bayesian Data Analysis, 3rd edition, section
11.4).

A series that never changes has no information on its variance. Its R-hat is 1 if all chains agree and infinite if they
do not. Its draws count as independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import fft

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 4  # draws per chain: two in each half
NUMBERS = 2**22  # numbers of a series that are transformed at a time


def r_hat(series: NDArray) -> NDArray:
    """Split R-hat: near 1 if the halves of all chains look alike.

    Parameters
    ----------
    series : array of shape (n_chains, n_draws, ...)

    Examples
    --------
    >>> import numpy as np
    >>> chains = np.random.default_rng(0).normal(size=(4, 1000))
    >>> r_hat(chains).round(2), r_hat(chains + [[0], [0], [0], [3]]).round(2)
    (np.float64(1.0), np.float64(1.74))
    """
    within, total = _variances(_split(series))
    stuck = np.where(total > 0, np.inf, 1.0)
    return np.where(within > 0, np.sqrt(total / np.where(within > 0, within, 1.0)), stuck)


def effective_sample_size(series: NDArray) -> NDArray:
    """Number of independent draws whose mean would be as precise as that of the series.

    It is limited to the number of draws times its logarithm to base ten. Only alternating chains could exceed this.

    Parameters
    ----------
    series : array of shape (n_chains, n_draws, ...)

    Examples
    --------
    An autoregressive series with correlation 1/2 is worth a third of its length:

    >>> import numpy as np
    >>> from scipy.signal import lfilter
    >>> noise = np.random.default_rng(0).normal(size=(4, 20_000))
    >>> float(effective_sample_size(lfilter([1], [1, -0.5], noise)) / noise.size).__round__(1)
    0.3
    """
    halves = _split(series)
    within, total = _variances(halves)
    size = float(halves.shape[0] * halves.shape[1])
    pairs = _monotone_pairs(_mean_autocovariances(halves), within, total)
    time = np.maximum(2 * pairs.sum(axis=0) - 1, 1 / max(np.log10(size), 1.0))
    return np.where(total > 0, size / time, size)


def standard_error(series: NDArray) -> NDArray:
    """Standard error of the mean of a series, sqrt(V / N_eff); 0 for a series that never changes.

    Parameters
    ----------
    series : array of shape (n_chains, n_draws, ...)

    Examples
    --------
    >>> import numpy as np
    >>> float(standard_error(np.random.default_rng(0).normal(size=(4, 2500)))).__round__(2)
    0.01
    """
    _, total = _variances(_split(series))
    return np.sqrt(total / effective_sample_size(series))


def never_seen_error(n_draws: float) -> float:
    """Standard error of the frequency of an event that occurred in none, or in all, of n independent draws.

    It uses the estimate (k + 1/2) / (n + 1) for an event that occurred k times in n draws, so it is not 0.

    Examples
    --------
    >>> round(never_seen_error(999), 6)
    0.000707
    """
    share = 0.5 / (n_draws + 1)
    return float(np.sqrt(share * (1 - share) / n_draws))


def _split(series: NDArray) -> NDArray:
    """Each chain as two halves; an odd number of draws loses the one in the middle."""
    series = np.asarray(series)
    if series.ndim < 2 or series.shape[1] < FEWEST:
        raise ValueError(
            f"diagnostics need chains of at least {FEWEST} draws, as an array of shape (n_chains, n_draws, ...), got "
            f"shape {series.shape}: draw more samples"
        )
    half = series.shape[1] // 2
    return np.concatenate([series[:, :half], series[:, -half:]])


def _variances(halves: NDArray) -> tuple[NDArray, NDArray]:
    """W and V; exactly 0 for a series that never changes, even if its mean is rounded."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1, dtype=float).mean(axis=0)
    between = halves.mean(axis=1, dtype=float).var(axis=0, ddof=1)
    within = np.where((halves == halves[:, :1]).all(axis=(0, 1)), 0.0, within)
    constant = (halves == halves[:1, :1]).all(axis=(0, 1))
    return within, np.where(constant, 0.0, within * (n - 1) / n + between)


def _mean_autocovariances(halves: NDArray) -> NDArray:
    """Autocovariances of each chain about its own mean, averaged over the chains, shape (n_draws, ...)."""
    m, n = halves.shape[:2]
    flat = halves.reshape(m, n, -1)
    result = np.empty((n, flat.shape[2]))
    length = fft.next_fast_len(2 * n, real=True)
    step = max(1, NUMBERS // (m * length))
    for start in range(0, flat.shape[2], step):
        part = flat[:, :, start : start + step].astype(float)
        spectrum = fft.rfft(part - part.mean(axis=1, keepdims=True), length, axis=1)
        power = (spectrum.real**2 + spectrum.imag**2).mean(axis=0)
        result[:, start : start + step] = fft.irfft(power, length, axis=0)[:n] / n
    return result.reshape(halves.shape[1:])


def _monotone_pairs(covariances: NDArray, within: NDArray, total: NDArray) -> NDArray:
    """P_k, with none above the one before and 0 from the first negative one on."""
    scale = np.where(total > 0, total, 1.0)
    correlations = 1 - (within - covariances) / scale
    correlations[0] = 1
    even = len(correlations) // 2 * 2
    pairs = correlations[0:even:2] + correlations[1:even:2]
    alive = np.logical_and.accumulate(pairs > 0, axis=0)
    return np.where(alive, np.minimum.accumulate(pairs, axis=0), 0.0)
