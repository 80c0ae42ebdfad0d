"""Sparse graphs on the nodes of a field: pairs of nodes, pairs with weights, and the graph to start from.

Any graph is a valid start, because edges that it lacks are added if they matter. A graph that is `complete` lacks none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from coxfield.kernels.protocol import Bound

NEIGHBOURS = 8  # per node, in the graph to start from


@dataclass(frozen=True)
class Pairs:
    """A set of unordered pairs of n nodes."""

    n: int
    keys: NDArray
    """i n + j with i < j, ascending."""
    complete: bool = False
    """Whether all other pairs have no coupling."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def ends(self) -> tuple[NDArray, NDArray]:
        """The smaller and the larger node of each pair."""
        return self.keys // self.n, self.keys % self.n

    def union(self, i: NDArray, j: NDArray) -> Pairs:
        """These pairs and others."""
        return replace(self, keys=np.union1d(self.keys, np.minimum(i, j) * self.n + np.maximum(i, j)))

    def among(self, nodes: NDArray) -> Pairs:
        """The pairs with both ends among the given nodes (ascending), renumbered by their places there."""
        number = np.full(self.n, -1)
        number[nodes] = np.arange(len(nodes))
        i, j = (number[end] for end in self.ends)
        both = (i >= 0) & (j >= 0)
        return Pairs(len(nodes), i[both] * len(nodes) + j[both], self.complete)


@dataclass(frozen=True)
class Edges:
    """Pairs of nodes and their weights; no pair occurs twice, in either order."""

    i: NDArray
    j: NDArray
    weight: NDArray
    complete: bool = False
    """Whether all other pairs have no coupling, so that there is nothing to add."""

    def __len__(self) -> int:
        return len(self.i)

    def __add__(self, other: Edges) -> Edges:
        return Edges(
            np.concatenate([self.i, other.i]),
            np.concatenate([self.j, other.j]),
            np.concatenate([self.weight, other.weight]),
            self.complete or other.complete,
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


def first_pairs(points: Sequence[Bound], count: int = NEIGHBOURS) -> Pairs:
    """The graph to start from: all links if they are listed, otherwise nearest neighbours.

    Parameters
    ----------
    points : sequence of Bound
        The nodes, bound to each of the different covariances.
    count : int
        Neighbours per node.
    """
    links = listed_links(points)
    return nearest_pairs(points[0], count) if links is None else linked_pairs(sum(links[1:], start=links[0]))


def listed_links(points: Sequence[Bound]) -> list[sparse.csr_array] | None:
    """The links of each covariance, if all covariances list them."""
    found = [bound.links() for bound in points]
    links = [one for one in found if one is not None]
    return links if len(links) == len(found) else None


def linked_pairs(links: sparse.csr_array) -> Pairs:
    """All pairs with an entry in a symmetric matrix."""
    n = links.shape[0]
    i, j = np.repeat(np.arange(n), np.diff(links.indptr)), links.indices
    once = i < j
    return Pairs(n, np.sort(i[once] * n + j[once]), complete=True)


def nearest_pairs(points: Bound, count: int = NEIGHBOURS) -> Pairs:
    """Pairs of points where one point is among the neighbours of the other."""
    n = len(points)
    if n <= count + 1:
        return Pairs(n, np.zeros(0, int), complete=True).union(*np.triu_indices(n, 1))
    nothing = Pairs(n, np.zeros(0, int))
    return nothing.union(np.repeat(np.arange(n), count), points.neighbours(count).ravel())
