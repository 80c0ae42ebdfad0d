"""Couplings of a two-class problem on points: w_ij = (C1 + C0) / 2, tile by tile.

Theorem 2 in numbers. Give node i the variable x_i = 1 for the first label of a choice and 0 for the second. The pair
terms -C1_ij x_i x_j - C0_ij (1 - x_i)(1 - x_j) of eq. smoothingEnergy equal

    -C0_ij + (C0_ij - C1_ij) (x_i + x_j) / 2 + w_ij |x_i - x_j|,      w_ij = (C1_ij + C0_ij) / 2,

so that covariances that are never negative make non-negative weights, and a cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from coxfield.field.edges import Edges
from coxfield.kernels.covariance import profile_floor
from coxfield.kernels.points import TOLERABLE, Points, pair_sq_distances, place, product_error, sq_distances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.field.edges import Pairs
    from coxfield.kernels.covariance import Covariance

ROWS_A_CALL = 64  # rows of an unrecognised kernel evaluated together for listed pairs


@dataclass(frozen=True)
class Placed:
    """A covariance with points in its coordinates, ready for tiles."""

    covariance: Covariance
    points: Any

    def __getitem__(self, rows) -> Placed:
        return Placed(self.covariance, self.points[rows])

    def values(self, columns: Placed) -> NDArray:
        """C between all these points and others."""
        if not self.covariance.recognised:
            return np.array(self.covariance.kernel(self.points, columns.points))
        d2 = _careful_sq_distances(self.points, columns.points)
        values = self.covariance.floored_profile(d2)
        values -= values.dtype.type(profile_floor(values.dtype.name))
        if self.covariance.variance != 1:
            values *= self.covariance.variance
        return values


@dataclass(frozen=True)
class Nodes:
    """Nodes of a two-class problem, or some of them, ready for tiles of weights.

    C0_ij is the largest of the covariances in `zeros`, each counted only between nodes of one group, and one that its
    mask admits; without `zeros` it is 0.
    """

    one: Placed
    zeros: tuple[tuple[Placed, NDArray], ...]
    groups: NDArray | None

    def __getitem__(self, rows) -> Nodes:
        zeros = tuple((placed[rows], mask[rows]) for placed, mask in self.zeros)
        return Nodes(self.one[rows], zeros, None if self.groups is None else self.groups[rows])

    @property
    def plain(self) -> bool:
        """Whether C1 = C0 between all nodes."""
        same = [placed.covariance is self.one.covariance for placed, _ in self.zeros]
        return self.groups is None and same == [True]

    def tile(self, columns: Nodes) -> NDArray:
        """Weights between all these nodes and others."""
        one = self.one.values(columns.one)
        if self.plain:
            return one
        zero = np.zeros_like(one)
        for (mine, mask), (theirs, _) in zip(self.zeros, columns.zeros, strict=True):
            values = one if mine.covariance is self.one.covariance else mine.values(theirs)
            if self.groups is not None:
                alike = self.groups[:, None] == columns.groups
                values = np.where(alike & mask[:, None], values, 0)
            np.maximum(zero, values, out=zero)
        zero += one
        zero /= 2
        return zero


@dataclass(frozen=True)
class Coupling:
    """Weights w_ij = (C1_ij + C0_ij) / 2 between the rows of X; build it with `couple`."""

    X: Any
    nodes: Nodes

    def __len__(self) -> int:
        return self.X.shape[0]

    def edges(self, pairs: Pairs) -> Edges:
        """The given pairs with their weights."""
        i, j = pairs.ends
        return Edges(i, j, self.weights(i, j))

    def weights(self, i: NDArray, j: NDArray) -> NDArray:
        """Weights of listed pairs, in double precision where the covariance is recognised."""
        nodes = self.nodes
        one = _pair_values(self.X, nodes.one.covariance, i, j)
        if nodes.plain:
            return one
        zero = np.zeros_like(one)
        for placed, mask in nodes.zeros:
            same = placed.covariance is nodes.one.covariance
            values = one if same else _pair_values(self.X, placed.covariance, i, j)
            if nodes.groups is not None:
                values = np.where((nodes.groups[i] == nodes.groups[j]) & mask[i], values, 0)
            np.maximum(zero, values, out=zero)
        return (one + zero) / 2


def couple(X, one: Covariance, zeros: Sequence[Covariance] = (), groups: NDArray | None = None) -> Coupling:
    """Couple the rows of X.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    one : Covariance
        C1, of the label x = 1.
    zeros : sequence of Covariance
        Without groups, C0 is the largest of them: that of one label, or of the best of several. With groups, group g
        has `zeros[g]`, and C0 is 0 between different groups.
    groups : integer array of shape (n,), optional
    """
    placed: dict[int, Placed] = {}
    users: dict[int, list[int]] = {}
    for g, covariance in enumerate((*zeros, one)):
        if id(covariance) not in placed:
            placed[id(covariance)] = Placed(covariance, _place(X, covariance) if covariance.recognised else X)
        if g < len(zeros):
            users.setdefault(id(covariance), []).append(g)
    member = np.zeros(X.shape[0], int) if groups is None else groups
    masks = {key: np.isin(member, mine) for key, mine in users.items()}
    nodes = Nodes(placed[id(one)], tuple((placed[key], mask) for key, mask in masks.items()), groups)
    return Coupling(X, nodes)


def _place(X, covariance: Covariance) -> Points:
    """The points in units of the length scale, in double precision where single is too coarse."""
    for points in (X, X.astype(np.float64, copy=False)):
        origin = None if sparse.issparse(X) else points.mean(axis=0) if X.shape[0] else np.zeros(X.shape[1], X.dtype)
        placed = place(points, covariance.length_scale, origin)
        if product_error(placed, placed).max(initial=0) <= TOLERABLE:
            break
    return placed


def _careful_sq_distances(a: Points, b: Points) -> NDArray:
    """Squared distances, by subtraction where points far from the origin would lose their neighbours."""
    if sparse.issparse(a.coordinates) or product_error(a, b).max(initial=0) <= TOLERABLE:
        return sq_distances(a, b)
    return cdist(a.coordinates, b.coordinates, "sqeuclidean")


def _pair_values(X, covariance: Covariance, i: NDArray, j: NDArray) -> NDArray:
    """C of listed pairs; a kernel that is not recognised is called on a few rows at a time."""
    if covariance.recognised:
        d2 = pair_sq_distances(X, i, X, j, covariance.length_scale)
        return covariance.variance * np.exp(covariance.log_profile(d2))
    values = np.empty(len(i))
    order = np.argsort(i, kind="stable")
    rows, starts = np.unique(i[order], return_index=True)
    for first in range(0, len(rows), ROWS_A_CALL):
        stop = first + ROWS_A_CALL
        mine = order[starts[first] : starts[stop] if stop < len(rows) else None]
        columns, column = np.unique(j[mine], return_inverse=True)
        block = covariance.kernel(X[rows[first:stop]], X[columns])
        values[mine] = block[np.searchsorted(rows[first:stop], i[mine]), column]
    return values
