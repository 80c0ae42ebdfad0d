"""Leave-one-out class sums along a path of length scales, from one matrix of distances.

A block of distances is computed once and read for every length scale. For the squared exponential the kernel at length
scale l / sqrt(2) is the elementwise square of the kernel at l, so on a grid of that ratio most length scales cost a
multiplication an entry instead of an exponential. Each row is taken relative to its nearest other point: nothing
underflows that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn import get_config
from sklearn.utils import gen_batches

from coxfield.engine import tiles as blocks
from coxfield.engine.class_sums import arrange, class_sums, cross_out
from coxfield.kernels.covariance import free_length_scales, length_scale_bounds, recognise, rescale_length
from coxfield.kernels.points import Points, place, sq_distances
from coxfield.kernels.profiles import SquaredExponential

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.engine.class_sums import Group, TrainingPoints

RATIO = float(np.sqrt(2))
SPARSE = 1 / 64  # share of kernel values that have not vanished, below which they are worth picking out


@dataclass(frozen=True)
class Squaring:
    """How far a chain of squares may go in one precision."""

    chain: int
    """Squares before a fresh exponential: each doubles the relative error."""
    floor: float
    """Kernel values, relative to the nearest point's, are not let below this: it is nothing beside 1, and arithmetic on
    numbers that underflow is a hundred times slower."""
    refloor: int
    """Squares after which the floor is laid again, before floor^(2^refloor) underflows."""


SQUARING = {"float32": Squaring(4, 1e-18, 1), "float64": Squaring(8, 1e-38, 3)}


def candidate_factors(training: TrainingPoints, kernels, length_scales, *, bounded: bool) -> NDArray:
    """The factors to try for the length scales, longest first.

    Parameters
    ----------
    training : TrainingPoints
    kernels : list of kernels
        The different kernels in use; at least one must have a length scale that is not fixed.
    length_scales : array-like or None
        What the user asks for; None for `default_factors`.
    bounded : bool
        Whether the default is cut to the bounds of the kernels.
    """
    if not any(map(free_length_scales, kernels)):
        raise ValueError(
            f"there is no length scale to choose: {kernels[0]!r} has none that is free; give selection=None"
        )
    if length_scales is not None:
        factors = np.asarray(length_scales, dtype=float)
        if factors.ndim != 1 or not factors.size or not (np.isfinite(factors) & (factors > 0)).all():
            raise ValueError(f"length_scales must be a list of positive finite numbers, got {length_scales!r}")
        return np.sort(factors)[::-1]
    factors = default_factors(training)
    inside = within_bounds(factors, kernels) if bounded else factors
    if not inside.size:
        raise ValueError(
            f"no length scale to try: the data suggest factors of {factors[-1]:.3g} to {factors[0]:.3g}, outside the "
            f"bounds of {kernels[0]!r}; widen length_scale_bounds or give length_scales"
        )
    return inside


def finer_factors(best: float, kernels, *, bounded: bool) -> NDArray:
    """Factors between the best of the default grid and its two neighbours, spaced by 2^(1/8).

    In pairs of ratio sqrt(2), of which the second costs only a square.
    """
    steps = np.array([3, -1, 2, -2, 1, -3])
    factors = best * 2 ** (steps / 8)
    return within_bounds(factors, kernels) if bounded else factors


def within_bounds(factors: NDArray, kernels) -> NDArray:
    """The factors that keep the length scales of all kernels within their bounds."""
    low, high = np.array([length_scale_bounds(kernel) for kernel in kernels]).T
    return factors[(factors >= low.max()) & (factors <= high.min())]


def default_factors(training: TrainingPoints, count: int = 24) -> NDArray:
    """Factors for the length scale, from twice the root mean square distance downwards by sqrt(2).

    Twice the typical distance is nearly flat (the largest class wins), and a 1500th of it is nearest neighbour on any
    data we have met. The rule is equivariant to the units of X and does not notice repeated or reordered rows.
    """
    spread = max(_mean_sq_distance(group) for group in training.groups)
    if not spread > 0:
        raise ValueError("all points are the same, so there is no length scale to choose: give selection=None")
    return 2 * np.sqrt(spread) * RATIO ** -np.arange(count)


def _mean_sq_distance(group: Group) -> float:
    """Mean of |z - z'|^2 over all pairs, in units of the length scale: twice the total variance."""
    points = group.points
    if not isinstance(points, Points):
        points = place(points, _typical_length_scale(group.covariance.kernel), points.mean(axis=0))
    weights = np.ones(len(points)) if group.weights is None else group.weights
    total = weights.sum(dtype=float)
    centre = (points.coordinates.T @ weights) / total
    return 2 * float(max(weights @ points.sq_norms / total - centre @ centre, 0))


