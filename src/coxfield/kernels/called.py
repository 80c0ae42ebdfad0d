"""Any kernel of scikit-learn, called block by block; values computed before, and couplings that a user lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse

from coxfield import threads
from coxfield.kernels.namespace import stacked
from coxfield.kernels.protocol import Covariance, KernelPoints, Path, values
from coxfield.kernels.sklearn_tree import check_nonnegative, diagonal_of, gradient_of, rescale, values_of
from coxfield.kernels.transforms import feature_sizes, in_units
from coxfield.utils.numbers import logs_of, ordinary, power_of_two

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray
    from sklearn.gaussian_process import kernels


ROWS_PER_CALL = 64  # rows evaluated together for listed pairs


@dataclass(frozen=True)
class Called(Covariance):
    """A kernel that can only be called."""

    kernel: kernels.Kernel

    def bind(self, X, rows: NDArray | None = None) -> CalledPoints:
        return CalledPoints(self, X if rows is None else X[rows])

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Called:
        return Called(rescale(self.kernel, length, variance))

    @property
    def stationary(self) -> bool:
        return bool(self.kernel.is_stationary())

    def check_nonnegative(self) -> None:
        check_nonnegative(self.kernel)


@dataclass(frozen=True)
class CalledPoints(KernelPoints):
    """Points as they were given; `KernelPoints` says what the methods are for."""

    covariance: Called
    X: Any

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows) -> CalledPoints:
        return CalledPoints(self.covariance, self.X[rows])

    @property
    def dtype(self) -> np.dtype:
        """Kernels of scikit-learn compute in double precision."""
        return np.dtype(np.float64)

    def at(self, X) -> CalledPoints:
        return CalledPoints(self.covariance, X)

    def joined(self, other: CalledPoints) -> CalledPoints:
        return CalledPoints(self.covariance, stacked([self.X, other.X]))

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> CalledPoints:
        return CalledPoints(self.covariance.rescaled(length, variance), self.X)

    def diagonal(self) -> NDArray:
        return diagonal_of(self.covariance.kernel, self.X)

    def tile(self, columns: CalledPoints, out: NDArray | None = None) -> NDArray:
        return values_of(self.covariance.kernel, self.X, columns.X)

    def log_tile(self, columns: CalledPoints) -> NDArray:
        """Logarithms of the values; negative values are refused."""
        values = self.tile(columns)
        if (values < 0).any():
            raise ValueError(
                f"{self.covariance.kernel!r} takes negative values, such as {values.min():.3g}, but a covariance that "
                "is never negative is needed here: try RBF, Matern or RationalQuadratic, or give selection=None"
            )
        return logs_of(values)

    def pairs(self, rows: NDArray, columns: CalledPoints, of_columns: NDArray) -> NDArray:
        """C of listed pairs; the kernel is called on a few rows at a time."""
        values = np.empty(len(rows))
        order = np.argsort(rows, kind="stable")
        different, starts = np.unique(rows[order], return_index=True)
        for first in range(0, len(different), ROWS_PER_CALL):
            stop = first + ROWS_PER_CALL
            mine = order[starts[first] : starts[stop] if stop < len(different) else None]
            wanted, column = np.unique(of_columns[mine], return_inverse=True)
            block = self[different[first:stop]].tile(columns[wanted])
            values[mine] = block[np.searchsorted(different[first:stop], rows[mine]), column]
        return values

    def neighbours(self, count: int) -> NDArray:
        """The nearest points, by Euclidean distance."""
        return nearest(self.X, count)

    def differentiate(self, columns: CalledPoints, weights: NDArray, leave_out: NDArray) -> CalledSums:
        """Sums and derivatives.

        scikit-learn gives gradients only for all pairs of one set, so the rows and the columns become one set.
        """
        values, gradient = gradient_of(self.covariance.kernel, stacked([self.X, columns.X]))
        n = len(self)
        everything = np.concatenate([values[:n, n:, None], gradient[:n, n:]], axis=2)
        seen = np.flatnonzero((leave_out >= 0) & (leave_out < len(columns)))
        everything[seen, leave_out[seen]] = 0
        sums = np.einsum("jkp,k->jp", everything, weights)
        return CalledSums(sums[:, 0], sums[:, 1:])

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        _, gradient = gradient_of(self.covariance.kernel, self.X)
        return np.einsum("j,jjp->p", weights, gradient)


@dataclass(frozen=True)
class CalledSums:
    """Weighted sums of covariances with their derivatives."""

    sums: NDArray
    derivatives: NDArray
    """Shape (rows, parameters)."""

    def gradient(self, rows: NDArray) -> NDArray:
        return rows @ self.derivatives


# Covariances that were computed before: a matrix of values, addressed by row number.


MOST = 2**24  # values that may be held: 128 MB in double precision, 4096 points


@dataclass(frozen=True)
class HeldPoints(KernelPoints):
    """Some points of a fixed set whose covariances are held; `KernelPoints` says what the methods are for."""

    origin: KernelPoints
    """All points of the set, for everything that is not held."""
    matrix: NDArray
    """C between all points of the set."""
    rows: NDArray
    """Number of each point in the set."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows) -> HeldPoints:
        return HeldPoints(self.origin, self.matrix, self.rows[rows])

    @cached_property
    def _whole(self) -> bool:
        return len(self.rows) == len(self.matrix) and bool((self.rows == np.arange(len(self.rows))).all())

    @property
    def covariance(self) -> Covariance:
        return self.origin.covariance

    @property
    def dtype(self) -> np.dtype:
        return self.matrix.dtype

    def at(self, X) -> Any:
        """Other points: nothing is held for them."""
        return self.origin.at(X)

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Any:
        """The same points under the rescaled covariance; a new variance alone only rescales the held values."""
        if length == 1:
            return HeldPoints(self.origin.rescaled(variance=variance), self.matrix * variance, self.rows)
        return self.origin[self.rows].rescaled(length, variance)

    def diagonal(self) -> NDArray:
        return self.origin[self.rows].diagonal()

    def tile(self, columns: HeldPoints, out: NDArray | None = None) -> NDArray:
        """A copy of the values."""
        if self._whole and columns._whole:
            return self.matrix.copy()
        if len(columns) < len(self):  # the matrix is symmetric, and whole rows are the fastest to read
            return np.take(self.matrix[columns.rows], self.rows, axis=1).T
        return np.take(self.matrix if self._whole else self.matrix[self.rows], columns.rows, axis=1)

    def pairs(self, rows: NDArray, columns: HeldPoints, of_columns: NDArray) -> NDArray:
        return self.matrix[self.rows[rows], columns.rows[of_columns]].astype(float)

    def neighbours(self, count: int) -> NDArray:
        return self.origin[self.rows].neighbours(count)

    def differentiate(self, columns: HeldPoints, weights: NDArray, leave_out: NDArray):
        return self.origin[self.rows].differentiate(self.origin[columns.rows], weights, leave_out)

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        return self.origin[self.rows].diagonal_gradient(weights)


