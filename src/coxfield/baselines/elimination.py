"""Absorption of a random walk, by eliminating its states without subtractions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 48  # states eliminated between two matrix products: fastest for a thousand states; sizes nearby are as good


@dataclass(frozen=True)
class Walk:
    """A random walk that is observed only at the states that were kept."""

    steps: NDArray
    """Weights of the steps between kept states, each row up to a factor; shape (kept, kept)."""
    arrival: NDArray
    """Probability that a walk from an eliminated state reaches each kept state first, (eliminated, kept)."""
    connected: bool
    """Whether every eliminated state reaches a kept one by weights that have not underflowed."""


def eliminate(weights: NDArray, count: int, block: int = BLOCK, done=None) -> Walk:
    """Eliminate the first `count` states from a random walk, without subtractions.

    Parameters
    ----------
    weights : array of shape (n, n)
        Not negative. A step goes from i to j with a probability proportional to `weights[i, j]`. The diagonal only
        delays the walk and is ignored.
    count : int
        States to eliminate; fewer than n.
    block : int
        States eliminated between two matrix products.
    done : callable, optional
        Called with shares of the work, which add up to 1.

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
        # X = P[rest, block] (1 - between)^-1: visits to the block, including those through its other states.
        visits = solve_triangular(-between.T, rest[:, start:stop].T, lower=True, unit_diagonal=True).T
        rest[:, stop:] += visits @ P[start:stop, stop:]
        if done is not None:
            done(((len(P) - start) ** 3 - (len(P) - stop) ** 3) / (len(P) ** 3 - (len(P) - count) ** 3))
    # Back substitution. All terms are non-negative, so it only adds.
    arrival = solve_triangular(-P[:count, :count], P[:count, count:], unit_diagonal=True)
    return Walk(P[count:, count:], arrival, bool(connected))


def _eliminate_rows(rows: NDArray, start: int) -> bool:
    """Turn each row into probabilities of the next later state; False if a row has no later state to reach."""
    connected = True
    for k in range(len(rows)):
        later = rows[k, start + k + 1 :]
        exits = later.sum()
        connected &= bool(exits > 0)
        later /= max(exits, np.finfo(float).tiny)
        rows[k + 1 :, start + k + 1 :] += np.outer(rows[k + 1 :, start + k], later)
    return connected
