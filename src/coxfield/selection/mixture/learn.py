"""From labelled points to a mixture: bank, leave-one-out sums, weights, survivors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_softmax
from sklearn.utils import gen_batches

from coxfield.engine.cells import sampled_rows
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_bound
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.protocol import PerClass
from coxfield.progress import progress
from coxfield.selection.mixture.concave import MOST_STEPS, Problem, Solution
from coxfield.selection.mixture.cross_fitting import FOLDS, folds_of, number_of_folds, sums_of
from coxfield.selection.mixture.loo_members import COLUMNS, LOUDER, MemberSums, work_units
from coxfield.selection.mixture.point_weights import (
    NEGLIGIBLE,
    Freeing,
    evidence_of,
    free_ladders,
    with_free,
)
from coxfield.selection.mixture.sampling import (
    LEFT_OUT,
    LEFT_OUT_VALUES,
    MANY,
    OF_CLASS,
    OF_CLASS_IN_POOL,
    PILOT,
    POOL,
    POOL_VALUES,
    at_hand,
    beside,
    informative_rows,
    many,
    of_rows,
    positions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.mixture import Ladder

FAINT = 1e-6  # nats: evidence that no probability shows
MOST_ROWS = 10_000  # rows whose probabilities count; if there are more, so many are drawn. All points are in the sums.
MOST_FREE_ROWS = 3000  # of them by which weights of single points are found
LIGHTER = 4  # times fewer class sums are held there, because each fold holds some of its own
FREE_ROWS = 100  # with fewer, no point has a weight of its own: of 60 rows, folds know too little of small clean sets
MOST_VALUES = 2**25  # class sums of all members that are held: a quarter of a gigabyte, twice
CAUTION = 0.5  # the rate of the prior is the geometric mean of the evidence that was shown and that is possible
CHEAP, DEARER, HALVINGS = 1 / 16, 4.0, 6  # the first price of evidence at copies, and the search for the least
ASKED_VALUES = 2**20  # class sums of the pilot, or values of the rows that are asked, that are held at once
MOST_PRICES = 24  # so many lead to 4e12, and no optimum pays more than the loss without evidence
NESTED = 2000  # rows up to which the choice of the weights makes leave-one-out too hopeful
FREE = ", free weights"  # after the name of a representation
FASTER = "float32 points or fewer length_scales take less time"


@dataclass(frozen=True)
class Sampled:
    """What was drawn where rows are many."""

    rows: NDArray
    """The rows that were left out."""
    counts: NDArray
    """How many rows each of them stands for, times its weight."""
    n_pilot: int
    """Number of rows of the pilot."""
    n_candidates: int
    """Number of members that it left."""


@dataclass(frozen=True)
class LearnedMixture:
    """A mixture with its means, and what the bank had to say."""

    mixture: Mixture
    mean: NDArray
    table: dict[str, NDArray]
    """The surviving members, see `LGCPClassifier.mixture_`."""
    loo_error: float
    loo_log_loss: float
    shown: float
    """The largest evidence in nats at a point that was left out, and at a copy of a labelled point."""
    sampled: Sampled | None = None
    """What was drawn, if not all pairs of rows were summed."""
    rate: float | None = None
    """Of the prior of the weights of points, if some have one."""


def learn_mixture(
    labelled: Labelled,
    bank: Sequence[Ladder],
    mean: NDArray,
    *,
    learn_mean: bool = True,
    verbose: int = 0,
    known: Mixture | None = None,
    free: bool = False,
    random: np.random.Generator | None = None,
    shown: float = np.inf,
    rate: float = 1.0,
) -> LearnedMixture:
    """The mixture of a bank that leave-one-out prefers.

    Parameters
    ----------
    labelled : Labelled
    bank : sequence of Ladder
    mean : array of shape (n_classes,)
        Class means. If they are learned, they are relative to the logarithms of the class shares.
    learn_mean : bool
    verbose : int
        Above 0, show the progress.
    known : Mixture, optional
        A mixture whose tied ladders are the bank, and whose reference points are the labelled points. It gets other
        weights, those of points included.
    free : bool
        Whether points may also have weights of their own.
    random : numpy.random.Generator, optional
        How rows are drawn if there are many, so that the time grows in proportion to their number. Without it, all
        pairs of rows count.
    shown : float
        The largest evidence in nats that the members have shown before. Weights that are chosen again are held to it.
    rate : float
        Of the prior of the weights of points, if `known` has some.
    """
    fixed = [] if known is None else [ladder for ladder in known.ladders if ladder.free]
    free = bool(fixed) or (free and labelled.n_classes <= COLUMNS and len(labelled) >= FREE_ROWS)
    centre = mean + log_shares(labelled.y, labelled.counts, labelled.n_classes) if learn_mean else mean
    whole_bank, drawn = bank, None
    if random is not None and known is None and len(labelled) > MANY:
        drawn = _drawn(labelled, bank, centre, random, learn_mean=learn_mean, verbose=verbose)
        labelled, bank, rows, counts = drawn.labelled, drawn.bank, drawn.rows, drawn.counts
    members = sum(ladder.weights.size for ladder in bank)
    if drawn is None:
        rows = _rows(len(labelled), max(1, members) * min(labelled.n_classes, COLUMNS))
        # So that the sum over rows drawn at random is an unbiased estimate of the sum over all rows.
        counts = labelled.counts[rows] * (len(labelled) / len(rows))
    sampled = None if drawn is None else Sampled(rows, counts, drawn.n_pilot, members)
    units = work_units(labelled, bank, rows)
    nested = len(rows) == len(labelled) and _nested(labelled, members)
    n_folds = number_of_folds(len(labelled)) if free else FOLDS
    fold = folds_of(labelled.y, n_folds) if free or nested else None
    with progress(f"leave-one-out sums of {members} covariances", units, verbose, FASTER) as done:
        found = sums_of(labelled, bank, rows, done, None if known is None else known.tied_log_densities, fold)
    tied = _solved(_Asked(rows, counts, centre, learn_mean), found, verbose=verbose, shown=shown)
    judged, scores, given = tied, tied.problem.scores(tied.problem.vector(tied.solution)), None
    if free:
        assert fold is not None
        few = tied.at(_rows(len(rows), LIGHTER * max(1, members) * labelled.n_classes, MOST_FREE_ROWS))
        freeing = few.freeing(labelled, fixed or free_ladders(whole_bank), fold)
        everyone = None if few is tied else tied.freeing(labelled, [], fold, judging=False)
        if fixed:
            given, by_folds = freeing.again(few.solution, rate, lambda most: LOUDER * max(shown, most, FAINT), everyone)
        else:
            given, by_folds = freeing.chosen(few.solution, everyone)
        if given is not None or nested:
            judged, scores = few, by_folds
    elif fold is not None:
        scores = tied.by_folds(fold)
    solution = tied.solution if given is None else given.solution
    if known is None:
        mixture = _survivors(labelled, bank, found, solution)
        mixture = mixture if given is None else with_free(mixture, given.ladders)
    else:
        mixture = known.reweighed(_split(bank, solution), [] if given is None else given.point_weights)
    evidence = evidence_of(judged.found.sums, solution.weights)[solution.weights > 0]
    evidence = evidence if given is None else np.concatenate([evidence, given.evidence])
    loudest = found.largest_evidence(solution.weights) if given is None else given.loudest
    return LearnedMixture(
        mixture,
        solution.mean,
        _table(mixture, evidence),
        *_averages(scores, judged.problem),
        max(loudest),
        sampled,
        None if given is None else given.rate,
    )


@dataclass(frozen=True)
class _Asked:
    """The rows whose probabilities count."""

    rows: NDArray
    counts: NDArray
    """How many rows each of them stands for, times its weight."""
    centre: NDArray
    """Centre of the prior of the means."""
    learn_mean: bool


@dataclass(frozen=True)
class _Tied:
    """The optimum of tied weights and means."""

    asked: _Asked
    found: MemberSums
    problem: Problem
    solution: Solution
    price: float
    """Of evidence at copies."""

    def at(self, some: NDArray) -> _Tied:
        """The same weights with the problem of some of the rows."""
        asked, found = self.asked, self.found
        if len(some) == len(asked.rows):
            return self
        counts = asked.counts[some] * (len(asked.rows) / len(some))
        found = replace(
            found,
            y=found.y[some],
            sums=found.sums[:, some],
            by_fold=found.by_fold[:, some],
            to_copies=found.to_copies[..., some],
        )
        problem = Problem.of(found.sums, found.y, counts, asked.centre, None, found.at_copies, CAUTION, self.price)
        return _Tied(replace(asked, rows=asked.rows[some], counts=counts), found, problem, self.solution, self.price)

    def parts(self, fold: NDArray) -> list[Problem]:
        """The problems that know nothing of the labels of a fold; `fold` is the one of each row."""
        return [self._without(fold, k) for k in range(fold.max() + 1)]

    def _without(self, fold: NDArray, k: int) -> Problem:
        """The problem that knows neither the probabilities of a fold, nor what its labels say to others.

        What the others say is scaled up to the number of all.
        """
        kept, counts, found = fold != k, self.asked.counts, self.found
        rest = np.maximum(found.sums - found.by_fold[..., k], 0)[:, kept]
        rest *= counts.sum() / counts[kept].sum()
        return Problem.of(
            rest, found.y[kept], counts[kept], self.asked.centre, None, found.at_copies, CAUTION, self.price
        )

    def by_folds(self, fold: NDArray) -> NDArray:
        """Scores of each row by weights that were chosen without its fold."""
        scores = np.empty((len(fold), len(self.asked.centre)))
        for k, part in enumerate(self.parts(fold)):
            others = part.solve(learn_mean=self.asked.learn_mean)
            scores[fold == k] = self.problem.scores(self.problem.vector(others))[fold == k]
        return scores

    def freeing(
        self, labelled: Labelled, ladders: Sequence[Ladder], whole_fold: NDArray, *, judging: bool = True
    ) -> Freeing:
        """What gives points weights beside these; without `judging`, nothing is held for the folds."""
        rows = self.asked.rows
        parts = self.parts(whole_fold[rows]) if judging else []
        return Freeing(labelled, ladders, rows, self.found, self.problem, parts, whole_fold, self.asked.learn_mean)


def _solved(asked: _Asked, found: MemberSums, *, verbose: int = 0, shown: float = np.inf) -> _Tied:
    """The weights without members that say next to nothing, and the price of evidence at copies.

    Few members that must do for other rows may speak far too loud beside an isolated point. Then evidence at copies
    has a price: the least at which no copy hears much more than `shown`, or than points that are left out hear now.
    The search ends: evidence times price is at most the loss without evidence, and evidence of `FAINT` is allowed.
    """
    counts, centre, learn_mean = asked.counts, asked.centre, asked.learn_mean
    title = f"weights of {len(found.sums)} covariances, {MOST_STEPS} steps at most"

    def at(price: float) -> _Tied:
        problem = Problem.of(found.sums, found.y, counts, centre, found.offset(centre), found.at_copies, CAUTION, price)
        with progress(title, MOST_STEPS, 0 if price else verbose, FASTER, at_most=True) as done:
            solution = problem.solve(learn_mean=learn_mean, done=done)
        few = _shares(found.sums, solution.weights) >= NEGLIGIBLE
        if few.sum() < np.count_nonzero(solution.weights):
            solution = problem.restricted(few).solve(learn_mean=learn_mean).spread_over(few)
        if len(found.sums) and not solution.weights.any():
            solution = _faintest(problem, solution)
        return _Tied(asked, found, problem, solution, price)

    best = at(0.0)
    most = LOUDER * max(shown, found.largest_evidence(best.solution.weights)[0], FAINT)

    def too_loud(solved: _Tied) -> bool:
        return found.largest_evidence(solved.solution.weights)[1] > most

    low = 0.0
    for high in CHEAP * DEARER ** np.arange(MOST_PRICES):
        if not too_loud(best):
            break
        best, low = at(float(high)), best.price
    for _ in range(HALVINGS if best.price else 0):
        tried = at((low + best.price) / 2)
        if too_loud(tried):
            low = tried.price
        else:
            best = tried
    return best


@dataclass(frozen=True)
class _Drawn:
    """What a pilot has drawn."""

    labelled: Labelled
    """All points, whose densities are summed over samples."""
    bank: list[Ladder]
    """The members that are worth a look."""
    rows: NDArray
    """The rows that are left out."""
    counts: NDArray
    """How many rows each of them stands for, times its weight."""
    n_pilot: int


def _drawn(
    labelled: Labelled,
    bank: Sequence[Ladder],
    centre: NDArray,
    random: np.random.Generator,
    *,
    learn_mean: bool,
    verbose: int,
) -> _Drawn:
    """Candidates, and rows to be left out, by a fit to a few thousand rows."""
    here, places = at_hand(labelled)
    some, stand_for = sampled_rows(here.y, PILOT, random, OF_CLASS)
    counts = here.counts[some] * stand_for
    counts *= len(some) / counts.sum()
    pilot = replace(here[some], weights=counts.astype(here.X.dtype))
    of_pilot, every = [of_rows(ladder, places[some]) for ladder in bank], np.arange(len(some))
    with progress("leave-one-out sums of a pilot", work_units(pilot, bank, every), verbose, FASTER) as done:
        found = sums_of(pilot, of_pilot, every, done)
    solution = _solved(_Asked(every, counts, centre, learn_mean), found).solution
    mixture = _survivors(pilot, of_pilot, found, solution)
    most = max(2 * LEFT_OUT, min(POOL, POOL_VALUES // here.n_classes))
    pool, pool_counts = sampled_rows(here.y, most, random, min(OF_CLASS_IN_POOL, most // here.n_classes))
    probability = _label_probabilities(pilot, mixture, solution.mean, here, pool, positions(pool, some))
    candidates = beside(bank, _split(bank, solution))
    values = sum(ladder.weights.size for ladder in candidates) * min(here.n_classes, COLUMNS)
    most = max(1, min(LEFT_OUT, LEFT_OUT_VALUES // values))
    pool_counts = pool_counts * here.counts[pool] * (labelled.counts.sum() / here.counts.sum())
    rows, row_counts = informative_rows(probability, pool_counts, most, random)
    seed = int(random.integers(2**32))
    return _Drawn(many(labelled, seed), candidates, places[pool[rows]], row_counts, len(some))


def _label_probabilities(
    pilot: Labelled, mixture: Mixture, mean: NDArray, labelled: Labelled, rows: NDArray, own: NDArray
) -> NDArray:
    """The probability of the labels of some rows by the fit to a pilot; `own` are places in it that do not count."""
    covariances: PerClass = PerClass.shared_by(mixture, pilot.n_classes)
    store = store_bound([mixture.bind_reference()], pilot.y, covariances, pilot.weights)
    found = np.empty(len(rows))
    # Of the rows that are asked, each representation has a copy.
    for part in gen_batches(len(rows), max(1, ASKED_VALUES // max(pilot.n_classes, pilot.X.shape[1]))):
        asked = labelled[rows[part]]
        scores = class_sums(store, asked.X, own[part]).values + mean
        found[part] = np.exp(log_softmax(scores, axis=1))[np.arange(len(scores)), asked.y]
    return found


def _nested(labelled: Labelled, members: int) -> bool:
    """Whether leave-one-out figures are of weights that were chosen without the row.

    Weights that were chosen by the same rows promise too much. With many rows that makes no difference.
    """
    n, n_classes = len(labelled), labelled.n_classes
    return 1 < n <= NESTED and n_classes <= COLUMNS and n * n_classes * members * FOLDS <= MOST_VALUES


def _averages(scores: NDArray, problem: Problem) -> tuple[float, float]:
    """Error and log loss of the scores of all rows."""
    logs = log_softmax(scores, axis=1)[np.arange(len(scores)), problem.y]
    wrong = scores.argmax(axis=1) != problem.y
    return float(np.average(wrong, weights=problem.counts)), float(-np.average(logs, weights=problem.counts))


def log_shares(y: NDArray, counts: NDArray, n_classes: int) -> NDArray:
    """Logarithms of the shares of the classes. A class without rows counts like one row."""
    totals = np.bincount(y, counts, minlength=n_classes)
    return np.log(np.where(totals > 0, totals, 1.0) / counts.sum())


def _rows(n: int, values: int, most: int = MOST_ROWS) -> NDArray:
    """The rows whose probabilities count, so many that `values` numbers for each fit into memory."""
    most = min(most, max(1, MOST_VALUES // values))
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _faintest(problem: Problem, solution: Solution) -> Solution:
    """A solution without any weight, changed to have next to none.

    If leave-one-out finds no evidence, probabilities are the class shares. But where shares are equal, decisions
    should follow what little the points say. The member that promises most gets it.
    """
    _, gradient = problem.loss(np.concatenate([solution.weights, solution.mean]))
    best = int(np.argmin(np.where(np.isinf(problem.scale), np.inf, gradient[: problem.n_members])))
    weights = np.zeros(problem.n_members)
    weights[best] = FAINT / (problem.scale[best] if np.isfinite(problem.scale[best]) else 1)
    return replace(solution, weights=weights)


def _shares(sums: NDArray, weights: NDArray) -> NDArray:
    """The share of each member in the evidence."""
    evidence = evidence_of(sums, weights)
    return evidence / max(evidence.sum(), np.finfo(float).tiny)


def _survivors(labelled: Labelled, bank: Sequence[Ladder], found: MemberSums, solution: Solution) -> Mixture:
    """The ladders with the weights that are not zero."""
    ladders, densities = [], []
    for ladder, weights, log_q in zip(bank, _split(bank, solution), found.log_densities, strict=True):
        if weights.any():
            ladders.append(replace(ladder.plain, weights=weights).pruned())
            densities.append(log_q[weights.any(axis=1)])
    return Mixture(tuple(ladders), labelled.X, labelled.weights, tuple(densities))


def _split(bank: Sequence[Ladder], solution: Solution) -> list[NDArray]:
    """The weights of each ladder, shape (F, A)."""
    ends = np.cumsum([ladder.weights.size for ladder in bank], dtype=int)
    parts = np.split(solution.weights, ends)[:-1]  # also of an empty bank
    return [part.reshape(ladder.weights.shape) for ladder, part in zip(bank, parts, strict=True)]


def _table(mixture: Mixture, evidence: NDArray) -> dict[str, NDArray]:
    """The survivors in the order of the mixture, with the share of each in the evidence."""
    tied = [
        (ladder, f, ladder.alphas[a], ladder.floors[a], ladder.weights[f, a], 0) for ladder, f, a in _terms(mixture)
    ]
    free = [
        (ladder, f, 0.0, 0.0, weights.sum(), np.count_nonzero(weights))
        for ladder in mixture.ladders
        if ladder.point_weights is not None
        for f, weights in enumerate(ladder.point_weights)
        if weights.any()
    ]
    members = tied + free
    columns: dict[str, Any] = {
        "representation": [ladder.name + FREE * ladder.free for ladder, *_ in members],
        "kernel": [repr(ladder.kernel(f)) for ladder, f, *_ in members],
        "length_scale": [ladder.length_scale(f) for ladder, f, *_ in members],
        "alpha": [alpha for _, _, alpha, *_ in members],
        "floor": [floor for *_, floor, _, _ in members],
        "weight": [weight for *_, weight, _ in members],
        "support": [support for *_, support in members],
        "share": evidence / max(evidence.sum(), np.finfo(float).tiny),
    }
    return {name: np.array(values) for name, values in columns.items()}


def _terms(mixture: Mixture) -> list[tuple[Ladder, int, int]]:
    return [(ladder, f, a) for ladder in mixture.ladders for f, a in ladder.terms]