def hold(points: KernelPoints) -> KernelPoints:
    """The same points with all their covariances held if they are few enough, otherwise unchanged.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.kernels.radial import recognise
    >>> points = hold(recognise(RBF(1.0), 1).bind(np.array([[0.0], [1.0], [2.0]])))
    >>> points[[0, 2]].tile(points[[1]]).round(4).tolist()
    [[0.6065], [0.6065]]
    """
    n = len(points)
    if all_held([points]) or n**2 > MOST:
        return points
    return HeldPoints(points, values(points, points), np.arange(n))


def all_held(points: Iterable[KernelPoints]) -> bool:
    """Whether the covariances of all these points are looked up and not computed."""
    return all(isinstance(bound, HeldPoints | GraphPoints) for bound in points)


# Neighbours of points, where they need not be exactly the nearest.


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


# Covariances that a user lists: the couplings of a graph, as a sparse matrix that is addressed by row number.
#
# Nothing here takes more time or memory than the listed couplings do, except `tile` and `log_tile`, which are dense by
# definition. `GraphPoints.links` and `GraphPoints.walk` serve in their place.


@dataclass(frozen=True, eq=False)
class Graph(Covariance):
    """Couplings between the nodes of a graph. A node is given by its row number, in an array of one column.

    C(x, x) is 0. All classes share it, so it would be the same constant in the energy of every labelling.

    Examples
    --------
    >>> from scipy import sparse
    >>> graph = Graph(sparse.csr_array([[0.0, 2.0, 0.0], [2.0, 0.0, 3.0], [0.0, 3.0, 0.0]]))
    >>> nodes = graph.bind(np.array([[0], [1], [2]]))
    >>> nodes[[1]].tile(nodes).tolist()
    [[2.0, 0.0, 3.0]]
    """

    matrix: sparse.csr_array
    """Symmetric and sorted; without a diagonal, stored zeros or repeated entries."""

    @property
    def kernel(self) -> Graph:
        return self

    def bind(self, X, rows: NDArray | None = None) -> GraphPoints:
        return GraphPoints(self, _numbers(X if rows is None else X[rows]))

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Graph:
        """The couplings multiplied by the variance. A graph has no length scale."""
        return self if variance == 1 else Graph(self.matrix * variance)

    @property
    def stationary(self) -> bool:
        return False

    def check_nonnegative(self) -> None:
        least = self.matrix.data.min(initial=0.0)
        if least < 0:
            raise ValueError(f"the graph has the negative coupling {least:.3g}, which Theorem 2 does not allow")


