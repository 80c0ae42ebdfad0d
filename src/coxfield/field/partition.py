r"""The partition function of the label field, and the joint predictive probabilities that it normalises.

Eqs conditionalModel and explicitMRF divide the weight of a labelling by M(x), the product density of the superposition
process. In a `LabelField`, points with known labels act through the unary terms. The sum over the unknown labels y* is

.. math:: Z = \sum_{y^*} e^{-E(y^*)} = \frac{\sum_{y^*} \prod_c m^{(c)}(x^{(c)}, x^{*(c)})}{\prod_c m^{(c)}(x^{(c)})},

the product density of new points of unknown class, given the labelled ones. Without labelled points it is M(x*).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logsumexp

from coxfield.field.chains import FieldSampler
from coxfield.field.edges import coupling_rows
from coxfield.field.potts import check_labels
from coxfield.field.samplers import Gibbs, SwendsenWang
from coxfield.kernels.protocol import values
from coxfield.progress import progress
from coxfield.utils.numbers import generator, logs_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.chains import State
    from coxfield.field.edges import CouplingRows
    from coxfield.field.potts import LabelField

# The partition function by annealing: couplings of labels grow step by step, or odd nodes of subgraphs vanish.
#
# Annealed importance sampling (Neal, 2001). Let A(y) = sum_{i<j} [y_i = y_j] C^(y_i)(x_i, x_j) be the agreement of a
# labelling. The weights exp(-sum_i u_i(y_i) + beta A(y)) lead from independent nodes at beta = 0 to the label field at
# beta = 1. At beta = 0 log Z_0 = sum_i log sum_c exp(-u_i(c)), and labels are drawn exactly. A particle moves by a
# sampler that keeps the distribution at each beta, and has the log weight
#
# .. math:: \log w = \sum_k (\beta_{k+1} - \beta_k) A(y_k).
#
# The mean of w is an unbiased estimate of Z / Z_0, even if the labels follow slowly. The temperatures must be fixed
# before.
#
# A pilot run fixes them at equal steps of thermodynamic length, which is the integral of the standard deviation of A
# over beta. This gives each step the same share of the variance of log w. The number of temperatures follows from the
# variance of the pilot's own weights, which is larger if labels follow slowly.
#
# Two classes without a field: a Markov chain on subgraphs (Jerrum and Sinclair, 1993). With spins +1 and -1 for the two
# classes, a coupling C gives a pair the factor exp(C [y_i = y_j]) = (1 + exp(C)) / 2 (1 + t s_i s_j), where t = tanh(C
# / 2). Multiply out and sum over the spins. Only products in which every node occurs an even number of times remain:
#
# .. math:: Z = e^{-\sum_i u_i} \, 2^n \prod_{i<j} \frac{1 + e^{C_{ij}}}{2} \, S(0), \qquad
#           S(\mu) = \sum_A \mu^{|\mathrm{odd}(A)|} \prod_{ij \in A} t_{ij},
#
# where A runs over all sets of edges and odd(A) are the nodes of odd degree. S(1) is the product of 1 + t, and
# subgraphs at mu = 1 are drawn exactly. From there mu is lowered level by level to 1/n. At each level a subgraph gains
# the factor (mu' / mu)^|odd(A)|. The mean of the products of these factors is S(1/n) / S(1), as in annealing, without
# bias and without burn-in. The last factor, S(0) / S(1/n), is the share of even subgraphs among those visited at 1/n.
# It is at least 1 / cosh(1). The reason: S(mu) / S(0) is a sum over even sets of nodes, of mu to the size of the set
# times the mean of the product of its spins, and that mean is at most one.
#
# This method does not use a sampler of labels, so it can check methods that do. Every edge is visited in every sweep,
# so it is for tens of nodes.


ROWS = 512  # nodes whose couplings are read together
PILOTS = 64  # particles of the pilot run: its standard deviations have errors of a tenth
PILOT_STEP = 0.25  # thermodynamic length of its steps
VARIANCE = 0.5  # wanted variance of the log weights: two thirds of the particles are then effective
FEWEST, MOST = 4, 2000  # temperatures, unless the user gives their number
FASTER = "fewer n_particles or n_temperatures take less time"
MOST_NODES = 256  # 32,640 edges per chain
COUNTED = 32  # sweeps at the last level over which even subgraphs are counted


@dataclass(frozen=True)
class Alternation(FieldSampler):
    """Sample a field by Gibbs sweeps and Swendsen-Wang moves in turn.

    If classes have couplings of different strength, growing couplings may suddenly move the weight from one class to
    another. Sweeps of single nodes do not follow such a change, but clusters do. With three classes clusters may be
    slow, and then sweeps help.
    """

    @cached_property
    def _samplers(self) -> tuple[Gibbs, SwendsenWang]:
        return Gibbs(self.field), SwendsenWang(self.field)

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


def weigh_subgraphs(
    field: LabelField, rng: np.random.Generator, n_chains: int, n_levels: int | None = None
) -> AnnealedWeights:
    """Compute the weights of subgraphs that follow mu from 1 to 1/n; at 1/n even ones are counted.

    Parameters
    ----------
    field : LabelField
        A field of two classes that share their covariance and their unary terms.
    rng : numpy Generator
    n_chains : int
        Independent chains, all moved at once.
    n_levels : int, optional
        Steps of mu. By default n log(n)^2, which keeps the variance of the log weights well below one.
    """
    check_applies(field)
    n = len(field)
    couplings = values(field.points[0], field.points[0]).astype(float)
    np.fill_diagonal(couplings, 0)
    pairs = couplings[np.triu_indices(n, 1)]
    log_ones = float(np.log1p(np.tanh(pairs / 2)).sum())  # log S(1)
    log_factors = float((np.logaddexp(0, pairs) - np.log(2)).sum())
    log_start = n * np.log(2) - float(field.unary[:, 0].sum()) + log_factors + log_ones
    wanted = int(np.ceil(n * np.log(max(n, 2)) ** 2))
    levels = np.geomspace(1, 1 / max(n, 1), (n_levels or wanted) + 1)
    log_weights = _descend(np.tanh(couplings / 2), levels, rng, n_chains)
    # With weak couplings there may be no edge in any chain. The missed part is less than S(1) and rarer than one chain.
    return AnnealedWeights(log_start, log_weights, levels, min(log_ones, 1 / n_chains))


def check_applies(field: LabelField) -> None:
    """Refuse a field for which the expansion in even subgraphs does not hold."""
    if field.n_classes != 2 or not field.shared:
        kinds = f"{field.n_classes} classes" + ("" if field.shared else " with covariances of their own")
        raise ValueError(f"the subgraph chain is for two classes that share a covariance, got {kinds}: use annealing")
    pull = np.abs(field.relative_unary[:, 0] - field.relative_unary[:, 1]).max(initial=0)
    if pull > 0:
        raise ValueError(
            f"the subgraph chain is for fields without labelled points and with equal means, but the unary terms of "
            f"the two classes differ by up to {pull:.3g}: use annealing"
        )
    if len(field) > MOST_NODES:
        raise ValueError(
            f"the subgraph chain visits all pairs of nodes, and {len(field)} nodes are too many: use annealing beyond "
            f"{MOST_NODES}"
        )


def matchings(n: int) -> list[tuple[NDArray, NDArray]]:
    """All pairs of n nodes, divided into rounds of disjoint pairs, as in a tournament.

    >>> [list(zip(i.tolist(), j.tolist())) for i, j in matchings(4)]
    [[(0, 3), (1, 2)], [(1, 3), (2, 0)], [(2, 3), (0, 1)]]
    """
    players = n + n % 2  # if n is odd, an extra player is added, and whoever meets it rests
    rounds = []
    for r in range(players - 1):
        others = (r + np.arange(players - 1)) % (players - 1)
        i, j = others[: players // 2], np.r_[players - 1, others[: players // 2 - 1 : -1]]
        there = (i < n) & (j < n)
        rounds.append((i[there], j[there]))
    return rounds


def _descend(t: NDArray, levels: NDArray, rng: np.random.Generator, n_chains: int) -> NDArray:
    """Log weight of each chain."""
    rounds = matchings(len(t))
    held, odd = _draw(t, rounds, rng, n_chains)
    log_weights, even = np.zeros(n_chains), np.zeros(n_chains)
    with progress(f"subgraphs of {n_chains} chains", len(levels) - 1 + COUNTED, None, FASTER) as done:
        for before, after in pairwise(levels):
            log_weights += np.log(after / before) * odd.sum(axis=1)
            _sweep(t, after, rounds, held, odd, rng)
            done(1)
        for _ in range(COUNTED):
            even += ~odd.any(axis=1)
            _sweep(t, levels[-1], rounds, held, odd, rng)
            done(1)
    return log_weights + logs_of(even / COUNTED)  # a chain without even subgraphs has weight 0


def _draw(t: NDArray, rounds, rng, n_chains: int) -> tuple[list[NDArray], NDArray]:
    """Independent subgraphs at mu = 1, where each edge is present with probability t / (1 + t); and their odd nodes."""
    held, odd = [], np.zeros((n_chains, len(t)), dtype=bool)
    for i, j in rounds:
        edges = rng.random((n_chains, len(i))) * (1 + t[i, j]) < t[i, j]
        odd[:, i] ^= edges
        odd[:, j] ^= edges
        held.append(edges)
    return held, odd


def _sweep(t: NDArray, mu: float, rounds, held: list[NDArray], odd: NDArray, rng) -> None:
    """Draw every edge given all others, in place. Edges of one round share no node, so they are independent."""
    for (i, j), edges in zip(rounds, held, strict=True):
        # Whether the ends are odd without this edge. With the edge, odd ends become even and even ends become odd.
        without = (odd[:, i] ^ edges).astype(int) + (odd[:, j] ^ edges)
        chance = expit(logs_of(t[i, j]) + logs_of(mu) * (2 - 2 * without))
        drawn = rng.random(edges.shape) < chance
        changed = drawn ^ edges
        odd[:, i] ^= changed
        odd[:, j] ^= changed
        edges[...] = drawn


METHODS = "auto", "enumerate", "annealing", "subgraphs"
SAMPLERS = {"both": Alternation, "gibbs": Gibbs, "swendsen-wang": SwendsenWang}
QUICKLY_LISTED = 2**16  # up to so many labellings, listing takes less time than sampling
ENOUGH = 32  # effective particles; with fewer, their spread says little about the error


@dataclass(frozen=True)
class LogPartition:
    """log Z of a label field, and its precision."""

    log_z: float
    standard_error: float
    """Standard error of log_z; 0 by enumeration."""
    effective_particles: float
    """The number of particles of equal weight that would be as precise; infinite by enumeration."""
    n_temperatures: int
    """Steps between the distribution known in closed form and the field; 0 by enumeration."""
    method: str
    """"enumerate", "annealing" or "subgraphs"."""


@dataclass(frozen=True)
class LogPredictive:
    """The logarithm of a predictive probability or density, and its precision."""

    value: float
    standard_error: float
    """Standard error of value; 0 by enumeration."""


def log_partition(
    field: LabelField,
    *,
    method: str = "auto",
    sampler: str = "both",
    n_particles: int = 512,
    n_temperatures: int | None = None,
    random_state=None,
) -> LogPartition:
    """Logarithm of the sum of exp(-E(y)) over all labellings.

    Without labelled points it is log M(x) of eq. conditionalModel.

    Parameters
    ----------
    field : LabelField
    method : {"auto", "enumerate", "annealing", "subgraphs"}, default="auto"
        "enumerate" lists all labellings. "annealing" is annealed importance sampling, for any field. "subgraphs" is the
        chain of Jerrum and Sinclair, a check for two classes with one covariance, equal means and no labelled points.
        "auto" lists up to 65,536 labellings, and anneals if there are more.
    sampler : {"both", "gibbs", "swendsen-wang"}, default="both"
        How annealing moves the labels; "both" alternates.
    n_particles : int, default=512
        Independent particles, or chains of subgraphs. The standard error is proportional to one over the square root of
        their number.
    n_temperatures : int, optional
        Steps from the distribution known in closed form to the field. By default as many as the field needs.
    random_state : int, numpy Generator or None

    Returns
    -------
    LogPartition

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, log_partition
    >>> field = LabelField.from_points(np.linspace(0, 4, 10)[:, None], RBF(1.0), labels=[-1] * 10)
    >>> exact = log_partition(field)
    >>> exact.method, round(exact.log_z, 3)
    ('enumerate', 24.4)
    >>> for method in ("annealing", "subgraphs"):
    ...     estimate = log_partition(field, method=method, random_state=0)
    ...     print(estimate.standard_error < 0.05, abs(estimate.log_z - exact.log_z) < 4 * estimate.standard_error)
    True True
    True True
    """
    _check(method, sampler, n_particles, n_temperatures)
    rng = generator(random_state)
    if method == "auto":
        method = "enumerate" if field.n_classes ** len(field) <= QUICKLY_LISTED else "annealing"
    if method == "enumerate":
        return LogPartition(float(logsumexp(-field.enumerate()[1])), 0.0, np.inf, 0, method)
    if method == "subgraphs":
        return _estimate(weigh_subgraphs(field, rng, n_particles, n_temperatures), method)
    return _estimate(anneal(SAMPLERS[sampler](field), rng, n_particles, n_temperatures), method)


def log_joint_predictive(field: LabelField, labels, *, random_state=None, **options) -> LogPredictive:
    r"""Log probability of the labels of test points jointly, given the labelled points of the field.

    For one test point it is eq. predictiveDistribution. For several, labelled together, eq. explicitMRF gives

    .. math:: \log \Pr(y^*) = -E(y^*) - \log Z,

    If the field has other unlabelled points, their labels are summed over:

    .. math:: \log \Pr(y^*) = -E(y^*) + \log Z_{\text{others given } y^*} - \log Z.

    Parameters
    ----------
    field : LabelField
        The field of the test points and of any other unlabelled points.
    labels : array-like of shape (n,)
        Class of each node, -1 for nodes whose labels are summed over.
    random_state : int, numpy Generator or None
    **options
        Passed on to `log_partition`.

    Examples
    --------
    Neighbouring test points probably have one class. A product of single probabilities cannot show this:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, log_joint_predictive
    >>> field = LabelField.from_points([[0.0], [2.0], [0.9], [1.1]], RBF(1.0), labels=[0, 1, -1, -1])
    >>> for labels in ([0, 0], [0, 1], [0, -1]):
    ...     print(labels, round(float(np.exp(log_joint_predictive(field, labels).value)), 3))
    [0, 0] 0.363
    [0, 1] 0.154
    [0, -1] 0.517
    """
    labels = check_labels(labels, field.X, field.n_classes)
    rng = generator(random_state)
    tested = np.flatnonzero(labels >= 0)
    energy = field.among(tested).energy(labels[tested])
    others = log_partition(field.condition(labels), random_state=rng, **options)
    everything = log_partition(field, random_state=rng, **options)
    return _difference(others, everything, -energy)


def log_predictive_density(field: LabelField, new, *, random_state=None, **options) -> LogPredictive:
    """Log product density of new points of unknown class, given the field's other points: log M(x, x*) - log M(x).

    Parameters
    ----------
    field : LabelField
    new : array of shape (n_new,)
        The new points, as numbers of nodes. The other nodes and the labelled points are given.
    random_state : int, numpy Generator or None
    **options
        Passed on to `log_partition`.

    Examples
    --------
    Points attract others of any class:

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, log_predictive_density
    >>> field = LabelField.from_points([[0.0], [0.1], [5.0]], RBF(1.0), labels=[-1, -1, -1])
    >>> near, far = (log_predictive_density(field, [node]).value for node in (1, 2))
    >>> print(f"{near:.2f}, {far:.2f}")
    1.81, 1.19
    """
    new = np.asarray(new, dtype=int)
    if len(np.unique(new)) < new.size or new.min(initial=0) < 0 or new.max(initial=-1) >= len(field):
        raise ValueError(f"new must hold different numbers of nodes below {len(field)}, got {new.tolist()}")
    rng = generator(random_state)
    everything = log_partition(field, random_state=rng, **options)
    given = log_partition(field.among(np.setdiff1d(np.arange(len(field)), new)), random_state=rng, **options)
    return _difference(everything, given)


def _difference(one: LogPartition, other: LogPartition, constant: float = 0.0) -> LogPredictive:
    error = float(np.hypot(one.standard_error, other.standard_error))
    return LogPredictive(constant + one.log_z - other.log_z, error)


def _estimate(annealed: AnnealedWeights, method: str) -> LogPartition:
    """The log of the mean weight, and its standard error by the jackknife.

    The jackknife leaves out one particle at a time. If few particles have most of the weight, it is more reliable than
    linear error propagation.
    """
    top, n = annealed.log_weights.max(), len(annealed.log_weights)
    weights = np.exp(annealed.log_weights - top)
    total = weights.sum()
    without = np.log1p(-np.minimum(weights / total, 1 - np.finfo(float).eps))
    effective = float(total**2 / np.square(weights).sum())
    _warn_if_few(effective, n, method)
    return LogPartition(
        float(annealed.log_start + top + np.log(total / n)),
        float(np.hypot(np.sqrt(n - 1) * without.std(), annealed.resolution)),
        effective,
        len(annealed.temperatures) - 1,
        method,
    )


def _warn_if_few(effective: float, n_particles: int, method: str) -> None:
    if effective < min(ENOUGH, n_particles / 4):
        warnings.warn(
            f"{method} left {effective:.1f} effective particles of {n_particles}, so the standard error may be too "
            "small: give more n_temperatures or n_particles",
            stacklevel=4,
        )


def _check(method, sampler, n_particles, n_temperatures) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler must be one of {', '.join(SAMPLERS)}, got {sampler!r}")
    if not isinstance(n_particles, int | np.integer) or n_particles < 2:
        raise ValueError(f"n_particles must be a whole number of at least 2, got {n_particles!r}")
    if n_temperatures is not None and (not isinstance(n_temperatures, int | np.integer) or n_temperatures < 1):
        raise ValueError(f"n_temperatures must be a whole number of at least 1, or None, got {n_temperatures!r}")
