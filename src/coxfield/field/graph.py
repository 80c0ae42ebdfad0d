"""Sparse graphs on the nodes of a field: pairs of nodes, pairs with weights, and the graph to start from.

Any graph is a valid start, because edges that it lacks are added if they matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Bound

NEIGHBOURS = 8  # per node, in the graph to start from


@dataclass(frozen=True)
class Pairs:
    """A set of unordered pairs of n nodes."""

    n: int
    keys: NDArray
    """i n + j with i < j, ascending."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def ends(self) -> tuple[NDArray, NDArray]:
        """The smaller and the larger node of each pair."""
        return self.keys // self.n, self.keys % self.n

    def union(self, i: NDArray, j: NDArray) -> Pairs:
        """These pairs and others."""
        return Pairs(self.n, np.union1d(self.keys, np.minimum(i, j) * self.n + np.maximum(i, j)))

    def among(self, nodes: NDArray) -> Pairs:
        """The pairs with both ends among the given nodes (ascending), renumbered by their places there."""
        number = np.full(self.n, -1)
        number[nodes] = np.arange(len(nodes))
        i, j = (number[end] for end in self.ends)
        both = (i >= 0) & (j >= 0)
        return Pairs(len(nodes), i[both] * len(nodes) + j[both])


@dataclass(frozen=True)
class Edges:
    """Pairs of nodes and their weights; no pair occurs twice, in either order."""

    i: NDArray
    j: NDArray
    weight: NDArray

    def __len__(self) -> int:
        return len(self.i)

    def __add__(self, other: Edges) -> Edges:
        return Edges(
            np.concatenate([self.i, other.i]),
            np.concatenate([self.j, other.j]),
            np.concatenate([self.weight, other.weight]),
        )

    def cut_by(self, labels: NDArray) -> Edges:
        """The edges whose ends are labelled differently, the end labelled 1 first."""
        apart = labels[self.i] != labels[self.j]
        i, j = self.i[apart], self.j[apart]
        return Edges(np.where(labels[i], i, j), np.where(labels[i], j, i), self.weight[apart])

    def cut_weight(self, labels: NDArray) -> float:
        """Total weight of the edges whose ends are labelled differently."""
        return float(self.weight[labels[self.i] != labels[self.j]].sum())

    def node_sums(self, n: int) -> NDArray:
        """Total weight of the edges at each node."""
        return np.bincount(self.i, self.weight, n) + np.bincount(self.j, self.weight, n)


NO_EDGES = Edges(np.zeros(0, int), np.zeros(0, int), np.zeros(0))


def nearest_pairs(points: Bound, count: int = NEIGHBOURS) -> Pairs:
    """Pairs of points where one point is among the neighbours of the other."""
    n = len(points)
    nothing = Pairs(n, np.zeros(0, int))
    if n <= count + 1:
        return nothing.union(*np.triu_indices(n, 1))
    return nothing.union(np.repeat(np.arange(n), count), points.neighbours(count).ravel())
