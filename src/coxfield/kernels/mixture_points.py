"""Points bound to a mixture of covariances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.special import logsumexp

from coxfield.kernels.called import CalledSums
from coxfield.kernels.mixture_ladder import LadderPoints, inverse, log_densities
from coxfield.kernels.namespace import Library, cross_out, like, to_numpy
from coxfield.kernels.protocol import Covariance, LogSums, Path, PlainPoints
from coxfield.utils.numbers import logs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from coxfield.kernels.mixture_ladder import Ladder


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
class MixturePoints(PlainPoints):
    """Points in every representation; `KernelPoints` says what the methods are for."""

    covariance: MixtureForm
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
        """Where the points are."""
        return self.ladders[0].points.library

    def precisely(self) -> MixturePoints:
        """The same points, with distances that no rounding has spoilt."""
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

    def at(self, X) -> MixturePoints:
        """Other points in the same representations."""
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

    def imprecise(self, columns: MixturePoints, factor: float = 1.0) -> NDArray:
        """Whether rounding spoils the shortest length scale of a representation."""
        wrong = np.zeros(len(self), dtype=bool)
        for points, theirs in zip(self.ladders, columns.ladders, strict=True):
            wrong |= points.points.imprecise(theirs.points, factor * points.ladder.factors.min())
        return wrong

    def log_tile(self, columns: MixturePoints, *, leave_out: NDArray | None = None) -> NDArray:
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
        if leave_out is not None:
            cross_out(found, leave_out, 0, -np.inf)
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
        """C of listed pairs."""
        found = np.zeros(len(rows))
        for k, points in enumerate(self.ladders):
            ladder, theirs = points.ladder, columns.ladders[k].points
            mine, others = self.log_densities[k], columns.log_densities[k]
            for f, values in enumerate(points.points.pairs_at(rows, theirs, of_columns, ladder.factors)):
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
        """The same points with densities that are known."""
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
        """Nothing: a mixture has no free parameters."""
        return np.empty(0)
