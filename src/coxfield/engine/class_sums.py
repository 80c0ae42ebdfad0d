"""The hot path: the sum of covariances over training points, class by class, block by block.

For a query x* and class i the class sum is S_i(x*) = sum of C_i(x*, x) over the training points of class i, the last
term of eq. activationFunction. Training points are sorted by class once; a tile of the kernel matrix is one matrix
product, a few passes in place, and a segmented sum. Nothing as large as queries x training points is ever held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from coxfield.engine import tiles as blocks
from coxfield.kernels.covariance import profile_floor
from coxfield.kernels.points import TOLERABLE, Points, pair_sq_distances, place, product_error, sq_distances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.kernels.covariance import Covariance

MANY_SEGMENTS = 32  # classes met by one tile, beyond which one segmented sum beats a product for each
# Where the largest sum is below this, kernel values have lost digits or vanished.
FAINT = {name: float(np.finfo(name).tiny / np.finfo(name).eps) for name in ("float32", "float64")}
NEGLIGIBLE = 1e-6  # an error in a log kernel value that nobody will notice
NATS_APART = 40.0  # a kernel value exp(-40) times the largest does not move a double-precision sum


@dataclass(frozen=True)
class Group:
    """The training points of all classes that share one covariance, sorted by class."""

    covariance: Covariance
    classes: NDArray
    """Class of each segment, ascending."""
    starts: NDArray
    """First column of each segment; the columns are the sorted points."""
    rows: NDArray
    """Training row of each column."""
    points: Any
    """The sorted points, placed for distances; as given when the kernel was not recognised."""
    weights: NDArray | None
    """Weight of each column, None when all are 1."""

    @property
    def sizes(self) -> NDArray:
        """Number of columns of each segment."""
        return np.diff(self.starts, append=len(self.rows))

    def add_segment_sums(self, tile: NDArray, start: int, sums: NDArray) -> None:
        """Add to `sums` the (weighted) sums of a tile over each class, the tile's first column being `start`."""
        stop = start + tile.shape[1]
        first = np.searchsorted(self.starts, start, side="right") - 1
        last = np.searchsorted(self.starts, stop, side="left")
        begins = np.maximum(self.starts[first:last] - start, 0)
        if last - first > MANY_SEGMENTS:
            weighted = tile if self.weights is None else tile * self.weights[start:stop]
            sums[:, first:last] += np.add.reduceat(weighted, begins, axis=1)
            return
        # A product with a vector is two to four times faster than a sum along rows.
        weights = np.ones(tile.shape[1], tile.dtype) if self.weights is None else self.weights[start:stop]
        for segment, begin, end in zip(range(first, last), begins, [*begins[1:], tile.shape[1]], strict=True):
            sums[:, segment] += tile[:, begin:end] @ weights[begin:end]


@dataclass(frozen=True)
class TrainingPoints:
    """Labelled points arranged for class sums; build it with `arrange`."""

    X: NDArray
    y: NDArray
    weights: NDArray | None
    n_classes: int
    origin: NDArray | None
    groups: tuple[Group, ...]

    def place(self, group: Group, X):
        """Query points in the coordinates of a group."""
        if not group.covariance.recognised:
            return X
        return place(X, group.covariance.length_scale, self.origin)

    def prior(self, X, mean: NDArray) -> NDArray:
        """The terms mu_i + C_i(x*, x*) / 2 of eq. activationFunction, shape (1 or n, n_classes)."""
        halves = [group.covariance.diagonal(X) / 2 for group in self.groups]
        prior = np.tile(np.asarray(mean, dtype=float), (max(map(len, halves)), 1))
        for group, half in zip(self.groups, halves, strict=True):
            prior[:, group.classes] += half[:, None]
        return prior


@dataclass(frozen=True)
class ClassSums:
    """Class sums of a set of queries, shape (n, n_classes) each."""

    values: NDArray
    logs: NDArray
    """log S, right also where S itself underflows; -inf for a class without points."""

    def __getitem__(self, rows) -> ClassSums:
        return ClassSums(self.values[rows], self.logs[rows])


