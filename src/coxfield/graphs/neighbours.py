"""The nearest neighbours of all points among themselves, and of new points among them.

scikit-learn finds them: trees in few dimensions, blocks of distances in many. For many points of many features, blocks
would take minutes. There the search runs on the leading principal components and proposes candidates. Their exact
distances then decide. Sparse rows are compared by their angle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches

from coxfield import threads
from coxfield.engine.tiles import over_rows
from coxfield.graphs.frame import Frame
from coxfield.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MOST_WORK = 2e11  # products of features that an exact search may take: some ten seconds
COMPONENTS = 48  # principal components that propose candidates
EXTRA = 40  # candidates beyond the neighbours that are wanted
ROWS = 512  # points whose candidates are compared at once
AT_ONCE = 4096  # points whose neighbours are looked for at once: enough for speed, and few enough to tell of
TREE_FEATURES = 10  # up to so many features trees are faster than blocks


@dataclass(frozen=True)
class Neighbours:
    """Neighbours of each point, nearest first, without the point itself."""

    index: NDArray
    distance: NDArray

    @property
    def count(self) -> int:
        """Neighbours per point."""
        return self.index.shape[1]


@dataclass(frozen=True)
class Search:
    """Points among which neighbours are found."""

    points: NDArray | sparse.csr_array
    """Points in the frame: dense, or sparse rows of length 1."""
    frame: Frame

    @classmethod
    def among(cls, X) -> Search:
        """Search among given points."""
        frame = Frame.of(X)
        return cls(frame.place(X), frame)

    def __len__(self) -> int:
        return self.points.shape[0]

    @cached_property
    def _axes(self) -> NDArray | None:
        """Principal axes that propose candidates; None if an exact search is affordable."""
        n, d = self.points.shape
        if sparse.issparse(self.points) or d <= 2 * COMPONENTS or float(n) * n * d <= MOST_WORK:
            return None
        some = self.points[np.random.default_rng(0).choice(n, min(n, 20 * d), replace=False)].astype(np.float32)
        some -= some.mean(axis=0)
        _, vectors = np.linalg.eigh(some.T @ some)
        return np.ascontiguousarray(vectors[:, -COMPONENTS:])

    @cached_property
    def _engine(self) -> NearestNeighbors:
        points = self._projected(self.points)
        return NearestNeighbors(algorithm="kd_tree" if self._in_tree else "brute").fit(points)

    @property
    def _in_tree(self) -> bool:
        return not sparse.issparse(self.points) and self.points.shape[1] <= TREE_FEATURES

    def _projected(self, points):
        return points if self._axes is None else points.astype(np.float32) @ self._axes

    def of_all(self, count: int, done: Callable[[int], None] | None = None) -> Neighbours:
        """The neighbours of every point among the others, at most as many as there are others.

        `done` is called with numbers of points.
        """
        count = min(count, len(self) - 1)
        index, distance = self._find(self.points, count + 1, done)
        # A point is its own neighbour. Among duplicates it need not be the first, and may be missing.
        own = index == np.arange(len(self))[:, None]
        own[~own.any(axis=1), -1] = True
        kept = ~own
        shape = len(self), count
        return Neighbours(index[kept].reshape(shape), distance[kept].reshape(shape))

    def of(self, X, count: int) -> Neighbours:
        """The neighbours of new points."""
        with progress(f"neighbours of {X.shape[0]} points", X.shape[0], None) as done:
            return Neighbours(*self._find(self.frame.place(X), min(count, len(self)), done))

    def _find(self, points, count: int, done=None) -> tuple[NDArray, NDArray]:
        found = []
        for part in gen_batches(points.shape[0], AT_ONCE):
            found.append(self._find_some(points[part], count))
            if done is not None:
                done(part.stop - part.start)
        index, distance = zip(*found, strict=True)
        return np.concatenate(index), np.concatenate(distance)

    def _find_some(self, points, count: int) -> tuple[NDArray, NDArray]:
        engine = self._engine.set_params(n_jobs=threads.count())
        if self._axes is None:
            distance, index = engine.kneighbors(points, count)
            distance = distance.astype(float, copy=False)
            if not self._in_tree:
                distance[distance <= _blur(points)[:, None]] = 0
            return index, distance
        asked = min(count + EXTRA, len(self))
        candidates = engine.kneighbors(self._projected(points), asked, return_distance=False)
        return self._nearest_of(points, candidates, count)

    def _nearest_of(self, points: NDArray, candidates: NDArray, count: int) -> tuple[NDArray, NDArray]:
        """The nearest of the candidates of each point, by exact distances."""
        index = np.empty((len(points), count), dtype=candidates.dtype)
        distance = np.empty((len(points), count))

        def work(part: slice) -> None:
            for row in range(part.start, part.stop):
                difference = self.points[candidates[row]] - points[row]
                squares = np.einsum("ij,ij->i", difference, difference, dtype=float)
                order = np.argsort(squares, kind="stable")[:count]
                index[row], distance[row] = candidates[row, order], np.sqrt(squares[order])

        over_rows(work, len(points), ROWS)
        return index, distance


def _blur(points) -> NDArray:
    """How far apart rounding may bring each point and its twin, if squares of distances are sums of products."""
    squares = points.multiply(points).sum(axis=1) if sparse.issparse(points) else np.einsum("ij,ij->i", points, points)
    return np.sqrt(4 * np.finfo(float).eps * (16 + points.shape[1]) * np.asarray(squares, dtype=float).ravel())


@dataclass(frozen=True)
class Listed:
    """Points whose distances a user lists, in a sparse matrix. Only stored entries count, also those of 0."""

    distances: sparse.csr_array

    def __len__(self) -> int:
        return self.distances.shape[0]

    def of_all(self, count: int, done: Callable[[int], None] | None = None) -> Neighbours:
        """The nearest listed neighbours of every point."""
        return _listed(self.distances, count, own=True)

    def of(self, X, count: int) -> Neighbours:
        """The nearest listed neighbours of new points, from their distances to these."""
        return _listed(listed(X), count, own=False)


def listed(X) -> sparse.csr_array:
    """Distances as a sparse matrix. All entries of a dense matrix count, also those of 0."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    X = np.asarray(X)
    rows, columns = X.shape
    index = np.tile(np.arange(columns), rows)
    return sparse.csr_array((X.ravel(), index, np.arange(0, rows * columns + 1, columns)), shape=X.shape)


def _listed(distances: sparse.csr_array, count: int, *, own: bool) -> Neighbours:
    """Neighbours from listed distances. Rows with fewer entries end in infinite distances.

    `own` says that rows and columns are the same points, so that the diagonal does not count.
    """
    n = distances.shape[0]
    rows = np.repeat(np.arange(n), np.diff(distances.indptr))
    columns, lengths = distances.indices, distances.data
    if own:
        other = rows != columns
        rows, columns, lengths = rows[other], columns[other], lengths[other]
    order = np.lexsort((lengths, rows))
    rows, columns, lengths = rows[order], columns[order], lengths[order]
    degrees = np.bincount(rows, minlength=n)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    near = place < count
    index = np.zeros((n, max(1, min(count, int(degrees.max(initial=0))))), dtype=np.intp)
    distance = np.full(index.shape, np.inf)
    index[rows[near], place[near]], distance[rows[near], place[near]] = columns[near], lengths[near]
    return Neighbours(index, distance)
