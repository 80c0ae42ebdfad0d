"""Length scale and signal variance by closed-form leave-one-out: the paper's parameter training.

Removing a point from the training set only removes its own term from the class sums. So the n refits of leave-one-out
are one pass over the pairs. The sum of leave-one-out log probabilities is the log pseudo-likelihood of the Potts model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax
from sklearn import get_config

from coxfield.engine.class_sums import LARGEST_LOG, ClassSums, Scores, log_sums, prior_terms
from coxfield.kernels.protocol import Path
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import variance_is_free
from coxfield.progress import progress
from coxfield.selection.grid import finer_factors
from coxfield.utils.numbers import logs_of, power_of_two

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.engine.store import Group, Labelled, Part
    from coxfield.kernels.protocol import Covariance, KernelPoints, PerClass

# The temperature: choosing the signal variance by leave-one-out log loss.
#
# Multiplying the covariance by v changes every probability, but not the arg-max (section 'Parameters'). The log loss of
# softmax(mu + v G) is convex in v, so its derivative changes sign once.


# One observation of a uniform label, mixed into the labels that were seen.
#
# If every decision is right, the log loss alone has no minimum: it falls for ever as the signal variance grows. So
# one point's worth of labels, uniform over the classes, is distributed over all points. This keeps the variance
# finite. It is defined only here.


def share(total: float) -> float:
    """The share of the uniform label if the points have this total weight."""
    return 1 / (1 + total)


def mixed(values: NDArray, y: NDArray, total: float) -> NDArray:
    """Expected value of each row under its label with the uniform label mixed in.

    Parameters
    ----------
    values : array of shape (..., n, n_classes)
        Such as log probabilities.
    y : array of shape (n,), class numbers
    total : float
        Weight of all points.

    Examples
    --------
    >>> mixed(np.array([[1.0, 0.0]]), np.array([0]), total=1.0).tolist()  # half of it is the mean over the classes
    [0.75]
    """
    own = values[..., np.arange(len(y)), y]
    return (1 - share(total)) * own + share(total) * values.mean(axis=-1)


# Bounds of the log of v times the largest score. At the lower one, probabilities are practically uniform. The upper one
# covers sums that differ by many orders of magnitude.
LOWEST, HIGHEST = -15.0, 250.0
LARGEST = 600.0  # of log v, so that v does not overflow


def log_loss(log_scores: NDArray, mean: NDArray, y: NDArray, weights: NDArray, log_variance: float) -> float:
    """Mean negative log probability of y under softmax(mean + v exp(log_scores))."""
    log_p = log_softmax(mean + _scores(log_scores, log_variance), axis=1)
    return float(-np.average(log_p[np.arange(len(y)), y], weights=weights))


def best_log_variance(log_scores: NDArray, mean: NDArray, y: NDArray, weights: NDArray, guess: float = 0.0) -> float:
    """Log of the factor v that minimises the log loss of softmax(mean + v exp(log_scores)).

    The uniform label is mixed in. Without it v may grow to infinity; see `uniform_label`.

    Parameters
    ----------
    log_scores : array of shape (n, n_classes)
        Log of the scores at unit variance, C_i(0)/2 + S_i, up to a constant per row.
    mean : array of shape (n_classes,)
    y : array of shape (n,), class numbers
    weights : array of shape (n,)
    guess : float
        Where to look first: log v plus the largest of `log_scores`.
    """
    largest = float(log_scores.max())
    if np.isneginf(largest):
        return 0.0
    return least_loss(Slope.of(log_scores, mean, y, weights, largest, weights.sum()).at, largest, guess)


@dataclass(frozen=True)
class Slope:
    """Derivative by v of the loss of some rows. Those of several sets of rows add up."""

    scores: NDArray
    """In units of the largest score of all rows."""
    wanted: NDArray
    """The score of each row under its label, with the uniform label mixed in."""
    mean: NDArray
    weights: NDArray

    @classmethod
    def of(cls, log_scores: NDArray, mean: NDArray, y: NDArray, weights: NDArray, largest: float, total: float):
        """From log scores; `largest` is the largest of all rows, and `total` the weight of all rows."""
        scores = np.exp(log_scores - largest)
        return cls(scores, mixed(scores, y, total), mean, weights)

    def at(self, log_v: float) -> float:
        """The derivative, in units of the largest score."""
        expected = np.einsum("ij,ij->i", softmax(self.mean + np.exp(log_v) * self.scores, axis=1), self.scores)
        return float(self.weights @ (expected - self.wanted))


def least_loss(slope: Callable[[float], float], largest: float, guess: float) -> float:
    """The log of v where the slope of the loss of all rows changes its sign; `largest` is the largest log score."""
    highest = min(HIGHEST, LARGEST + largest)
    # Where sums have logarithms of -1e18, the difference is rounded by more than the range of log v.
    return min(_sign_change(slope, guess, min(LOWEST, highest), highest) - largest, LARGEST)


def _sign_change(slope, guess: float, lowest: float, highest: float) -> float:
    """The zero of a function that changes sign from minus to plus, or the bound nearest to it."""
    low = high = float(np.clip(guess, lowest, highest))
    step = 0.5
    rising = slope(low) > 0
    # Walk downhill with growing steps until the slope changes sign; a good guess brackets it at once.
    while True:
        if rising:
            low, high = max(low - step, lowest), low
            if slope(low) <= 0:
                break
            if low == lowest:
                return low
        else:
            low, high = high, min(high + step, highest)
            if slope(high) > 0:
                break
            if high == highest:
                return high
        step *= 2
    return float(brentq(slope, low, high, xtol=1e-4))


def _scores(log_scores: NDArray, log_variance: float) -> NDArray:
    """v exp(log_scores), limited so that exp does not overflow."""
    return np.exp(np.minimum(log_scores + log_variance, 600.0))


# What a selection tried and which candidate it chose. All selections share this type and its rule for ties.


DIGITS = 12  # criteria are rounded to these decimals, because equal sums in different orders differ by rounding


@dataclass(frozen=True)
class SelectionPath:
    """The results of each candidate.

    Examples
    --------
    >>> tried = {"factor": [4.0, 2.0, 1.0], "error": [0.2, 0.1, 0.1], "loss": [0.5, 0.4, 0.3]}
    >>> SelectionPath(tried, criteria=("error", "loss")).best, SelectionPath(tried, criteria=("error",)).best
    (2, 1)
    """

    columns: dict[str, NDArray]
    """Named arrays with one entry per candidate. The first is "factor", the factor of the length scales."""
    criteria: tuple[str, ...]
    """The columns that decide, most important first. The least value wins; NaN never wins."""

    @classmethod
    def of(cls, rows: list[dict[str, float]], criteria: tuple[str, ...]) -> SelectionPath:
        """From one row per candidate; the candidates are put in order, longest length scale first."""
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {"factor": np.zeros(0)}
        return cls(columns, criteria).sorted()

    def __len__(self) -> int:
        return len(self.columns["factor"])

    def __getitem__(self, name: str) -> NDArray:
        return np.asarray(self.columns[name])

    def sorted(self) -> SelectionPath:
        """Longest length scale first; candidates of equal length scale stay in their order."""
        order = np.argsort(-self["factor"], kind="stable")
        return SelectionPath({name: self[name][order] for name in self.columns}, self.criteria)

    @property
    def best(self) -> int:
        """Number of the winner: least in the first criterion, then in the next ones, then the longest length scale.

        With few labels, errors are coarse and ties are common. Among equals, the longest length scale gives the
        smoothest answer.
        """
        keys = [np.round(self[name].astype(float), DIGITS) for name in reversed(self.criteria)]
        return int(np.lexsort(keys)[0])  # NaN sorts last, and equals stay in order

    def chosen(self, name: str) -> float:
        """An entry of the winner."""
        return float(self[name][self.best])

    def joined(self, other: SelectionPath) -> SelectionPath:
        """Both paths as one."""
        both = {name: np.concatenate([self[name], other[name]]) for name in self.columns}
        return SelectionPath(both, self.criteria).sorted()

    def table(self, length_scale: float = 1.0) -> dict[str, NDArray]:
        """The path as users see it: "length_scale" in place of "factor", and "chosen"."""
        columns = {name: self[name] for name in self.columns if name != "factor"}
        with np.errstate(over="ignore"):
            length_scales = np.minimum(self["factor"] * length_scale, np.finfo(float).max)
        return {
            "length_scale": length_scales,
            **columns,
            "chosen": np.arange(len(self)) == self.best,
        }


# Leave-one-out class sums along a path of length scales: one pass over the pairs for many of them.


@dataclass(frozen=True)
class Asked:
    """Points at which log sums are asked for."""

    X: Any
    """Array or CSR array of shape (n, d)."""
    leave_out: NDArray
    """For each point, the labelled row that it must not see, -1 for none."""

    def __len__(self) -> int:
        return len(self.leave_out)


def loo_log_sums(
    labelled: Labelled, covariances: PerClass[Covariance], factors: NDArray, done=None
) -> Iterator[NDArray]:
    """Leave-one-out log class sums for each factor of the length scale, arrays of shape (n, n_classes).

    It is fastest from long to short and where each factor is the last one divided by sqrt(2). A few factors are taken
    at a time, so that memory stays within scikit-learn's `working_memory`. `done` is called with numbers of rows, which
    add up to `work_units` over the whole path.
    """
    return path_log_sums(labelled, covariances, factors, Asked(labelled.X, np.arange(len(labelled))), done)


def path_log_sums(
    labelled: Labelled, covariances: PerClass[Covariance], factors: NDArray, asked: Asked, done=None
) -> Iterator[NDArray]:
    """Log class sums over labelled points at any points, for each factor; see `loo_log_sums`."""
    unit, batches = in_batches(len(asked), labelled.n_classes, factors)
    store = labelled.under(covariances.map(lambda each: each.rescaled(length=unit)))
    for some in batches:
        logs = np.full((len(some), len(asked), labelled.n_classes), -np.inf)
        for group in store.groups:
            _add_group(logs, asked, labelled, group, some, done)
        yield from logs


def in_batches(n: int, n_classes: int, factors: NDArray) -> tuple[float, list[NDArray]]:
    """A unit for length scales, and the factors in this unit, as many at a time as one pass at n points may take.

    In units near the longest length scale, squared distances neither overflow nor vanish.
    """
    unit, batch = power_of_two(float(np.max(factors, initial=0))), _batch_size(n, n_classes)
    factors = np.maximum(factors / unit, np.finfo(float).tiny)
    return unit, [factors[start : start + batch] for start in range(0, len(factors), batch)]


def work_units(labelled: Labelled, covariances: PerClass[Covariance], n_factors: int) -> int:
    """Number of rows that `loo_log_sums` reports to `done`."""
    batch = _batch_size(len(labelled), labelled.n_classes)
    return -(-n_factors // batch) * len(labelled) * len(covariances.distinct)


def _batch_size(n: int, n_classes: int) -> int:
    """How many length scales one pass over the pairs may compute at n points."""
    return max(1, int(get_config()["working_memory"] * 2**20 / 2) // max(1, n * n_classes * 8))


def _add_group(logs: NDArray, asked: Asked, labelled: Labelled, group: Group, factors: NDArray, done) -> None:
    """Write the log sums over the points of one group."""
    for number, part in enumerate(group.parts):
        rows, points = _in_coordinates(asked, labelled, part)
        path = Path(points, part.points, factors, [[part.weights]] * len(factors))
        found = log_sums(path, part.column_of(asked.leave_out[rows]), done).logs[:, 0]
        place = np.ix_(np.arange(len(factors)), rows, part.classes)
        logs[place] = np.logaddexp(logs[place], found) if number else found


def _in_coordinates(asked: Asked, labelled: Labelled, part: Part) -> tuple[NDArray, KernelPoints]:
    """The points in the coordinates of a part; its own points, without a copy, if these are the labelled points."""
    if asked.X is labelled.X and len(part.rows) == len(labelled):
        return part.rows, part.points
    return np.arange(len(asked)), part.points.at(asked.X)


FASTER = "float32 points or fewer length_scales take less time"
CRITERIA = {"loo_error": ("loo_error", "loo_log_loss"), "loo_log_loss": ("loo_log_loss",)}


@dataclass(frozen=True)
class Search:
    """How to look for a length scale by leave-one-out."""

    mean: NDArray
    criterion: str
    """ "loo_error" or "loo_log_loss"."""
    bounded: bool
    """Whether length scales stay within the bounds of the kernels."""
    refine: bool
    """Whether finer factors are tried around the best."""
    set_variance: bool
    """Whether the signal variance is chosen with each length scale, if it is free."""
    verbose: int = 0
    log_sums: Callable[..., Iterator[NDArray]] = loo_log_sums
    """How leave-one-out class sums are computed."""

    def path(self, labelled: Labelled, kernels: PerClass, factors: NDArray) -> SelectionPath:
        """Leave-one-out losses for some factors of the length scales and, if asked for, finer ones near the best."""
        path = self._tried(labelled, kernels, factors)
        if not self.refine or len(factors) < 2:
            return path
        finer = finer_factors(path.chosen("factor"), kernels.distinct, bounded=self.bounded)
        return path.joined(self._tried(labelled, kernels, finer)) if finer.size else path

    def _tried(self, labelled: Labelled, kernels: PerClass, factors: NDArray) -> SelectionPath:
        free = self.set_variance and all(map(variance_is_free, kernels.distinct))
        covariances = kernels.map(lambda kernel: recognise(kernel, labelled.X.shape[1]))
        total = work_units(labelled, covariances, len(factors))
        with progress(f"leave-one-out, {len(factors)} length scales", total, self.verbose, FASTER) as done:
            logs = self.log_sums(labelled, covariances, factors, done)
            rows = _losses(labelled, covariances, self.mean, factors, logs, free_variance=free)
        return SelectionPath.of(rows, CRITERIA[self.criterion])


def _losses(
    labelled: Labelled, covariances: PerClass, mean: NDArray, factors, log_sums, *, free_variance: bool
) -> list:
    """Leave-one-out error and log loss for each factor, at the best variance for that factor if it is free."""
    log_half, weights = log_half_variances(covariances, labelled.X, labelled.n_classes), labelled.counts
    rows = []
    guess = 0.0
    for factor, logs in zip(factors, log_sums, strict=True):
        row, guess = judge(JudgedRows(logs, log_half, labelled.y, weights), mean, guess, free_variance=free_variance)
        rows.append({"factor": float(factor), **row})
    return rows


def log_half_variances(covariances: PerClass, X, n_classes: int) -> NDArray:
    """Logarithms of C_i(x, x) / 2 above the least of all classes, shape (1 or n, n_classes).

    The part of C(0)/2 that all classes share cancels. Dropping it keeps the digits of small sums.
    """
    half = prior_terms(covariances, X, np.zeros(n_classes))
    return logs_of(half - half.min(axis=1, keepdims=True))


class SumsOverRows(Protocol):
    """What `judge` asks of leave-one-out sums. The rows may be in several places: every answer is a sum over rows."""

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""

    @property
    def largest(self) -> float:
        """The largest log score."""

    def slope(self, mean: NDArray, largest: float, total: float, log_v: float) -> float:
        """Sum of the derivatives of the log loss by v; see `Slope`."""

    def losses(self, mean: NDArray, log_v: float) -> NDArray:
        """Weight of the rows that are wrong, and the sum of the weighted log losses."""


@dataclass(frozen=True)
class JudgedRows:
    """Rows in one place, with leave-one-out log sums at one length scale; `SumsOverRows` says what is asked."""

    logs: NDArray
    """Shape (n, n_classes)."""
    log_half: NDArray
    """From `log_half_variances`."""
    y: NDArray
    weights: NDArray

    @cached_property
    def log_scores(self) -> NDArray:
        """Logarithms of C_i(x, x) / 2 plus class sum, up to a constant per row."""
        return np.logaddexp(self.logs, self.log_half)

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @property
    def largest(self) -> float:
        """The largest log score."""
        return float(self.log_scores.max(initial=-np.inf))

    @cached_property
    def _slopes(self) -> dict[tuple[float, float], Slope]:
        return {}

    def slope(self, mean: NDArray, largest: float, total: float, log_v: float) -> float:
        """The derivative; what does not depend on v is computed once."""
        key = largest, total
        if key not in self._slopes:
            self._slopes[key] = Slope.of(self.log_scores, mean, self.y, self.weights, largest, total)
        return self._slopes[key].at(log_v)

    def losses(self, mean: NDArray, log_v: float) -> NDArray:
        """Both losses at a variance."""
        of_prior = np.exp(np.minimum(self.log_half + log_v, LARGEST_LOG))
        wrong = Scores(mean + of_prior, ClassSums.of_logs(self.logs + log_v)).decisions != self.y
        loss = log_loss(self.log_scores, mean, self.y, self.weights, log_v)
        return np.array([self.weights @ wrong, loss * self.total_weight])


def judge(rows: SumsOverRows, mean: NDArray, guess: float, *, free_variance: bool) -> tuple[dict[str, float], float]:
    """Variance, error and log loss of one length scale, and a guess for the next one.

    Parameters
    ----------
    rows : SumsOverRows
    mean : array of shape (n_classes,)
    guess : float
        Log of the variance times the largest score, as returned for the length scale before: it moves little.
    free_variance : bool
        Whether the variance is chosen by log loss. Otherwise it is 1.
    """
    log_v, total, largest = 0.0, rows.total_weight, rows.largest
    if free_variance:
        if not np.isneginf(largest):
            log_v = least_loss(lambda x: rows.slope(mean, largest, total, x), largest, guess)
        guess = log_v + largest
    wrong, loss = rows.losses(mean, log_v) / total
    return {"variance": float(np.exp(log_v)), "loo_error": float(wrong), "loo_log_loss": float(loss)}, guess