def _typical_length_scale(kernel) -> float:
    params = kernel.get_params()
    return float(np.exp(np.mean([np.log(params[name]).mean() for name in free_length_scales(kernel)])))


def loo_log_sums(training: TrainingPoints, factors: NDArray, n_jobs=None, done=None) -> Iterator[NDArray]:
    """Leave-one-out log class sums for each factor of the length scale, arrays of shape (n, n_classes).

    It is fastest from long to short, and where a factor is 1 / sqrt(2) of the one before.

    Factors are taken a few at a time, so that what is held stays within scikit-learn's `working_memory`. `done(rows)`
    hears of progress: over the whole path it is told n times the number of `passes`.
    """
    shared = len(training.groups) == 1 and training.groups[0].covariance.recognised
    if not shared:
        yield from _one_by_one(training, factors, n_jobs, done)
        return
    batch = batch_size(training)
    for start in range(0, len(factors), batch):
        yield from _path(training, factors[start : start + batch], n_jobs, done)


def batch_size(training: TrainingPoints) -> int:
    """How many length scales a pass over the distances may serve."""
    one = training.X.shape[0] * training.n_classes * 8
    return max(1, int(get_config()["working_memory"] * 2**20 / 2) // one)


def passes(training: TrainingPoints, n_factors: int) -> int:
    """How many passes over all pairs `loo_log_sums` makes."""
    shared = len(training.groups) == 1 and training.groups[0].covariance.recognised
    return -(-n_factors // batch_size(training)) if shared else n_factors


def _one_by_one(training: TrainingPoints, factors, n_jobs, done) -> Iterator[NDArray]:
    """Class-specific or unrecognised kernels share no distances: one pass a length scale."""
    n, d = training.X.shape
    for factor in factors:
        covariances: list = [None] * training.n_classes
        for group in training.groups:
            scaled = recognise(rescale_length(group.covariance.kernel, factor), d)
            for label in group.classes:
                covariances[label] = scaled
        rescaled = arrange(training.X, training.y, covariances, training.weights)
        sums = class_sums(rescaled, training.X, leave_out=np.arange(n), n_jobs=n_jobs)
        if (sums.values < 0).any():
            raise ValueError(
                "leave-one-out selection needs a covariance without negative values, and "
                f"{training.groups[0].covariance.kernel!r} has some: give selection=None"
            )
        if done is not None:
            done(n)
        yield sums.logs


def _path(training: TrainingPoints, factors: NDArray, n_jobs, done) -> NDArray:
    """All length scales from one pass over the pairs, shape (len(factors), n, n_classes)."""
    (group,) = training.groups
    n = len(group.rows)
    threads = blocks.n_threads(n_jobs)
    itemsize = group.points.dtype.itemsize
    squared = _squared(group, factors)
    logs = np.empty((len(factors), n, training.n_classes))

    def work(rows: slice) -> None:
        logs[:, group.rows[rows], :] = _block_path(group, rows, factors, squared)

    blocks.over_rows(work, n, blocks.whole_rows(n, n, itemsize, threads), threads, done)
    logs += np.log(group.covariance.variance)
    return logs


def _squared(group: Group, factors: NDArray) -> NDArray:
    """Which factors' kernels are squares of the ones before."""
    squared = np.zeros(len(factors), dtype=bool)
    if isinstance(group.covariance.profile, SquaredExponential):
        squared[1:] = np.isclose(factors[:-1] / factors[1:], RATIO, rtol=1e-12)
    return squared


def _block_path(group: Group, rows: slice, factors: NDArray, squared: NDArray) -> NDArray:
    """Leave-one-out log class sums of a block of sorted points for every factor."""
    own = np.arange(rows.start, rows.stop)
    tiles, nearest = _distance_tiles(group, rows, own)
    tops = group.covariance.log_profile(nearest.astype(float) / np.square(factors)[:, None, None])
    sums = np.zeros((len(factors), len(own), len(group.classes)))
    for start, d2 in tiles:
        _add_tile_path(group, start, d2, own, tops, factors, squared, sums)
    with np.errstate(divide="ignore"):
        return np.log(sums) + tops


def _distance_tiles(group: Group, rows: slice, own: NDArray):
    """Squared distances of some sorted points to all, as (first column, tile) pairs, and to the nearest other."""
    tiles = []
    nearest = np.full((len(own), 1), np.inf)
    for columns in gen_batches(len(group.rows), blocks.COLUMNS):
        d2 = sq_distances(group.points[rows], group.points[columns])
        cross_out(d2, own, columns.start, columns.stop, np.inf)
        np.minimum(nearest, d2.min(axis=1, keepdims=True), out=nearest)
        tiles.append((columns.start, d2))
    nearest[np.isinf(nearest)] = 0
    for start, d2 in tiles:  # anything finite: the kernel value is crossed out later
        cross_out(d2, own, start, start + d2.shape[1], nearest)
    return tiles, nearest


def _add_tile_path(group: Group, start, d2, own, tops, factors, squared, sums) -> None:
    """Add the class sums of one tile to `sums`, for one factor after another.

    Kernel values are relative to exp(tops), the nearest point's. Towards short length scales nearly all of them vanish:
    the few that do not are then picked out, and the rest of the tile is left alone.
    """
    tile, limits, squares = np.empty_like(d2), SQUARING[d2.dtype.name], 0
    # What has vanished stays so as long as no longer length scale comes after.
    shortening = factors >= np.maximum.accumulate(factors[::-1])[::-1]
    for k in range(len(factors)):
        if squared[k] and squares < limits.chain:
            np.square(tile, out=tile)
            squares += 1
        else:
            _relative_kernel(group, d2, factors[k], tops[k], out=tile)
            squares = 0
        if squares % limits.refloor == 0:
            np.maximum(tile, limits.floor, out=tile)
        cross_out(tile, own, start, start + d2.shape[1], 0)
        group.add_segment_sums(tile, start, sums[k])
        if k % 3 == 2 and shortening[k] and np.count_nonzero(tile > limits.floor) < SPARSE * tile.size:
            _add_sparse_path(group, start, d2, tile > limits.floor, tops[k + 1 :], factors[k + 1 :], sums[k + 1 :])
            return


def _relative_kernel(group: Group, d2, factor: float, top, out) -> NDArray:
    """Kernel values at one factor, divided by exp(top) and kept from underflow."""
    np.multiply(d2, d2.dtype.type(factor**-2.0), out=out)
    group.covariance.log_profile(out)
    out -= top.astype(d2.dtype)
    np.maximum(out, np.log(SQUARING[d2.dtype.name].floor), out=out)
    return np.exp(out, out=out)


def _add_sparse_path(group: Group, start, d2, present, tops, factors, sums) -> None:
    """Add the class sums of the few entries of a tile that are still present, for all the remaining factors."""
    at, columns = np.nonzero(present)
    segment = np.searchsorted(group.starts, columns + start, side="right") - 1
    weights = 1.0 if group.weights is None else group.weights[columns + start]
    near = d2[at, columns]
    for k, factor in enumerate(factors):
        values = _relative_kernel(group, near, factor, tops[k, at, 0], out=np.empty_like(near)) * weights
        cells = np.bincount(at * sums.shape[2] + segment, values, minlength=sums[k].size)
        sums[k] += cells.reshape(sums[k].shape)
