"""Couplings of a two-class problem on points: w_ij = (C1 + C0) / 2, tile by tile.

Theorem 2 in numbers. Give node i the variable x_i = 1 for the first label of a choice and 0 for the second. The pair
terms -C1_ij x_i x_j - C0_ij (1 - x_i)(1 - x_j) of eq. smoothingEnergy equal

    -C0_ij + (C0_ij - C1_ij) (x_i + x_j) / 2 + w_ij |x_i - x_j|,      w_ij = (C1_ij + C0_ij) / 2,

If covariances are never negative, neither are the weights, and the problem is a minimum cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.field.graph import Edges
from coxfield.kernels.values import values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.field.graph import Pairs
    from coxfield.field.potts import LabelField
    from coxfield.kernels.protocol import Bound


@dataclass(frozen=True)
class Coupling:
    """Weights w_ij = (C1_ij + C0_ij) / 2 between nodes; build it with `couple`.

    C0_ij is the largest of the covariances in `zeros`. A covariance counts only if both nodes are in one group and its
    mask admits them. Without `zeros` C0 is 0.
    """

    points: tuple[Bound, ...]
    """The nodes, bound to each of the different covariances."""
    one: int
    """Number of the covariance of x = 1."""
    zeros: tuple[tuple[int, NDArray], ...]
    """Numbers of the covariances of x = 0, and for each of them the nodes for which it may count."""
    groups: NDArray | None

    def __len__(self) -> int:
        return len(self.points[0])

    def __getitem__(self, rows) -> Coupling:
        points = tuple(bound[rows] for bound in self.points)
        zeros = tuple((k, mask[rows]) for k, mask in self.zeros)
        return Coupling(points, self.one, zeros, None if self.groups is None else self.groups[rows])

    @property
    def dtype(self) -> np.dtype:
        """Precision of the weights."""
        return self.points[self.one].dtype

    def tile(self, columns: Coupling) -> NDArray:
        """Weights between all these nodes and others."""
        return self._weights(
            lambda k: values(self.points[k], columns.points[k]),
            lambda of: (of[:, None], None if columns.groups is None else columns.groups),
        )

    def weights(self, i: NDArray, j: NDArray) -> NDArray:
        """Weights of listed pairs, in double precision."""
        return self._weights(
            lambda k: self.points[k].pairs(i, self.points[k], j),
            lambda of: (of[i], None if self.groups is None else self.groups[j]),
        )

    def edges(self, pairs: Pairs) -> Edges:
        """The given pairs with their weights."""
        i, j = pairs.ends
        return Edges(i, j, self.weights(i, j), pairs.complete)

    def _weights(self, covariance: Callable[[int], NDArray], ends: Callable) -> NDArray:
        """(C1 + C0) / 2; `ends` gives the entries of an array at the first ends of pairs, and groups at the second."""
        one = covariance(self.one)
        if self.groups is None and [k for k, _ in self.zeros] == [self.one]:
            return one  # C1 = C0
        zero = np.zeros_like(one)
        for k, mask in self.zeros:
            of_k = one if k == self.one else covariance(k)
            if self.groups is not None:
                mine, theirs = ends(self.groups)
                of_k = np.where((mine == theirs) & ends(mask)[0], of_k, 0)
            np.maximum(zero, of_k, out=zero)
        zero += one
        zero /= 2
        return zero


def couple(field: LabelField, one: int, zeros: Sequence[int] = (), groups: NDArray | None = None) -> Coupling:
    """Couple the nodes of a field for a choice between two labels.

    Parameters
    ----------
    field : LabelField
    one : int
        The class of the label x = 1; its covariance is C1.
    zeros : sequence of int
        Classes of the label x = 0. Without groups, C0 is the largest of their covariances. With groups, a node of group
        g has the covariance of class `zeros[g]`, and C0 is 0 between different groups.
    groups : integer array of shape (n,), optional
    """
    owner = field.covariances.owner
    of_zeros = owner[np.asarray(zeros, dtype=int)]
    masks = []
    for k in dict.fromkeys(of_zeros.tolist()):
        mine = np.ones(len(field), bool) if groups is None else np.isin(groups, np.flatnonzero(of_zeros == k))
        masks.append((k, mine))
    return Coupling(field.points, int(owner[one]), tuple(masks), groups)
