"""Class sums in any array library: tile by tile, with rows that are faint or imprecise taken again with care.

`coxfield.engine.class_sums` is the same for NumPy, and says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.arrays.library import Library, to_numpy
from coxfield.arrays.points import (
    capped,
    crossed_out,
    log_profile,
    pair_sq_distances,
    product_error,
    slices,
    sq_distances,
    tile_shape,
    whole_rows,
)
from coxfield.arrays.store import store_arrays
from coxfield.kernels.distances import TOLERABLE
from coxfield.kernels.ladder import NATS_APART, NEGLIGIBLE, SQUARING, squares_of_last
from coxfield.kernels.radial import FAINT, log_floor, profile_floor
from coxfield.kernels.sklearn_tree import free_length_scales
from coxfield.selection.loo import in_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.arrays.points import ArrayPoints
    from coxfield.arrays.store import ArrayGroup, ArrayStore, Block
    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass


# Log class sums in double precision, right where sums underflow or where rounding has spoilt distances.
#
# `coxfield.kernels.ladder` is the same for NumPy, and says why. Distances that decide are computed by subtraction.


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


@dataclass(frozen=True)
class ArraySums:
    """Class sums of a set of queries, shape (n, n_classes) each, in double precision."""

    values: Any
    logs: Any
    """log S, correct even where S itself underflows."""


def class_sums(store: ArrayStore, X, leave_out: NDArray | None = None) -> ArraySums:
    """Sum covariances between each row of X and the labelled points, class by class.

    Parameters
    ----------
    store : ArrayStore
    X : array of the same library and device, shape (n, d)
    leave_out : NumPy array of shape (n,), optional
        For leave-one-out: for each row of X, the row of the store that must not count, whatever its weight.
    """
    found = [_Summed.of(group, X, leave_out, store.n_rows) for group in store.groups]
    faint = found[0].faint
    for other in found[1:]:
        faint = faint & other.faint
    parts = [summed.taken_again(faint) for summed in found]
    return ArraySums(*(store.in_order([getattr(part, name) for part in parts]) for name in ("values", "logs")))


@dataclass(frozen=True)
class _Summed:
    """Class sums over one group, as the tiles give them."""

    group: ArrayGroup
    queries: ArrayPoints
    own: NDArray | None
    """For each query, the column that it must not see, -1 for none."""
    sums: Any
    """In units of the variance."""

    @classmethod
    def of(cls, group: ArrayGroup, X, leave_out: NDArray | None, n_rows: int) -> _Summed:
        queries = group.points.at(X)
        own = None if leave_out is None else group.columns_of(leave_out, n_rows)
        return cls(group, queries, own, _group_sums(group, queries, own))

    @property
    def faint(self) -> Any:
        """Whether every kernel value that counts is about to underflow."""
        return self.group.library.xp.max(self.sums, axis=1) < FAINT[self.queries.precision.name]

    def taken_again(self, faint) -> ArraySums:
        """The sums; those of rows that are faint, or imprecise in this group, are careful ones."""
        library = self.group.library
        xp = library.xp
        values = self.sums * self.group.points.covariance.variance
        logs = xp.where(values > 0, xp.log(values), -float("inf"))
        again = faint | (product_error(self.queries, self.group.points) > TOLERABLE)
        if bool(xp.any(again)):
            rows = xp.nonzero(again)[0]
            own = None if self.own is None else self.own[to_numpy(rows)]
            careful = careful_log_sums(self.group, self.queries.taken(rows), own)
            logs[again] = careful
            values[again] = xp.exp(xp.clip(careful, max=library.largest_log))
        return ArraySums(values, logs)


def _group_sums(group: ArrayGroup, queries: ArrayPoints, own: NDArray | None) -> Any:
    """Class sums over one group in units of the variance, shape (n, number of classes in the group)."""
    library, name = group.library, queries.precision.name
    height, width = tile_shape(library, len(group.rows), queries.precision.itemsize)
    blocks = group.blocks(width)
    sums = library.xp.concat(
        [
            _sums(group, queries[some], blocks, None if own is None else own[some])
            for some in slices(len(queries), height)
        ]
    )
    gained = group.totals[None, :] * profile_floor(name)  # what the floor of the tiles has added
    sums -= gained
    return library.xp.where(sums < gained, 0.0, sums)


def _sums(group: ArrayGroup, queries: ArrayPoints, blocks: list[Block], own: NDArray | None) -> Any:
    """Sums of so few queries that a tile of them and a block may be held."""
    library = group.library
    sums = library.zeros(len(queries), len(group.classes))
    for block in blocks:
        tile = _tile(queries, group.points[block.columns])
        tile = crossed_out(tile, own, block.columns.start, 0.0, library)
        sums[:, block.classes] += library.doubled(tile @ block.weights)
    return sums


def _tile(rows: ArrayPoints, columns: ArrayPoints) -> Any:
    """Covariances in units of the variance, never below the floor; `Radial.floored_profile` says why."""
    xp = rows.library.xp
    logs = log_profile(rows.covariance.profile, sq_distances(rows, columns), rows.library)
    return xp.exp(xp.clip(logs, min=log_floor(rows.precision.name)))


# Leave-one-out class sums along a path of length scales, in any array library.
#
# `coxfield.selection.loo` and `coxfield.kernels.ladder` are the same for NumPy, and say why. The sums of a length
# scale are one number per point and class. They come back as NumPy arrays, and the selection is the same as for NumPy.


def loo_log_sums(
    labelled: Labelled, covariances: PerClass, factors: NDArray, done: Callable[[float], None]
) -> Iterator[NDArray]:
    """Leave-one-out log class sums for each factor of the length scale; see `selection.loo_sums.loo_log_sums`."""
    unit, batches = in_batches(len(labelled), labelled.n_classes, factors)
    library = Library.of(labelled.X)
    store = store_arrays(labelled, covariances.map(lambda each: each.rescaled(length=unit)), library)
    for some in batches:
        logs = np.full((len(some), len(labelled), labelled.n_classes), -np.inf)
        for group in store.groups:
            _write_group(logs, labelled, group, some, done)
        yield from logs


def _write_group(logs: NDArray, labelled: Labelled, group: ArrayGroup, factors: NDArray, done) -> None:
    """Write the log sums over the points of one group."""
    own_group = len(group.rows) == len(labelled)  # then the points are at hand
    rows, points = (group.rows, group.points) if own_group else (np.arange(len(labelled)), group.points.at(labelled.X))
    own = group.columns_of(rows, len(labelled))
    itemsize = points.precision.itemsize
    _, width = tile_shape(group.library, len(group.rows), itemsize)
    walk = _Walk.of(group, factors, group.blocks(width))
    for some in slices(len(rows), whole_rows(group.library, len(group.rows), itemsize)):
        place = np.ix_(np.arange(len(factors)), rows[some], group.classes)
        logs[place] = to_numpy(walk.log_sums(points[some], own[some]))
        done(some.stop - some.start)


@dataclass(frozen=True)
class _Walk:
    """What is the same for all points of a walk along the length scales."""

    group: ArrayGroup
    factors: NDArray
    squared: NDArray
    """Whether the kernel of each factor is the square of the one before."""
    blocks: list[Block]

    @classmethod
    def of(cls, group: ArrayGroup, factors: NDArray, blocks: list[Block]) -> _Walk:
        covariance = group.points.covariance
        if not free_length_scales(covariance.kernel):  # length scales that the user has fixed stay
            factors = np.ones(len(factors))
        return cls(group, factors, squares_of_last(covariance.profile, factors), blocks)

    def log_sums(self, points: ArrayPoints, own: NDArray) -> Any:
        """Log sums of so few points that all their distances may be held, shape (factors, points, classes)."""
        library, covariance = self.group.library, self.group.points.covariance
        xp = library.xp
        tiles, nearest = self._distances(points, own)
        tops = [
            log_profile(covariance.profile, capped(nearest * _inverse(f, np.float64), library), library)
            for f in self.factors
        ]
        sums = [library.zeros(len(points), len(self.group.classes)) for _ in self.factors]
        for block, d2 in zip(self.blocks, tiles, strict=True):
            for k, tile in enumerate(self._tiles(d2, tops)):
                tile = crossed_out(tile, own, block.columns.start, 0.0, library)
                sums[k][:, block.classes] += library.doubled(tile @ block.weights)
        logs = [xp.log(found) + top[:, None] for found, top in zip(sums, tops, strict=True)]
        return xp.stack(logs) + float(np.log(covariance.variance))

    def _distances(self, points: ArrayPoints, own: NDArray) -> tuple[list, Any]:
        """Squared distances, a tile for each block, and the distance to the nearest other point."""
        library = self.group.library
        xp, tiles, nearest = library.xp, [], []
        for block in self.blocks:
            tiles.append(sq_distances(points, self.group.points[block.columns]))
            others = crossed_out(tiles[-1], own, block.columns.start, float("inf"), library)
            nearest.append(xp.min(others, axis=1))
        least = library.doubled(xp.min(xp.stack(nearest), axis=0))
        return tiles, xp.where(xp.isinf(least), 0.0, least)

    def _tiles(self, d2, tops: list) -> Iterator[Any]:
        """The tile of each factor, relative to the value of the nearest point."""
        xp, limits = self.group.library.xp, SQUARING[self.group.points.precision.name]
        tile: Any = None
        squares = 0
        for k, squared in enumerate(self.squared):
            if squared and squares < limits.chain:
                tile, squares = tile * tile, squares + 1
            else:
                tile, squares = self._relative(k, d2, tops[k]), 0
            if squares % limits.refloor == 0:
                tile = xp.clip(tile, min=limits.floor)
            yield tile

    def _relative(self, k: int, d2, top) -> Any:
        """Kernel values at one factor, divided by exp(top) and kept above the floor."""
        library, precision = self.group.library, self.group.points.precision
        xp, largest = library.xp, float(np.finfo(precision).max)
        inverse = _inverse(self.factors[k], precision)
        scaled = d2 * inverse
        logs = log_profile(
            self.group.points.covariance.profile, capped(scaled, library) if inverse > 1 else scaled, library
        )
        logs -= xp.astype(xp.clip(top, min=-largest, max=largest), d2.dtype)[:, None]
        return xp.exp(xp.clip(logs, min=float(np.log(SQUARING[precision.name].floor)), max=1.0))


def _inverse(factor: float, precision) -> float:
    """What squared distances are multiplied by for a factor of the length scale; a finite number."""
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.minimum(np.float64(factor) ** -2.0, np.finfo(precision).max))
