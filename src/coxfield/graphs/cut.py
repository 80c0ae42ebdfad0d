"""The minimum cut as a voice: for two classes, where labels that are left out say that it is right.

The covariances of `bank` spread labels like heat, so a long stretch without a label hears what leaks into it from the
other class. A minimum cut separates the labels of two classes where the edges that it cuts weigh least. It does not
mind how far labels are from each other along a thin shape. But where classes touch, it puts nearly all points into one
class. Labels that are left out tell the two cases apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from coxfield.field.mincut import min_cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAINT = 1e-3  # of the largest weight: fainter edges, of points far from all others, do not tell classes apart
MOST_POINTS = 2000  # beyond, twenty cuts take longer than all the rest of `relabel`
NO_LABEL = -1


@dataclass(frozen=True)
class CutGraph:
    """The edges of a graph, without faint ones."""

    source: int
    """Number of the graph in its spectrum."""
    i: NDArray
    j: NDArray
    weights: NDArray
    degrees: NDArray
    """Sums of the weights at each point."""
    part: NDArray
    """Which connected part a point belongs to."""

    @classmethod
    def of(cls, affinity: sparse.csr_array, source: int = 0) -> CutGraph | None:
        """From a symmetric graph; None if it has too many points."""
        if affinity.shape[0] > MOST_POINTS:
            return None
        strong = sparse.csr_array(affinity / (float(affinity.max()) or 1.0) if affinity.nnz else affinity)
        strong.data[strong.data < FAINT] = 0
        strong.eliminate_zeros()
        edges = sparse.coo_array(sparse.triu(strong, k=1))
        part = connected_components(strong, directed=False)[1]
        i, j = edges.coords
        return cls(source, i, j, edges.data, np.asarray(strong.sum(axis=1), dtype=float).ravel(), part)

    def labels(self, codes: NDArray) -> NDArray:
        """The labelling of least cut that agrees with the labels; `NO_LABEL` in parts of the graph without a label.

        Examples
        --------
        Of a path of four points with a weak edge in the middle:

        >>> path = sparse.diags_array([[1.0, 0.1, 1.0]], offsets=[1], shape=(4, 4))
        >>> CutGraph.of(sparse.csr_array(path + path.T)).labels(np.array([0, -1, -1, 1]))
        array([0, 0, 1, 1])
        """
        # A point that is cut from its label costs more than all edges that it could save.
        first, second = (np.where(codes == code, 2 * self.degrees, 0.0) for code in (0, 1))
        found = np.where(min_cut(first, second, self.i, self.j, self.weights).side, 0, 1)
        known = np.zeros(self.part.max() + 1, dtype=bool)
        known[self.part[codes >= 0]] = True
        return np.where(known[self.part], found, NO_LABEL)
