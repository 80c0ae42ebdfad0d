"""Neighbours of points, where they need not be exactly the nearest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from coxfield import threads
from coxfield.kernels.units import feature_sizes, in_units
from coxfield.utils.powers_of_two import ordinary, power_of_two

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 4096  # up to so many points, a second thread saves less than it costs on a busy machine
DIRECTIONS = 32  # principal directions in which neighbours are searched: nine times faster than in 784 pixels


def nearest(coordinates, count: int) -> NDArray:
    """For each row, `count` other rows near it, shape (n, count)."""
    from sklearn.neighbors import NearestNeighbors

    points = _projected(_moderate(coordinates))
    index = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(points)
    with threads.limit(1 if coordinates.shape[0] <= FEW else threads.count(), "openmp"):
        return index.kneighbors(return_distance=False)


def _moderate(Z):
    """The points in a unit in which squared distances neither overflow nor vanish; those beyond all numbers are far."""
    sizes = feature_sizes(Z)
    if ordinary(sizes, Z.dtype).all():
        return Z
    largest = np.finfo(Z.dtype).max
    Z = Z.copy() if sparse.issparse(Z) else np.nan_to_num(Z, nan=largest, posinf=largest, neginf=-largest)
    return in_units(Z, np.full(Z.shape[1], power_of_two(float(np.nanmax(sizes)))))


def _projected(Z):
    """The points in their leading principal directions, where both points and features are many."""
    from sklearn.utils.extmath import randomized_svd

    if Z.shape[0] <= FEW or Z.shape[1] <= 2 * DIRECTIONS:
        return Z
    if not sparse.issparse(Z):
        Z = Z - Z.mean(axis=0)
    U, scale, _ = randomized_svd(Z, DIRECTIONS, n_iter=1, random_state=0)
    return np.ascontiguousarray(U * scale)
