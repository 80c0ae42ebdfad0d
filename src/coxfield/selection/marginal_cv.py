r"""Length scale and temperature by cross validation of the labelled points under the marginals of the label field.

The most probable labelling does not change when all covariances are multiplied by a number; marginals do. That number,
the signal variance, is an inverse temperature: at a small one every label is a coin of its own, at a large one whole
clusters are of one class, and beyond a transition one class takes all. It is chosen together with the length scale: for
each fold the labels of some labelled points are hidden, chains of Swendsen-Wang sample them and all unlabelled points,
and what counts is the log loss of the hidden labels under their marginals. All folds are chains of one sampler.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from coxfield.engine.class_sums import arrange
from coxfield.field import LabelField, SwendsenWang
from coxfield.field.couplings import couple
from coxfield.field.neighbours import nearest_pairs
from coxfield.field.sampling.swendsen_wang import PROPOSALS
from coxfield.kernels.covariance import free_length_scales, recognise, rescale, rescale_length, variance_is_free
from coxfield.selection.length_scale_path import candidate_factors, loo_log_sums
from coxfield.selection.map_cv import folds

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Total coupling of the median node. At 0.7 a label is hardly felt beyond the nearest points; at 27 it is law in any
# cluster. The transition between is steep, so the neighbours of the best are tried on half the step.
STEP = 2.5
TEMPERATURES = 0.7 * STEP ** np.arange(5)
# Couplings of the median node in units of its strongest: with one neighbour a node there is nothing to follow, and with
# many there are no clusters but one. The rule holds in any dimension, unlike one on distances.
FEWEST_NEIGHBOURS, MOST_NEIGHBOURS = 1.5, 64.0
CHAINS = 16  # at least; each fold has as many as any other
BURN_IN, DRAWS = 15, 30  # steps of a chain: clusters forget their start within a few
NEARLY_ALL = 0.95  # of the unlabelled points in one class: the other classes have lost


@dataclass(frozen=True)
class Cell:
    """What cross validation said of one length scale and signal variance."""

    factor: float
    """What the kernels' length scales were multiplied by."""
    variance: float
    """What the kernels were multiplied by."""
    log_loss: float
    error: float
    """Share of the hidden labels that are not the most probable ones."""
    trivial: bool = False
    """Whether one class takes nearly all unlabelled points in most chains."""


@dataclass(frozen=True)
class MarginalPath:
    """All cells tried, longest length scale first, then the weakest coupling."""

    cells: tuple[Cell, ...]

    def best(self) -> Cell:
        """The cell of least log loss, of those that are not trivial if there are such.

        Beyond the transition a few labels decide for whole phases; that hidden ones agree is then a matter of luck.
        """
        return min(self.cells, key=lambda cell: (cell.trivial, cell.log_loss))

    def columns(self, length_scale: float) -> dict[str, NDArray]:
        """The path as named columns."""
        best = self.best()
        return {
            "length_scale": length_scale * np.array([cell.factor for cell in self.cells]),
            "variance": np.array([cell.variance for cell in self.cells]),
            "cv_log_loss": np.array([cell.log_loss for cell in self.cells]),
            "cv_error": np.array([cell.error for cell in self.cells]),
            "trivial": np.array([cell.trivial for cell in self.cells]),
            "chosen": np.array([cell is best for cell in self.cells]),
        }


def marginal_path(
    X, codes: NDArray, kernels: list, mean: NDArray, factors: NDArray, *, n_folds: int = 10, seed: int = 0, done=None
) -> MarginalPath:
    """Cross-validated log loss for each factor of the length scales, at several temperatures.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    codes : array of shape (n,)
        Class numbers, -1 for unlabelled rows.
    kernels : list of kernels, one a class
        A variance that is fixed stays.
    mean : array of shape (n_classes,)
    factors : array
        Longest first.
    n_folds : int
        At most; never more than there are labelled rows.
    seed : int
        The same random numbers serve every cell.
    done : callable, optional
        Told of each cell; see `n_cells`.
    """
    hidden, known = folds(codes, n_folds), codes >= 0

    def cell(factor: float, variance: float) -> Cell:
        field = _all_free(X, [rescale(kernel, factor, variance) for kernel in kernels], mean)
        chains = chain_marginals(field, codes, hidden, seed)
        if done is not None:
            done(1)
        judged = scores(held_out(chains, hidden)[:, known], codes[known])
        return Cell(float(factor), float(variance), *judged, trivial=one_takes_all(chains[:, :, ~known]))

    cells = [cell(factor, v) for factor in factors for v in variances(X, kernels, mean, factor)]
    if _free(kernels):
        best = MarginalPath(tuple(cells)).best()
        cells += [cell(best.factor, best.variance * step) for step in (STEP**-0.5, STEP**0.5)]
    return MarginalPath(tuple(sorted(cells, key=lambda cell: (-cell.factor, cell.variance))))


