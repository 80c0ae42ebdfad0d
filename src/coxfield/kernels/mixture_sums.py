"""Class sums of a mixture in one pass over the pairs, densities of the queries included.

For one kernel k, the class sum of a member is q(x*)^-alpha times the sum of k(x*, x) q(x)^-alpha over the class. The
density q(x*) of a query is a sum over all reference points. If these are the labelled points, one pass gives both:
each layer holds the sums of one kernel under one scaling of the weights, and q(x*) is applied at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from coxfield.kernels.leave_out import cross_out
from coxfield.kernels.plain import remove_floor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.mixture_ladder import LadderPoints


LARGEST_LOG = 700.0  # exp of more than this overflows
LARGEST = 1e300  # sum of a member between points that are both far from all reference points


def inverse(log_divisor: NDArray) -> NDArray:
    """One over what a member divides by; far from all reference points the largest number, not an infinite one."""
    return np.exp(np.minimum(-log_divisor, LARGEST_LOG))


def limited(scale: NDArray, values: NDArray, *factors: float, largest: float = LARGEST) -> NDArray:
    """Values of a member times all factors, at most `largest`. The last factors are not 0."""
    with np.errstate(over="ignore"):
        product = scale * values
        for factor in factors:
            product *= factor
    return np.minimum(product, largest)


class MixedPoints(Protocol):
    """What class sums ask of points; see `coxfield.kernels.mixture_points.MixturePoints`."""

    @property
    def ladders(self) -> tuple[LadderPoints, ...]:
        """The points in each representation."""

    @property
    def log_densities(self) -> tuple[NDArray, ...]:
        """log q of each point, shape (F, n) for each ladder."""

    @property
    def whole(self) -> bool:
        """Whether these are all the reference points."""

    def __getitem__(self, rows) -> MixedPoints: ...


@dataclass(frozen=True)
class _Layer:
    """Sums of one kernel with scaled weights."""

    k: int
    f: int
    """Number of the ladder, and of the factor of its length scale."""
    a: int | None
    """Number of the power of the density by which weights are divided; None for the density of the queries."""
    weights: Any


@dataclass(frozen=True)
class MixtureSums:
    """Class sums of a mixture; `Summing` says what the methods are for."""

    rows: MixedPoints
    columns: MixedPoints
    weights: Any
    tiled = True

    @cached_property
    def _plan(self) -> list[_Layer]:
        """All layers, in the order of ladders and factors; the density comes before the members that it divides."""
        plan = []
        for k, points in enumerate(self.columns.ladders):
            ladder = points.ladder
            for f, weights in enumerate(ladder.weights):
                if self.columns.whole and ladder.alphas[weights > 0].any():
                    plan.append(_Layer(k, f, None, self.weights))
                plan += [_Layer(k, f, int(a), self._divided(k, f, int(a))) for a in np.flatnonzero(weights)]
        return plan

    def _divided(self, k: int, f: int, a: int) -> Any:
        """The weights of the columns, divided by a power of their densities."""
        ladder, log_q = self.columns.ladders[k].ladder, self.columns.log_densities[k][f]
        return self.weights.scaled(inverse(ladder.log_divisor(a, log_q)))

    @property
    def layers(self) -> int:
        """One per member, and one per density."""
        return len(self._plan)

    def add(self, some: slice, part: slice, own: NDArray | None, room: NDArray, sums: NDArray) -> None:
        """One tile of distances per representation."""
        rows, columns = self.rows[some], self.columns[part]
        numbered = list(enumerate(self._plan))
        for k, points in enumerate(rows.ladders):
            tiles = points.points.rungs(columns.ladders[k].points, points.ladder.factors, room)
            for f, tile in enumerate(tiles):
                if own is not None:
                    cross_out(tile, own[some], part.start, 0)
                for number, layer in numbered:
                    if (layer.k, layer.f) == (k, f):
                        layer.weights.add(tile, part.start, sums[number])

    def total(self, sums: NDArray) -> NDArray:
        """Each member divided by the density of the queries."""
        found, log_q = np.zeros(sums.shape[1:]), np.zeros(sums.shape[1])
        for layer, values in zip(self._plan, sums, strict=True):
            points = self.rows.ladders[layer.k].points
            remove_floor(values, points.floor, layer.weights.totals)
            if layer.a is None:
                with np.errstate(divide="ignore"):
                    log_q = np.log(values.sum(axis=1)) + np.log(points.unit)
                continue
            if not self.columns.whole:
                log_q = self.rows.log_densities[layer.k][layer.f]
            ladder = self.rows.ladders[layer.k].ladder
            # Where the density has vanished, so has the member; rows that are left with nothing are taken again.
            scale = inverse(ladder.log_divisor(layer.a, np.where(np.isneginf(log_q), np.inf, log_q)))
            found += limited(scale[:, None], values, points.unit, ladder.weights[layer.f, layer.a])
        return found
