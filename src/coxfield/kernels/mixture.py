"""A mixture of covariances: C = sum of w k(t(x), t(x')) / (q(x) q(x'))^alpha over its members.

A member is a kernel k on a representation t of the points, such as the features as they are, standardised or whitened.
It is divided by the density q of the points, q(x) = sum of k(t(x), t(x')) over reference points x', to the power of
alpha. Weights are not negative, so the mixture is a covariance. It is never negative if its kernels are not.

Kernels on one representation that differ only in their length scale form a `Ladder`. They share their distances.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from coxfield.kernels.called import CalledSums
from coxfield.kernels.distances import Stretch
from coxfield.kernels.namespace import Library, at_home, cross_out, is_foreign, like, rows_of, to_numpy
from coxfield.kernels.protocol import LARGEST_LOG, Covariance, KernelPoints, LogSums, Path, values
from coxfield.kernels.radial import RadialPoints
from coxfield.kernels.sklearn_tree import length_unit, rescale_length
from coxfield.kernels.transforms import correction, reindexed
from coxfield.utils.numbers import ORDINARY, logs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray


def inverse(log_divisor: NDArray) -> NDArray:
    """One over what a member divides by; far from all reference points the largest number, not an infinite one."""
    return np.exp(np.minimum(-log_divisor, LARGEST_LOG))


VALUES = 2**22  # kernel values that are held at a time while densities are computed


@dataclass(frozen=True, eq=False)
class Ladder:
    """Kernels on one representation: one covariance, at several factors of its length scale."""

    name: str
    """Name of the representation."""
    transform: Any
    """A fitted transformer of scikit-learn, or None for the features as they are."""
    covariance: Covariance
    factors: NDArray
    """Factors of the length scales, shape (F,)."""
    alphas: NDArray
    """Powers of the density, shape (A,)."""
    floors: NDArray
    """What is added to the density before the power is taken, in points, shape (A,)."""
    weights: NDArray
    """Weight of each factor with each power, shape (F, A)."""
    one: float = 1.0
    """What a point adds to the density at its own place: C(x, x)."""
    point_weights: NDArray | None = None
    """Of a *free* ladder, the weight of each factor and reference point, shape (F, n). It has no powers of the density,
    and no part in the covariance between points that are not reference points."""

    @property
    def free(self) -> bool:
        """Whether each reference point has a weight of its own."""
        return self.point_weights is not None

    @property
    def plain(self) -> Ladder:
        """The ladder that new points see: itself, unless labelled points see others."""
        return self

    def log_divisor(self, a: int | np.integer, log_q: NDArray) -> NDArray:
        """log of (q + floor)^alpha, by which a member divides at each of its two points."""
        if not self.alphas[a]:
            return np.zeros_like(log_q)
        return self.alphas[a] * (np.logaddexp(log_q, np.log(self.one * self.floors[a])) if self.floors[a] else log_q)

    @property
    def powers(self) -> list[tuple[float, float]]:
        """Power and floor of each kind of member."""
        return list(zip(self.alphas.tolist(), self.floors.tolist(), strict=True))

    def represent(self, X) -> Any:
        if self.transform is None:
            return X
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is far from all points
            # Transformers of scikit-learn take no empty arrays.
            found = self.transform.transform(at_home(X) if X.shape[0] else np.zeros((1, X.shape[1]), X.dtype))
        found = found[: X.shape[0]]
        return like(found, X) if is_foreign(X) else found

    def reindexed(self, origin: NDArray) -> Ladder:
        """The ladder, whose representation knows other points by their place; `origin` is the old place of each."""
        new, weights = reindexed(self.transform, origin), self.point_weights
        if weights is not None:
            return replace(self, transform=new, point_weights=np.where(origin >= 0, weights[:, origin], 0))
        return self if new is self.transform else replace(self, transform=new)

    def bind(self, X, rows: NDArray | None = None) -> LadderPoints:
        """Hold rows of X, in the representation."""
        chosen = X if rows is None else rows_of(X, rows)
        return LadderPoints(self, self.covariance.bind(self.represent(chosen)))

    def bind_some(self, X, rows: NDArray | None) -> LadderPoints:
        """Hold rows of X where `bind` would place them if it held all."""
        return LadderPoints(self, self.covariance.bind(self.represent(X), rows))

    def sees_as(self, other: Ladder) -> bool:
        """Whether points that are bound are the same for another ladder."""
        return self.transform is other.transform and self.covariance is other.covariance

    def kernel(self, f: int) -> Any:
        """The kernel of one factor, as users see it."""
        return rescale_length(self.covariance.kernel, float(self.factors[f]))

    def length_scale(self, f: int) -> float:
        """The length scale of one factor; the factor itself if there is no single length scale."""
        unit = np.asarray(length_unit(self.covariance.kernel))
        return float(self.factors[f] * (unit.item() if unit.size == 1 else 1.0))

    @property
    def terms(self) -> Iterator[tuple[int, int]]:
        """Factor and power of each member that has a weight, by number."""
        return zip(*np.nonzero(self.weights), strict=True)

    def pruned(self) -> Ladder:
        """The ladder without the factors and powers that have no weight."""
        f, a = (self.weights > 0).any(axis=1), (self.weights > 0).any(axis=0)
        return replace(
            self,
            factors=self.factors[f],
            alphas=self.alphas[a],
            floors=self.floors[a],
            weights=self.weights[np.ix_(f, a)],
        )


@dataclass(frozen=True)
class LadderPoints:
    """Points in one representation, bound to the covariance of a ladder."""

    ladder: Ladder
    points: Any
    """`KernelPoints` of the covariance."""
    known: NDArray | None = None
    """log q of each factor and point, shape (F, n), if it is known; of a free ladder, the weights of the points."""

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, rows) -> LadderPoints:
        return replace(self, points=self.points[rows], known=None if self.known is None else self.known[:, rows])

    def at(self, X) -> LadderPoints:
        return LadderPoints(self.ladder, self.points.at(self.ladder.represent(X)))

    def column_factors(self, f: int, a: int | np.integer) -> NDArray:
        """What the weights of these points as columns of a member are multiplied by."""
        assert self.known is not None
        return inverse(self.ladder.log_divisor(a, self.known[f]))

    def left_out(self, rows: NDArray, own: LadderPoints | None = None) -> LadderPoints:
        """The points under the representation that was learned without them, if it was learned from labels.

        `own` are the points that it was learned from, if these are others.
        """
        correct = correction(self.ladder.transform)
        if correct is None or not hasattr(self.points, "points"):  # kernels that are called know no distances
            return self
        learned = self.points if own is None else own.points
        directions, factors = correct(at_home(rows_of(learned.X, learned.rows)), rows)
        coordinates = self.points.points.coordinates
        stretch = Stretch(like(directions, coordinates), like(factors, coordinates))
        return LadderPoints(self.ladder, replace(self.points, points=self.points.points.stretched(stretch)))


@dataclass(frozen=True)
class SupportPoints:
    """Reference points of a free ladder, of which those that have a weight are held.

    Sums need no others. Where others are asked for, all are bound as they would have been.
    """

    ladder: Ladder
    data: Any
    """All reference points, as they are."""
    places: NDArray | slice
    """Which of them these are."""
    held: RadialPoints
    """Those that have a weight."""
    column: NDArray
    """The place among them of each reference point, -1 for none."""

    @classmethod
    def of(cls, ladder: Ladder, X, order: NDArray | None = None) -> SupportPoints:
        """Hold the points that have a weight."""
        assert ladder.point_weights is not None
        has_weight = ladder.point_weights.any(axis=0)
        support, column = np.flatnonzero(has_weight), np.where(has_weight, np.cumsum(has_weight) - 1, -1)
        held = ladder.bind_some(X, support).points
        return cls(ladder, X, np.arange(len(column)) if order is None else order, held, column)

    def __len__(self) -> int:
        return len(self.column[self.places])

    def __getitem__(self, rows) -> Any:
        places = np.arange(len(self.column))[self.places][rows]
        column = self.column[places]
        if len(column) and (column >= 0).all():
            return self.held[column]
        return replace(self, places=places) if isinstance(rows, slice) or len(places) == len(self) else self.whole[rows]

    def at(self, X) -> RadialPoints:
        """Other points in the same coordinates."""
        return self.held.at(X)

    def in_single(self) -> SupportPoints:
        """The same points in single precision; the same object, if they cannot be had."""
        held = in_single(LadderPoints(self.ladder, self.held)).points
        return self if held is self.held else replace(self, held=held)

    @cached_property
    def whole(self) -> RadialPoints:
        """All of them."""
        return self.held.at(self.ladder.represent(rows_of(self.data, self.places)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "held" not in self.__dict__:  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.held if name in {"dtype", "library"} else self.whole, name)


def in_single(points: LadderPoints) -> LadderPoints:
    """The points with coordinates in single precision; the same object, if they cannot be had."""
    bound = points.points
    if isinstance(bound, SupportPoints):
        single = bound.in_single()
        return points if single is bound else replace(points, points=single)
    if not isinstance(bound, RadialPoints) or not isinstance(bound.points.coordinates, np.ndarray):
        return points
    if bound.dtype == np.float32 or bound.points.farthest > ORDINARY[np.dtype(np.float32)] ** 2:
        return points
    return replace(points, points=replace(bound, points=bound.points.astype(np.float32)))


def log_densities(rows: LadderPoints, reference: LadderPoints, counts: NDArray | None, omitted=None) -> NDArray:
    """log q of each factor: log of the sum of kernel values over reference points, shape (F, n).

    `omitted` says for each point which reference point does not count, -1 for none.
    """
    if rows.ladder.free:  # a point that is not a reference point has no weight
        return np.zeros((len(rows.ladder.factors), len(rows)))
    omitted = np.full(len(rows), -1) if omitted is None else omitted
    found = np.empty((len(rows.ladder.factors), len(rows)))
    weights = np.ones(len(reference)) if counts is None else counts
    for some in gen_batches(len(rows), max(1, VALUES // max(1, len(reference)))) if len(rows) else ():
        found[:, some] = log_totals(rows[some], reference, weights.astype(rows.points.dtype), omitted[some])
    return found


def own_log_densities(points: LadderPoints, counts: NDArray | None) -> NDArray:
    """`log_densities` over the points themselves. The term of a point itself is exact, also far from all others."""
    if points.ladder.point_weights is not None:
        return points.ladder.point_weights
    others = log_densities(points, points, counts, np.arange(len(points)))
    own = np.log(points.points.diagonal()) + (0 if counts is None else np.log(counts.astype(float)))
    return np.logaddexp(others, own)


def log_totals(rows: LadderPoints, reference: LadderPoints, weights: NDArray, omitted: NDArray) -> NDArray:
    """`log_densities` of so few points that all their kernel values may be held at a time."""
    adder = Total(weights, np.zeros((len(rows.ladder.factors), len(rows))))
    tops = rows.points.walk(reference.points, rows.ladder.factors, omitted, adder)
    return logs_of(adder.sums) + tops  # a point without any other


@dataclass(frozen=True)
class Total:
    """Adds the tiles of a walk over all columns; `Sink` says what the methods are for."""

    weights: NDArray
    sums: NDArray

    def add(self, k: int, start: int, tile: NDArray) -> None:
        """Add a tile."""
        self.sums[k] += to_numpy(tile @ like(self.weights[start : start + tile.shape[1]], tile))

    def rescale(self, scale: NDArray) -> None:
        """Multiply what was added so far."""
        self.sums[...] *= scale

    def add_entries(self, k: int, at: NDArray, columns: NDArray, values: NDArray) -> None:
        """Add single values of a tile."""
        self.sums[k] += np.bincount(at, values * self.weights[columns], minlength=self.sums.shape[1])


# What members are worth: their values over densities, and the sums that they need.


LARGEST = 1e300  # sum of a member between points that are both far from all reference points


def limited(scale: NDArray, values: NDArray, *factors: float, largest: float = LARGEST) -> NDArray:
    """Values of a member times all factors, at most `largest`. The last factors are not 0."""
    with np.errstate(over="ignore"):
        product = scale * values
        for factor in factors:
            product *= factor
    return np.minimum(product, largest)


def divided(kernel, weight: float, mine: NDArray, others: NDArray) -> Any:
    """A tile of a member: its kernel times its weight, over what both points divide by, given as logarithms."""
    xp, largest = Library.of(kernel).xp, float(np.finfo(np.float32 if "32" in str(kernel.dtype) else float).max) / 1e6
    reach = np.abs(mine).max(initial=0) + np.abs(others).max(initial=0)
    if reach + abs(np.log(weight)) < np.log(largest) / 2:
        return kernel * like(weight * np.exp(-mine), kernel)[:, None] * like(np.exp(-others), kernel)[None, :]
    # Between points that are both far from all reference points.
    scale = inverse(mine[:, None] + others)
    found = limited(scale, to_numpy(kernel), weight, largest=largest)
    return like(found, kernel) if xp is not np else found.astype(kernel.dtype, copy=False)


def _free_paths(rows: LadderPoints, columns: LadderPoints, point_weights: NDArray, weights: Any) -> list[Path]:
    """The sums of a free ladder: for each length scale, one over the columns that have a weight there."""
    found = []
    for factor, own in zip(columns.ladder.factors, point_weights, strict=True):
        some = np.flatnonzero(own)
        layer = weights.among(some).scaled(own[some])
        found.append(Path(rows.points, columns.points[some], np.array([factor]), [[layer]], some))
    return found


def ladder_paths(rows: LadderPoints, columns: LadderPoints, weights: Any, *, dense: bool) -> list[Path]:
    """The sums of one ladder over columns with known densities; `dense` says if they give the densities of rows."""
    ladder = columns.ladder
    if ladder.free:
        assert columns.known is not None
        return _free_paths(rows, columns, columns.known, weights)
    # A ladder without weights has a sum all the same.
    own = [weights] * bool((dense and ladder.alphas.any()) or not ladder.weights.any())
    layers = [
        [*own, *(weights.scaled(columns.column_factors(f, a)) for a in np.flatnonzero(of_factor))]
        for f, of_factor in enumerate(ladder.weights)
    ]
    return [Path(rows.points, columns.points, ladder.factors, layers)]


@dataclass(frozen=True)
class MixturePoints(KernelPoints):
    """Points in every representation; `KernelPoints` says what the methods are for."""

    covariance: Mixture
    ladders: tuple[LadderPoints, ...]
    rows: NDArray | None = None
    """Row of each point among the reference points, if they were bound as such."""
    learned: bool = False
    """Whether the labelled points are the reference points, so that a point that is left out has left its trace."""
    omitted: NDArray | None = None
    """For each point, the reference point that does not count in its density, -1 for none."""
    shard: bool = False
    """Whether these are some of the reference points, and the others are in other places."""

    def __len__(self) -> int:
        return len(self.ladders[0])

    def __getitem__(self, rows) -> MixturePoints:
        some = self._with_known()._each(lambda points: points[rows])
        of_reference = None if self.rows is None else self.rows[rows]
        return replace(some, rows=of_reference, omitted=None if self.omitted is None else self.omitted[rows])

    def _each(self, function: Callable[[LadderPoints], LadderPoints]) -> MixturePoints:
        return MixturePoints(
            self.covariance, tuple(map(function, self.ladders)), learned=self.learned, shard=self.shard
        )

    @property
    def whole(self) -> bool:
        """Whether these are all the reference points, in some order."""
        return self.rows is not None and len(self.rows) == self.covariance.n_reference

    @property
    def library(self) -> Library:
        return self.ladders[0].points.library

    def precisely(self) -> MixturePoints:
        return self._each(lambda points: replace(points, points=points.points.precisely()))

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

    def _with_known(self) -> MixturePoints:
        """These points; densities that were computed are kept with them."""
        computed = self.__dict__.get("log_densities")
        if computed is None:
            return self
        held = zip(self.ladders, computed, strict=True)
        return replace(self, ladders=tuple(replace(points, known=log_q) for points, log_q in held))

    def under(self, mixture: Mixture) -> MixturePoints:
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

    def at(self, X) -> MixturePoints:
        return self._each(lambda points: points.at(X))

    def left_out(self, rows: NDArray, own: MixturePoints | None = None) -> MixturePoints:
        """The points under representations and densities that were learned without them.

        `own` are the points that were learned from, if these are others.
        """
        if not self.learned:
            return self
        if own is None:
            return replace(self._each(lambda points: points.left_out(rows)), omitted=rows)
        moved = zip(self.ladders, own.ladders, strict=True)
        return replace(self, ladders=tuple(mine.left_out(rows, theirs) for mine, theirs in moved), omitted=rows)

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> MixturePoints:
        covariance = self.covariance.rescaled(length, variance)
        ladders = zip(covariance.ladders, self.ladders, strict=True)
        kept = tuple(LadderPoints(new, old.points, old.known if length == 1 else None) for new, old in ladders)
        return MixturePoints(covariance, kept, self.rows if length == 1 else None)

    def diagonal(self) -> NDArray:
        found = np.zeros(len(self))
        for points, log_q in zip(self.ladders, self.log_densities, strict=True):
            own = points.points.diagonal()
            for f, a in points.ladder.terms:
                scale = inverse(2 * points.ladder.log_divisor(a, log_q[f]))
                found += limited(scale, own, points.ladder.weights[f, a])
        return found

    def tile(self, columns: MixturePoints, out: NDArray | None = None) -> NDArray:
        """Each member, divided by the densities."""
        found: Any = 0
        for k, points in enumerate(self.ladders):
            ladder, mine, others = points.ladder, self.log_densities[k], columns.log_densities[k]
            for f, kernel in enumerate(points.points.tiles_at(columns.ladders[k].points, ladder.factors)):
                if ladder.free:
                    found = found + kernel * like(others[f], kernel)[None, :]
                for a in np.flatnonzero(ladder.weights[f]):
                    divisors = (ladder.log_divisor(a, log_q[f]) for log_q in (mine, others))
                    found = found + divided(kernel, ladder.weights[f, a], *divisors)
        return found

    def error(self, columns: MixturePoints) -> NDArray:
        """The largest of all representations, at its shortest length scale."""
        both = zip(self.ladders, columns.ladders, strict=True)
        pairs = ((mine.points.error(theirs.points), mine.ladder.factors.min()) for mine, theirs in both)
        with np.errstate(over="ignore"):
            return np.maximum.reduce([error / shortest / shortest for error, shortest in pairs])

    def log_tile(self, columns: MixturePoints) -> NDArray:
        """Logarithms of the members, added up.

        The densities of these points come from the same precise distances. Far away, where the logarithms are large,
        nothing else would fit to them.
        """
        found = np.full((len(self), len(columns)), -np.inf)
        for k, points in enumerate(self.ladders):
            ladder, others = points.ladder, columns.log_densities[k]
            tiles = points.points.log_tiles_at(columns.ladders[k].points, ladder.factors)
            if ladder.free:
                for logs, weights in zip(tiles, others, strict=True):
                    np.logaddexp(found, logs + logs_of(weights), out=found)
                continue
            for f, (logs, log_q) in enumerate(zip(tiles, self._precise(k), strict=True)):
                for a in np.flatnonzero(ladder.weights[f]):
                    scale = ladder.log_divisor(a, log_q)[:, None] + ladder.log_divisor(a, others[f])
                    with np.errstate(invalid="ignore"):
                        term = logs - scale + np.log(ladder.weights[f, a])
                    # So far from all points that kernel and density are both 0, there is no covariance. Between
                    # equal points that far away, the kernel is not 0, and the covariance is as large as can be.
                    np.logaddexp(found, np.nan_to_num(term, nan=-np.inf, posinf=LARGEST, neginf=-np.inf), out=found)
        return found

    def _precise(self, k: int) -> Iterator[NDArray]:
        """log q of each factor of a ladder, from precise distances."""
        if self.shard:  # the other reference points are somewhere else
            yield from self.log_densities[k]
            return
        reference, counts = self.covariance.reference(k), self.covariance.counts
        log_counts = (
            np.zeros(len(reference)) if counts is None else logs_of(counts.astype(float))
        )  # a point that counts for nothing
        for logs in self.ladders[k].points.log_tiles_at(reference.points, reference.ladder.factors):
            if self.omitted is not None:
                cross_out(logs, self.omitted, 0, -np.inf)
            yield logsumexp(logs + log_counts, axis=1)

    def pairs(self, rows: NDArray, columns: MixturePoints, of_columns: NDArray) -> NDArray:
        found = np.zeros(len(rows))
        for k, points in enumerate(self.ladders):
            ladder, theirs = points.ladder, columns.ladders[k].points
            mine, others = self.log_densities[k], columns.log_densities[k]
            for f, kernel in enumerate(points.points.pairs_at(rows, theirs, of_columns, ladder.factors)):
                if ladder.free:
                    found += kernel * others[f][of_columns]
                for a in np.flatnonzero(ladder.weights[f]):
                    divisor = ladder.log_divisor(a, mine[f][rows]) + ladder.log_divisor(a, others[f][of_columns])
                    found += limited(inverse(divisor), kernel, ladder.weights[f, a])
        return found

    def neighbours(self, count: int) -> NDArray:
        """Neighbours in the representation of the largest weight."""
        heaviest = max(self.ladders, key=lambda points: points.ladder.weights.sum())
        return heaviest.points.neighbours(count)

    def paths(self, columns: MixturePoints, weights: Any) -> list[Path]:
        """For each representation and length scale, one sum per power of the density.

        If all reference points are summed over, here or in other shards, one more sum comes first: with weights that
        are not divided by anything, it is the density of these points. A free ladder has a path for each length scale,
        along the points that have a weight there.
        """
        found, dense = [], columns.whole or columns.shard
        for mine, points, log_q in zip(self.ladders, columns.ladders, columns.log_densities, strict=True):
            found += ladder_paths(mine, replace(points, known=log_q), weights, dense=dense)
        return found

    def total(self, sums: Sequence[LogSums]) -> LogSums:
        """Each member divided by the density of these points, and all members added up."""
        terms = []
        for k, (ladder, of_paths) in enumerate(self._by_ladder(sums)):
            if ladder.free:
                terms += [of_path.logs[0, 0] for of_path in of_paths]
                continue
            logs = of_paths[0].logs
            first = logs.shape[1] - np.count_nonzero(ladder.weights, axis=1).max()
            for f, of_factor in enumerate(ladder.weights):
                log_q = logsumexp(logs[f, 0], axis=1) if first else self._divisors_of(k, f, logs.shape[2])
                # Where the density has vanished, so has the member.
                log_q = np.where(np.isneginf(log_q), np.inf, log_q)
                for layer, a in enumerate(np.flatnonzero(of_factor), first):
                    terms.append(logs[f, layer] - ladder.log_divisor(a, log_q)[:, None] + np.log(of_factor[a]))
        found = np.minimum(np.stack(terms), np.log(LARGEST))
        top = found.max(axis=(0, 2), initial=-np.inf)
        top = np.where(np.isneginf(top), 0, top)
        return LogSums(top[None, :, None], np.exp(found - top[:, None]).sum(axis=0)[None, None])

    def _by_ladder(self, sums: Sequence[LogSums]) -> Iterator[tuple[Ladder, list[LogSums]]]:
        """Each ladder with the sums of its paths."""
        rest = iter(sums)
        for points in self.ladders:
            yield points.ladder, list(islice(rest, len(points.ladder.factors) if points.ladder.free else 1))

    def _divisors_of(self, k: int, f: int, n: int) -> NDArray:
        """log q of these points at a factor; anything, if no member divides by a density."""
        return self.log_densities[k][f] if self.ladders[k].ladder.alphas.any() else np.zeros(n)

    def knowing(self, log_densities: Sequence[NDArray]) -> MixturePoints:
        known = zip(self.ladders, log_densities, strict=True)
        return replace(self, ladders=tuple(replace(points, known=log_q) for points, log_q in known))

    def densities(self, sums: Sequence[LogSums]) -> tuple[NDArray, ...]:
        """log q of these points from the sums of `paths`, if all reference points were summed over."""
        return tuple(
            logsumexp(of_paths[0].logs[:, 0], axis=2)
            if ladder.alphas.any()
            else np.zeros((len(ladder.factors), of_paths[0].top.shape[1]))
            for ladder, of_paths in self._by_ladder(sums)
        )

    def differentiate(self, columns: MixturePoints, weights: NDArray, leave_out: NDArray) -> CalledSums:
        """The sums alone: a mixture has no free parameters."""
        tile = to_numpy(cross_out(self.tile(columns), leave_out, 0, 0.0))
        return CalledSums((tile @ weights).astype(float), np.empty((len(self), 0)))

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        return np.empty(0)


@dataclass(frozen=True, eq=False)
class Mixture(Covariance):
    """A sum of members, with the reference points of their densities; `Covariance` says what the methods are for."""

    ladders: tuple[Ladder, ...]
    X: Any
    """The reference points."""
    counts: NDArray | None = None
    """Weight of each reference point; None if each counts once."""
    log_densities: tuple[NDArray, ...] | None = field(default=None, repr=False)
    """log q of the reference points, shape (F, n) for each ladder; None to compute it."""

    @property
    def kernel(self) -> Mixture:
        return self

    @property
    def tied(self) -> tuple[Ladder, ...]:
        """The ladders that are a covariance: all but the free ones."""
        return tuple(ladder for ladder in self.ladders if not ladder.free)

    @property
    def tied_log_densities(self) -> list[NDArray] | None:
        """log q of the reference points for each of the `tied` ladders, if it is known."""
        if self.log_densities is None:
            return None
        return [log_q for ladder, log_q in zip(self.ladders, self.log_densities, strict=True) if not ladder.free]

    @property
    def support(self) -> NDArray:
        """Whether each reference point has a free weight."""
        weights = [ladder.point_weights for ladder in self.ladders if ladder.point_weights is not None]
        return np.any([each.any(axis=0) for each in weights], axis=0) if weights else np.zeros(self.n_reference, bool)

    @property
    def n_reference(self) -> int:
        return self.X.shape[0]

    def bind(self, X, rows: NDArray | None = None) -> MixturePoints:
        chosen = X if rows is None else rows_of(X, rows)
        return MixturePoints(self, tuple(points.at(chosen) for points in self._reference))

    def bind_reference(self, order: NDArray | None = None) -> MixturePoints:
        """Hold the reference points, with their densities; in an order, if their densities are known."""
        densities, mixture = self.log_densities, self
        # Not those of `_reference`: as long as nobody asks for them, the points need not be held twice.
        points = self._bound(order, few=True)
        if densities is None:
            densities = tuple(own_log_densities(each, self.counts) for each in points)
            mixture = replace(self, log_densities=densities)
        if order is not None:
            densities = tuple(known[:, order] for known in densities)
        held = zip(points, densities, strict=True)
        ladders = tuple(replace(each, known=known) for each, known in held)
        return MixturePoints(mixture, ladders, np.arange(self.n_reference) if order is None else order, learned=True)

    def over(
        self, X, counts: NDArray | None, origin: NDArray, points: tuple[LadderPoints, ...] | None = None
    ) -> MixturePoints:
        """The same members with densities over other reference points, which are bound to the new mixture.

        Parameters
        ----------
        X : array or CSR array
            The new reference points.
        counts : array, optional
            The weight of each of them.
        origin : integer array
            The place of each of them among the reference points so far, -1 for none.
        points : tuple of LadderPoints, optional
            The new reference points in each representation, with their densities. They are computed otherwise.
        """
        ladders = tuple(ladder.reindexed(origin) for ladder in self.ladders)
        if points is None:
            return Mixture(ladders, X, counts).bind_reference()
        densities = tuple(each.known for each in points if each.known is not None)
        new = Mixture(ladders, X, counts, densities)
        bound = tuple(replace(each, ladder=ladder) for each, ladder in zip(points, ladders, strict=True))
        new.__dict__["_anchor"] = bound  # as long as nobody asks for them, reference points need not be held twice
        return MixturePoints(new, bound, np.arange(len(origin)), learned=True)

    def reweighed(self, weights: Sequence[NDArray], point_weights: Sequence[NDArray] = ()) -> Mixture:
        """The same members with other weights: an array of shape (F, A) for each tied ladder, (F, n) for free ones."""
        tied, free = iter(weights), iter(point_weights)
        return self._with_ladders(
            replace(ladder, point_weights=next(free)) if ladder.free else replace(ladder, weights=next(tied))
            for ladder in self.ladders
        )

    def counting(self, share: float) -> Mixture:
        """The same members if each point counts so much, in densities and in class sums.

        k / ((q + e) (q' + e))^alpha with q and k times `share` is the same with another floor and another weight. Class
        sums over more points are then about what they were when the weights were chosen.
        """
        return self._with_ladders(
            ladder
            if ladder.free
            else replace(
                ladder, floors=ladder.floors / share, weights=ladder.weights * share ** (1 - 2 * ladder.alphas)
            )
            for ladder in self.ladders
        )

    def at_powers(self, alphas: NDArray, floors: NDArray) -> Mixture:
        """The same tied kernels at some powers of their densities, before the weights of these members are known."""
        powers: dict[str, Any] = {"alphas": alphas, "floors": floors}
        shapes = ((ladder, np.zeros((len(ladder.factors), len(alphas)))) for ladder in self.ladders)
        return self._with_ladders(
            ladder if ladder.free else replace(ladder, weights=weights, **powers) for ladder, weights in shapes
        )

    def _with_ladders(self, ladders: Iterable[Ladder]) -> Mixture:
        """Other members on the same representations and length scales, so that points and densities are held."""
        ladders, known = tuple(ladders), self.log_densities
        if known is not None:
            both = zip(ladders, known, strict=True)
            known = tuple(log_q if each.point_weights is None else each.point_weights for each, log_q in both)
        new, anchor = replace(self, ladders=ladders, log_densities=known), self.__dict__.get("_anchor")
        if anchor is not None:
            held = zip(anchor, new.ladders, strict=True)
            new.__dict__["_anchor"] = tuple(replace(points, ladder=ladder) for points, ladder in held)
        return new

    def apart(self, X, counts: NDArray | None, scale: float) -> Mixture:
        """The same members with densities that were fixed before other points were seen.

        Each point has the density of the reference points X times `scale`, and one point more, which stands for itself.
        So all points that are not among X are treated alike, whether they are labelled or not.
        """
        ladders = tuple(replace(ladder, floors=ladder.floors + 1) for ladder in self.ladders)
        return Mixture(ladders, X, np.full(X.shape[0], scale) if counts is None else scale * counts)

    def _bound(self, order: NDArray | None = None, *, few: bool = False) -> tuple[LadderPoints, ...]:
        """The reference points. Free ladders share those of tied ones on the same representation.

        With `few`, others hold the points that have a weight. The weights are those of the reference points then.
        """
        anchor, found = self.__dict__.get("_anchor"), list[LadderPoints]()
        if anchor is not None:
            X = self.X if order is None else rows_of(self.X, order)
            return tuple(points.at(X) for points in anchor)
        for ladder in self.ladders:
            points = next((each.points for each in found if each.ladder.sees_as(ladder)), None)
            if points is None and few and ladder.free:
                points = SupportPoints.of(ladder, self.X, order)
            found.append(ladder.bind_some(self.X, order) if points is None else LadderPoints(ladder, points))
        return tuple(found)

    @cached_property
    def _reference(self) -> tuple[LadderPoints, ...]:
        return self._bound()

    def reference(self, k: int) -> LadderPoints:
        return self._reference[k]

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Mixture:
        """All length scales and all weights multiplied; other length scales have other densities."""
        ladders = tuple(
            replace(ladder, factors=ladder.factors * length, weights=ladder.weights * variance)
            for ladder in self.ladders
        )
        return replace(self, ladders=ladders, log_densities=self.log_densities if length == 1 else None)

    @property
    def stationary(self) -> bool:
        """Whether every member is, without a representation or a density."""
        plain = (
            ladder.transform is None and ladder.covariance.stationary and not ladder.alphas.any()
            for ladder in self.tied
        )
        return all(plain)

    def check_nonnegative(self) -> None:
        """Raise ValueError if a kernel may take negative values, or if there is nothing but weights of points."""
        if not self.tied:
            raise ValueError(
                "all weights of this mixture are those of single points, so as a covariance it is 0: learn one with "
                "LGCPClassifier(bank='simple')"
            )
        for ladder in self.ladders:
            ladder.covariance.check_nonnegative()

    def __call__(self, X, Y=None) -> NDArray:
        """Covariances of all pairs, like a kernel of scikit-learn."""
        X = np.asarray(X, dtype=float)
        rows = self.bind(X)
        return values(rows, rows if Y is None else self.bind(np.asarray(Y, dtype=float)))

    def diag(self, X) -> NDArray:
        """`diagonal`, under the name that kernels of scikit-learn have for it."""
        return self.diagonal(np.asarray(X, dtype=float))

    def is_stationary(self) -> bool:
        """`stationary`, under the name that kernels of scikit-learn have for it."""
        return self.stationary

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in {"_reference", "_anchor"}}

    def __repr__(self) -> str:
        tied = [
            f"{ladder.weights[f, a]:.3g} * {ladder.kernel(f)!r} of {ladder.name} points / density**{ladder.alphas[a]:g}"
            for ladder in self.ladders
            for f, a in ladder.terms
        ]
        free = [
            f"free weights of {np.count_nonzero(weights)} points * {ladder.kernel(f)!r} of {ladder.name} points"
            for ladder in self.ladders
            if ladder.point_weights is not None
            for f, weights in enumerate(ladder.point_weights)
        ]
        return " + ".join(tied + free)
