r"""Length scale and temperature by cross validation of the labelled points under the marginals of the label field.

If all covariances are multiplied by a number, the most probable labelling stays the same, but marginals change. That
number, the signal variance, is an inverse temperature. If it is small, every label is nearly independent of the others.
If it is large, whole clusters have one class, and beyond a transition one class takes all points. It is chosen together
with the length scale. For each fold the labels of some labelled points are hidden. Chains of Swendsen-Wang sample these
and all unlabelled points. The criterion is the log loss of the hidden labels under their marginals. All folds are
chains of one sampler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.engine.store import Labelled
from coxfield.field.edges import nearest_pairs
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import free_length_scales, length_unit, variance_is_free
from coxfield.progress import progress
from coxfield.selection.all_points import AllPoints
from coxfield.selection.folds import folds
from coxfield.selection.grid import candidate_factors, typical_distance
from coxfield.selection.loo_sums import loo_log_sums, work_units
from coxfield.selection.marginal_chains import chain_marginals, held_out, one_takes_all, scores
from coxfield.selection.path import SelectionPath

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


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
    with np.errstate(divide="ignore"):  # no neighbour at all is farthest from a few
        return factors[[np.argmin(np.abs(np.log(count / FEWEST_NEIGHBOURS)))]]


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