def arrange(X, y, covariances: Sequence[Covariance], weights: NDArray | None = None) -> TrainingPoints:
    """Sort labelled points by class, one group for each different covariance.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    y : array of shape (n,)
        Class numbers 0, ..., len(covariances) - 1.
    covariances : sequence of Covariance
        One a class; classes given the same object share a group.
    weights : array of shape (n,), optional
        Positive; a point of weight w counts as w points.
    """
    origin = None if sparse.issparse(X) else np.average(X, axis=0, weights=weights).astype(X.dtype)
    distinct = {id(covariance): covariance for covariance in covariances}
    shared = np.array([id(covariance) for covariance in covariances])
    groups = tuple(
        _group(X, y, weights, origin, covariance, np.flatnonzero(shared == key)) for key, covariance in distinct.items()
    )
    return TrainingPoints(X, y, weights, len(covariances), origin, groups)


def _group(X, y, weights, origin, covariance, classes) -> Group:
    rows = np.flatnonzero(np.isin(y, classes))
    rows = rows[np.argsort(y[rows], kind="stable")]
    present, starts = np.unique(y[rows], return_index=True)
    points = X[rows] if not covariance.recognised else place(X, covariance.length_scale, origin, rows)
    own_weights = None if weights is None else weights[rows].astype(X.dtype, copy=False)
    return Group(covariance, present, starts, rows, points, own_weights)


def class_sums(
    training: TrainingPoints, X, *, leave_out: NDArray | None = None, n_jobs: int | None = None
) -> ClassSums:
    """Sum covariances between each row of X and the training points, class by class.

    Parameters
    ----------
    training : TrainingPoints
    X : array or CSR array of shape (n, d)
    leave_out : array of shape (n,), optional
        For each row of X, the training row that must not count, whatever its weight: leave-one-out.
    n_jobs : int, optional
        Threads; None for as many as a matrix product would take.
    """
    values = np.zeros((X.shape[0], training.n_classes))
    faint, wrong = np.ones(X.shape[0], dtype=bool), np.zeros(X.shape[0], dtype=bool)
    for group in training.groups:
        queries = training.place(group, X)
        normalised = _group_sums(training, group, queries, leave_out, n_jobs)
        values[:, group.classes] = normalised * group.covariance.variance
        faint &= group.covariance.recognised & (normalised.max(axis=1) < FAINT[X.dtype.name])
        if group.covariance.recognised:
            wrong |= product_error(queries, group.points) > TOLERABLE
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), -np.inf)
    doubtful = np.flatnonzero(faint | wrong)
    if doubtful.size:
        left = None if leave_out is None else leave_out[doubtful]
        logs[doubtful] = _careful_log_sums(training, X[doubtful], logs[doubtful], left, n_jobs)
        values[doubtful] = np.exp(np.minimum(logs[doubtful], 700))
    return ClassSums(values, logs)


def _group_sums(training, group: Group, queries, leave_out, n_jobs) -> NDArray:
    """Class sums over one group with unit variance, shape (n, number of classes in the group)."""
    n, columns, dtype = queries.shape[0], len(group.rows), queries.dtype
    threads = blocks.n_threads(n_jobs)
    step, width = blocks.tile_shape(n, columns, dtype.itemsize, threads)
    own_column = columns_of(group, training, leave_out)
    sums = np.zeros((n, len(group.classes)))

    def work(rows: slice) -> None:
        buffer = None if not group.covariance.recognised else np.empty((rows.stop - rows.start) * width, dtype)
        for start in range(0, columns, width):
            stop = min(start + width, columns)
            tile = _tile(group, queries[rows], start, stop, buffer)
            if own_column is not None:
                cross_out(tile, own_column[rows], start, stop, 0)
            group.add_segment_sums(tile, start, sums[rows])

    blocks.over_rows(work, n, step, threads)
    if group.covariance.recognised:
        _remove_floor(group, sums, dtype)
    return sums


def _tile(group: Group, queries, start: int, stop: int, buffer) -> NDArray:
    """Kernel values of some queries against columns start:stop, with unit variance where it is known."""
    if not group.covariance.recognised:
        return np.array(group.covariance.kernel(queries, group.points[start:stop]))
    out = buffer[: len(queries) * (stop - start)].reshape(len(queries), stop - start)
    return group.covariance.floored_profile(sq_distances(queries, group.points[start:stop], out))


def _remove_floor(group: Group, sums: NDArray, dtype) -> None:
    """Take back what kernel values gained by being kept above the smallest normal number."""
    totals = np.zeros((1, len(group.classes)))
    group.add_segment_sums(np.ones((1, len(group.rows))), 0, totals)
    totals *= profile_floor(dtype.name)
    sums -= totals
    sums[sums < totals] = 0


