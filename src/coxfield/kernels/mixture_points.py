"""Points bound to a mixture of covariances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.special import logsumexp

from coxfield.kernels.called import CalledSums
from coxfield.kernels.ladder import PlainBound, remove_floor, walk_one_by_one
from coxfield.kernels.mixture_ladder import LadderPoints, log_densities
from coxfield.kernels.protocol import Covariance, cross_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.kernels.mixture_ladder import Ladder


# Class sums of a mixture in one pass over the pairs, densities of the queries included.
#
# For one kernel k, the class sum of a member is q(x*)^-alpha times the sum of k(x*, x) q(x)^-alpha over the class. The
# density q(x*) of a query is a sum over all reference points. If these are the labelled points, one pass gives both:
# each layer holds the sums of one kernel under one scaling of the weights, and q(x*) is applied at the end. A free
# ladder has one layer. Nothing divides it, and only the points that have a weight are visited.


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
    free: bool = False
    """Whether it is the sum of a free ladder, over all of its kernels."""


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
            if ladder.free:
                plan.append(_Layer(k, 0, None, self.weights, free=True))
                continue
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
            if points.ladder.free:
                (own_layer,) = (number for number, each in numbered if each.k == k)
                self._add_free(k, points, part, own if own is None else own[some], room, sums[own_layer])
                continue
            tiles = points.points.rungs(columns.ladders[k].points, points.ladder.factors, room)
            for f, tile in enumerate(tiles):
                if own is not None:
                    cross_out(tile, own[some], part.start, 0)
                for number, layer in numbered:
                    if (layer.k, layer.f) == (k, f):
                        layer.weights.add(tile, part.start, sums[number])

    @cached_property
    def _supports(self) -> dict:
        """The points of a free ladder that have a weight, by ladder and part of the columns; filled when asked for."""
        return {}

    def _support(self, k: int, part: slice) -> tuple[NDArray, LadderPoints, list[NDArray]]:
        """Columns of a part that have a free weight, their points, and their weights for each factor and class."""
        found = self._supports.get((k, part.start, part.stop))
        if found is None:
            weights = self.columns.log_densities[k][:, part]
            columns = np.flatnonzero(weights.any(axis=0))
            points = self.columns.ladders[k][part.start + columns]
            by_class = np.zeros((len(columns), self.weights.n_classes), points.points.dtype)
            for c, (members, own) in enumerate(self.weights.members()):
                numbers = np.arange(members.start, members.stop) if isinstance(members, slice) else members
                _, at, of = np.intersect1d(part.start + columns, numbers, return_indices=True)
                by_class[at, c] = own[of]
            found = columns, points, [by_class * each[columns, None].astype(by_class.dtype) for each in weights]
            self._supports[k, part.start, part.stop] = found
        return found

    def _add_free(self, k: int, rows: LadderPoints, part: slice, own, room: NDArray, sums: NDArray) -> None:
        columns, points, weights = self._support(k, part)
        if not len(columns):
            return
        for tile, by_class in zip(rows.points.rungs(points.points, rows.ladder.factors, room), weights, strict=True):
            if own is not None:
                at, of = np.nonzero(own[:, None] == part.start + columns)
                tile[at, of] = 0
            found = tile @ by_class
            remove_floor(found, rows.points.floor, by_class.sum(axis=0, dtype=float))
            sums += found

    def total(self, sums: NDArray) -> NDArray:
        """Each member divided by the density of the queries."""
        found, log_q = np.zeros(sums.shape[1:]), np.zeros(sums.shape[1])
        for layer, values in zip(self._plan, sums, strict=True):
            points = self.rows.ladders[layer.k].points
            if layer.free:
                found += values * points.unit
                continue
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


LOST = 1e-3  # a share of the largest sum that may be lost by underflow; such a sum is below 1e-4 nats


class MixtureForm(Covariance, Protocol):
    """What points ask of their mixture; see `coxfield.kernels.mixture.Mixture`."""

    @property
    def ladders(self) -> tuple[Ladder, ...]:
        """The members, by representation."""

    @property
    def n_reference(self) -> int:
        """Number of reference points."""

    @property
    def counts(self) -> NDArray | None:
        """The weight of each reference point."""

    def reference(self, k: int) -> LadderPoints:
        """The reference points of a ladder."""

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> MixtureForm:
        """All length scales and all weights multiplied."""

    def over(
        self, X, counts: NDArray | None, origin: NDArray, points: tuple[LadderPoints, ...] | None = None
    ) -> MixturePoints:
        """The same members with densities over other reference points."""


@dataclass(frozen=True)
class MixturePoints(PlainBound):
    """Points in every representation; `Bound` says what the methods are for."""

    covariance: MixtureForm
    ladders: tuple[LadderPoints, ...]
    rows: NDArray | None = None
    """Row of each point among the reference points, if they were bound as such."""
    learned: bool = False
    """Whether the labelled points are the reference points, so that a point that is left out has left its trace."""
    omitted: NDArray | None = None
    """For each point, the reference point that does not count in its density, -1 for none."""
    unit = 1.0
    floor = 0.0

    def __len__(self) -> int:
        return len(self.ladders[0])

    def __getitem__(self, rows) -> MixturePoints:
        some = self._with_known()._each(lambda points: points[rows])
        of_reference = None if self.rows is None else self.rows[rows]
        return replace(some, rows=of_reference, omitted=None if self.omitted is None else self.omitted[rows])

    def _each(self, function: Callable[[LadderPoints], LadderPoints]) -> MixturePoints:
        return MixturePoints(self.covariance, tuple(map(function, self.ladders)), learned=self.learned)

    @property
    def whole(self) -> bool:
        """Whether these are all the reference points, in some order."""
        return self.rows is not None and len(self.rows) == self.covariance.n_reference

    @property
    def dtype(self) -> np.dtype:
        """The finest precision of the representations."""
        return np.result_type(*(points.points.dtype for points in self.ladders))

    @cached_property
    def log_densities(self) -> tuple[NDArray, ...]:
        """log q of each point, shape (F, n) for each ladder."""
        found = []
        for k, points in enumerate(self.ladders):
            known = points.known
            if known is None:
                known = log_densities(points, self.covariance.reference(k), self.covariance.counts, self.omitted)
            found.append(known)
        return tuple(found)

    @property
    def known_densities(self) -> tuple[NDArray, ...] | None:
        """`log_densities` if it is known already, None otherwise."""
        known = tuple(points.known for points in self.ladders if points.known is not None)
        return known if len(known) == len(self.ladders) else self.__dict__.get("log_densities")

    def _with_known(self) -> MixturePoints:
        """These points; densities that were computed are kept with them."""
        computed = self.__dict__.get("log_densities")
        if computed is None:
            return self
        held = zip(self.ladders, computed, strict=True)
        return replace(self, ladders=tuple(replace(points, known=log_q) for points, log_q in held))

    def under(self, mixture: MixtureForm) -> MixturePoints:
        """The same points under a mixture of the same members with other weights."""
        ladders = zip(self.ladders, mixture.ladders, strict=True)
        moved = tuple(replace(points, ladder=ladder) for points, ladder in ladders)
        return replace(self, covariance=mixture, ladders=moved)

    def with_point_weights(self, ladders: tuple[Ladder, ...], rows: NDArray) -> MixturePoints:
        """The points with the weights that rows have in the free ones of some ladders."""
        held = zip(self.ladders, ladders, strict=True)
        moved = tuple(
            points if ladder.point_weights is None else replace(points, known=ladder.point_weights[:, rows])
            for points, ladder in held
        )
        return replace(self, ladders=moved)

    def alone(self) -> MixturePoints:
        """The points with their own rows of the data alone; these points, if the data have no other rows."""
        own = [points.points.alone() for points in self.ladders]
        if all(new is points.points for new, points in zip(own, self.ladders, strict=True)):
            return self
        return replace(
            self, ladders=tuple(replace(points, points=new) for points, new in zip(self.ladders, own, strict=True))
        )

    def at(self, X) -> MixturePoints:
        """Other points in the same representations."""
        return self._each(lambda points: points.at(X))

    def left_out(self, rows: NDArray) -> MixturePoints:
        """The points under representations and densities that were learned without them."""
        if not self.learned:
            return self
        return replace(self._each(lambda points: points.left_out(rows)), omitted=rows)

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> MixturePoints:
        """The same points under the rescaled mixture."""
        covariance = self.covariance.rescaled(length, variance)
        ladders = zip(covariance.ladders, self.ladders, strict=True)
        kept = tuple(LadderPoints(new, old.points, old.known if length == 1 else None) for new, old in ladders)
        return MixturePoints(covariance, kept, self.rows if length == 1 else None)

    def diagonal(self) -> NDArray:
        """C(x, x) of each point."""
        found = np.zeros(len(self))
        for points, log_q in zip(self.ladders, self.log_densities, strict=True):
            own = points.points.diagonal()
            for f, a in points.ladder.terms:
                scale = inverse(2 * points.ladder.log_divisor(a, log_q[f]))
                found += limited(scale, own, points.ladder.weights[f, a])
        return found

    def tile(self, columns: MixturePoints, out: NDArray | None = None) -> NDArray:
        """Each member, divided by the densities."""
        found = np.zeros((len(self), len(columns)), self.dtype)
        largest = np.finfo(self.dtype).max / 1e6  # between points that are both far from all reference points
        for k, points in enumerate(self.ladders):
            theirs, ladder = columns.ladders[k], points.ladder
            mine, others = self.log_densities[k], columns.log_densities[k]
            for f, tile in enumerate(points.points.rungs(theirs.points, ladder.factors)):
                kernel = (tile - tile.dtype.type(points.points.floor)) * points.points.unit
                if ladder.free:
                    found += (kernel * others[f]).astype(found.dtype, copy=False)
                for a in np.flatnonzero(ladder.weights[f]):
                    divisor = ladder.log_divisor(a, mine[f])[:, None] + ladder.log_divisor(a, others[f])
                    found += limited(inverse(divisor), kernel, ladder.weights[f, a], largest=largest).astype(
                        found.dtype, copy=False
                    )
        return found

    def imprecise(self, columns: MixturePoints, factor: float = 1.0) -> NDArray:
        """Whether rounding spoils the shortest length scale of a representation."""
        wrong = np.zeros(len(self), dtype=bool)
        for points, theirs in zip(self.ladders, columns.ladders, strict=True):
            wrong |= points.points.imprecise(theirs.points, factor * points.ladder.factors.min())
        return wrong

    def faint(self, sums: NDArray) -> NDArray:
        """Whether what underflow may have taken from the sums counts beside them."""
        lost, n = 0.0, self.covariance.n_reference
        for points in self.ladders:
            ladder, most = points.ladder, n * points.points.floor
            if ladder.point_weights is not None:
                lost += most / n * ladder.point_weights.sum()
            for f, a in ladder.terms:  # if every kernel value is below the floor, so much is lost at most
                divisor = np.exp(ladder.log_divisor(a, np.log(most if most > 0 else 1.0)))
                lost += ladder.weights[f, a] * (most / divisor)
        return sums.max(axis=1, initial=0) <= lost / LOST

    def log_tile(self, columns: MixturePoints, *, groups=None, leave_out: NDArray | None = None) -> NDArray:
        """Logarithms of the members, added up.

        The densities of these points come from the same precise distances. Far away, where the logarithms are large,
        nothing else would fit to them.
        """
        found = np.full((len(self), len(columns)), -np.inf)
        for k, points in enumerate(self.ladders):
            ladder, others = points.ladder, columns.log_densities[k]
            tiles = points.points.log_rungs(columns.ladders[k].points, ladder.factors)
            if ladder.free:
                with np.errstate(divide="ignore"):
                    for logs, weights in zip(tiles, others, strict=True):
                        np.logaddexp(found, logs + np.log(weights), out=found)
                continue
            for f, (logs, log_q) in enumerate(zip(tiles, self._precise(k), strict=True)):
                for a in np.flatnonzero(ladder.weights[f]):
                    scale = ladder.log_divisor(a, log_q)[:, None] + ladder.log_divisor(a, others[f])
                    with np.errstate(invalid="ignore"):
                        term = logs - scale + np.log(ladder.weights[f, a])
                    # So far from all points that kernel and density are both 0, there is no covariance. Between
                    # equal points that far away, the kernel is not 0, and the covariance is as large as can be.
                    np.logaddexp(found, np.nan_to_num(term, nan=-np.inf, posinf=LARGEST, neginf=-np.inf), out=found)
        if leave_out is not None:
            cross_out(found, leave_out, 0, -np.inf)
        return found

    def _precise(self, k: int) -> Iterator[NDArray]:
        """log q of each factor of a ladder, from precise distances."""
        reference, counts = self.covariance.reference(k), self.covariance.counts
        with np.errstate(divide="ignore"):  # a point that counts for nothing
            log_counts = np.zeros(len(reference)) if counts is None else np.log(counts.astype(float))
        for logs in self.ladders[k].points.log_rungs(reference.points, reference.ladder.factors):
            if self.omitted is not None:
                cross_out(logs, self.omitted, 0, -np.inf)
            yield logsumexp(logs + log_counts, axis=1)

    def pairs(self, rows: NDArray, columns: MixturePoints, of_columns: NDArray) -> NDArray:
        """C of listed pairs."""
        found = np.zeros(len(rows))
        for k, points in enumerate(self.ladders):
            ladder, theirs = points.ladder, columns.ladders[k].points
            mine, others = self.log_densities[k], columns.log_densities[k]
            for f, values in enumerate(points.points.pair_rungs(rows, theirs, of_columns, ladder.factors)):
                if ladder.free:
                    found += values * others[f][of_columns]
                for a in np.flatnonzero(ladder.weights[f]):
                    divisor = ladder.log_divisor(a, mine[f][rows]) + ladder.log_divisor(a, others[f][of_columns])
                    found += limited(inverse(divisor), values, ladder.weights[f, a])
        return found

    def neighbours(self, count: int) -> NDArray:
        """Neighbours in the representation of the largest weight."""
        heaviest = max(self.ladders, key=lambda points: points.ladder.weights.sum())
        return heaviest.points.neighbours(count)

    def walk(self, columns: MixturePoints, factors: NDArray, leave_out: NDArray, sink) -> NDArray:
        """One factor after the other."""
        return walk_one_by_one(self, columns, factors, leave_out, sink)

    def summing(self, columns: MixturePoints, weights: Any) -> MixtureSums:
        """One layer per member."""
        return MixtureSums(self, columns, weights)

    def differentiate(self, columns: MixturePoints, weights: NDArray, leave_out: NDArray) -> CalledSums:
        """The sums alone: a mixture has no free parameters."""
        tile = self.tile(columns)
        cross_out(tile, leave_out, 0, 0)
        return CalledSums((tile @ weights).astype(float), np.empty((len(self), 0)))

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        """Nothing: a mixture has no free parameters."""
        return np.empty(0)
