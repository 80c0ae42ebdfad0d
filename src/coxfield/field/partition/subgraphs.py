r"""The partition function of two classes without a field, by a Markov chain on subgraphs (Jerrum and Sinclair, 1993).

With spins +1 and -1 for the two classes, a coupling C gives a pair the factor exp(C [y_i = y_j]) =
(1 + exp(C)) / 2 (1 + t s_i s_j), where t = tanh(C / 2). Multiply out and sum over the spins. Only products in which
every node occurs an even number of times remain:

.. math:: Z = e^{-\sum_i u_i} \, 2^n \prod_{i<j} \frac{1 + e^{C_{ij}}}{2} \, S(0), \qquad
          S(\mu) = \sum_A \mu^{|\mathrm{odd}(A)|} \prod_{ij \in A} t_{ij},

where A runs over all sets of edges and odd(A) are the nodes of odd degree. S(1) is the product of 1 + t, and subgraphs
at mu = 1 are drawn exactly. From there mu is lowered level by level to 1/n. At each level a subgraph gains the factor
(mu' / mu)^|odd(A)|. The mean of the products of these factors is S(1/n) / S(1), as in annealing, without bias and
without burn-in. The last factor, S(0) / S(1/n), is the share of even subgraphs among those visited at 1/n. It is at
least 1 / cosh(1). The reason: S(mu) / S(0) is a sum over even sets of nodes, of mu to the size of the set times the
mean of the product of its spins, and that mean is at most one.

This method does not use a sampler of labels, so it can check methods that do. Every edge is visited in every sweep, so
it is for tens of nodes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from coxfield.field.partition.annealing import FASTER, AnnealedWeights
from coxfield.kernels.values import values
from coxfield.progress import progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField

MOST_NODES = 256  # 32,640 edges per chain
COUNTED = 32  # sweeps at the last level over which even subgraphs are counted


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
    with np.errstate(divide="ignore"):  # a chain without even subgraphs has weight 0
        return log_weights + np.log(even / COUNTED)


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
        with np.errstate(divide="ignore"):
            chance = expit(np.log(t[i, j]) + np.log(mu) * (2 - 2 * without))
        drawn = rng.random(edges.shape) < chance
        changed = drawn ^ edges
        odd[:, i] ^= changed
        odd[:, j] ^= changed
        edges[...] = drawn