def n_cells(kernels: list, n_factors: int) -> int:
    """How many cells `marginal_path` tries."""
    return len(TEMPERATURES) * n_factors + 2 if _free(kernels) else n_factors


def _free(kernels: list) -> bool:
    return all(map(variance_is_free, kernels))


def _all_free(X, kernels: list, mean: NDArray) -> LabelField:
    """The field of all points, none of them labelled."""
    return LabelField.from_points(X, kernels, np.full(X.shape[0], -1), mean=mean, n_classes=len(kernels))


def variances(X, kernels: list, mean: NDArray, factor: float) -> NDArray:
    """Factors of the signal variance at which the couplings of the median node add up to each of `TEMPERATURES`."""
    if not _free(kernels):
        return np.ones(1)
    totals = _all_free(X, [rescale_length(kernel, factor) for kernel in kernels], mean).totals.mean(axis=1)
    typical = np.median(totals) or totals.mean()
    return TEMPERATURES / typical if typical > 0 else np.ones(1)


def chain_marginals(field: LabelField, codes: NDArray, hidden: list[NDArray], seed: int = 0) -> NDArray:
    """Marginals of all rows by several chains for each fold, shape (n_chains, n_folds, n, Q).

    Parameters
    ----------
    field : LabelField
        Of all points, none of them labelled.
    codes : array of shape (n,)
        Class numbers, -1 for unlabelled rows.
    hidden : list of arrays
        Rows to hide together.
    seed : int

    Examples
    --------
    A point beside one of the first class, seen from the others:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField
    >>> X = np.array([[0.0], [0.3], [5.0]])
    >>> field = LabelField.from_points(X, 3.0 * RBF(0.5), labels=[-1, -1, -1], n_classes=2)
    >>> chain_marginals(field, np.array([0, 0, 1]), [np.array([1])]).mean(axis=0)[0, 1].round(1)
    array([0.9, 0.1])
    """
    unary = np.tile(clamped_unary(field, codes, hidden), (repeats(hidden), 1, 1))
    # Chains with unary terms of their own: no more in a sampler than it moves at once.
    size = max(1, int(PROPOSALS / max(field.totals.sum() / 2, 1)))
    rng = np.random.default_rng(seed)
    means = np.concatenate([_chain_means(field, unary[part], rng) for part in gen_batches(len(unary), size)])
    return means.reshape(-1, len(hidden), *means.shape[1:])


def held_out(chains: NDArray, hidden: list[NDArray]) -> NDArray:
    """Marginals of rows by the chains of the fold that hides them, (n_chains, n, Q); NaN for rows never hidden."""
    result = np.full((len(chains), *chains.shape[2:]), np.nan)
    for fold, rows in enumerate(hidden):
        result[:, rows] = chains[:, fold, rows]
    return result


