"""Labelled points of an array library, arranged for class sums: sorted by class, once for each covariance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.arrays.library import Library, to_numpy
from coxfield.arrays.points import ArrayPoints, centre, slices
from coxfield.kernels.sklearn_tree import length_unit
from coxfield.selection.grid import ROWS, Moments
from coxfield.utils.numbers import units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.arrays.class_sums import ArraySums
    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass


# From class sums to probabilities and decisions, in any array library; `coxfield.engine.decision` says why.


@dataclass(frozen=True)
class ArrayScores:
    """F of eq. activationFunction in two parts; it answers the same questions as `engine.decision.Scores`."""

    library: Library
    prior: Any
    """mu_i + C_i(x*, x*) / 2, shape (1, n_classes)."""
    sums: ArraySums

    @property
    def values(self) -> Any:
        """F itself, shape (n, n_classes)."""
        return self.prior + self.sums.values

    @property
    def relative(self) -> Any:
        """F up to a constant per row."""
        return self.prior - self.library.xp.max(self.prior, axis=1, keepdims=True) + self.sums.values

    @property
    def log_probabilities(self) -> Any:
        """Log of eq. predictiveDistribution."""
        xp, scores = self.library.xp, self.relative
        scores = scores - xp.max(scores, axis=1, keepdims=True)
        return scores - xp.log(xp.sum(xp.exp(scores), axis=1, keepdims=True))

    @property
    def decisions(self) -> Any:
        """Class of largest score; if rounding has made scores equal, the one with the largest log sum among them."""
        xp, scores = self.library.xp, self.relative
        best = scores == xp.max(scores, axis=1, keepdims=True)
        finite = xp.clip(self.sums.logs, min=float(xp.finfo(scores.dtype).min))
        return xp.argmax(xp.where(best, finite, -float("inf")), axis=1)


# The typical distance between points of an array library, from which the length scales to try follow.


def class_distance(labelled: Labelled, kernels: PerClass) -> float:
    """The typical distance of the points of a kernel's classes, the largest of all; see `selection.grid`."""
    library, found = Library.of(labelled.X), []
    for k, kernel in enumerate(kernels.distinct):
        rows = np.flatnonzero(np.isin(labelled.y, kernels.classes(k)))
        X = labelled.X
        if len(rows) < len(labelled):
            X = library.xp.take(X, library.array(rows), axis=0)
        found.append(typical_distance(X, length_unit(kernel), labelled.counts[rows], library))
    return max(found)


def typical_distance(X, length_scale, weights: NDArray, library: Library) -> float:
    """Root mean square of |x - x'| / length_scale over all pairs of rows; see `selection.grid.typical_distance`."""
    xp = library.xp
    sizes = to_numpy(xp.max(xp.abs(X), axis=0)).astype(float)
    units = units_of(sizes, library.precision(X))
    divisors, origin = library.array(units), X[:1, :]
    first, second = library.zeros(X.shape[1]), library.zeros(X.shape[1])
    for some in slices(X.shape[0], ROWS):
        moved = library.doubled(X[some, :]) / divisors - library.doubled(origin) / divisors
        counts = library.array(weights[some])
        first, second = first + counts @ moved, second + counts @ (moved * moved)
    return Moments(units, float(weights.sum()), to_numpy(first), to_numpy(second)).distance(length_scale)


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
