"""Parameters from a few labelled points among many, for `SLGCPClassifier`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import gen_batches

from coxfield import threads
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import Labelled
from coxfield.field.chains import states
from coxfield.field.edges import nearest_pairs
from coxfield.field.samplers import PROPOSALS, SwendsenWang
from coxfield.field.solve import find
from coxfield.kernels.protocol import PerClass, bind_precisely
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import free_length_scales, length_unit, rescale, rescale_length, variance_is_free
from coxfield.progress import progress
from coxfield.selection.grid import AllPoints, candidate_factors, folds, hide, typical_distance
from coxfield.selection.loo import SelectionPath, best_log_variance, loo_log_sums, mixed, work_units
from coxfield.utils.numbers import logs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.field import LabelField
    from coxfield.field.edges import Pairs
    from coxfield.kernels.protocol import Covariance

# Length scale and temperature by cross validation of the labelled points under the marginals of the label field.
#
# If all covariances are multiplied by a number, the most probable labelling stays the same, but marginals change. That
# number, the signal variance, is an inverse temperature. If it is small, every label is nearly independent of the
# others. If it is large, whole clusters have one class, and beyond a transition one class takes all points. It is
# chosen together with the length scale. For each fold the labels of some labelled points are hidden. Chains of
# Swendsen-Wang sample these and all unlabelled points. The criterion is the log loss of the hidden labels under their
# marginals. All folds are chains of one sampler.


# Marginals of labelled points with hidden labels, by chains that sample all folds at once.


CHAINS = 16  # at least; all folds have the same number of chains
BURN_IN, DRAWS = 15, 30  # steps per chain: clusters forget their start within a few steps
NEARLY_ALL = 0.95  # share of the unlabelled points; a class with more has taken nearly all


def chain_marginals(field: LabelField, codes: NDArray, hidden: list[NDArray], seed: int = 0, done=None) -> NDArray:
    """Marginals of all rows by several chains for each fold, shape (n_chains, n_folds, n, Q).

    Parameters
    ----------
    field : LabelField
        The field of all points, none of them labelled.
    codes : array of shape (n,)
        Class numbers, -1 for unlabelled rows.
    hidden : list of arrays
        Rows to hide together.
    seed : int
    done : callable, optional
        Called with shares of the work, which add up to 1.

    Examples
    --------
    A point beside a point of the first class, predicted from the others:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField
    >>> X = np.array([[0.0], [0.3], [5.0]])
    >>> field = LabelField.from_points(X, 3.0 * RBF(0.5), labels=[-1, -1, -1], n_classes=2)
    >>> chain_marginals(field, np.array([0, 0, 1]), [np.array([1])]).mean(axis=0)[0, 1].round(1)
    array([0.9, 0.1])
    """
    unary = np.tile(clamped_unary(field, codes, hidden), (repeats(hidden), 1, 1))
    # Each chain has its own unary terms, so a sampler gets only as many chains as it moves at once.
    size = max(1, int(PROPOSALS / max(field.totals.sum() / 2, 1)))
    rng = np.random.default_rng(seed)
    share = 1 / len(unary)
    tell = (lambda chains: None) if done is None else (lambda chains: done(chains * share))
    means = np.concatenate([_chain_means(field, unary[part], rng, tell) for part in gen_batches(len(unary), size)])
    return means.reshape(-1, len(hidden), *means.shape[1:])


def repeats(hidden: list[NDArray]) -> int:
    """Chains per fold."""
    return -(-CHAINS // len(hidden))


def clamped_unary(field: LabelField, codes: NDArray, hidden: list[NDArray]) -> NDArray:
    """Unary terms for each fold that fix all labelled rows but its hidden ones, shape (n_folds, n, Q)."""
    visible = np.array([hide(codes, rows) for rows in hidden])
    other = (visible >= 0)[:, :, None] & (visible[:, :, None] != np.arange(field.n_classes))
    return np.where(other, np.inf, field.relative_unary)


def _chain_means(field: LabelField, unary: NDArray, rng: np.random.Generator, tell) -> NDArray:
    """Mean distribution of each node in each chain; every chain has its own unary terms.

    `tell` is called with shares of chains.
    """
    sampler = SwendsenWang(replace(field, relative_unary=unary))
    total = np.zeros(unary.shape)
    for step, state in enumerate(states(sampler, rng, sampler.init(rng, len(unary)), BURN_IN + DRAWS)):
        if step >= BURN_IN and state.probabilities is not None:  # Swendsen-Wang always knows them
            total += state.probabilities
        tell(len(unary) / (BURN_IN + DRAWS))
    return total / DRAWS


def held_out(chains: NDArray, hidden: list[NDArray]) -> NDArray:
    """Marginals of rows by the chains of the fold that hides them, (n_chains, n, Q); NaN for other rows."""
    result = np.full((len(chains), *chains.shape[2:]), np.nan)
    for fold, rows in enumerate(hidden):
        result[:, rows] = chains[:, fold, rows]
    return result


def one_takes_all(chains: NDArray) -> bool:
    """Whether in most chains one class is the most probable class of nearly all unlabelled rows.

    Examples
    --------
    >>> import numpy as np
    >>> ordered, mixed = np.tile([0.1, 0.9], (20, 1)), np.eye(2)[np.arange(20) % 2]
    >>> one_takes_all(np.array([[ordered, ordered, mixed]])), one_takes_all(np.array([[ordered, mixed, mixed]]))
    (True, False)
    """
    if chains.shape[2] < 2:
        return False
    winners = chains.argmax(axis=-1)[..., None] == np.arange(chains.shape[-1])
    return bool(np.mean(winners.mean(axis=2).max(axis=-1) > NEARLY_ALL) > 1 / 2)


def scores(probabilities: NDArray, y: NDArray, n_draws: int = DRAWS) -> tuple[float, float]:
    """Log loss with the uniform label mixed in (see `uniform_label`), and the share of errors.

    The log loss of each chain counts separately. Chains that froze in different labellings are each certain. Their mean
    would look like uncertainty, although no chain is uncertain.

    Parameters
    ----------
    probabilities : array of shape (n_chains, n, n_classes)
        Means over the draws of each chain. One draw of uniform labels is added, because a class that no draw showed is
        not impossible.
    y : array of shape (n,), class numbers
    n_draws : int, optional
        Draws per chain; by default as many as `chain_marginals` takes.

    Examples
    --------
    Three right labels; with so few labels, some doubt is better than none:

    >>> import numpy as np
    >>> right = np.array([0, 0, 0])
    >>> [round(scores(np.tile([p, 1 - p], (1, 3, 1)), right, 100)[0], 2) for p in (0.5, 0.9, 1.0)]
    [0.69, 0.38, 0.67]
    """
    _, n, n_classes = probabilities.shape
    logs = np.log((n_draws * probabilities + 1 / n_classes) / (n_draws + 1))
    wanted = mixed(logs, y, n)
    return float(-wanted.mean()), float((probabilities.mean(axis=0).argmax(axis=1) != y).mean())


# Total coupling of the median node. At 0.7 a label hardly acts beyond the nearest points; at 27 nearly all points of a
# cluster share one label. The transition is steep, so values half a step beside the best are tried too.
STEP = 2.5
TEMPERATURES = 0.7 * STEP ** np.arange(5)
# Couplings of the median node in units of its strongest one. With one neighbour per node, labels cannot spread; with
# many, all points form one cluster. Unlike a rule on distances, this rule holds in any dimension.
FEWEST_NEIGHBOURS, MOST_NEIGHBOURS = 1.5, 64.0
# Beyond the transition a few labels decide the class of all points. Hidden labels then agree only by luck. So cells
# that are not trivial come first.
CRITERIA = ("trivial", "cv_log_loss")


def marginal_path(
    X,
    codes: NDArray,
    kernels: PerClass,
    mean: NDArray,
    factors: NDArray,
    *,
    n_folds: int = 10,
    seed: int = 0,
    done: Callable[[int], None] | None = None,
) -> SelectionPath:
    """Cross-validated log loss for each factor of the length scales, at several temperatures.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    codes : array of shape (n,)
        Class numbers, -1 for unlabelled rows.
    kernels : PerClass of kernels
        Fixed variances stay.
    mean : array of shape (n_classes,)
    factors : array
        Longest first.
    n_folds : int
        At most; never more than there are labelled rows.
    seed : int
        All cells use the same random numbers.
    done : callable, optional
        Called with shares of cells; see `n_cells`.

    Returns
    -------
    SelectionPath
        One entry per cell, which is a length scale with a variance. The columns are "factor", "variance",
        "cv_log_loss", "cv_error" and "trivial": whether one class takes nearly all unlabelled points in most chains.
    """
    hidden, known = folds(codes, n_folds), codes >= 0
    covariances = kernels.map(lambda kernel: recognise(kernel, X.shape[1]))

    def cell(here: AllPoints, factor: float, variance: float) -> dict[str, float]:
        chains = chain_marginals(here.free_field(variance), codes, hidden, seed, done)
        loss, error = scores(held_out(chains, hidden)[:, known], codes[known])
        trivial = one_takes_all(chains[:, :, ~known])
        return {"factor": factor, "variance": variance, "cv_log_loss": loss, "cv_error": error, "trivial": trivial}

    cells = []
    for factor in factors.tolist():
        here = AllPoints.at(X, covariances, mean, factor)
        cells += [cell(here, factor, v) for v in (variances(here) if _free(kernels) else np.ones(1)).tolist()]
    if _free(kernels):
        path = SelectionPath.of(cells, CRITERIA)
        factor, variance = path.chosen("factor"), path.chosen("variance")
        here = AllPoints.at(X, covariances, mean, factor)
        cells += [cell(here, factor, variance * step) for step in (STEP**-0.5, STEP**0.5)]
    return SelectionPath.of(sorted(cells, key=lambda one: one["variance"]), CRITERIA)


def variances(everyone: AllPoints) -> NDArray:
    """Factors of the variance at which the couplings of the median node add up to each of `TEMPERATURES`."""
    totals = everyone.free_field().totals.mean(axis=1)
    typical = np.median(totals) or totals.mean()
    return TEMPERATURES / typical if typical > 0 else np.ones(1)


def n_cells(kernels: PerClass, n_factors: int) -> int:
    """How many cells `marginal_path` tries."""
    return len(TEMPERATURES) * n_factors + 2 if _free(kernels) else n_factors


def _free(kernels: PerClass) -> bool:
    return all(map(variance_is_free, kernels.distinct))


def marginal_factors(X, kernels: PerClass, length_scales, *, bounded: bool) -> NDArray:
    """Factors to try for the length scales, longest first.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    kernels : PerClass of kernels
    length_scales : array-like or None
        Given by the user. None for those of the usual grid at which the median node has a few neighbours; see
        `neighbours`. If every length scale is fixed and the variance is not, the only factor is 1.
    bounded : bool
        Whether default factors outside the bounds of the kernels are dropped.
    """
    if _free(kernels) and length_scales is None and not any(map(free_length_scales, kernels.distinct)):
        return np.ones(1)
    distance = typical_distance(X, length_unit(kernels[0]))
    factors = candidate_factors(kernels.distinct, distance, length_scales, bounded=bounded)
    if length_scales is not None:
        return factors
    count = neighbours(X, kernels[0], factors)
    inside = (count >= FEWEST_NEIGHBOURS) & (count <= MOST_NEIGHBOURS)
    if inside.any():
        return factors[inside]
    # No neighbour at all is farthest from a few.
    return factors[[np.argmin(np.abs(logs_of(count / FEWEST_NEIGHBOURS)))]]


def neighbours(X, kernel, factors: NDArray) -> NDArray:
    """Total coupling of the median node in units of its strongest coupling, for each factor of the length scales.

    Examples
    --------
    Points on a line have two neighbours, and more at a longer length scale:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> neighbours(X, RBF(1.0), np.array([2.0, 0.3])).round(1)
    array([4.5, 2. ])
    """
    n = X.shape[0]
    covariance = recognise(kernel, X.shape[1])
    pairs = nearest_pairs(covariance.bind(X), 1).ends
    everyone, shared = Labelled(X, np.zeros(n, dtype=int), 1), PerClass.shared_by(covariance, 1)
    total = work_units(everyone, shared, len(factors))
    with progress(f"neighbours at {len(factors)} length scales", total, None) as done:
        sums = list(loo_log_sums(everyone, shared, factors, done))
    counts = []
    for factor, logs in zip(factors, sums, strict=True):
        points = covariance.rescaled(length=float(factor)).bind(X)
        strongest = np.zeros(n)
        for ends in pairs:
            np.maximum.at(strongest, ends, points.pairs(pairs[0], points, pairs[1]))
        coupled = strongest > 0  # if all couplings vanish there is no neighbour
        with np.errstate(over="ignore"):
            totals = np.exp(logs[coupled, 0] - np.log(strongest[coupled]))
        counts.append(np.median(np.append(totals, np.zeros(n - len(totals)))))
    return np.array(counts)


# Length scale by transductive cross validation of the labelled points: the paper's training of the label field.
#
# For each fold the labels of some labelled points are hidden. The most probable labels of these and of all unlabelled
# points are found, and the hidden labels are compared with them. Nothing is proven here: only the labelling that is
# returned to users gets a certificate. The sparse graph to start from is the same at all length scales, and each length
# scale has the same couplings in all folds. So the graph and the couplings are computed once.


NEIGHBOURS = 16  # in the sparse graph: they are searched once for hundreds of cuts, and more neighbours save cuts


@dataclass(frozen=True)
class Task:
    """Labels to start from, with some of the known ones hidden."""

    visible: NDArray
    """Class numbers, -1 for rows to label."""
    hidden: NDArray
    """Rows whose labels are known and hidden."""
    pairs: Pairs
    """The sparse graph on the rows to label."""

    @classmethod
    def of(cls, pairs: Pairs, codes: NDArray, hidden: NDArray) -> Task:
        """Hide some rows; `pairs` is the sparse graph on all rows."""
        visible = hide(codes, hidden)
        return cls(visible, hidden, pairs.among(np.flatnonzero(visible < 0)))

    def labels(self, everyone: AllPoints, solver: dict[str, Any]) -> NDArray:
        """Labels of all rows: the visible labels, and the most probable labels of the other rows.

        No search starts from a labelling found before, because that labelling would contain hidden labels. If several
        labellings are equally good, as at short length scales, the solver keeps the one it starts from.
        """
        field = everyone.field(self.visible)
        labels = self.visible.copy()
        labels[field.nodes] = find(field, self.pairs, **solver).labels
        return labels


def cv_path(
    X,
    codes: NDArray,
    covariances: PerClass[Covariance],
    mean: NDArray,
    factors: NDArray,
    *,
    n_folds: int = 10,
    tolerance: float = 1e-9,
    max_rounds: int = 100,
    done: Callable[[int], None] | None = None,
) -> SelectionPath:
    """Cross-validated error for each factor of the length scales.

    A length scale is trivial if it gives every unlabelled point to one class when no label is hidden. A trivial length
    scale is not a candidate, and its folds are not solved, unless all length scales are trivial.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    codes : array of shape (n,)
        Class numbers, -1 for unlabelled rows.
    covariances : PerClass of Covariance
    mean : array of shape (n_classes,)
    factors : array
    n_folds : int
        At most; never more than there are labelled rows.
    tolerance, max_rounds
        As for `map_labels`.
    done : callable, optional
        Called after each labelling; over the path, `1 + number of folds` times the number of factors.

    Returns
    -------
    SelectionPath
        With columns "factor", "cv_error" and "trivial".
    """
    pairs = nearest_pairs(bind_precisely(covariances.distinct[0], X), NEIGHBOURS)
    everything = Task.of(pairs, codes, np.zeros(0, int))
    tasks = tuple(Task.of(pairs, codes, rows) for rows in folds(codes, n_folds))
    solver = {"tolerance": tolerance, "max_rounds": max_rounds}
    tried = _Tried(X, codes, covariances, mean, everything, tasks, solver)
    tell = done or (lambda count: None)
    rows = tried.path(factors.tolist(), tell, even_trivial=False)
    if all(row["trivial"] for row in rows):
        rows = tried.path(factors.tolist(), tell, even_trivial=True)
    return SelectionPath.of(rows, ("cv_error",))


@dataclass(frozen=True)
class _Tried:
    """What all length scales share."""

    X: Any
    codes: NDArray
    covariances: PerClass[Covariance]
    mean: NDArray
    everything: Task
    """No label is hidden."""
    tasks: tuple[Task, ...]
    """One per fold."""
    solver: dict[str, Any]

    def path(self, factors: list[float], tell: Callable[[int], None], *, even_trivial: bool) -> list[dict]:
        """The error of each factor: one after the other, or on a cluster if jobs of joblib go there."""
        if not threads.elsewhere():
            return [self.judged(factor, tell, even_trivial=even_trivial) for factor in factors]
        jobs = (delayed(_cross_validate)(self, factor, even_trivial) for factor in factors)
        rows = []
        for row in Parallel(return_as="generator")(jobs):
            tell(1 + len(self.tasks))
            rows.append(row)
        return rows

    def judged(self, factor: float, tell: Callable[[int], None], *, even_trivial: bool) -> dict[str, float]:
        """The error of one factor."""
        everyone = AllPoints.at(self.X, self.covariances, self.mean, factor)
        with threads.small_steps() if everyone.held else nullcontext():
            labels = self.everything.labels(everyone, self.solver)
            trivial = len(np.unique(labels[self.codes < 0])) < 2
            tell(1)
            if trivial and not even_trivial:
                tell(len(self.tasks))
                return {"factor": factor, "cv_error": np.nan, "trivial": trivial}
            wrong = 0
            for task in self.tasks:
                found = task.labels(everyone, self.solver)[task.hidden]
                wrong += int((found != self.codes[task.hidden]).sum())
                tell(1)
            return {"factor": factor, "cv_error": wrong / np.sum(self.codes >= 0), "trivial": trivial}


def _cross_validate(tried: _Tried, factor: float, even_trivial: bool) -> dict[str, float]:
    """One length scale, as a job; its name is what the dashboard of a cluster shows."""
    return tried.judged(factor, lambda count: None, even_trivial=even_trivial)


FASTER = "fewer length_scales or n_folds take less time, and kernel=None with inference='mixture' takes the least"


@dataclass(frozen=True)
class Choice:
    """Points, few of them labelled, and the candidates to try."""

    X: Any
    codes: NDArray
    """Class numbers, -1 for unlabelled rows."""
    mean: NDArray
    length_scales: Any
    """Given by the user; None for a grid that suits the data."""
    bounded: bool
    """Whether grid values outside the bounds of the kernels are dropped."""
    n_folds: int
    verbose: int = 0

    def for_labelling(self, kernels: PerClass, tolerance: float) -> tuple[PerClass, SelectionPath]:
        """The kernels with the length scale at which the most probable labelling recovers hidden labels best."""
        distance = typical_distance(self.X, length_unit(kernels[0]))
        factors = candidate_factors(kernels.distinct, distance, self.length_scales, bounded=self.bounded)
        covariances = kernels.map(lambda kernel: recognise(kernel, self.X.shape[1]))
        total = len(factors) * (1 + len(folds(self.codes, self.n_folds)))
        data = self.X, self.codes, covariances, self.mean, factors
        with progress(f"cross validation, {len(factors)} length scales", total, self.verbose, FASTER) as done:
            path = cv_path(*data, n_folds=self.n_folds, tolerance=tolerance, done=done)
        return kernels.map(lambda kernel: rescale_length(kernel, path.chosen("factor"))), path

    def for_marginals(self, kernels: PerClass, seed: int) -> tuple[PerClass, SelectionPath]:
        """The kernels with the length scale and the signal variance at which hidden labels are most probable."""
        factors = marginal_factors(self.X, kernels, self.length_scales, bounded=self.bounded)
        options = {"n_folds": self.n_folds, "seed": seed}
        title = f"cross validation of marginals, {len(factors)} length scales"
        with progress(title, n_cells(kernels, len(factors)), self.verbose, FASTER) as done:
            path = marginal_path(self.X, self.codes, kernels, self.mean, factors, **options, done=done)
        factors_of_best = path.chosen("factor"), path.chosen("variance")
        return kernels.map(lambda kernel: rescale(kernel, *factors_of_best)), path


def best_variance(labelled: Labelled, kernels: PerClass, mean: NDArray, rows: NDArray) -> float:
    """Factor of the signal variance that predicts some rows best, each from all the others."""
    store = labelled.under(kernels.map(lambda kernel: recognise(kernel, labelled.X.shape[1])))
    logs = class_sums(store, labelled.X[rows], leave_out=rows).logs
    return float(np.exp(best_log_variance(logs, mean, labelled.y[rows], np.ones(len(rows)))))
