"""A ladder of length scales from one matrix of distances.

A block of distances is computed once and read for every length scale. For the squared exponential the kernel at length
scale l / sqrt(2) is the elementwise square of the kernel at l. On a grid of that ratio most length scales cost a
multiplication per entry instead of an exponential. Each row is taken relative to its nearest other point, so that no
value that counts underflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from coxfield.kernels.careful import precise_sq_distances
from coxfield.kernels.distances import capped, sq_distances
from coxfield.kernels.leave_out import cross_out
from coxfield.kernels.profiles import SquaredExponential
from coxfield.kernels.sklearn_tree import free_length_scales

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.kernels.profiles import Profile
    from coxfield.kernels.protocol import Bound, Sink
    from coxfield.kernels.scaled import RadialForm, ScaledPoints

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
