"""Class sums in any array library: tile by tile, with rows that are faint or imprecise taken again with care.

`coxfield.engine.class_sums` is the same for NumPy, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coxfield.arrays.careful import careful_log_sums
from coxfield.arrays.library import to_numpy
from coxfield.arrays.points import product_error, sq_distances
from coxfield.arrays.profiles import log_profile
from coxfield.arrays.tiles import crossed_out, slices, tile_shape
from coxfield.kernels.distances import TOLERABLE
from coxfield.kernels.radial import FAINT, log_floor, profile_floor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.arrays.points import ArrayPoints
    from coxfield.arrays.store import ArrayGroup, ArrayStore, Block


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
