"""The sparse graph to start from: every node with its nearest neighbours.

Any start is valid, since the edges it lacks are added when they turn out to matter, so near enough is good enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import randomized_svd

from coxfield.engine import tiles as blocks
from coxfield.field.edges import Pairs

if TYPE_CHECKING:
    from coxfield.kernels.covariance import Covariance

NEIGHBOURS = 8
FEW = 4096  # points for which a second thread saves less than it costs when another program has the processor
DIRECTIONS = 32  # principal directions that neighbours are sought in: nine times faster than in 784 pixels


def nearest_pairs(X, covariance: Covariance, count: int = NEIGHBOURS, n_jobs: int | None = None) -> Pairs:
    """Pairs of rows of which one is among the other's nearest, in units of the length scale."""
    n = X.shape[0]
    nothing = Pairs(n, np.zeros(0, int))
    if n <= count + 1:
        return nothing.union(*np.triu_indices(n, 1))
    Z = X if sparse.issparse(X) else X / np.asarray(covariance.length_scale, X.dtype)
    index = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(_project(Z))
    with blocks.limit_threads(1 if n <= FEW else blocks.n_threads(n_jobs), "openmp"):
        found = index.kneighbors(return_distance=False)
    return nothing.union(np.repeat(np.arange(n), count), found.ravel())


def _project(Z):
    """The points in their leading principal directions, when there are many points and they have many more."""
    if Z.shape[0] <= FEW or Z.shape[1] <= 2 * DIRECTIONS:
        return Z
    if not sparse.issparse(Z):
        Z = Z - Z.mean(axis=0)
    U, scale, _ = randomized_svd(Z, DIRECTIONS, n_iter=1, random_state=0)
    return np.ascontiguousarray(U * scale)
