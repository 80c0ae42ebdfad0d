"""Labelled points of an array library, arranged for class sums: sorted by class, once for each covariance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.arrays.points import ArrayPoints, centre

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.arrays.library import Library
    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass


@dataclass(frozen=True)
class Block:
    """Some columns that follow each other, and the classes that they count for."""

    columns: slice
    classes: slice
    """The classes of the columns, by their place among those of the group."""
    weights: Any
    """Weight of each column for each of these classes."""


@dataclass(frozen=True)
class ArrayGroup:
    """All points of the classes that share one covariance, sorted by class."""

    points: ArrayPoints
    classes: NDArray
    """The classes, ascending."""
    rows: NDArray
    """Row of each column among all labelled points."""
    codes: NDArray
    """For each column, the place of its class in `classes`."""
    weights: NDArray
    """Weight of each column, in the precision of the points."""

    @property
    def library(self) -> Library:
        """Where the points are."""
        return self.points.library

    @property
    def segments(self) -> list[slice]:
        """The columns of each class."""
        starts = np.searchsorted(self.codes, np.arange(len(self.classes) + 1)).tolist()
        return [slice(*ends) for ends in pairwise(starts)]

    @property
    def totals(self) -> Any:
        """Sum of the weights of each class."""
        return self.library.array(np.bincount(self.codes, self.weights.astype(float), len(self.classes)))

    def blocks(self, width: int) -> list[Block]:
        """All columns, `width` at a time."""
        return [self._block(start, min(start + width, len(self.rows))) for start in range(0, len(self.rows), width)]

    def _block(self, start: int, stop: int) -> Block:
        codes = self.codes[start:stop]
        first, last = int(codes[0]), int(codes[-1]) + 1
        weights = np.zeros((stop - start, last - first), self.weights.dtype)
        weights[np.arange(stop - start), codes - first] = self.weights[start:stop]
        return Block(slice(start, stop), slice(first, last), self.library.array(weights, self.points.X.dtype))

    def columns_of(self, rows: NDArray, n_rows: int) -> NDArray:
        """The column of each of some rows, -1 for rows that are not in this group."""
        columns = np.full(n_rows, -1)
        columns[self.rows] = np.arange(len(self.rows))
        return columns[rows]


@dataclass(frozen=True)
class ArrayStore:
    """Labelled points; build it with `store_arrays`."""

    library: Library
    groups: tuple[ArrayGroup, ...]
    n_rows: int

    def in_order(self, parts: list) -> Any:
        """Arrays with a column for each class of each group, joined in the order of the classes."""
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate([group.classes for group in self.groups]))
        return self.library.xp.take(self.library.xp.concat(parts, axis=1), self.library.array(order), axis=1)


def store_arrays(labelled: Labelled, covariances: PerClass, library: Library) -> ArrayStore:
    """Points with one label each; every class must have a point."""
    origin, y, groups = centre(labelled.X, library), labelled.y, []
    for k, covariance in enumerate(covariances.distinct):
        classes = covariances.classes(k)
        rows = np.flatnonzero(np.isin(y, classes))
        rows = rows[np.argsort(y[rows], kind="stable")]
        points = ArrayPoints.of(library, covariance, library.xp.take(labelled.X, library.array(rows), axis=0), origin)
        weights = np.ones(len(rows)) if labelled.weights is None else labelled.weights[rows]
        codes = np.searchsorted(classes, y[rows])
        groups.append(ArrayGroup(points, classes, rows, codes, weights.astype(points.precision)))
    return ArrayStore(library, tuple(groups), len(y))
