"""Clusters of nodes that are bound to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 2000  # nodes and bonds up to which SciPy takes longer to make a graph than we take to search it


def clusters(bonds: NDArray, n: int) -> tuple[int, NDArray]:
    """How many clusters n nodes make, and the cluster of each node; `bonds` are pairs, shape (2, n_bonds).

    Clusters are numbered by their first node.

    Examples
    --------
    >>> clusters(np.array([[0, 3], [2, 1]]), 5)
    (3, array([0, 1, 0, 1, 2]))
    """
    if n + bonds.shape[1] > FEW:
        graph = sparse.coo_array((np.ones(bonds.shape[1], bool), tuple(bonds)), shape=(n, n))
        return connected_components(graph, directed=False)
    firsts = _first_nodes(bonds, n)
    names, cluster = np.unique(firsts, return_inverse=True)
    return len(names), cluster


def _first_nodes(bonds: NDArray, n: int) -> NDArray:
    """The first node of the cluster of each node: bound nodes take the lower name, and names take their own names."""
    first, (i, j) = np.arange(n), bonds
    while True:
        low = np.minimum(first[i], first[j])
        if (first[i] == low).all() and (first[j] == low).all():
            return first
        # The nodes that give the names hear of it too, so that clusters join at once, however long they are.
        np.minimum.at(first, first[i], low)
        np.minimum.at(first, first[j], low)
        while (first != first[first]).any():
            first = first[first]
