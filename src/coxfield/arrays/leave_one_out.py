"""Leave-one-out class sums along a path of length scales, in any array library.

`coxfield.selection.loo_sums` and `coxfield.kernels.ladder` are the same for NumPy, and say why. The sums of a length
scale are one number per point and class. They come back as NumPy arrays, and the selection is the same as for NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.arrays.library import Library, to_numpy
from coxfield.arrays.points import capped, sq_distances
from coxfield.arrays.profiles import log_profile
from coxfield.arrays.store import store_arrays
from coxfield.arrays.tiles import crossed_out, slices, tile_shape, whole_rows
from coxfield.kernels.ladder import SQUARING, squares_of_last
from coxfield.kernels.sklearn_tree import free_length_scales
from coxfield.selection.loo_sums import in_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.arrays.points import ArrayPoints
    from coxfield.arrays.store import ArrayGroup, Block
    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass


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
