"""The loop that all samplers of the label field share, and what it returns.

A sampler is two functions: `init` makes a state and `step` makes the next one, for several chains at once. Everything
else, from burn-in to standard errors, is written here once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import softmax

from coxfield.field.sampling.diagnostics import never_seen_error, r_hat, standard_error
from coxfield.progress import progress
from coxfield.utils.randomness import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField

SERIES = 2**26  # numbers of a series that are held, a quarter of a gigabyte; longer series become means of batches
FEWEST_BATCHES = 32  # per chain, even for large fields


@dataclass(frozen=True)
class State:
    """What the next step of a sampler needs, and what is known from the last step."""

    labels: NDArray
    """Class of each node in each chain, shape (n_chains, n)."""
    probabilities: NDArray | None = None
    """The distribution from which each label was drawn, shape (n_chains, n, Q), if the sampler knows it. Its mean is
    the marginal, like the mean of the labels, but it varies less."""


class Sampler(Protocol):
    """What the loop needs from a sampler."""

    @property
    def field(self) -> LabelField:
        """The label field."""

    def init(self, rng: np.random.Generator, n_chains: int = 1, labels=None) -> State:
        """The state to start from."""

    def step(self, rng: np.random.Generator, state: State) -> State:
        """The next state."""


def draw(rng: np.random.Generator, logits: NDArray) -> NDArray:
    """Draw classes with probabilities proportional to exp(logits) along the last axis."""
    return (logits + rng.gumbel(size=logits.shape)).argmax(axis=-1)


def initial_state(field: LabelField, rng: np.random.Generator, n_chains: int = 1, labels=None) -> State:
    """Given labels, common to all chains or separate for each; by default independent draws by the unary terms alone.

    Parameters
    ----------
    field : LabelField
    rng : numpy Generator
    n_chains : int, default=1
    labels : integer array of shape (n,) or (n_chains, n), optional
    """
    if n_chains < 1:
        raise ValueError(f"n_chains must be at least 1, got {n_chains}")
    shape = (n_chains, len(field))
    if labels is None:
        unary = np.broadcast_to(field.relative_unary, (*shape, field.n_classes))
        return State(draw(rng, -unary), softmax(-unary, axis=-1))
    labels = np.asarray(labels)
    if labels.shape not in (shape, shape[1:]) or labels.min(initial=0) < 0 or labels.max(initial=0) >= field.n_classes:
        raise ValueError(
            f"labels must hold a class below {field.n_classes} for each of the {shape[1]} nodes, once for all "
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
    sampler: Sampler,
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


def states(sampler: Sampler, rng: np.random.Generator, state: State, n_steps: int) -> Iterator[State]:
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
