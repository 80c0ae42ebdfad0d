"""The nearest neighbours of points, and the weights of the edges between them.

scikit-learn finds the neighbours: trees in few dimensions, blocks of distances in many. For many points, blocks would
take minutes. There products in single precision propose candidates, on the leading principal components if there are
many features. Their exact distances then decide. Sparse rows are compared by their angle. A `Frame` moves and scales
points where squares of distances would lose digits or overflow.

An edge between neighbours has the weight w_ij = exp(-a d_ij^2 / (s_i s_j)). With a scale s_i of its own, each point is
joined to its nearest neighbours, however far they are. With one scale for all, weights follow the density: they fade
where points are sparse, which is where classes part if the data have gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from coxfield import threads
from coxfield.progress import progress
from coxfield.threads import over_rows
from coxfield.utils.numbers import power_of_two, units_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


SINGLE = np.dtype(np.float32)
FAR = 1e3  # times the spread: beyond it, products of features lose too many digits of the distances
EXTREME = {np.dtype(np.float64): 2.0**300, np.dtype(np.float32): 2.0**30}  # sizes whose squares may overflow
MOST_WORK = 2e11  # products of features that an exact search may take: some ten seconds
COMPONENTS = 48  # principal components that propose candidates
EXTRA = 40  # candidates beyond the neighbours that are wanted
PROPOSED = 2e10  # products of features from which candidates are proposed: fewer are as fast at once
SAMPLED = 16  # one point in so many sets the limit below which points are candidates
COLUMNS = 2048  # points at a time whose squared distances are compared with the limit, so that they stay near
BLUR = 1e-3  # of the squares of two points: squared distances below it need more than single precision
ROWS = 512  # points whose candidates are compared at once
AT_ONCE = 4096  # points whose neighbours are looked for at once: enough for speed, and few enough to tell of
TREE_FEATURES = 10  # up to so many features trees are faster than blocks
RANK = 7  # the neighbour whose distance is the scale of a point
FAINTEST = 1e-200  # a weight below it counts as none, so that degrees do not underflow


@dataclass(frozen=True)
class Frame:
    """How points are moved and scaled."""

    origin: NDArray | None = None
    """None if points stay where they are."""
    unit: float = 1.0
    """A power of two, so that no digit changes."""
    precision: np.dtype = SINGLE
    """Of the given points. New points of single precision may meet points that only double precision can hold."""

    @classmethod
    def of(cls, X) -> Frame:
        """The frame of given points."""
        return cls() if sparse.issparse(X) else cls.between(X.min(axis=0), X.max(axis=0))

    @classmethod
    def between(cls, least: NDArray, largest: NDArray) -> Frame:
        """The frame of dense points whose features have these bounds."""
        low, high = least / 2, largest / 2
        middle, spread = low + high, float((high - low).max())
        unit = float(2.0 ** np.round(np.log2(spread))) if spread > 0 else 1.0
        extreme = EXTREME[low.dtype]
        unit = unit if unit > extreme or unit * extreme < 1 else 1.0
        moves = unit != 1 or float(np.abs(middle).max()) > FAR * spread
        return cls(middle if moves else None, unit, low.dtype)

    def place(self, X):
        """Points in this frame."""
        if sparse.issparse(X):
            return normalize(_rows_in_units(X))
        X = X.astype(np.result_type(X.dtype, self.precision), copy=False)
        if self.origin is None:
            return _within_reach(X)
        # Halves, because the difference of two numbers may be too large for a number.
        with np.errstate(over="ignore"):
            return _within_reach((X / 2 - (self.origin / 2).astype(X.dtype)) / X.dtype.type(self.unit / 2))


def _rows_in_units(X):
    """Sparse rows, those of extreme size divided by a power of two: their angles stay."""
    units = units_of(abs(X).max(axis=1).toarray().ravel().astype(float), X.dtype)
    if (units == 1).all():
        return X
    X = sparse.csr_array(X, copy=True)
    X.data = (X.data.astype(float) / np.repeat(units, np.diff(X.indptr))).astype(X.dtype)
    return X


def _within_reach(X: NDArray) -> NDArray:
    """Points so far away that squares of their features would overflow are brought nearer, in the same direction."""
    limit = X.dtype.type(EXTREME[X.dtype])
    if max(X.max(initial=0), -X.min(initial=0)) <= limit:
        return X
    largest = np.finfo(X.dtype).max
    X = np.clip(X, -largest, largest)
    sizes = np.abs(X).max(axis=1, keepdims=True)
    return X * np.minimum(1, limit / np.maximum(sizes, limit))


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
    def _proposals(self) -> Proposals | None:
        """What proposes candidates; None if that would not be faster."""
        n, d = self.points.shape
        if sparse.issparse(self.points) or self._in_tree or (self._axes is None and float(n) * n * d <= PROPOSED):
            return None
        return Proposals.among(self._projected(self.points))

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
        if self._proposals is None:
            distance, index = engine.kneighbors(points, count)
            distance = distance.astype(float, copy=False)
            if not self._in_tree:
                distance[distance <= _blur(points)[:, None]] = 0
            return index, distance
        projected, asked = self._projected(points), min(count + EXTRA, len(self))
        candidates, unsure = self._proposals.nearest(projected, asked)
        if unsure.any():
            candidates[unsure] = engine.kneighbors(projected[unsure], asked, return_distance=False)
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


@dataclass(frozen=True)
class Proposals:
    """Points in single precision, among which products of matrices find nearly all nearest ones."""

    centre: NDArray
    unit: float
    """A power of two by which points are divided, so that their squares are numbers."""
    wide: NDArray
    """Points around the centre, with their squares as the last column, shape (n, k + 1)."""

    @classmethod
    def among(cls, points: NDArray) -> Proposals:
        """Propose among given points."""
        centre = points.mean(axis=0)
        unit = power_of_two(float(np.abs(points - centre).max(initial=0)))
        return cls(centre, unit, cls._wide(points, centre, unit))

    @staticmethod
    def _wide(points: NDArray, centre: NDArray, unit: float) -> NDArray:
        z = ((points - centre) / points.dtype.type(unit)).astype(SINGLE)
        return np.column_stack([z, np.einsum("ij,ij->i", z, z)])

    def nearest(self, points: NDArray, count: int) -> tuple[NDArray, NDArray]:
        """Numbers of about the nearest points in any order, and whether a point needs an exact search instead."""
        wide = self._wide(points, self.centre, self.unit)
        squares, wide[:, :-1], wide[:, -1] = wide[:, -1].copy(), -2 * wide[:, :-1], 1
        index, unsure = np.zeros((len(wide), count), dtype=np.intp), np.zeros(len(wide), dtype=bool)

        def work(part: slice) -> None:
            index[part], unsure[part] = self._nearest_in_part(wide[part], squares[part], count)

        over_rows(work, len(wide), ROWS)
        return index, unsure

    def _nearest_in_part(self, queries: NDArray, squares: NDArray, count: int) -> tuple[NDArray, NDArray]:
        """Products of queries with points are squared distances without the squares of the queries.

        A sample of the points gives each query a limit, which more than `count` points hardly ever miss. So few
        numbers are left to be ordered.
        """
        some, share = self.wide[::SAMPLED], count / SAMPLED
        rank = min(int(share + 4 * np.sqrt(share)) + 1, len(some) - 1)
        limits = np.partition(queries @ some.T, rank, axis=1)[:, rank]
        limits[limits <= (2 * BLUR - 1) * squares] = -np.inf
        rows, columns, keys = self._below(queries, limits)
        found = np.bincount(rows, minlength=len(queries))
        place = np.arange(len(rows)) - np.repeat(np.cumsum(found) - found, found)
        shape = len(queries), max(int(found.max()), count)
        table, numbers = np.full(shape, np.inf, dtype=SINGLE), np.zeros(shape, dtype=np.intp)
        table[rows, place], numbers[rows, place] = keys, columns
        best = np.argpartition(table, count - 1, axis=1)[:, :count]
        farthest = np.take_along_axis(table, best, axis=1).max(axis=1)
        return np.take_along_axis(numbers, best, axis=1), (found < count) | (farthest <= (2 * BLUR - 1) * squares)

    def _below(self, queries: NDArray, limits: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Pairs of a query and a point below its limit, ordered by query, with their products."""
        found = []
        for part in gen_batches(len(self.wide), COLUMNS):
            keys = queries @ self.wide[part].T
            flat = np.flatnonzero(keys < limits[:, None])
            rows, columns = np.divmod(flat, keys.shape[1])
            found.append((rows, columns + part.start, keys.ravel()[flat]))
        rows, columns, values = map(np.concatenate, zip(*found, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], columns[order], values[order]


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


@dataclass(frozen=True)
class EdgeRule:
    """A rule for the edge weights of a graph."""

    neighbours: int
    """Number of neighbours k that a point is joined to."""
    sharpness: float = 1.0
    """The factor a of the exponent."""
    common: bool = False
    """Whether all points share one scale, the median."""

    @property
    def name(self) -> str:
        """What users see."""
        if not self.common:
            return f"{self.neighbours} neighbours"
        return f"{self.neighbours} neighbours, one scale, sharpness {self.sharpness:g}"

    def scales(self, found: Neighbours, typical: float | None = None) -> NDArray:
        """The scale s_i of each point: the distance to its seventh neighbour, or to its last if it has fewer.

        `typical` is the scale of a point that lies on all of these neighbours. By default it is the median.
        """
        near = found.distance[:, : min(RANK, self.neighbours, found.count)]
        own = np.where(np.isfinite(near), near, 0).max(axis=1)  # a listed point may have fewer neighbours, or none
        if typical is None:
            positive = own[own > 0]
            typical = float(np.median(positive)) if len(positive) else _longest(found)
        return np.full(len(own), typical) if self.common else np.where(own > 0, own, typical)

    def graph(self, found: Neighbours) -> sparse.csr_array:
        """The symmetric graph of all points: the larger of w_ij and w_ji where only one is a neighbour of the other."""
        scales = self.scales(found)
        values = np.exp(-self._exponents(found, scales, scales))
        values[values < FAINTEST] = 0
        weights = self._sparse(found, values, len(scales))
        weights.sum_duplicates()  # places without a neighbour repeat a column, with weight 0
        return sparse.csr_array(weights.maximum(weights.T))

    def shares(self, found: Neighbours, scales: NDArray) -> sparse.csr_array:
        """The weights between new points and the points of a graph, one row per new point, adding up to 1."""
        own = self.scales(found, typical=float(np.median(scales)))
        exponents = self._exponents(found, own, scales)
        least = exponents.min(axis=1, keepdims=True)  # far from all points, weights would underflow
        values = np.exp(np.where(np.isfinite(least), least, 0) - exponents)
        totals = values.sum(axis=1, keepdims=True)
        return self._sparse(found, values / np.where(totals > 0, totals, 1), len(scales))

    def _exponents(self, found: Neighbours, of_rows: NDArray, of_columns: NDArray) -> NDArray:
        """a d_ij^2 / (s_i s_j) for the neighbours of each row."""
        k = min(self.neighbours, found.count)
        index, distance = found.index[:, :k], found.distance[:, :k]
        with np.errstate(over="ignore"):  # infinitely far is far enough
            return self.sharpness * (distance / of_rows[:, None]) * (distance / of_columns[index])

    def _sparse(self, found: Neighbours, values: NDArray, n_columns: int) -> sparse.csr_array:
        n, k = values.shape
        index = found.index[:, :k].ravel().copy()  # SciPy sorts in place
        return sparse.csr_array((values.ravel(), index, np.arange(0, n * k + 1, k)), shape=(n, n_columns))


def _longest(found: Neighbours) -> float:
    """The longest distance to a neighbour, 1 if all points are the same."""
    return float(found.distance[np.isfinite(found.distance)].max(initial=0.0)) or 1.0


def row_shares(weights: sparse.csr_array) -> sparse.csr_array:
    """The weights of each row divided by their sum. A row without weight stays empty."""
    largest = np.asarray(weights.max(axis=1).toarray(), dtype=float).ravel()
    # Weights near the largest number have no finite sum, and the inverses of the smallest numbers are not finite.
    _, exponents = np.frexp(largest)
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    values = np.ldexp(weights.data.astype(float), -exponents[rows])
    totals = np.bincount(rows, values, minlength=weights.shape[0])
    values /= np.where(totals > 0, totals, 1)[rows]
    return sparse.csr_array((values, weights.indices, weights.indptr), shape=weights.shape)