def columns_of(group: Group, training: TrainingPoints, leave_out) -> NDArray | None:
    """Column that holds the left-out training row of each query; -1 when it is in another group."""
    if leave_out is None:
        return None
    column = np.full(training.X.shape[0], -1)
    column[group.rows] = np.arange(len(group.rows))
    return column[leave_out]


def cross_out(tile: NDArray, own_column: NDArray, start: int, stop: int, value) -> None:
    """Write `value`, one or a column of them, where a query meets the training row it must leave out."""
    rows = np.flatnonzero((own_column >= start) & (own_column < stop))
    if rows.size:
        tile[rows, own_column[rows] - start] = value if np.isscalar(value) else value[rows, 0]


def _careful_log_sums(training: TrainingPoints, X, logs: NDArray, leave_out, n_jobs) -> NDArray:
    """Log class sums relative to each class's nearest point, in double precision: nothing underflows.

    `logs` are the sums so far; those over kernels that are called stay as they are.
    """
    threads = blocks.n_threads(n_jobs)
    for group in training.groups:
        if not group.covariance.recognised:
            continue
        queries = training.place(group, X.astype(np.float64))
        own_column = columns_of(group, training, leave_out)

        def work(rows: slice, group=group, queries=queries, own_column=own_column) -> None:
            own = None if own_column is None else own_column[rows]
            logs[rows, group.classes] = _log_sums(training, group, X[rows], queries[rows], own)

        step = blocks.whole_rows(X.shape[0], len(group.rows), 8, threads, copies=6)
        blocks.over_rows(work, X.shape[0], step, threads)
    return logs


def _log_sums(training: TrainingPoints, group: Group, X, queries: Points, own_column) -> NDArray:
    """Log class sums of a block of queries over one group, by log-sum-exp."""
    columns = len(group.rows)
    d2 = np.empty((len(queries), columns))
    for start in range(0, columns, blocks.COLUMNS):
        stop = min(start + blocks.COLUMNS, columns)
        d2[:, start:stop] = sq_distances(queries, group.points[start:stop].astype(np.float64))
    if own_column is not None:
        cross_out(d2, own_column, 0, columns, np.inf)
    logs = _sharp_log_kernel(training, group, X, queries, d2)
    if own_column is not None:
        cross_out(logs, own_column, 0, columns, -np.inf)
    tops = np.maximum.reduceat(logs, group.starts, axis=1)
    tops[np.isneginf(tops)] = 0
    logs -= np.repeat(tops, group.sizes, axis=1)
    sums = np.zeros(tops.shape)
    group.add_segment_sums(np.exp(logs, out=logs), 0, sums)
    with np.errstate(divide="ignore"):
        return np.log(sums) + tops + np.log(group.covariance.variance)


def _sharp_log_kernel(training, group: Group, X, queries: Points, d2: NDArray) -> NDArray:
    """Log kernel values, with the distances that decide taken again by subtraction where rounding could matter.

    Far from the origin, in units of a short length scale, the product form of a squared distance may be wrong by more
    than the gap between the nearest and the second nearest point.
    """
    error = product_error(queries, group.points)
    unsure = np.flatnonzero(error > NEGLIGIBLE)
    with np.errstate(invalid="ignore"):  # the infinite distance of a left-out point, crossed out by the caller
        logs = group.covariance.log_profile(d2.copy())
    if unsure.size:
        at, columns = np.nonzero(_contenders(group, d2[unsure], logs[unsure], error[unsure, None]))
        scale = group.covariance.length_scale
        exact = pair_sq_distances(X, unsure[at], training.X, group.rows[columns], scale)
        logs[unsure[at], columns] = group.covariance.log_profile(exact)
    return logs


def _contenders(group: Group, d2: NDArray, logs: NDArray, error: NDArray) -> NDArray:
    """Which points may count in the sum of their class: possibly the nearest, or not negligible beside it."""
    nearest = np.minimum.reduceat(d2, group.starts, axis=1)
    contenders = d2 <= np.repeat(nearest + 2 * error, group.sizes, axis=1)
    tops = np.fmax.reduceat(logs, group.starts, axis=1)
    contenders |= logs >= np.repeat(tops - NATS_APART, group.sizes, axis=1)
    return contenders & np.isfinite(d2)
