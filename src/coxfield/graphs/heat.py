r"""Heat covariances of a graph: exp(-t L), scaled to unit diagonal.

The entry of exp(-t L) for two points says how much heat flows from one to the other in time t, along the graph. It is
never negative. Without mode 0, which is nearly the same for all points, it is still a covariance and tells classes
apart more sharply, but it takes negative values.

The time is chosen by effective rank, :math:`R = (\sum g)^2 / \sum g^2` with :math:`g = e^{-t\lambda}` over the modes
from 1 on. It is how many modes speak. Fewer than Q - 1 modes cannot tell Q classes apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.graphs.modes import Modes

LOG_TIMES = -6.0, 16.0  # logarithms between which times are searched
HALVINGS = 60


def effective_rank(values: NDArray, time: float) -> float:
    """R of the modes from 1 on, given all eigenvalues.

    Examples
    --------
    >>> effective_rank([0.0, 0.5, 0.5, 0.5], time=3.0)
    3.0
    """
    above = np.asarray(values)[1:]
    g = np.exp(-time * (above - above[0]))
    return float(g.sum() ** 2 / (g**2).sum())


def time_of_rank(values: NDArray, rank: float) -> float:
    """The time at which the effective rank falls to `rank`, or the longest time if it never does.

    Examples
    --------
    >>> t = time_of_rank([0.0, 0.1, 0.4, 0.9], rank=2.0)
    >>> round(effective_rank([0.0, 0.1, 0.4, 0.9], t), 6)
    2.0
    """
    low, high = LOG_TIMES
    if effective_rank(values, np.exp(high)) > rank:
        return float(np.exp(high))  # more modes than that have the value 0, because the graph falls apart
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if effective_rank(values, np.exp(middle)) > rank else (low, middle)
    return float(np.exp((low + high) / 2))


@dataclass(frozen=True)
class Heat:
    """exp(-t L) of some modes, scaled to unit diagonal: the inner products of `features`."""

    modes: Modes
    time: float
    centred: bool = False
    """Whether mode 0 is left out."""

    def features(self, rows=slice(None)) -> NDArray:
        """Unit vectors whose inner products are the covariances; zero for a point that no mode reaches."""
        values = self.modes.values
        first = values[1] if self.centred and len(values) > 1 else values[0]
        weights = np.exp(-self.time / 2 * np.maximum(values - first, 0))  # a common factor falls out
        if self.centred:
            weights[0] = 0
        return unit_rows(self.modes.vectors[rows] * weights.astype(self.modes.vectors.dtype))

    def columns(self, rows) -> NDArray:
        """The covariances of all points with some points, shape (n, number of rows)."""
        return self.features() @ self.features(rows).T


def unit_rows(features: NDArray) -> NDArray:
    """Rows divided by their lengths, in place; rows of length zero stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", features, features))
    features /= np.where(lengths > 0, lengths, 1)[:, None]
    return features
