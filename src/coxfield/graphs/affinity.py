"""From neighbours to graphs: how strongly two neighbours are tied, w_ij = exp(-a d_ij^2 / (s_i s_j)).

With a scale s_i of its own, each point is tied to its nearest neighbours, however far they are. With one scale for all,
ties follow the density: they fade where points are sparse, which is where classes part if the data have gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.graphs.neighbours import Neighbours

RANK = 7  # the neighbour whose distance is the scale of a point
FAINTEST = 1e-200  # a weight below it counts as none, so that degrees do not underflow


@dataclass(frozen=True)
class Ties:
    """A rule for the weights of a graph."""

    neighbours: int
    """Number of neighbours k that a point is tied to."""
    sharpness: float = 1.0
    """The factor a of the exponent."""
    common: bool = False
    """Whether all points share one scale, the median."""

    @property
    def name(self) -> str:
        """What users see."""
        if not self.common:
            return f"{self.neighbours} neighbours"
        return f"{self.neighbours} neighbours, one scale, sharpness {self.sharpness:g}"

    def scales(self, found: Neighbours, typical: float | None = None) -> NDArray:
        """The scale s_i of each point: the distance to its seventh neighbour, or to its last if it has fewer.

        `typical` is the scale of a point that lies on all of these neighbours. By default it is the median.
        """
        near = found.distance[:, : min(RANK, self.neighbours, found.count)]
        own = np.where(np.isfinite(near), near, 0).max(axis=1)  # a listed point may have fewer neighbours, or none
        if typical is None:
            positive = own[own > 0]
            typical = float(np.median(positive)) if len(positive) else _longest(found)
        return np.full(len(own), typical) if self.common else np.where(own > 0, own, typical)

    def graph(self, found: Neighbours) -> sparse.csr_array:
        """The symmetric graph of all points: the larger of w_ij and w_ji where only one is a neighbour of the other."""
        scales = self.scales(found)
        values = np.exp(-self._exponents(found, scales, scales))
        values[values < FAINTEST] = 0
        weights = self._sparse(found, values, len(scales))
        weights.sum_duplicates()  # places without a neighbour repeat a column, with weight 0
        return sparse.csr_array(weights.maximum(weights.T))

    def shares(self, found: Neighbours, scales: NDArray) -> sparse.csr_array:
        """The weights between new points and the points of a graph, one row per new point, adding up to 1."""
        own = self.scales(found, typical=float(np.median(scales)))
        exponents = self._exponents(found, own, scales)
        least = exponents.min(axis=1, keepdims=True)  # far from all points, weights would underflow
        values = np.exp(np.where(np.isfinite(least), least, 0) - exponents)
        totals = values.sum(axis=1, keepdims=True)
        return self._sparse(found, values / np.where(totals > 0, totals, 1), len(scales))

    def _exponents(self, found: Neighbours, of_rows: NDArray, of_columns: NDArray) -> NDArray:
        """a d_ij^2 / (s_i s_j) for the neighbours of each row."""
        k = min(self.neighbours, found.count)
        index, distance = found.index[:, :k], found.distance[:, :k]
        with np.errstate(over="ignore"):  # infinitely far is far enough
            return self.sharpness * (distance / of_rows[:, None]) * (distance / of_columns[index])

    def _sparse(self, found: Neighbours, values: NDArray, n_columns: int) -> sparse.csr_array:
        n, k = values.shape
        index = found.index[:, :k].ravel().copy()  # SciPy sorts in place
        return sparse.csr_array((values.ravel(), index, np.arange(0, n * k + 1, k)), shape=(n, n_columns))


def _longest(found: Neighbours) -> float:
    """The longest distance to a neighbour, 1 if all points are the same."""
    return float(found.distance[np.isfinite(found.distance)].max(initial=0.0)) or 1.0


def row_shares(weights: sparse.csr_array) -> sparse.csr_array:
    """The weights of each row divided by their sum. A row without weight stays empty."""
    largest = np.asarray(weights.max(axis=1).toarray(), dtype=float).ravel()
    # Weights near the largest number have no finite sum, and the inverses of the smallest numbers are not finite.
    _, exponents = np.frexp(largest)
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    values = np.ldexp(weights.data.astype(float), -exponents[rows])
    totals = np.bincount(rows, values, minlength=weights.shape[0])
    values /= np.where(totals > 0, totals, 1)[rows]
    return sparse.csr_array((values, weights.indices, weights.indptr), shape=weights.shape)
