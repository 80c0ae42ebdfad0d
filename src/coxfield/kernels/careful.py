"""Logarithms of radial covariances in double precision, right where it counts.

At a short length scale every kernel value underflows, but its logarithm does not. There is a second problem far from
the origin, in units of a short length scale. There the product form of a squared distance may be wrong by more than
the gap between the nearest and the second nearest point. The distances that decide are then computed again by
subtraction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils import gen_batches

from coxfield.kernels.distances import capped, pair_sq_distances, product_error, sq_distances
from coxfield.kernels.leave_out import cross_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.distances import Points
    from coxfield.kernels.scaled import ScaledPoints

NEGLIGIBLE = 1e-6  # an error in a log kernel value that makes no visible difference
NATS_APART = 40.0  # a kernel value exp(-40) times the largest does not move a double-precision sum
COLUMNS = 2048  # columns that are converted to double precision at a time


def log_tile(rows: ScaledPoints, columns: ScaledPoints, groups, leave_out: NDArray | None) -> NDArray:
    """See `Bound.log_tile`."""
    queries = rows.in_double()
    d2 = _by_products(queries, columns)
    if leave_out is not None:  # so that no point is its own nearest neighbour
        cross_out(d2, leave_out, 0, np.inf)
    unsure = np.flatnonzero(product_error(queries, columns.points) > NEGLIGIBLE)
    profile = rows.covariance.profile
    with np.errstate(invalid="ignore"):  # the infinite distance of a left-out point, crossed out below
        logs = profile.log_of(d2.copy())
        if unsure.size and groups is None:
            logs[unsure] = profile.log_of(_by_subtraction(rows[unsure], columns))
        elif unsure.size:
            _sharpen(rows, columns, groups, unsure, d2, logs, product_error(queries, columns.points))
    logs += np.log(rows.covariance.variance)
    if leave_out is not None:
        cross_out(logs, leave_out, 0, -np.inf)
    return logs


def precise_sq_distances(rows: ScaledPoints, columns: ScaledPoints) -> NDArray:
    """Squared distances in double precision, by subtraction for points where the product form is too coarse."""
    queries = rows.in_double()
    d2 = _by_products(queries, columns)
    unsure = np.flatnonzero(product_error(queries, columns.points) > NEGLIGIBLE)
    if unsure.size:
        d2[unsure] = _by_subtraction(rows[unsure], columns)
    return d2


def _by_products(queries: Points, columns: ScaledPoints) -> NDArray:
    d2 = np.empty((len(queries), len(columns)))
    for part in gen_batches(len(columns), COLUMNS):
        d2[:, part] = sq_distances(queries, columns.points[part].astype(np.float64))
    return d2


def _sharpen(rows: ScaledPoints, columns: ScaledPoints, groups, unsure, d2, logs, error) -> None:
    """Compute again the distances that count in the sum of their group of columns."""
    contenders = _contenders(groups, d2[unsure], logs[unsure], error[unsure, None])
    at, of_columns = np.nonzero(contenders)
    scale = rows.covariance.length_scale
    exact = pair_sq_distances(rows.X, rows.rows[unsure[at]], columns.X, columns.rows[of_columns], scale)
    logs[unsure[at], of_columns] = rows.covariance.profile.log_of(exact)


def _contenders(groups, d2: NDArray, logs: NDArray, error: NDArray) -> NDArray:
    """Whether each point may count in the sum of its group: it may be the nearest, or not negligible beside it."""
    contenders = np.zeros(d2.shape, dtype=bool)
    for group in groups:
        nearest = d2[:, group].min(axis=1, keepdims=True, initial=np.inf)
        tops = np.fmax.reduce(logs[:, group], axis=1, keepdims=True, initial=-np.inf)
        contenders[:, group] |= (d2[:, group] <= nearest + 2 * error) | (logs[:, group] >= tops - NATS_APART)
    return contenders & np.isfinite(d2)


def _by_subtraction(rows: ScaledPoints, columns: ScaledPoints) -> NDArray:
    """All squared distances between some points and others, without the cancellation of the product form."""
    a, b = rows.in_double().coordinates, columns.in_double().coordinates
    if not sparse.issparse(a) and np.isfinite(a).all() and np.isfinite(b).all():
        with np.errstate(over="ignore", invalid="ignore"):
            d2 = cdist(a, b, "sqeuclidean")
            if rows.points.stretch is not None:
                d2 += rows.points.stretch.astype(np.float64).added(a, b)
        return capped(d2)
    at, of_columns = np.divmod(np.arange(len(rows) * len(columns)), len(columns))
    scale = rows.covariance.length_scale
    d2 = pair_sq_distances(rows.X, rows.rows[at], columns.X, columns.rows[of_columns], scale)
    return d2.reshape(len(rows), len(columns))
