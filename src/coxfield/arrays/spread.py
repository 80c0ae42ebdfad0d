"""The typical distance between points of an array library, from which the length scales to try follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.arrays.library import Library, to_numpy
from coxfield.arrays.tiles import slices
from coxfield.kernels.sklearn_tree import length_unit
from coxfield.selection.grid import ROWS, Moments
from coxfield.utils.powers_of_two import units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass


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
