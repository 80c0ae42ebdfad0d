"""Absorption of a random walk, by elimination of its states without a single subtraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 48  # states eliminated between two matrix products: measured best for a thousand states, flat around


@dataclass(frozen=True)
class Walk:
    """A random walk watched only when it is at a state that was kept."""

    steps: NDArray
    """Weights of the steps from one kept state to the next, each row up to a factor; shape (kept, kept)."""
    arrival: NDArray
    """Probability that the walk from an eliminated state meets each kept state first, (eliminated, kept)."""
    connected: bool
    """Whether every eliminated state reaches a kept one by weights that have not underflowed."""


def eliminate(weights: NDArray, count: int, block: int = BLOCK) -> Walk:
    """Take the first `count` states out of a random walk, without a single subtraction.

    Parameters
    ----------
    weights : array of shape (n, n)
        Not negative. A step goes from i to j with a probability proportional to `weights[i, j]`; what is on the
        diagonal only delays the walk and is left aside.
    count : int
        States to eliminate; fewer than n.
    block : int
        States eliminated between two matrix products.

    Examples
    --------
    From the middle of a line of three states the walk goes left with probability 1/4:

    >>> import numpy as np
    >>> eliminate(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0], [3.0, 0.0, 0.0]]), 1).arrival
    array([[0.25, 0.75]])
    """
    P = np.array(weights, dtype=float)
    connected = True
    for start in range(0, count, block):
        stop = min(start + block, count)
        connected &= _eliminate_rows(P[start:stop], start)
        rest, between = P[stop:], P[start:stop, start:stop]
        # X = P[rest, block] (1 - between)^-1: visits of the block, also those by way of other states of it.
        visits = solve_triangular(-between.T, rest[:, start:stop].T, lower=True, unit_diagonal=True).T
        rest[:, stop:] += visits @ P[start:stop, stop:]
    # Back substitution; with the signs as they are, it only adds what is not negative.
    arrival = solve_triangular(-P[:count, :count], P[:count, count:], unit_diagonal=True)
    return Walk(P[count:, count:], arrival, bool(connected))


def _eliminate_rows(rows: NDArray, start: int) -> bool:
    """Turn each row into probabilities of the next later state; False if from one of them there is no way on."""
    connected = True
    for k in range(len(rows)):
        later = rows[k, start + k + 1 :]
        exits = later.sum()
        connected &= bool(exits > 0)
        later /= max(exits, np.finfo(float).tiny)
        rows[k + 1 :, start + k + 1 :] += np.outer(rows[k + 1 :, start + k], later)
    return connected
