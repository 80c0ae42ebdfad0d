r"""The partition function of two classes without a field, by a Markov chain on subgraphs (Jerrum and Sinclair, 1993).

With spins +1 and -1 for the two classes, a coupling C gives a pair the factor exp(C [y_i = y_j]) =
(1 + exp(C)) / 2 (1 + t s_i s_j), where t = tanh(C / 2). Multiplied out and summed over the spins, only the products in
which every node occurs an even number of times remain:

.. math:: Z = e^{-\sum_i u_i} \, 2^n \prod_{i<j} \frac{1 + e^{C_{ij}}}{2} \, S(0), \qquad
          S(\mu) = \sum_A \mu^{|\mathrm{odd}(A)|} \prod_{ij \in A} t_{ij},

A running over all sets of edges and odd(A) being the nodes of odd degree. S(1) is the product of 1 + t, and subgraphs
at mu = 1 are drawn exactly. From there mu is lowered level by level to 1/n, a subgraph gaining the factor (mu' /
mu)^|odd(A)| at each: the mean of their products is S(1/n) / S(1), as in annealing, without bias and without burn-in.
What is left, S(0) / S(1/n), is the share of even subgraphs among those visited at 1/n. It is at least 1 / cosh(1),
because S(mu) / S(0) is the sum over even sets of nodes of mu to their number times the mean of the product of their
spins, which is at most one.

It owes nothing to a sampler of labels, and is here to check those that do: every edge is visited in every sweep, so it
is for tens of nodes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from coxfield.field.partition.annealing import AnnealedWeights
from coxfield.field.rows import coupling_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField

MOST_NODES = 256  # 32,640 edges a chain
COUNTED = 32  # sweeps at the last level over which even subgraphs are counted


def weigh_subgraphs(
    field: LabelField, rng: np.random.Generator, n_chains: int, n_levels: int | None = None
) -> AnnealedWeights:
    """Weigh subgraphs that follow mu from 1 to 1/n and are counted there when they are even.

    Parameters
    ----------
    field : LabelField
        Of two classes that share their covariance and their unary terms.
    rng : numpy Generator
    n_chains : int
        Independent chains, all moved at once.
    n_levels : int, optional
        Steps of mu; by default n log(n)^2, which keeps the variance of the log weights well below one.
    """
    check_applies(field)
    n = len(field)
    couplings = coupling_rows(field, n).values(0, slice(0, n))
    pairs = couplings[np.triu_indices(n, 1)]
    log_ones = float(np.log1p(np.tanh(pairs / 2)).sum())  # log S(1)
    log_factors = float((np.logaddexp(0, pairs) - np.log(2)).sum())
    log_start = n * np.log(2) - float(field.unary[:, 0].sum()) + log_factors + log_ones
    wanted = int(np.ceil(n * np.log(max(n, 2)) ** 2))
    levels = np.geomspace(1, 1 / max(n, 1), (n_levels or wanted) + 1)
    log_weights = _descend(np.tanh(couplings / 2), levels, rng, n_chains)
    # Weak couplings may put no edge into any chain. What is then missed is less than S(1) and rarer than one chain.
    return AnnealedWeights(log_start, log_weights, levels, min(log_ones, 1 / n_chains))


def check_applies(field: LabelField) -> None:
    """Refuse a field that the expansion in even subgraphs does not cover."""
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
    """All pairs of n nodes, dealt out into rounds of disjoint pairs, as in a tournament.

    >>> [list(zip(i.tolist(), j.tolist())) for i, j in matchings(4)]
    [[(0, 3), (1, 2)], [(1, 3), (2, 0)], [(2, 3), (0, 1)]]
    """
    players = n + n % 2  # of an odd number, one rests in each round: the one that meets the player who is not there
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
    for before, after in pairwise(levels):
        log_weights += np.log(after / before) * odd.sum(axis=1)
        _sweep(t, after, rounds, held, odd, rng)
    for _ in range(COUNTED):
        even += ~odd.any(axis=1)
        _sweep(t, levels[-1], rounds, held, odd, rng)
    with np.errstate(divide="ignore"):  # a chain may see no even subgraph, and then counts for nothing
        return log_weights + np.log(even / COUNTED)


def _draw(t: NDArray, rounds, rng, n_chains: int) -> tuple[list[NDArray], NDArray]:
    """Independent subgraphs at mu = 1, where each edge is held with probability t / (1 + t); and their odd nodes."""
    held, odd = [], np.zeros((n_chains, len(t)), dtype=bool)
    for i, j in rounds:
        edges = rng.random((n_chains, len(i))) * (1 + t[i, j]) < t[i, j]
        odd[:, i] ^= edges
        odd[:, j] ^= edges
        held.append(edges)
    return held, odd


def _sweep(t: NDArray, mu: float, rounds, held: list[NDArray], odd: NDArray, rng) -> None:
    """Draw every edge given all others, in place; edges of one round share no node, and so are independent."""
    for (i, j), edges in zip(rounds, held, strict=True):
        # What the ends would be without this edge: odd ones become even with it, and the other way about.
        without = (odd[:, i] ^ edges).astype(int) + (odd[:, j] ^ edges)
        with np.errstate(divide="ignore"):
            chance = expit(np.log(t[i, j]) + np.log(mu) * (2 - 2 * without))
        drawn = rng.random(edges.shape) < chance
        changed = drawn ^ edges
        odd[:, i] ^= changed
        odd[:, j] ^= changed
        edges[...] = drawn