@dataclass(frozen=True)
class GraphPoints(KernelPoints):
    """Some nodes of a graph; `KernelPoints` says what the methods are for."""

    covariance: Graph
    rows: NDArray
    """Number of each node."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows) -> GraphPoints:
        return GraphPoints(self.covariance, self.rows[rows])

    @cached_property
    def _whole(self) -> bool:
        return np.array_equal(self.rows, np.arange(self.covariance.matrix.shape[0]))

    @property
    def dtype(self) -> np.dtype:
        return self.covariance.matrix.dtype

    def block(self, columns: GraphPoints) -> sparse.csr_array:
        """Couplings between these nodes and others. Do not write to them."""
        matrix = self.covariance.matrix
        matrix = matrix if self._whole else matrix[self.rows]
        return matrix if columns._whole else matrix[:, columns.rows]

    def links(self) -> sparse.csr_array:
        return self.block(self)

    def paths(self, columns: Any, weights: Any) -> list[Path]:
        """Class sums from the listed couplings only."""
        return [Path(self, columns, np.ones(1), [[weights]])]

    def walk(self, columns: GraphPoints, factors: NDArray, leave_out: NDArray, sink: Any) -> NDArray:
        """One visit of each link; couplings have no length scale."""
        block = self.block(columns)
        at = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        values = np.where(leave_out[at] == block.indices, 0, block.data)
        for k in range(len(factors)):
            sink.add_entries(k, at, block.indices, values)
        return np.zeros((len(factors), len(self)))

    def at(self, X) -> GraphPoints:
        return self.covariance.bind(X)

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> GraphPoints:
        return GraphPoints(self.covariance.rescaled(length, variance), self.rows)

    def diagonal(self) -> NDArray:
        return np.zeros(len(self))

    def tile(self, columns: GraphPoints, out: NDArray | None = None) -> NDArray:
        return self.block(columns).toarray()

    def pairs(self, rows: NDArray, columns: GraphPoints, of_columns: NDArray) -> NDArray:
        if not len(rows):  # SciPy would give a sparse matrix
            return np.zeros(0)
        return np.asarray(self.covariance.matrix[self.rows[rows], columns.rows[of_columns]], dtype=float)

    def neighbours(self, count: int) -> NDArray:
        """The nodes with the strongest couplings. If a node has too few links, the nodes that follow it are added."""
        n, links = len(self), self.links()
        degrees = np.diff(links.indptr)
        heaviest = np.lexsort((-links.data, np.repeat(np.arange(n), degrees)))
        place = np.arange(count)
        found = (np.arange(n)[:, None] + 1 + place) % n
        there = np.nonzero(place < degrees[:, None])
        found[there] = links.indices[heaviest[links.indptr[there[0]] + there[1]]]
        return found

    def differentiate(self, columns: GraphPoints, weights: NDArray, leave_out: NDArray) -> NoReturn:
        raise ValueError("a graph of given couplings has no parameters to learn: give a kernel instead")

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        return np.zeros(0)


def _numbers(X) -> NDArray:
    return np.asarray(X)[:, 0].astype(int)
