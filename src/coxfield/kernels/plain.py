"""What most bound points do alike: class sums from one tile, and no trace of a point that was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from coxfield.kernels.leave_out import cross_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy import sparse

    from coxfield.kernels.protocol import Bound, Summing


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
