"""A ladder of length scales from one matrix of distances.

A block of distances is computed once and read for every length scale. For the squared exponential the kernel at length
scale l / sqrt(2) is the elementwise square of the kernel at l. On a grid of that ratio most length scales cost a
multiplication per entry instead of an exponential. Each row is taken relative to its nearest other point, so that no
value that counts underflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils import gen_batches

from coxfield.kernels.distances import capped, pair_sq_distances, product_error, sq_distances
from coxfield.kernels.profiles import SquaredExponential
from coxfield.kernels.protocol import cross_out
from coxfield.kernels.sklearn_tree import free_length_scales

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.kernels.distances import Points, RadialForm, ScaledPoints
    from coxfield.kernels.profiles import Profile
    from coxfield.kernels.protocol import Bound, Sink, Summing


# What most bound points do alike: class sums from one tile, and no trace of a point that was left out.


class PlainBound:
    """What only covariances that are learned, held or listed need to write themselves; see `Bound`."""

    held = False

    @property
    def erasable(self) -> bool:
        """No."""
        return False

    def alone(self) -> Self:
        """The points themselves: they hold no other rows."""
        return self

    def erase(self, rows: NDArray) -> None:
        """Not possible: a covariance may be asked for any of its points."""
        raise NotImplementedError

    def links(self) -> sparse.csr_array | None:
        """None, because any two points may have a covariance that is not 0."""
        return None

    def left_out(self, rows: NDArray) -> Self:
        """The points unchanged: nothing in the covariance was learned from the rows."""
        return self

    def rungs(self: Any, columns: Any, factors: NDArray, out: NDArray | None = None) -> Iterator[NDArray]:
        """One factor after the other: the length scales share no work."""
        for factor in factors:
            yield self.rescaled(factor).tile(columns.rescaled(factor))

    def log_rungs(self: Any, columns: Any, factors: NDArray) -> Iterator[NDArray]:
        """One factor after the other."""
        for factor in factors:
            yield self.rescaled(factor).log_tile(columns.rescaled(factor))

    def pair_rungs(self: Any, rows: NDArray, columns: Any, of_columns: NDArray, factors: NDArray) -> Iterator[NDArray]:
        """One factor after the other."""
        for factor in factors:
            yield self.rescaled(factor).pairs(rows, columns.rescaled(factor), of_columns)

    def summing(self, columns: Any, weights: Any) -> Summing:
        """One layer of sums, from one tile."""
        return PlainSums(self, columns, weights)  # type: ignore[arg-type]


@dataclass(frozen=True)
class PlainSums:
    """Class sums of one covariance; `Summing` says what the methods are for."""

    rows: Bound
    columns: Bound
    weights: Any
    layers = 1
    tiled = True

    def add(self, some: slice, part: slice, own: NDArray | None, room: NDArray, sums: NDArray) -> NDArray:
        """One tile, and its product with the weights."""
        tile = self.rows[some].tile(self.columns[part], room)
        if own is not None:
            cross_out(tile, own[some], part.start, 0)
        self.weights.add(tile, part.start, sums[0])
        return tile

    def total(self, sums: NDArray) -> NDArray:
        """The only layer, without what the floor has added."""
        found = sums[0]
        remove_floor(found, self.columns.floor, self.weights.totals)
        return found


def remove_floor(sums: NDArray, floor: float, totals: NDArray) -> None:
    """Subtract what the floor of the tiles has added to sums over classes; what is left below that is 0."""
    if floor:
        gained = floor * totals
        sums -= gained
        sums[sums < gained] = 0


# Logarithms of radial covariances in double precision, right where it counts.
#
# At a short length scale every kernel value underflows, but its logarithm does not. There is a second problem far from
# the origin, in units of a short length scale. There the product form of a squared distance may be wrong by more than
# the gap between the nearest and the second nearest point. The distances that decide are then computed again by
# subtraction.


NEGLIGIBLE = 1e-6  # an error in a log kernel value that makes no visible difference
NATS_APART = 40.0  # a kernel value exp(-40) times the largest does not move a double-precision sum
CONVERTED = 2048  # columns that are converted to double precision at a time


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
    for part in gen_batches(len(columns), CONVERTED):
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


RATIO = float(np.sqrt(2))
COLUMNS = 2048  # columns of a tile
MOST_SQUARES = 3  # as many squares cost about as much as an exponential
SPARSE = 1 / 64  # if a smaller share of the kernel values is left, these values are picked out


@dataclass(frozen=True)
class Squaring:
    """How far a chain of squares may go in one precision."""

    chain: int
    """Squares before a new exponential; each square doubles the relative error."""
    floor: float
    """Kernel values, relative to that of the nearest point, are kept above this. It is negligible beside 1, and
    arithmetic on subnormal numbers is a hundred times slower."""
    refloor: int
    """Squares after which values are raised to the floor again, before floor^(2^refloor) underflows."""


SQUARING = {"float32": Squaring(4, 1e-18, 1), "float64": Squaring(8, 1e-38, 3)}


def walk(rows: ScaledPoints, columns: ScaledPoints, factors: NDArray, leave_out: NDArray, sink: Sink) -> NDArray:
    """See `Bound.walk`. It is fastest from long to short and where each factor is the last one divided by sqrt(2)."""
    if not free_length_scales(rows.covariance.kernel):  # length scales that the user has fixed stay
        factors = np.ones(len(factors))
    tiles, nearest = _distance_tiles(rows, columns, leave_out)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        tops = rows.covariance.profile.log_of(capped(nearest / np.square(factors)[:, None]))
    steps = _Steps(rows.covariance.profile, factors, squares_of_last(rows.covariance.profile, factors), tops)
    for start, d2 in tiles:
        _walk_tile(steps, start, d2, leave_out, sink)
    return tops + np.log(rows.covariance.variance)


def walk_one_by_one(rows: Bound, columns: Bound, factors: NDArray, leave_out: NDArray, sink: Sink) -> NDArray:
    """`Bound.walk` for a covariance whose length scales share no work: each factor gives a separate covariance."""
    tops = np.empty((len(factors), len(rows)))
    for k, factor in enumerate(factors):
        logs = rows.rescaled(factor).log_tile(columns.rescaled(factor), leave_out=leave_out)
        top = logs.max(axis=1, initial=-np.inf)
        tops[k] = np.where(np.isneginf(top), 0, top)
        sink.add(k, 0, np.exp(logs - tops[k][:, None]))
    return tops


def room_for(rows: ScaledPoints, columns: ScaledPoints, room: NDArray | None) -> NDArray | None:
    """The part of an array that a tile needs; None if the array cannot be used."""
    if room is None or room.dtype != rows.dtype:
        return None
    return room.ravel()[: len(rows) * len(columns)].reshape(len(rows), len(columns))


def rungs(rows: ScaledPoints, columns: ScaledPoints, factors: NDArray, out: NDArray | None, floor: float) -> Iterator:
    """See `Bound.rungs`; where a length scale is a power of sqrt(2) shorter than the last, squares do."""
    if not free_length_scales(rows.covariance.kernel):
        factors = np.ones(len(factors))
    profile = rows.covariance.profile
    d2 = sq_distances(rows.points, columns.points, room_for(rows, columns, out))
    tile = d2 if len(factors) == 1 else np.empty_like(d2)
    chain = 0
    for k, factor in enumerate(factors):
        squares = _squares(profile, factors[k - 1] / factor) if k else None
        if squares is not None and chain + squares <= SQUARING[d2.dtype.name].chain:
            for _ in range(squares):
                np.square(tile, out=tile)
                np.maximum(tile, floor, out=tile)
            chain += squares
        else:
            _at_factor(d2, factor, tile)
            rows.covariance.floored_profile(tile)
            chain = 0
        yield tile


def log_rungs(rows: ScaledPoints, columns: ScaledPoints, factors: NDArray) -> Iterator[NDArray]:
    """See `Bound.log_rungs`: all logarithms from one matrix of distances."""
    if not free_length_scales(rows.covariance.kernel):
        factors = np.ones(len(factors))
    d2 = precise_sq_distances(rows, columns)
    for factor in factors:
        scaled = _at_factor(d2, factor, np.empty_like(d2))
        yield rows.covariance.profile.log_of(scaled) + np.log(rows.covariance.variance)


def pair_rungs(covariance: RadialForm, d2: NDArray, factors: NDArray) -> Iterator[NDArray]:
    """See `Bound.pair_rungs`: all values from the squared distances of listed pairs."""
    if not free_length_scales(covariance.kernel):
        factors = np.ones(len(factors))
    for factor in factors:
        scaled = _at_factor(d2, factor, np.empty_like(d2))
        yield covariance.variance * np.exp(covariance.profile.log_of(scaled))


def _squares(profile: Profile, ratio: float) -> int | None:
    """How many squares make the kernel of a length scale shorter by `ratio`, None if that is no power of sqrt(2)."""
    count = round(2 * np.log2(ratio)) if ratio > 1 else 0
    exact = isinstance(profile, SquaredExponential) and np.isclose(ratio, RATIO**count, rtol=1e-12)
    return count if exact and 1 <= count <= MOST_SQUARES else None


@dataclass(frozen=True)
class _Steps:
    """What is the same for all tiles of a walk."""

    profile: Profile
    factors: NDArray
    squared: NDArray
    """Whether the kernel of each factor is the square of the one before."""
    tops: NDArray
    """Logarithm of the largest value of each row, for each factor."""

    @property
    def shortening(self) -> NDArray:
        """Whether no later length scale is longer, so that a value that has vanished stays 0."""
        return self.factors >= np.maximum.accumulate(self.factors[::-1])[::-1]


def squares_of_last(profile: Profile, factors: NDArray) -> NDArray:
    """Whether the kernel of each factor is the square of the one before."""
    squared = np.zeros(len(factors), dtype=bool)
    if isinstance(profile, SquaredExponential):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # far apart, or 0 in units of the first
            squared[1:] = np.isclose(factors[:-1] / factors[1:], RATIO, rtol=1e-12)
    return squared


def _distance_tiles(rows: ScaledPoints, columns: ScaledPoints, leave_out: NDArray):
    """Squared distances as (first column, tile) pairs, and the distance to the nearest other point."""
    tiles = []
    nearest = np.full(len(rows), np.inf)
    for part in gen_batches(len(columns), COLUMNS):
        d2 = sq_distances(rows.points, columns.points[part])
        cross_out(d2, leave_out, part.start, np.inf)
        np.minimum(nearest, d2.min(axis=1), out=nearest)
        tiles.append((part.start, d2))
    nearest[np.isinf(nearest)] = 0
    for start, d2 in tiles:  # anything finite: the kernel value is crossed out later
        cross_out(d2, leave_out, start, nearest)
    return tiles, nearest


def _walk_tile(steps: _Steps, start: int, d2: NDArray, leave_out: NDArray, sink: Sink) -> None:
    """Hand one tile to the sink, for one factor after another.

    Kernel values are relative to exp(tops), the value of the nearest point. Towards short length scales nearly all of
    them vanish. The few that are left are then picked out, and the rest of the tile is not visited again.
    """
    tile, limits, squares = np.empty_like(d2), SQUARING[d2.dtype.name], 0
    shortening = steps.shortening
    for k in range(len(steps.factors)):
        if steps.squared[k] and squares < limits.chain:
            np.square(tile, out=tile)
            squares += 1
        else:
            _relative_kernel(steps, k, d2, steps.tops[k][:, None], out=tile)
            squares = 0
        if squares % limits.refloor == 0:
            np.maximum(tile, limits.floor, out=tile)
        cross_out(tile, leave_out, start, 0)
        sink.add(k, start, tile)
        if k % 3 == 2 and shortening[k] and np.count_nonzero(tile > limits.floor) < SPARSE * tile.size:
            _walk_entries(steps, k + 1, start, d2, tile > limits.floor, sink)
            return


def _relative_kernel(steps: _Steps, k: int, d2: NDArray, top: NDArray, out: NDArray) -> NDArray:
    """Kernel values at one factor, divided by exp(top) and kept above the floor."""
    _at_factor(d2, steps.factors[k], out)
    steps.profile.log_of(out)
    largest = np.finfo(d2.dtype).max
    out -= np.clip(top, -largest, largest).astype(d2.dtype)
    # None is above 0, up to rounding; but rounding is large where the nearest point is very far.
    np.clip(out, np.log(SQUARING[d2.dtype.name].floor), 1, out=out)
    return np.exp(out, out=out)


def _at_factor(d2: NDArray, factor: float, out: NDArray) -> NDArray:
    """Squared distances in units of the length scale times a factor; those beyond all numbers are very large."""
    with np.errstate(over="ignore", divide="ignore"):
        inverse = d2.dtype.type(np.minimum(np.float64(factor) ** -2.0, np.finfo(d2.dtype).max))
        np.multiply(d2, inverse, out=out)
        return capped(out) if inverse > 1 and not np.isfinite(out.max(initial=0)) else out


def _walk_entries(steps: _Steps, first: int, start: int, d2: NDArray, present: NDArray, sink: Sink) -> None:
    """Hand the few entries of a tile that are still present to the sink, for all the remaining factors."""
    at, columns = np.nonzero(present)
    near = d2[at, columns]
    for k in range(first, len(steps.factors)):
        values = _relative_kernel(steps, k, near, steps.tops[k][at], out=np.empty_like(near))
        sink.add_entries(k, at, columns + start, values)
