"""Log class sums in double precision, right where sums underflow or where rounding has spoilt distances.

`coxfield.kernels.careful` is the same for NumPy, and says why. Distances that decide are computed by subtraction.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from coxfield.arrays.points import pair_sq_distances, product_error, sq_distances
from coxfield.arrays.profiles import log_profile
from coxfield.arrays.tiles import crossed_out, slices, tile_shape, whole_rows
from coxfield.kernels.careful import NATS_APART, NEGLIGIBLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.arrays.points import ArrayPoints
    from coxfield.arrays.store import ArrayGroup


def careful_log_sums(group: ArrayGroup, queries: ArrayPoints, own: NDArray | None) -> Any:
    """Log class sums of some points, relative to the nearest point of each class, so that nothing underflows."""
    queries, step = queries.in_double(), whole_rows(group.library, len(group.rows), 8)
    return group.library.xp.concat(
        [_log_sums(group, queries[some], None if own is None else own[some]) for some in slices(len(queries), step)]
    )


def _log_sums(group: ArrayGroup, queries: ArrayPoints, own: NDArray | None) -> Any:
    library, covariance = group.library, group.points.covariance
    xp, weights = library.xp, library.array(group.weights.astype(float))
    logs = _log_tile(group, queries, own)
    sums = [_log_sum(logs[:, columns], weights[columns], xp) for columns in group.segments]
    return xp.stack(sums, axis=1) + math.log(covariance.variance)


def _log_tile(group: ArrayGroup, queries: ArrayPoints, own: NDArray | None) -> Any:
    """Logarithms of all covariances of unit variance, -inf where a point must be left out."""
    library, profile = group.library, group.points.covariance.profile
    xp, infinity = library.xp, float("inf")
    d2 = crossed_out(_by_products(queries, group), own, 0, infinity, library)
    logs = crossed_out(log_profile(profile, xp.asarray(d2, copy=True), library), own, 0, -infinity, library)
    error = product_error(queries, group.points)
    unsure = error > NEGLIGIBLE
    if not bool(xp.any(unsure)):
        return logs
    contenders = _contenders(group.segments, d2, logs, error[:, None], xp) & unsure[:, None]
    rows, columns = xp.nonzero(contenders)
    if rows.shape[0]:
        logs[contenders] = log_profile(profile, pair_sq_distances(queries, rows, group.points, columns), library)
    return logs


def _by_products(queries: ArrayPoints, group: ArrayGroup) -> Any:
    """Squared distances in double precision, by products of matrices."""
    _, width = tile_shape(group.library, len(group.rows), 8)
    tiles = [sq_distances(queries, group.points[some].in_double()) for some in slices(len(group.rows), width)]
    return group.library.xp.concat(tiles, axis=1)


def _contenders(segments: list[slice], d2, logs, error, xp) -> Any:
    """Whether each point may count in the sum of its class: it may be the nearest, or not negligible beside it."""
    found = []
    for columns in segments:
        nearest = xp.min(d2[:, columns], axis=1, keepdims=True)
        top = xp.max(logs[:, columns], axis=1, keepdims=True)
        found.append((d2[:, columns] <= nearest + 2 * error) | (logs[:, columns] >= top - NATS_APART))
    return xp.concat(found, axis=1) & xp.isfinite(d2)


def _log_sum(logs, weights, xp) -> Any:
    """Log of the weighted sum of exp(logs) along each row, without underflow."""
    top = xp.max(logs, axis=1)
    top = xp.where(xp.isinf(top), 0.0, top)
    return xp.log(xp.exp(logs - top[:, None]) @ weights) + top
