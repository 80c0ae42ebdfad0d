r"""The loop that all samplers of the label field share, what it returns, and how far that can be trusted.

A sampler is two functions: `init` makes a state and `step` makes the next one, for several chains at once. Everything
else, from burn-in to standard errors, is written here once.

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

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import fft
from scipy.special import softmax

from coxfield.progress import progress
from coxfield.utils.numbers import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField


SERIES = 2**26  # numbers of a series that are held, a quarter of a gigabyte; longer series become means of batches
FEWEST_BATCHES = 32  # per chain, even for large fields
FEWEST = 4  # draws per chain: two in each half
NUMBERS = 2**22  # numbers of a series that are transformed at a time


@dataclass(frozen=True)
class State:
    """What the next step of a sampler needs, and what is known from the last step."""

    labels: NDArray
    """Class of each node in each chain, shape (n_chains, n)."""
    probabilities: NDArray | None = None
    """The distribution from which each label was drawn, shape (n_chains, n, Q), if the sampler knows it. Its mean is
    the marginal, like the mean of the labels, but it varies less."""


def draw(rng: np.random.Generator, logits: NDArray) -> NDArray:
    """Draw classes with probabilities proportional to exp(logits) along the last axis."""
    return (logits + rng.gumbel(size=logits.shape)).argmax(axis=-1)


@dataclass(frozen=True)
class FieldSampler:
    """A sampler of a label field. All start alike, and differ in `step`."""

    field: LabelField

    def step(self, rng: np.random.Generator, state: State) -> State:
        """The next state."""
        raise NotImplementedError

    def init(self, rng: np.random.Generator, n_chains: int = 1, labels=None) -> State:
        """Start from given labels, or by default from independent draws by the unary terms alone.

        Parameters
        ----------
        rng : numpy Generator
        n_chains : int, default=1
        labels : integer array of shape (n,) or (n_chains, n), optional
            Common to all chains, or separate for each.
        """
        if n_chains < 1:
            raise ValueError(f"n_chains must be at least 1, got {n_chains}")
        shape = (n_chains, len(self.field))
        if labels is None:
            unary = np.broadcast_to(self.field.relative_unary, (*shape, self.field.n_classes))
            return State(draw(rng, -unary), softmax(-unary, axis=-1))
        labels = np.asarray(labels)
        if (
            labels.shape not in (shape, shape[1:])
            or labels.min(initial=0) < 0
            or labels.max(initial=0) >= self.field.n_classes
        ):
            raise ValueError(
                f"labels must hold a class below {self.field.n_classes} for each of the {shape[1]} nodes, once for all "
                f"{n_chains} chains or once per chain; got an array of shape {labels.shape}"
            )
        return State(np.broadcast_to(labels, shape).astype(int))


@dataclass(frozen=True)
class Samples:
    """Draws from a label field, and how far they can be trusted; made by `sample`."""

    labels: NDArray | None
    """Class of each node in each draw, shape (n_chains, n_samples, n), in the smallest integer type; None with
    `keep_labels=False`."""
    series: NDArray
    """Probability of each class at each node, shape (n_chains, n_batches, n, Q). If the sampler knows the distribution
    of each draw, this is it (Rao-Blackwell); otherwise it is the draw itself. If single draws would take too much
    memory, means of batches of consecutive draws are held."""
    variances: NDArray
    """Variance of the series over single draws, all chains together, shape (n, Q)."""
    n_draws: int
    """Draws of all chains together."""

    @cached_property
    def marginals(self) -> NDArray:
        """Probability of each class at each node, shape (n, Q)."""
        means = self.series.mean(axis=(0, 1), dtype=float)
        return means / means.sum(axis=1, keepdims=True)  # the series is held in single precision

    @cached_property
    def _series_errors(self) -> NDArray:
        return standard_error(self.series)

    @cached_property
    def effective_sample_size(self) -> NDArray:
        """Number of independent draws whose mean would be as precise as that of the series, shape (n, Q).

        If nothing varied, it is the number of draws.
        """
        varied = (self._series_errors > 0) & (self.variances > 0)
        full = np.full(self.variances.shape, float(self.n_draws))
        return np.divide(self.variances, self._series_errors**2, out=full, where=varied)

    @cached_property
    def standard_errors(self) -> NDArray:
        """Standard errors of the marginals, shape (n, Q); never 0.

        Two errors are added in squares. The first is the error of the series. The second is the error of an event that
        no draw showed, computed with the effective sample size of the slowest node, because no chain can exclude what
        it has not seen. For a node that never changes, the second is the whole error.
        """
        slowest = min(self.effective_sample_size.min(initial=self.n_draws), self.n_draws)
        return np.hypot(self._series_errors, never_seen_error(slowest))

    @cached_property
    def r_hat(self) -> NDArray:
        """Split R-hat of the series, shape (n, Q); 1 for a node that never changes and is the same in all chains."""
        return r_hat(self.series)


def sample(
    sampler: FieldSampler,
    n_samples: int,
    *,
    n_chains: int = 4,
    burn_in: int | None = None,
    thin: int = 1,
    labels=None,
    keep_labels: bool = True,
    random_state=None,
    done: Callable[[int], None] | None = None,
) -> Samples:
    """Run several chains of a sampler and collect their draws.

    Parameters
    ----------
    sampler : Gibbs, SwendsenWang, PerturbAndMap or RandomisedCut
    n_samples : int
        Draws to keep per chain.
    n_chains : int, default=4
        Independent chains, all moved at once.
    burn_in : int, optional
        Steps before the first draw that is kept. By default a tenth of the steps that follow, at least 10.
    thin : int, default=1
        Steps per draw.
    labels : integer array of shape (n,) or (n_chains, n), optional
        The start. By default independent draws by the unary terms.
    keep_labels : bool, default=True
        Whether to keep the labels of all draws.
    random_state : int, Generator or None
        Seed of the random numbers.
    done : callable, optional
        Called with the number of steps done.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, SwendsenWang, sample
    >>> X = np.array([[0.0], [1.0], [0.7]])
    >>> field = LabelField.from_points(X, RBF(0.5), labels=[0, 1, -1])
    >>> draws = sample(SwendsenWang(field), 100, random_state=0)
    >>> draws.labels.shape, draws.marginals.round(3)
    ((4, 100, 1), array([[0.387, 0.613]]))
    """
    burn_in = max(10, n_samples * thin // 10) if burn_in is None else burn_in
    _check_numbers(n_samples, burn_in, thin)
    rng = generator(random_state)
    start, n_steps = sampler.init(rng, n_chains, labels), burn_in + n_samples * thin
    kept = _Kept(sampler.field, n_chains, n_samples, keep_labels)
    with progress(f"draws from {n_chains} chains", n_steps, None, "fewer n_samples take less time") as own:
        for step, state in enumerate(states(sampler, rng, start, n_steps), start=1):
            late = step - burn_in
            if late > 0 and late % thin == 0:
                kept.add(late // thin - 1, state)
            (done or own)(1)
    return Samples(kept.labels, kept.series, kept.variances, n_chains * n_samples)


def states(sampler: FieldSampler, rng: np.random.Generator, state: State, n_steps: int) -> Iterator[State]:
    """The state after each of `n_steps` steps."""
    for _ in range(n_steps):
        state = sampler.step(rng, state)
        yield state


def _check_numbers(n_samples: int, burn_in: int, thin: int) -> None:
    for name, value, least in (("n_samples", n_samples, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")


class _Kept:
    """The draws that the loop has collected so far."""

    def __init__(self, field: LabelField, n_chains: int, n_samples: int, keep_labels: bool):
        n, Q = len(field), field.n_classes
        most = max(SERIES // max(n_chains * n * Q, 1), FEWEST_BATCHES)
        self.batch = -(-n_samples // most)
        smallest = np.min_scalar_type(Q - 1)
        self.labels = np.empty((n_chains, n_samples, n), smallest) if keep_labels else None
        # A last batch that is not full is left out, because its variance would be different.
        self.series = np.zeros((n_chains, n_samples // self.batch, n, Q), np.float32)
        self._sums, self._squares, self._count = np.zeros((n, Q)), np.zeros((n, Q)), n_chains * n_samples

    def add(self, number: int, state: State) -> None:
        """Add one draw of each chain."""
        known = state.probabilities
        if known is None:
            known = (state.labels[:, :, None] == np.arange(self.series.shape[3])).astype(float)
        self._sums += known.sum(axis=0)
        self._squares += (known**2).sum(axis=0)
        if self.labels is not None:
            self.labels[:, number] = state.labels
        if number // self.batch < self.series.shape[1]:
            self.series[:, number // self.batch] += known / self.batch

    @property
    def variances(self) -> NDArray:
        """Variance of all draws together."""
        return np.maximum(self._squares / self._count - (self._sums / self._count) ** 2, 0)


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
