r"""The partition function by annealed importance sampling (Neal, 2001): couplings grow step by step and labels follow.

Let A(y) = sum_{i<j} [y_i = y_j] C^(y_i)(x_i, x_j) be the agreement of a labelling. The weights
exp(-sum_i u_i(y_i) + beta A(y)) lead from independent nodes at beta = 0 to the label field at beta = 1. At beta = 0
log Z_0 = sum_i log sum_c exp(-u_i(c)), and labels are drawn exactly. A particle moves by a sampler that keeps the
distribution at each beta, and has the log weight

.. math:: \log w = \sum_k (\beta_{k+1} - \beta_k) A(y_k).

The mean of w is an unbiased estimate of Z / Z_0, even if the labels follow slowly. The temperatures must be fixed
before.

A pilot run fixes them at equal steps of thermodynamic length, which is the integral of the standard deviation of A over
beta. This gives each step the same share of the variance of log w. The number of temperatures follows from the variance
of the pilot's own weights, which is larger if labels follow slowly.
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
from coxfield.progress import progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField
    from coxfield.field.rows import CouplingRows
    from coxfield.field.sampling.chains import State

ROWS = 512  # nodes whose couplings are read together
PILOTS = 64  # particles of the pilot run: its standard deviations have errors of a tenth
PILOT_STEP = 0.25  # thermodynamic length of its steps
VARIANCE = 0.5  # wanted variance of the log weights: two thirds of the particles are then effective
FEWEST, MOST = 4, 2000  # temperatures, unless the user gives their number
FASTER = "fewer n_particles or n_temperatures take less time"


@dataclass(frozen=True)
class Alternation:
    """Sample a field by Gibbs sweeps and Swendsen-Wang moves in turn.

    If classes have couplings of different strength, growing couplings may suddenly move the weight from one class to
    another. Sweeps of single nodes do not follow such a change, but clusters do. With three classes clusters may be
    slow, and then sweeps help.
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
    """The weights of the particles of an annealing run. The mean weight is Z divided by the Z of the start."""

    log_start: float
    """log Z of the distribution at the start."""
    log_weights: NDArray
    """Shape (n_particles,)."""
    temperatures: NDArray
    """From the start to the end, including both."""
    resolution: float = 0.0
    """An error of the log of the mean that does not show in the spread of the weights."""


def anneal(sampler, rng: np.random.Generator, n_particles: int, n_temperatures: int | None = None) -> AnnealedWeights:
    """Compute the weights of particles that follow the field from no coupling to full coupling.

    Parameters
    ----------
    sampler : Gibbs, SwendsenWang or Alternation
        Moves the labels. Its field is the one whose Z is wanted.
    rng : numpy Generator
    n_particles : int
        Independent particles, all moved at once.
    n_temperatures : int, optional
        Steps between beta = 0 and 1. By default as many as a pilot run suggests.
    """
    field, couplings = sampler.field, coupling_rows(sampler.field, ROWS)
    log_start = float(logsumexp(-field.relative_unary, axis=1).sum() - field.common_unary.sum())
    betas = _temperatures(sampler, couplings, rng, n_temperatures)
    state = sampler.init(rng, n_particles)
    log_weights = np.zeros(n_particles)
    with progress(f"annealing of {n_particles} particles", len(betas) - 1, None, FASTER) as done:
        for before, after in pairwise(betas):
            log_weights += (after - before) * agreement(couplings, state.labels)
            if after < 1:  # moves at beta = 1 would not change the weights
                state = sampler.step(rng, state, after)
            done(1)
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
    """Equal steps of the thermodynamic length, as measured by a pilot run."""
    pilot = _pilot(sampler, couplings, rng)
    # The variance of the log weights is proportional to one over the number of steps.
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
    """Anneal a few particles, with steps as long as the last standard deviation allows.

    One unit of length is distributed evenly over the path, because the pilot may miss something.
    """
    state = sampler.init(rng, PILOTS)
    betas, lengths, log_weights = [0.0], [0.0], np.zeros(PILOTS)
    with progress(f"annealing of {PILOTS} pilots", 1, None) as done:
        while betas[-1] < 1:
            agreed = agreement(couplings, state.labels)
            speed = 1 + float(agreed.std(ddof=1))
            step = min(PILOT_STEP / speed, 1 - betas[-1])
            log_weights += step * agreed
            lengths.append(lengths[-1] + speed * step)
            betas.append(betas[-1] + step)
            state = sampler.step(rng, state, betas[-1])
            done(step)
    return _Pilot(betas, lengths, log_weights)
