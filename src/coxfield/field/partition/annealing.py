r"""The partition function by annealed importance sampling (Neal, 2001): couplings are turned up while labels follow.

The weights exp(-sum_i u_i(y_i) + beta A(y)), with A(y) = sum_{i<j} [y_i = y_j] C^(y_i)(x_i, x_j) the agreement of a
labelling, lead from independent nodes at beta = 0, where log Z_0 = sum_i log sum_c exp(-u_i(c)) and labels are drawn
exactly, to the label field at beta = 1. A particle moves by a sampler that leaves each of them as it is, and

.. math:: \log w = \sum_k (\beta_{k+1} - \beta_k) A(y_k)

is its log weight: the mean of w is Z / Z_0 without bias, however slowly the labels follow, provided that the
temperatures were fixed before.

They are fixed by a pilot run, at equal steps of thermodynamic length, the integral of the standard deviation of A over
beta: that gives each step the same share of the variance of log w. Their number follows from the variance that the
pilot's own weights have, which is larger where labels follow slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from coxfield.field.rows import coupling_rows
from coxfield.field.sampling.chains import initial_state
from coxfield.field.sampling.gibbs import Gibbs
from coxfield.field.sampling.swendsen_wang import SwendsenWang

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField
    from coxfield.field.rows import CouplingRows
    from coxfield.field.sampling.chains import State

ROWS = 512  # nodes whose couplings are looked at together
PILOTS = 64  # particles of the pilot run: its standard deviations are right to a tenth
PILOT_STEP = 0.25  # thermodynamic length of its steps
VARIANCE = 0.5  # of the log weights, aimed at: two thirds of the particles are then effective
FEWEST, MOST = 4, 2000  # temperatures, unless asked for


@dataclass(frozen=True)
class Alternation:
    """Sample a field by Gibbs sweeps and Swendsen-Wang moves in turn.

    Where classes have couplings of different strength, turning them up may move the weight from one class to another at
    once, and no sweep of single nodes follows; clusters do. Where clusters of three classes are slow, sweeps are not.
    """

    field: LabelField

    @cached_property
    def _samplers(self) -> tuple[Gibbs, SwendsenWang]:
        return Gibbs(self.field), SwendsenWang(self.field)

    def init(self, rng: np.random.Generator, n_chains: int = 1, labels=None) -> State:
        """Start from given labels, or from draws by the unary terms alone; see `initial_state`."""
        return initial_state(self.field, rng, n_chains, labels)

    def step(self, rng: np.random.Generator, state: State, coupling: float = 1.0) -> State:
        """One sweep, and one move of clusters."""
        for sampler in self._samplers:
            state = sampler.step(rng, state, coupling)
        return state


@dataclass(frozen=True)
class AnnealedWeights:
    """What the particles of an annealing run weigh: the mean of their weights is Z over that of the start."""

    log_start: float
    """log Z of the distribution at the start."""
    log_weights: NDArray
    """Shape (n_particles,)."""
    temperatures: NDArray
    """From the start to the end, both included."""
    resolution: float = 0.0
    """An error of the mean's logarithm that equal weights may still hide."""


def anneal(sampler, rng: np.random.Generator, n_particles: int, n_temperatures: int | None = None) -> AnnealedWeights:
    """Weigh particles that follow the field from no coupling to full coupling.

    Parameters
    ----------
    sampler : Gibbs, SwendsenWang or Alternation
        What moves the labels; its field is the one in question.
    rng : numpy Generator
    n_particles : int
        Independent ones, all moved at once.
    n_temperatures : int, optional
        Steps between beta = 0 and 1; by default as many as a pilot run suggests.
    """
    field, couplings = sampler.field, coupling_rows(sampler.field, ROWS)
    log_start = float(logsumexp(-field.relative_unary, axis=1).sum() - field.common_unary.sum())
    betas = _temperatures(sampler, couplings, rng, n_temperatures)
    state = sampler.init(rng, n_particles)
    log_weights = np.zeros(n_particles)
    for before, after in pairwise(betas):
        log_weights += (after - before) * agreement(couplings, state.labels)
        if after < 1:  # labels at beta = 1 weigh nothing more
            state = sampler.step(rng, state, after)
    return AnnealedWeights(log_start, log_weights, betas)


def agreement(couplings: CouplingRows, labels: NDArray) -> NDArray:
    """A(y), the sum of C^(c)(x_i, x_j) over pairs of one class c, for each row of `labels`, shape (n_chains,)."""
    total = np.zeros(len(labels))
    for k, users in enumerate(couplings.users):
        for c in np.flatnonzero(users):
            own = (labels == c).astype(float)
            for rows in couplings.blocks:
                total += np.einsum("ki,ki->k", own[:, rows], own @ couplings.values(k, rows).T) / 2
    return total


def _temperatures(sampler, couplings: CouplingRows, rng, n_temperatures: int | None) -> NDArray:
    """Equal steps of the thermodynamic length that a pilot run measured."""
    pilot = _pilot(sampler, couplings, rng)
    # The variance of the log weights falls as one over the number of steps.
    wanted = len(pilot.betas) * pilot.log_weights.var(ddof=1) / VARIANCE
    steps = n_temperatures or int(np.clip(np.ceil(wanted), FEWEST, MOST))
    return np.interp(np.linspace(0, pilot.lengths[-1], steps + 1), pilot.lengths, pilot.betas)


@dataclass(frozen=True)
class _Pilot:
    betas: list[float]
    lengths: list[float]
    """Length of the path up to each beta."""
    log_weights: NDArray


def _pilot(sampler, couplings: CouplingRows, rng) -> _Pilot:
    """Anneal a few particles, each step as long as the last spread allows.

    One unit of length is spread evenly over the path, for what the pilot does not see.
    """
    state = sampler.init(rng, PILOTS)
    betas, lengths, log_weights = [0.0], [0.0], np.zeros(PILOTS)
    while betas[-1] < 1:
        agreed = agreement(couplings, state.labels)
        speed = 1 + float(agreed.std(ddof=1))
        step = min(PILOT_STEP / speed, 1 - betas[-1])
        log_weights += step * agreed
        lengths.append(lengths[-1] + speed * step)
        betas.append(betas[-1] + step)
        state = sampler.step(rng, state, betas[-1])
    return _Pilot(betas, lengths, log_weights)