def one_takes_all(chains: NDArray) -> bool:
    """Whether in most chains one class is the most probable of nearly all unlabelled rows.

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


def repeats(hidden: list[NDArray]) -> int:
    """Chains of each fold."""
    return -(-CHAINS // len(hidden))


def clamped_unary(field: LabelField, codes: NDArray, hidden: list[NDArray]) -> NDArray:
    """Unary terms of the field when all labelled rows but those of a fold stay as they are, shape (n_folds, n, Q)."""
    visible = np.tile(codes, (len(hidden), 1))
    for fold, rows in enumerate(hidden):
        visible[fold, rows] = -1
    other = (visible >= 0)[:, :, None] & (visible[:, :, None] != np.arange(field.n_classes))
    return np.where(other, np.inf, field.relative_unary)


def _chain_means(field: LabelField, unary: NDArray, rng: np.random.Generator) -> NDArray:
    """Mean distribution of each node in each chain, every chain with unary terms of its own."""
    sampler = SwendsenWang(replace(field, relative_unary=unary))
    state, total = sampler.init(rng, len(unary)), np.zeros(unary.shape)
    for step in range(BURN_IN + DRAWS):
        state = sampler.step(rng, state)
        if step >= BURN_IN and state.probabilities is not None:  # Swendsen-Wang always knows them
            total += state.probabilities
    return total / DRAWS


def scores(probabilities: NDArray, y: NDArray, n_draws: int | None = None) -> tuple[float, float]:
    """Log loss with one point's worth of uniform labels mixed in, as in `temperature`, and the share of errors.

    Were all hidden labels recovered, the log loss alone would have no minimum, and run off to couplings under which
    everything is certain, what is wrong too. Each chain answers for itself: chains that froze in different labellings
    are each sure of theirs, and their mean must not pass for doubt, nor for luck.

    Parameters
    ----------
    probabilities : array of shape (n_chains, n, n_classes)
        Means over the draws of each chain. One draw of uniform labels is added, for what no draw showed is not
        impossible.
    y : array of shape (n,), class numbers
    n_draws : int, optional
        Draws of a chain; by default as many as `chain_marginals` takes.

    Examples
    --------
    Right three times; less sure is better with so few labels:

    >>> import numpy as np
    >>> right = np.array([0, 0, 0])
    >>> [round(scores(np.tile([p, 1 - p], (1, 3, 1)), right, 100)[0], 2) for p in (0.5, 0.9, 1.0)]
    [0.69, 0.38, 0.67]
    """
    n_draws = n_draws or DRAWS
    _, n, n_classes = probabilities.shape
    logs = np.log((n_draws * probabilities + 1 / n_classes) / (n_draws + 1))
    smoothing = 1 / (1 + n)
    wanted = (1 - smoothing) * logs[:, np.arange(n), y] + smoothing * logs.mean(axis=2)
    return float(-wanted.mean()), float((probabilities.mean(axis=0).argmax(axis=1) != y).mean())


def marginal_factors(X, kernels: list, length_scales, *, bounded: bool, n_jobs=None) -> NDArray:
    """Factors to try for the length scales, longest first.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    kernels : list of kernels, one a class
    length_scales : array-like or None
        What the user asks for; None for those of the usual grid at which the median node has a few neighbours, see
        `neighbours`. Only 1 when every length scale is fixed and the variance is not.
    bounded : bool
        Whether the default is cut to the bounds of the kernels.
    """
    if _free(kernels) and length_scales is None and not any(map(free_length_scales, kernels)):
        return np.ones(1)
    spread = arrange(X, np.zeros(X.shape[0], dtype=int), [recognise(kernels[0], X.shape[1])])
    factors = candidate_factors(spread, kernels, length_scales, bounded=bounded)
    if length_scales is not None:
        return factors
    count = neighbours(X, kernels[0], factors, n_jobs)
    inside = (count >= FEWEST_NEIGHBOURS) & (count <= MOST_NEIGHBOURS)
    return factors[inside] if inside.any() else factors[[np.argmin(np.abs(np.log(count / FEWEST_NEIGHBOURS)))]]


def neighbours(X, kernel, factors: NDArray, n_jobs=None) -> NDArray:
    """Couplings of the median node in units of its strongest, for each factor of the length scales.

    Examples
    --------
    Points on a line have two neighbours, and with a longer covariance more:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> neighbours(X, RBF(1.0), np.array([2.0, 0.3])).round(1)
    array([4.5, 2. ])
    """
    n, d = X.shape
    spread = arrange(X, np.zeros(n, dtype=int), [recognise(kernel, d)])
    pairs = nearest_pairs(X, recognise(kernel, d), 1, n_jobs)
    counts = []
    for factor, logs in zip(factors, loo_log_sums(spread, factors, n_jobs), strict=True):
        scaled = recognise(rescale_length(kernel, factor), d)
        edges = couple(X, scaled, [scaled]).edges(pairs)
        strongest = np.zeros(n)
        for ends in (edges.i, edges.j):
            np.maximum.at(strongest, ends, edges.weight)
        with np.errstate(divide="ignore", over="ignore"):  # where couplings vanish there is no neighbour
            counts.append(np.median(np.where(strongest > 0, np.exp(logs[:, 0] - np.log(strongest)), 0)))
    return np.array(counts)
