"""Covariances that a user lists: the couplings of a graph, as a sparse matrix that is addressed by row number.

Nothing here takes more time or memory than the listed couplings do, except `tile` and `log_tile`, which are dense by
definition. `GraphPoints.links` and `GraphPoints.walk` serve in their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from coxfield.kernels.protocol import Path, PlainPoints

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse


@dataclass(frozen=True, eq=False)
class Graph:
    """Couplings between the nodes of a graph. A node is given by its row number, in an array of one column.

    C(x, x) is 0. All classes share it, so it would be the same constant in the energy of every labelling.

    Examples
    --------
    >>> from scipy import sparse
    >>> graph = Graph(sparse.csr_array([[0.0, 2.0, 0.0], [2.0, 0.0, 3.0], [0.0, 3.0, 0.0]]))
    >>> nodes = graph.bind(np.array([[0], [1], [2]]))
    >>> nodes[[1]].tile(nodes).tolist()
    [[2.0, 0.0, 3.0]]
    """

    matrix: sparse.csr_array
    """Symmetric and sorted; without a diagonal, stored zeros or repeated entries."""

    @property
    def kernel(self) -> Graph:
        """The graph itself."""
        return self

    def bind(self, X, rows: NDArray | None = None) -> GraphPoints:
        """Hold the numbers of the nodes."""
        return GraphPoints(self, _numbers(X if rows is None else X[rows]))

    def diagonal(self, X) -> NDArray:
        """C(x, x) = 0 for each row."""
        return np.zeros(len(X))

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Graph:
        """The couplings multiplied by the variance. A graph has no length scale."""
        return self if variance == 1 else Graph(self.matrix * variance)

    @property
    def stationary(self) -> bool:
        """Nodes have no positions."""
        return False

    def check_nonnegative(self) -> None:
        """Raise ValueError if a coupling is negative."""
        least = self.matrix.data.min(initial=0.0)
        if least < 0:
            raise ValueError(f"the graph has the negative coupling {least:.3g}, which Theorem 2 does not allow")


@dataclass(frozen=True)
class GraphPoints(PlainPoints):
    """Some nodes of a graph; `KernelPoints` says what the methods are for."""

    covariance: Graph
    rows: NDArray
    """Number of each node."""
    precomputed = True

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows) -> GraphPoints:
        return GraphPoints(self.covariance, self.rows[rows])

    @cached_property
    def _whole(self) -> bool:
        return np.array_equal(self.rows, np.arange(self.covariance.matrix.shape[0]))

    @property
    def dtype(self) -> np.dtype:
        """Precision of the couplings."""
        return self.covariance.matrix.dtype

    def block(self, columns: GraphPoints) -> sparse.csr_array:
        """Couplings between these nodes and others. Do not write to them."""
        matrix = self.covariance.matrix
        matrix = matrix if self._whole else matrix[self.rows]
        return matrix if columns._whole else matrix[:, columns.rows]

    def links(self) -> sparse.csr_array:
        """The couplings among these nodes."""
        return self.block(self)

    def paths(self, columns: Any, weights: Any) -> list[Path]:
        """Class sums from the listed couplings only."""
        return [Path(self, columns, np.ones(1), [[weights]])]

    def walk(self, columns: GraphPoints, factors: NDArray, leave_out: NDArray, sink: Any) -> NDArray:
        """One visit of each link; couplings have no length scale."""
        block = self.block(columns)
        at = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        values = np.where(leave_out[at] == block.indices, 0, block.data)
        for k in range(len(factors)):
            sink.add_entries(k, at, block.indices, values)
        return np.zeros((len(factors), len(self)))

    def at(self, X) -> GraphPoints:
        """Other nodes."""
        return self.covariance.bind(X)

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> GraphPoints:
        """The same nodes with other couplings."""
        return GraphPoints(self.covariance.rescaled(length, variance), self.rows)

    def diagonal(self) -> NDArray:
        """C(x, x) = 0."""
        return np.zeros(len(self))

    def tile(self, columns: GraphPoints, out: NDArray | None = None) -> NDArray:
        """A dense block of couplings."""
        return self.block(columns).toarray()

    def pairs(self, rows: NDArray, columns: GraphPoints, of_columns: NDArray) -> NDArray:
        """The couplings of listed pairs."""
        if not len(rows):  # SciPy would give a sparse matrix
            return np.zeros(0)
        return np.asarray(self.covariance.matrix[self.rows[rows], columns.rows[of_columns]], dtype=float)

    def neighbours(self, count: int) -> NDArray:
        """The nodes with the strongest couplings. If a node has too few links, the nodes that follow it are added."""
        n, links = len(self), self.links()
        degrees = np.diff(links.indptr)
        heaviest = np.lexsort((-links.data, np.repeat(np.arange(n), degrees)))
        place = np.arange(count)
        found = (np.arange(n)[:, None] + 1 + place) % n
        there = np.nonzero(place < degrees[:, None])
        found[there] = links.indices[heaviest[links.indptr[there[0]] + there[1]]]
        return found

    def differentiate(self, columns: GraphPoints, weights: NDArray, leave_out: NDArray) -> NoReturn:
        """Nothing can be learned."""
        raise ValueError("a graph of given couplings has no parameters to learn: give a kernel instead")

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        """There are no parameters."""
        return np.zeros(0)


def _numbers(X) -> NDArray:
    return np.asarray(X)[:, 0].astype(int)
