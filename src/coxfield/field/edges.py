"""Edges between the nodes of a field: sparse graphs to start from, all couplings row by row, two-class problems.

Any graph is a valid start, because edges that it lacks are added if they matter. A graph that is `complete` lacks none.

Theorem 2 in numbers. Give node i the variable x_i = 1 for the first label of a choice and 0 for the second. The pair
terms -C1_ij x_i x_j - C0_ij (1 - x_i)(1 - x_j) of eq. smoothingEnergy equal

    -C0_ij + (C0_ij - C1_ij) (x_i + x_j) / 2 + w_ij |x_i - x_j|,      w_ij = (C1_ij + C0_ij) / 2,

If covariances are never negative, neither are the weights, and the problem is a minimum cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import sparse

from coxfield.kernels.called import MOST
from coxfield.kernels.protocol import values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField
    from coxfield.kernels.protocol import KernelPoints

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


def first_pairs(points: Sequence[KernelPoints], count: int = NEIGHBOURS) -> Pairs:
    """The graph to start from: all links if they are listed, otherwise nearest neighbours.

    Parameters
    ----------
    points : sequence of KernelPoints
        The nodes, bound to each of the different covariances.
    count : int
        Neighbours per node.
    """
    links = listed_links(points)
    return nearest_pairs(points[0], count) if links is None else linked_pairs(sum(links[1:], start=links[0]))


def listed_links(points: Sequence[KernelPoints]) -> list[sparse.csr_array] | None:
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


def nearest_pairs(points: KernelPoints, count: int = NEIGHBOURS) -> Pairs:
    """Pairs of points where one point is among the neighbours of the other."""
    n = len(points)
    if n <= count + 1:
        return Pairs(n, np.zeros(0, int), complete=True).union(*np.triu_indices(n, 1))
    nothing = Pairs(n, np.zeros(0, int))
    return nothing.union(np.repeat(np.arange(n), count), points.neighbours(count).ravel())


@dataclass(frozen=True)
class Coupling:
    """Weights w_ij = (C1_ij + C0_ij) / 2 between nodes; build it with `couple`.

    C0_ij is the largest of the covariances in `zeros`. A covariance counts only if both nodes are in one group and its
    mask admits them. Without `zeros` C0 is 0.
    """

    points: tuple[KernelPoints, ...]
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


# All couplings of a field, some rows at a time.
#
# Couplings of listed links are a sparse matrix. Others are dense, held if they fit into memory and otherwise computed
# each time.


LINKS = 2**19  # per block: with fewer, a block costs more than its links


class CouplingRows(Protocol):
    """Rows of the matrices C^(c)(x_i, x_j), 0 for i = j, one matrix for each different covariance."""

    @property
    def users(self) -> NDArray:
        """Whether each class uses each covariance, shape (n_covariances, Q)."""

    @property
    def blocks(self) -> list[slice]:
        """All rows, cut into blocks."""

    @property
    def held(self) -> bool:
        """Whether all couplings are held."""

    def values(self, k: int, rows: slice) -> Any:
        """Couplings by covariance k between some nodes and all nodes, as a matrix. Do not write to them."""

    def before(self, values: Any, rows: slice) -> Any:
        """The part of `values` between nodes of the block and earlier nodes of the block, shape (rows, rows)."""

    def after(self, k: int, rows: slice) -> NDArray:
        """Couplings by covariance k between some nodes and all later nodes, as an array of numbers."""

    def ends(self, k: int, rows: slice) -> tuple[NDArray, NDArray]:
        """The nodes i and j of each number of `after`, in arrays that broadcast to its shape."""


@dataclass(frozen=True)
class DenseRows:
    """Couplings between all pairs; `CouplingRows` says what the methods are for."""

    points: tuple[KernelPoints, ...]
    """The nodes, bound to each of the different covariances."""
    users: NDArray
    """Whether each class uses each covariance, shape (n_covariances, Q)."""
    step: int
    """Number of rows per block."""

    @property
    def n(self) -> int:
        return len(self.points[0])

    @property
    def blocks(self) -> list[slice]:
        return [slice(start, min(start + self.step, self.n)) for start in range(0, self.n, self.step)]

    @property
    def held(self) -> bool:
        return len(self.points) * self.n**2 <= MOST

    @cached_property
    def _matrices(self) -> list[NDArray]:
        return [self._evaluate(k, slice(0, self.n)) for k in range(len(self.points))]

    def values(self, k: int, rows: slice) -> NDArray:
        return self._matrices[k][rows] if self.held else self._evaluate(k, rows)

    def before(self, values: NDArray, rows: slice) -> NDArray:
        return np.tril(values[:, rows], -1)

    def after(self, k: int, rows: slice) -> NDArray:
        """Whole rows, 0 up to the node itself."""
        return np.triu(self.values(k, rows), rows.start + 1)

    def ends(self, k: int, rows: slice) -> tuple[NDArray, NDArray]:
        return np.arange(rows.start, rows.stop)[:, None], np.arange(self.n)[None]

    def _evaluate(self, k: int, rows: slice) -> NDArray:
        found = values(self.points[k][rows], self.points[k]).astype(float, copy=False)
        own = np.arange(rows.start, rows.stop)
        found[own - rows.start, own] = 0
        return found


def coupling_rows(field: LabelField, step: int) -> CouplingRows:
    """The couplings of a field in blocks of `step` rows, or in larger blocks if they are listed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField
    >>> field = LabelField.from_points(np.array([[0.0], [1.0]]), RBF(1.0), labels=[-1, -1])
    >>> coupling_rows(field, step=2).values(0, slice(0, 2)).round(4)
    array([[0.    , 0.6065],
           [0.6065, 0.    ]])
    """
    users = np.arange(len(field.points))[:, None] == field.covariances.owner
    links = listed_links(field.points)
    return DenseRows(field.points, users, step) if links is None else LinkedRows(tuple(links), users)


@dataclass(frozen=True)
class LinkedRows:
    """Couplings between linked nodes; `coxfield.field.edges.CouplingRows` says what the methods are for."""

    links: tuple[sparse.csr_array, ...]
    """For each different covariance, a symmetric matrix without a diagonal."""
    users: NDArray
    """Whether each class uses each covariance, shape (n_covariances, Q)."""
    held = True

    @cached_property
    def blocks(self) -> list[slice]:
        """Blocks of about `LINKS` links."""
        n, most = self.links[0].shape[0], max(one.nnz for one in self.links)
        step = max(1, n * LINKS // max(most, 1))
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def values(self, k: int, rows: slice) -> sparse.csr_array:
        return self.links[k][rows]

    def before(self, values: sparse.csr_array, rows: slice) -> sparse.csr_array:
        return sparse.tril(values[:, rows], -1, format="csr")

    @cached_property
    def _upper(self) -> list[sparse.csr_array]:
        return [sparse.triu(one, 1, format="csr") for one in self.links]

    def after(self, k: int, rows: slice) -> NDArray:
        return self._upper[k].data[self._entries(k, rows)]

    def ends(self, k: int, rows: slice) -> tuple[NDArray, NDArray]:
        degrees = np.diff(self._upper[k].indptr[rows.start : rows.stop + 1])
        i = np.repeat(np.arange(rows.start, rows.stop), degrees)
        return i, self._upper[k].indices[self._entries(k, rows)]

    def _entries(self, k: int, rows: slice) -> slice:
        return slice(*self._upper[k].indptr[[rows.start, rows.stop]])
