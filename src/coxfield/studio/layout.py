"""Places on a map: rows that are near in many dimensions are near in two.

A row is drawn to its nearest neighbours and pushed away from a few random rows, in turns that become gentler. This is
the scheme of neighbour embeddings with negative samples, such as UMAP. It starts from two principal components, so the
large shape of the data stays. Each turn handles all rows at once, as arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEIGHBOURS = 12
PUSHES = 8  # random rows, for each row and turn
TURNS = 250
DIMENSIONS = 30  # in which neighbours are looked for
SHAPE = (0.3, 0.8)  # a, b of 1 / (1 + a d^2b): neighbours may touch, but do not fall on one spot
FARTHEST = 4.0  # a step is at most this long


def principal_places(X: NDArray) -> NDArray:
    """Two principal components, shape (n, 2). A single column is drawn along a line."""
    at = PCA(min(2, *X.shape), svd_solver="covariance_eigh").fit_transform(np.asarray(X, float))
    at = at if at.shape[1] == 2 else np.hstack([at, np.zeros((len(at), 2 - at.shape[1]))])
    return unit_square(at)


def unit_square(at: NDArray) -> NDArray:
    """Places within -1 and 1, with equal scales on both axes."""
    low, high = at.min(axis=0), at.max(axis=0)
    half = float((high - low).max()) / 2 or 1.0
    return ((at - (low + high) / 2) / half).astype(np.float32)


def neighbour_places(X: NDArray, rng: np.random.Generator, turns: int = TURNS) -> NDArray:
    """Places at which neighbours stay together, shape (n, 2), within -1 and 1."""
    n = len(X)
    if X.shape[1] <= 2 or n <= NEIGHBOURS + 1:
        return principal_places(X)
    points = X if X.shape[1] <= DIMENSIONS else PCA(DIMENSIONS, svd_solver="covariance_eigh").fit_transform(X)
    points = np.ascontiguousarray(points, np.float32)
    search = NearestNeighbors(n_neighbors=NEIGHBOURS + 1, algorithm="brute" if points.shape[1] > 8 else "auto")
    near = search.fit(points).kneighbors(points, return_distance=False)
    near = np.where(near == np.arange(n)[:, None], near[:, -1:], near)[:, :NEIGHBOURS]
    at = principal_places(X).astype(float) * 10 + rng.normal(scale=1e-3, size=(n, 2))
    a, b = SHAPE
    tails, heads = near.ravel(), np.repeat(np.arange(n), NEIGHBOURS)
    for turn in range(turns):
        gap = at[heads] - at[tails]
        squared = np.einsum("ij,ij->i", gap, gap) + 1e-9
        pull = -2 * a * b * squared ** (b - 1) / (1 + a * squared**b)
        pulled = gap * pull[:, None]
        step = pulled.reshape(n, NEIGHBOURS, 2).sum(axis=1)
        for axis in (0, 1):
            step[:, axis] -= np.bincount(tails, weights=pulled[:, axis], minlength=n)
        step /= 4  # both ends move, along all neighbours at once
        for _ in range(PUSHES):
            other = rng.integers(0, n, n)
            gap = at - at[other]
            squared = np.einsum("ij,ij->i", gap, gap) + 1e-3
            step += gap * (2 * b / (squared * (1 + a * squared**b)))[:, None]
        at += np.clip(step, -FARTHEST, FARTHEST) * (0.6 * (1 - turn / turns))
    return unit_square(_without_strays(at))


def _without_strays(at: NDArray) -> NDArray:
    """Places with a few far ones drawn in, so that these do not make the map of all others small."""
    middle = np.median(at, axis=0)
    far = np.linalg.norm(at - middle, axis=1)
    edge = 1.15 * np.quantile(far, 0.995) or 1.0
    return middle + (at - middle) * np.minimum(1, edge / np.maximum(far, 1e-12))[:, None]
