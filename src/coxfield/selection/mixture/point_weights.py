"""Points with weights of their own beside the tied members of a bank: kernels, candidates, and what they say.

A fit chooses the rate of their prior by folds. When rows have come or gone, the kernels and the rate stay, and the
weights of all points are found again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coxfield.kernels.distances import SquaredExponential
from coxfield.kernels.namespace import to_numpy
from coxfield.kernels.radial import Radial
from coxfield.selection.mixture.concave import Solution
from coxfield.selection.mixture.cross_fitting import seen_by
from coxfield.selection.mixture.free import Folded, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.mixture import Ladder, Mixture
    from coxfield.selection.mixture.concave import Problem
    from coxfield.selection.mixture.loo_members import MemberSums

# Length scales of free members, as places on a ladder: the root mean square distance, a half, a quarter, an eighth.
PLACES = (0, 2, 4, 6, 8)
ALIKE, FEW = 0.01, 200  # mean difference of kernels that are the same, and rows at which they are compared
MOST_VALUES = 2**26  # kernel values that are held, in single precision: a quarter of a gigabyte
MOST_CANDIDATES = 1500  # points that may have a weight of their own; if there are more, so many are drawn
NEGLIGIBLE = 0.01  # a share of the evidence that is not worth the time of a prediction
QUIETER = 10 ** np.arange(0, 4, 0.5)  # times the rate of the fit, if points that have come would hear too much


@dataclass(frozen=True)
class PointWeights:
    """Weights of points of their own beside tied weights."""

    solution: Solution
    """Tied weights, and means."""
    ladders: list[Ladder]
    """Free ladders, with weights that may be zero."""
    evidence: NDArray
    """How far apart the class sums of each free kernel with weights are, on average over the rows."""
    rate: float
    """Of the prior of the weights."""
    loudest: tuple[float, float]
    """The largest evidence of all members in nats, at rows that were left out and at copies of them."""

    @property
    def point_weights(self) -> list[NDArray]:
        """Those of each ladder."""
        return [ladder.point_weights for ladder in self.ladders if ladder.point_weights is not None]


def free_ladders(bank: Sequence[Ladder]) -> list[Ladder]:
    """Squared exponentials of a bank at a few length scales, without powers of the density."""
    found = []
    for ladder in bank:
        if isinstance(ladder.covariance, Radial) and isinstance(ladder.covariance.profile, SquaredExponential):
            factors = ladder.factors[[place for place in PLACES if place < len(ladder.factors)]]
            nothing = np.empty(0)
            free = replace(ladder, factors=factors, alphas=nothing, floors=nothing, weights=np.empty((len(factors), 0)))
            found += [free] if len(factors) else []
    return found


def candidates_of(y: NDArray, n_members: int, n_rows: int, held: NDArray | None = None) -> NDArray:
    """The points that may have a weight of their own, sorted by class; before all others those that have one already.

    `held` says which these are.
    """
    most = max(1, min(MOST_CANDIDATES, MOST_VALUES // max(1, n_members * n_rows)))
    some = np.arange(len(y))
    if len(y) > most:
        some = np.random.default_rng(1).permutation(len(y))
        some = np.sort((some if held is None else some[np.argsort(~held[some], kind="stable")])[:most])
    return some[np.argsort(y[some], kind="stable")]


def free_kernels(
    labelled: Labelled, ladders: Sequence[Ladder], rows: NDArray, candidates: NDArray, alike: float = ALIKE
) -> tuple[list[Ladder], NDArray]:
    """Kernel values between rows that are left out and candidates, 0 between a point and itself, shape (M, n, m).

    Ladders whose values differ from those of an earlier one by no more than `alike` on average are left out: weights
    would be shared among them.
    """
    found, kept = np.empty((sum(len(each.factors) for each in ladders), len(rows), len(candidates)), np.float32), []
    at, of = np.nonzero(rows[:, None] == candidates)
    first, starts, asked = 0, list[int](), np.union1d(rows, candidates)
    for ladder in ladders:
        for places, seen in seen_by(ladder, rows):
            points = seen.bind_some(labelled.X, asked)
            mine = points[np.searchsorted(asked, rows[places])].left_out(rows[places]).points
            others = points[np.searchsorted(asked, candidates)].points
            for f, tile in enumerate(mine.tiles_at(others, seen.factors)):
                found[first + f, places] = to_numpy(tile)
        found[first : first + len(ladder.factors), at, of] = 0
        if all(np.abs(found[first, :FEW] - found[start, :FEW]).mean() > alike for start in starts):
            kept.append(ladder)
            starts.append(first)
            first += len(ladder.factors)
    return kept, found[:first]


@dataclass(frozen=True)
class Freeing:
    """Gives points weights of their own, beside the tied members of a bank."""

    labelled: Labelled
    ladders: Sequence[Ladder]
    """Free ladders, which may have weights already."""
    rows: NDArray
    """The rows that are left out."""
    found: MemberSums
    """What tied members say to them."""
    problem: Problem
    """The problem of tied members alone."""
    parts: Sequence[Problem]
    """The same without each fold."""
    whole_fold: NDArray
    """The fold of each labelled point."""
    learn_mean: bool

    def chosen(self, solution: Solution, everyone: Freeing | None) -> tuple[PointWeights | None, NDArray]:
        """The optimum at the rate that the folds prefer, None if no weights are as good; and scores by folds.

        `solution` is the optimum without weights of points, and `everyone` has more rows for the last word on weights.
        """
        y, n_kernels = self.labelled.y, sum(len(ladder.factors) for ladder in self.ladders)
        candidates = candidates_of(y, n_kernels, len(self.rows))
        ladders, kernels = free_kernels(self.labelled, self.ladders, self.rows, candidates)
        folded = self._folded(kernels, candidates)
        freed = folded.best(self._start(solution, np.empty(0, int), np.empty(0)))
        if not len(freed.state.beta):
            return None, freed.scores
        given = self._given(folded, self._pruned(folded, freed.rate, freed.state), freed.rate, ladders, candidates)
        given = replace(given, ladders=list(_used(given.ladders)))
        return given if everyone is None else everyone.settled(solution, given), freed.scores

    def settled(self, solution: Solution, given: PointWeights) -> PointWeights:
        """The optimum for these rows among the points that fewer rows have given weights.

        Tied weights need more rows than the choice of points does.
        """
        held = _held(given.ladders)
        some = np.flatnonzero(held.any(axis=0))
        candidates = some[np.argsort(self.labelled.y[some], kind="stable")]
        folded, start = self._warm(solution, given.ladders, held, candidates)
        state = replace(folded.whole, rate=given.rate).solve(start)
        return self._given(folded, self._pruned(folded, given.rate, state), given.rate, given.ladders, candidates)

    def again(
        self, solution: Solution, rate: float, loudest: Callable, everyone: Freeing | None
    ) -> tuple[PointWeights, NDArray]:
        """The optimum with the same kernels and the same rate, or a larger one, and scores by folds.

        Parameters
        ----------
        solution : Solution
            The optimum without weights of points. It is in use where no rate is large enough.
        rate : float
        loudest : function
            The evidence that a copy may hear, if rows that were left out hear so much.
        everyone : Freeing, optional
            More rows, for the last word on weights.
        """
        held = _held(self.ladders)
        candidates = candidates_of(self.labelled.y, len(held), len(self.rows), np.asarray(held.any(axis=0)))
        folded, start = self._warm(solution, self.ladders, held, candidates)
        nothing = self._start(solution, np.empty(0, int), np.empty(0))
        for larger in (rate * QUIETER).tolist():
            freed = folded.at(larger, start)
            state = self._pruned(folded, larger, freed.state) if len(freed.state.beta) else nothing
            given = self._given(folded, state, larger, self.ladders, candidates)
            if everyone is not None and len(state.beta):
                given = everyone.settled(solution, given)
            left_out, at_copies = given.loudest
            if at_copies <= loudest(left_out):
                return replace(given, rate=rate), freed.scores
        return self._given(folded, nothing, rate, self.ladders, candidates), self.problem.scores(
            self.problem.vector(solution)
        )

    def _warm(
        self, solution: Solution, ladders: Sequence[Ladder], held: NDArray, candidates: NDArray
    ) -> tuple[Folded, State]:
        """The problem of some candidates, and the weights of all points as its start."""
        _, kernels = free_kernels(self.labelled, ladders, self.rows, candidates, alike=-1)
        beta = (held * self.labelled.counts)[:, candidates].ravel()
        columns = np.flatnonzero(beta)
        return self._folded(kernels, candidates), self._start(solution, columns, beta[columns])

    def _start(self, solution: Solution, columns: NDArray, beta: NDArray) -> State:
        tied = self.problem.vector(solution)[: self.problem.n_members]
        return State(tied, columns, beta, solution.mean)

    def _folded(self, kernels: NDArray, candidates: NDArray) -> Folded:
        fold, classes = self.whole_fold, self.labelled.y[candidates]
        return Folded.of(
            self.problem, self.parts, fold[self.rows], kernels, classes, fold[candidates], learn_mean=self.learn_mean
        )

    def _given(
        self, folded: Folded, state: State, rate: float, ladders: Sequence[Ladder], candidates: NDArray
    ) -> PointWeights:
        """A state as weights of members and of points."""
        dense = state.dense(len(folded.whole.kernels), len(candidates))
        beta = np.zeros((len(dense), len(self.labelled)))
        beta[:, candidates] = dense / self.labelled.counts[candidates]
        sizes = [len(ladder.factors) for ladder in ladders]
        parts = zip(ladders, np.split(beta, np.cumsum(sizes)[:-1]), strict=True)
        solution = Solution(state.tied / self.problem.scale, state.mean, folded.whole.loss(state))
        at, of = np.nonzero(self.rows[:, None] == candidates)
        own = np.zeros(len(self.rows))
        own[at] = (np.repeat([ladder.one for ladder in ladders], sizes) @ dense)[of]
        return PointWeights(
            solution,
            [replace(ladder, point_weights=each) for ladder, each in parts],
            folded.whole.free_evidence(state)[beta.any(axis=1)],
            rate,
            self.found.largest_evidence(solution.weights, folded.whole.free_sums(state), own),
        )

    def _pruned(self, folded: Folded, rate: float, optimum: State) -> State:
        """The optimum without tied members that say next to nothing."""
        of_tied = evidence_of(self.found.sums, optimum.tied / self.problem.scale)
        few = of_tied > NEGLIGIBLE * (folded.whole.free_evidence(optimum).sum() + of_tied.sum())
        if few.sum() == np.count_nonzero(optimum.tied):
            return optimum
        some = replace(folded.whole, evidence=folded.whole.evidence[few], rate=rate)
        state = some.solve(replace(optimum, tied=optimum.tied[few]))
        tied = np.zeros(len(few))
        tied[few] = state.tied
        return replace(state, tied=tied)


def evidence_of(sums: NDArray, weights: NDArray) -> NDArray:
    """The evidence of each member: how far apart its class sums are, on average over the points."""
    evidence = np.zeros(len(sums))
    alive = np.flatnonzero(weights)
    evidence[alive] = weights[alive] * np.ptp(sums[alive], axis=2).mean(axis=1)
    if len(alive) and not evidence.any():  # all points say the same of all classes
        evidence[alive] = 1 / len(alive)
    return evidence


def with_free(mixture: Mixture, given: Sequence[Ladder]) -> Mixture:
    """A mixture with free ladders."""
    ladders, densities = list(mixture.ladders), list(mixture.log_densities or ())
    for ladder in _used(given):
        assert ladder.point_weights is not None
        ladders.append(ladder.plain)
        densities.append(ladder.point_weights)
    return replace(mixture, ladders=tuple(ladders), log_densities=tuple(densities))


def _held(ladders: Sequence[Ladder]) -> NDArray:
    """The weights of all points in free ladders, a row for each length scale."""
    return np.concatenate([ladder.point_weights for ladder in ladders if ladder.point_weights is not None])


def _used(ladders: Sequence[Ladder]) -> Iterator[Ladder]:
    """Free ladders without length scales that have no weight."""
    for ladder in ladders:
        assert ladder.point_weights is not None
        kept = ladder.point_weights.any(axis=1)
        if kept.any():
            none, points = np.empty((kept.sum(), 0)), ladder.point_weights[kept]
            yield replace(ladder, factors=ladder.factors[kept], weights=none, point_weights=points)
