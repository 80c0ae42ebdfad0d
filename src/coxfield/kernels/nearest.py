"""Neighbours of points, where they need not be exactly the nearest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from coxfield import threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 4096  # up to so many points, a second thread saves less than it costs on a busy machine
DIRECTIONS = 32  # principal directions in which neighbours are searched: nine times faster than in 784 pixels


def nearest(coordinates, count: int) -> NDArray:
    """For each row, `count` other rows near it, shape (n, count)."""
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(_projected(coordinates))
    with threads.limit(1 if coordinates.shape[0] <= FEW else threads.count(), "openmp"):
        return index.kneighbors(return_distance=False)


def _projected(Z):
    """The points in their leading principal directions, where both points and features are many."""
    from sklearn.utils.extmath import randomized_svd

    if Z.shape[0] <= FEW or Z.shape[1] <= 2 * DIRECTIONS:
        return Z
    if not sparse.issparse(Z):
        Z = Z - Z.mean(axis=0)
    U, scale, _ = randomized_svd(Z, DIRECTIONS, n_iter=1, random_state=0)
    return np.ascontiguousarray(U * scale)
