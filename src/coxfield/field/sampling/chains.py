"""The loop that all samplers of the label field share, and what it returns.

A sampler is two functions: `init` makes a state and `step` the next one, for several chains at once. Everything else,
from burn-in to standard errors, is written here once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import softmax

from coxfield.field.sampling.diagnostics import never_seen_error, r_hat, standard_error
from coxfield.utils.randomness import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField

SERIES = 2**26  # numbers of a series that are held, a quarter of a gigabyte; beyond that, means of batches
FEWEST_BATCHES = 32  # a chain, however large the field


@dataclass(frozen=True)
class State:
    """What the next step of a sampler needs, and what the last one knew."""

    labels: NDArray
    """Class of each node in each chain, shape (n_chains, n)."""
    probabilities: NDArray | None = None
    """The distribution that each label was drawn from, shape (n_chains, n, Q), where the sampler knows it. Its mean is
    the marginal, as the mean of the labels is, and varies less."""


class Sampler(Protocol):
    """What the loop asks of a sampler."""

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
    """Given labels for all chains or for each; otherwise independent draws by the unary terms, couplings ignored.

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
            f"labels must hold a class below {field.n_classes} for each of the {shape[1]} nodes, for all "
            f"{n_chains} chains together or for each; got an array of shape {labels.shape}"
        )
    return State(np.broadcast_to(labels, shape).astype(int))


@dataclass(frozen=True)
class Samples:
    """Draws from a label field, and how far they can be trusted; made by `sample`."""

    labels: NDArray | None
    """Class of each node in each draw, shape (n_chains, n_samples, n), in the smallest integer type; None if they were
    not to be kept."""
    series: NDArray
    """Probability of each class at each node, shape (n_chains, n_batches, n, Q): the distribution that each draw came
    from where the sampler knows it (Rao-Blackwell), the draw itself otherwise. Means of batches of consecutive draws
    where single ones would take too much memory."""
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
        """Independent draws whose mean would be as precise as that of the series, shape (n, Q).

        The number of draws where nothing varied.
        """
        varied = (self._series_errors > 0) & (self.variances > 0)
        full = np.full(self.variances.shape, float(self.n_draws))
        return np.divide(self.variances, self._series_errors**2, out=full, where=varied)

    @cached_property
    def standard_errors(self) -> NDArray:
        """Standard errors of the marginals, shape (n, Q); never 0.

        To the error of the series is added (in squares) that of something which none of the draws showed, counted as
        effective draws of the slowest node: no chain can exclude what it has not seen. It is the whole error of a node
        that never changes.
        """
        slowest = min(self.effective_sample_size.min(initial=self.n_draws), self.n_draws)
        return np.hypot(self._series_errors, never_seen_error(slowest))

    @cached_property
    def r_hat(self) -> NDArray:
        """Split R-hat of the series, shape (n, Q); 1 for a node that never changes and is alike in all chains."""
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
    """Run several chains of a sampler and collect what they visit.

    Parameters
    ----------
    sampler : Gibbs, SwendsenWang, PerturbAndMap or RandomisedCut
    n_samples : int
        Draws to keep of each chain.
    n_chains : int, default=4
        Independent chains, all moved at once.
    burn_in : int, optional
        Steps before the first draw that is kept; by default a tenth of the steps that follow, at least 10.
    thin : int, default=1
        Steps per draw.
    labels : integer array of shape (n,) or (n_chains, n), optional
        Where to start; by default independent draws by the unary terms.
    keep_labels : bool, default=True
        Whether to keep the labels of all draws.
    random_state : int, Generator or None
        Seed of the random numbers.
    done : callable, optional
        Told of each number of steps done.

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
    start = sampler.init(rng, n_chains, labels)
    kept = _Kept(sampler.field, n_chains, n_samples, keep_labels)
    for step, state in enumerate(states(sampler, rng, start, burn_in + n_samples * thin), start=1):
        late = step - burn_in
        if late > 0 and late % thin == 0:
            kept.add(late // thin - 1, state)
        if done is not None:
            done(1)
    return Samples(kept.labels, kept.series, kept.variances, n_chains * n_samples)


def states(sampler: Sampler, rng: np.random.Generator, state: State, n_steps: int) -> Iterator[State]:
    """The states after each of some steps."""
    for _ in range(n_steps):
        state = sampler.step(rng, state)
        yield state


def _check_numbers(n_samples: int, burn_in: int, thin: int) -> None:
    for name, value, least in (("n_samples", n_samples, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")


class _Kept:
    """What the loop has collected so far."""

    def __init__(self, field: LabelField, n_chains: int, n_samples: int, keep_labels: bool):
        n, Q = len(field), field.n_classes
        most = max(SERIES // max(n_chains * n * Q, 1), FEWEST_BATCHES)
        self.batch = -(-n_samples // most)
        smallest = np.min_scalar_type(Q - 1)
        self.labels = np.empty((n_chains, n_samples, n), smallest) if keep_labels else None
        # A last batch that is not full would have another variance: it is left out.
        self.series = np.zeros((n_chains, n_samples // self.batch, n, Q), np.float32)
        self._sums, self._squares, self._count = np.zeros((n, Q)), np.zeros((n, Q)), n_chains * n_samples

    def add(self, number: int, state: State) -> None:
        """Take in one draw of each chain."""
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
