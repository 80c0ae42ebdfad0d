"""Parameter learning: signal variances, length scales and class means by maximum pseudo-likelihood.

The log pseudo-likelihood of the Potts model is the sum of leave-one-out log probabilities. So learning maximises what
leave-one-out measures. Two things are added so that parameters stay finite: a weak prior (`priors`), and one
observation of a uniform label, distributed over all points (`uniform_label`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from coxfield.engine.class_sums import COLUMNS, prior_terms, whole_rows
from coxfield.kernels.namespace import rows_of
from coxfield.kernels.protocol import PerClass, bind_precisely
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import (
    factorise,
    free_length_scales,
    rescale_within_bounds,
    reshape_length,
    with_logarithms,
    with_variance,
)
from coxfield.kernels.transforms import feature_units, in_units
from coxfield.progress import progress
from coxfield.selection.grid import class_distance, default_factors, given_factors, length_scale_of, within_bounds
from coxfield.selection.loo import SelectionPath
from coxfield.threads import over_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.protocol import Covariance, Differentiated, KernelPoints
    from coxfield.selection.loo import Search

# The log pseudo-likelihood and its derivatives, in one pass over the pairs.
#
# The pseudo-likelihood is the product of the leave-one-out predictive probabilities. With the residuals R_ji = w_j
# ([y_j = i] - p_ji), the derivative of its logarithm by any parameter t is the sum of R_ji dF_ji/dt over points j and
# classes i. The derivative of a class sum is the class sum of the derivative of the covariance. So a block of rows
# gives sums, probabilities and derivatives together.


@dataclass(frozen=True)
class PseudoLikelihood:
    """The log pseudo-likelihood at some parameters, with its derivatives."""

    value: float
    """Sum over points of weight times leave-one-out log probability."""
    smoothed: float
    """The same with the smoothing added. The derivatives are those of this value."""
    by_mean: NDArray
    """Derivatives by the class means. They sum to 0, because a common shift changes nothing."""
    by_theta: tuple[NDArray, ...]
    """Derivatives by `kernel.theta`, the logarithms of the free parameters, for each different covariance."""

    def __add__(self, other: PseudoLikelihood) -> PseudoLikelihood:
        return PseudoLikelihood(
            self.value + other.value,
            self.smoothed + other.smoothed,
            self.by_mean + other.by_mean,
            tuple(a + b for a, b in zip(self.by_theta, other.by_theta, strict=True)),
        )


def pseudo_likelihood(
    labelled: Labelled,
    covariances: PerClass[Covariance],
    mean: NDArray,
    *,
    rows: NDArray | None = None,
    smoothing: float = 0.0,
    done=None,
) -> PseudoLikelihood:
    """Log pseudo-likelihood of labelled points and its derivatives by means and kernel parameters.

    Parameters
    ----------
    labelled : Labelled
    covariances : PerClass of Covariance
    mean : array of shape (n_classes,)
    rows : array of int, optional
        The training rows whose probabilities count, each predicted without itself; None for all.
    smoothing : float
        To each point's log probability, add this times the mean of the log probabilities of all classes.
    done : function, optional
        Called with the number of rows done.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.engine.store import Labelled
    >>> from coxfield.kernels.protocol import PerClass
    >>> from coxfield.kernels.radial import recognise
    >>> labelled = Labelled(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1]), 2)
    >>> covariances = PerClass.shared_by(recognise(RBF(0.01), 1), 2)
    >>> at = pseudo_likelihood(labelled, covariances, np.zeros(2))  # each sum is 1 for the own class, 0 for the other
    >>> print(f"{at.value:.4f}, 4 log sigmoid(1) = {-4 * np.log1p(np.exp(-1)):.4f}")
    -1.2530, 4 log sigmoid(1) = -1.2530
    """
    rows = np.arange(len(labelled)) if rows is None else rows
    views = [_View.of(labelled, covariances, k) for k in range(len(covariances.distinct))]
    found: dict[int, PseudoLikelihood] = {}

    def work(block: slice) -> None:
        found[block.start] = _block(labelled, covariances, mean, views, rows[block], smoothing)

    step = whole_rows(len(rows), len(labelled), views[0].points.dtype.itemsize, copies=4)
    over_rows(work, len(rows), step, done)
    first, *others = (found[start] for start in sorted(found))  # in order, so that rounding is always the same
    return sum(others, start=first)


@dataclass(frozen=True)
class _View:
    """All labelled points under one covariance, and the columns of each class that uses it."""

    points: KernelPoints
    columns: dict[int, NDArray]
    """Rows of each class."""
    weights: NDArray
    shared: bool
    """Whether all classes use this covariance, so that C(x, x) / 2 cancels."""

    @classmethod
    def of(cls, labelled: Labelled, covariances: PerClass[Covariance], k: int) -> _View:
        # Rounded distances spoil derivatives: if single precision is too coarse, all is done in double precision.
        points = bind_precisely(covariances.distinct[k], labelled.X)
        columns = {int(c): np.flatnonzero(labelled.y == c) for c in covariances.classes(k)}
        return cls(points, columns, labelled.counts, covariances.shared)

    def panels(self) -> Iterator[tuple[int, NDArray]]:
        """The columns, class by class, at most as many at a time as a tile has."""
        for c, columns in self.columns.items():
            for part in gen_batches(len(columns), COLUMNS):
                yield c, columns[part]

    def differentiate(self, rows: NDArray) -> list[tuple[int, Differentiated]]:
        """Sums of some rows over each panel without the row itself, with their derivatives."""
        mine, found = self.points[rows], []
        for c, columns in self.panels():
            place = np.minimum(np.searchsorted(columns, rows), len(columns) - 1)
            own = np.where(columns[place] == rows, place, -1)
            found.append((c, mine.differentiate(self.points[columns], self.weights[columns], own)))
        return found

    def gradient(self, rows: NDArray, found: list[tuple[int, Differentiated]], residual: NDArray) -> NDArray:
        """Derivatives of the pseudo-likelihood of some rows by `kernel.theta`."""
        halves = np.zeros(len(rows)) if self.shared else residual[:, list(self.columns)].sum(axis=1) / 2
        total = self.points[rows].diagonal_gradient(halves)
        for c, part in found:
            total = total + part.gradient(residual[:, c])
        return total


def _block(labelled: Labelled, covariances, mean, views: list[_View], rows: NDArray, smoothing: float):
    """Value and derivatives for a block of rows."""
    sums = np.zeros((len(rows), labelled.n_classes))
    parts = [view.differentiate(rows) for view in views]
    for found in parts:
        for c, part in found:
            sums[:, c] += part.sums
    prior = prior_terms(covariances, rows_of(labelled.X, rows), mean)
    value, smoothed, residual = _residuals(labelled, prior, sums, rows, smoothing)
    by_theta = tuple(view.gradient(rows, found, residual) for view, found in zip(views, parts, strict=True))
    return PseudoLikelihood(value, smoothed, residual.sum(axis=0), by_theta)


def _residuals(labelled: Labelled, prior, sums, rows, smoothing: float) -> tuple[float, float, NDArray]:
    """Log probabilities of the labels, summed without and with smoothing, and the derivatives by the scores."""
    # The part of the prior that all classes share cancels. It is dropped so that small sums keep their digits.
    log_p = log_softmax(prior - prior.max(axis=1, keepdims=True) + sums, axis=1)
    weights = labelled.counts[rows]
    own = np.arange(len(rows)), labelled.y[rows]
    value = float(weights @ log_p[own])
    smoothed = value + smoothing * float(weights @ log_p.mean(axis=1))
    residual = smoothing / labelled.n_classes - (1 + smoothing) * np.exp(log_p)
    residual[own] += 1
    return value, smoothed, residual * weights[:, None]


# The weak prior that keeps learned parameters from growing without limit.
#
# - The signal variance is the variance of a log intensity, whose natural size is 1. Its logarithm has deviation 3.
#   Variances of 0.05 and 20 cost half a nat. A variance of 1e20, at which one pair of neighbours decides, costs over
#   100.
# - The logarithm of a length scale has deviation 2 around its start, which is the best of the path. Length scales per
#   feature share that freedom: each has 2 / sqrt(number of features). Without this, a hundred of them fit any labels.
# - A class mean has deviation 1 around the given mean.


# By kind of parameter: class means, constants of a kernel, and (None) all others. These are a compromise: in cross
# validation on the training points of `studies/learning.py` in paper/ no value is best on all data sets.
DEVIATION = {"mean": 1.0, "constant_value": 3.0, None: 2.0}


@dataclass(frozen=True)
class NormalPrior:
    """Independent normal distributions around a centre; an infinite deviation leaves a parameter free.

    Examples
    --------
    >>> import numpy as np
    >>> prior = NormalPrior(np.array([0.0, 1.0]), np.array([2.0, np.inf]))
    >>> prior.log_density(np.array([2.0, 50.0])), prior.gradient(np.array([2.0, 50.0])).tolist()
    (-0.5, [-0.5, -0.0])
    """

    centre: NDArray
    deviation: NDArray

    def log_density(self, parameters: NDArray) -> float:
        """Log density up to a constant: 0 at the centre, -1/2 one deviation away."""
        return float(-0.5 * np.sum(np.square((parameters - self.centre) / self.deviation)))

    def gradient(self, parameters: NDArray) -> NDArray:
        """Derivative of the log density."""
        return -(parameters - self.centre) / np.square(self.deviation)


def default_prior(start: NDArray, kinds: list[tuple[str, int]]) -> NormalPrior:
    """The prior of a vector of parameters. It is centred at `start`, except that constants of kernels are centred at 1.

    `kinds` says what the entries are, such as ("length_scale", 3). Length scales per feature share the freedom of one:
    each has deviation 2 / sqrt(number of features).

    Examples
    --------
    >>> import numpy as np
    >>> prior = default_prior(np.array([7.0, 1.0, 2.0]), [("constant_value", 1), ("length_scale", 2)])
    >>> prior.centre.tolist(), prior.deviation.round(2).tolist()
    ([0.0, 1.0, 2.0], [3.0, 1.41, 1.41])
    """
    names = np.repeat([kind for kind, _ in kinds], [size for _, size in kinds])
    deviation = [
        np.full(size, DEVIATION.get(kind, DEVIATION[None]) / (1 if kind == "mean" else np.sqrt(size)))
        for kind, size in kinds
    ]
    return NormalPrior(np.where(names == "constant_value", 0.0, start), np.concatenate(deviation))


# Where learning starts: the length scale and signal variance of least leave-one-out log loss.
#
# The pseudo-likelihood has many maxima. From a length scale at which all sums vanish, none of them is found. So the
# start is the best of a whole path of length scales.


@dataclass(frozen=True)
class Start:
    """Kernels from which learning starts."""

    kernels: PerClass
    table: dict[str, NDArray]
    """The path along which they were found, as `SelectionPath.table` gives it; empty if there was no path."""


def starting_points(labelled: Labelled, kernels: PerClass, search: Search, length_scales) -> list[Start]:
    """Look for starts along the path of length scales.

    With length scales per feature there are two starts: one with the given proportions of the length scales, and one
    with the proportions of the features' standard deviations. Kernels without a signal variance start unchanged.
    """
    if not all(_has_variance(kernel) for kernel in kernels.distinct):
        return [Start(kernels, {})]
    given = kernels.map(with_variance)
    units = feature_units(labelled.X)
    with np.errstate(invalid="ignore"):  # a variance below 0 by rounding, of a feature that hardly varies
        scaler = StandardScaler(with_mean=False).fit(in_units(labelled.X, units), sample_weight=labelled.weights)
    deviations = np.nan_to_num(scaler.scale_, nan=1.0) * units
    standardised = given.map(lambda kernel: reshape_length(kernel, deviations))
    starts = [given] if standardised.distinct == given.distinct else [given, standardised]
    return [_along_path(labelled, start, search, length_scales) for start in starts]


def _has_variance(kernel) -> bool:
    found = factorise(kernel)
    return found is not None and found[1] is not None


def _along_path(labelled: Labelled, kernels: PerClass, search: Search, length_scales) -> Start:
    path = search.path(labelled, kernels, _factors(labelled, kernels, search, length_scales))
    path = _with_posterior(path, labelled, kernels)
    factors = path.chosen("factor"), path.chosen("variance")
    table = path.table(length_scale_of(kernels.distinct))
    del table["loss"]  # it includes the prior, which users do not see
    return Start(kernels.map(lambda kernel: rescale_within_bounds(kernel, *factors)), table)


def _with_posterior(path: SelectionPath, labelled: Labelled, kernels: PerClass) -> SelectionPath:
    """The path judged by log loss plus the penalty of the prior on the signal variance.

    If the data teach almost nothing, a very short length scale may win by chance: one pair of points decides, with a
    variance of 1e20. The prior prevents that.
    """
    variances = [factorise(kernel)[0] for kernel in kernels.distinct]  # type: ignore[index]  # `_has_variance`
    log_v = np.log(path["variance"])[:, None] + np.log(variances)
    prior = NormalPrior(np.zeros(log_v.shape[1]), np.full(log_v.shape[1], DEVIATION["constant_value"]))
    loss = labelled.counts.sum() * path["loo_log_loss"] - [prior.log_density(row) for row in log_v]
    return SelectionPath({**path.columns, "loss": loss}, ("loss",))


def _factors(labelled: Labelled, kernels: PerClass, search: Search, length_scales) -> NDArray:
    """Factors of the length scales to try; only 1 if no length scale is free or the grid is outside the bounds."""
    if not any(map(free_length_scales, kernels.distinct)):
        return np.ones(1)
    if length_scales is not None:
        return given_factors(length_scales)
    factors = default_factors(class_distance(labelled, kernels))
    inside = within_bounds(factors, kernels.distinct) if search.bounded else factors
    return inside if inside.size else np.ones(1)


# By kind of parameter: "mean" for the class means, None for all that are not listed.
REACH = {"constant_value": 300.0, "mean": np.inf, None: 12.0}
"""How far a logarithm may move from its start. Farther away, numbers overflow before the model changes."""
MOST_ROWS = 20_000  # rows whose probabilities count; if there are more, so many are drawn. All points are in the sums.
MOST_STEPS = 100
TOLERANCE = 0.01  # nats: a step that gains less is the last


@dataclass(frozen=True)
class Parameters:
    """Kernels and class means, which can be written as one vector."""

    kernels: PerClass
    mean: NDArray

    @property
    def vector(self) -> NDArray:
        """Logarithms of the free parameters of each kernel, then the means."""
        return np.concatenate([*(kernel.theta for kernel in self.kernels.distinct), self.mean])

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """The kinds of the entries of the vector, such as "length_scale", with the number of entries of each."""
        free = [entry for kernel in self.kernels.distinct for entry in kernel.hyperparameters if not entry.fixed]
        return [*((entry.name.rsplit("__", 1)[-1], entry.n_elements) for entry in free), ("mean", len(self.mean))]

    def at(self, vector: NDArray) -> Parameters:
        """The same kernels with the parameters of a vector."""
        distinct = self.kernels.distinct
        *thetas, mean = np.split(vector, np.cumsum([kernel.n_dims for kernel in distinct]))
        moved = tuple(kernel.clone_with_theta(theta) for kernel, theta in zip(distinct, thetas, strict=True))
        return Parameters(PerClass(moved, self.kernels.owner), mean)

    def bounds(self, *, learn_mean: bool) -> NDArray:
        """Bounds of the vector, shape (len(vector), 2): those of the kernels, and not too far from its value now."""
        reach = np.concatenate([np.full(size, REACH.get(kind, REACH[None])) for kind, size in self.kinds])
        if not learn_mean:
            reach[len(reach) - len(self.mean) :] = 0
        around = self.vector[:, None] + reach[:, None] * [-1, 1]
        own = np.concatenate([kernel.bounds.reshape(-1, 2) for kernel in self.kernels.distinct])
        around[: len(own)] = np.clip(around[: len(own)], own[:, :1], own[:, 1:])
        return around

    def prior(self) -> NormalPrior:
        """The default prior, centred at the present vector."""
        return default_prior(self.vector, self.kinds)


@dataclass(frozen=True)
class Learned:
    """The result of learning, and the steps to it."""

    kernels: PerClass
    mean: NDArray
    path: dict[str, NDArray]
    """Columns "step", "log_pseudo_likelihood" and "log_posterior". Step 0 is the start."""


@dataclass(frozen=True)
class _Objective:
    """The log posterior, pseudo-likelihood times prior, as a function of the vector of parameters."""

    labelled: Labelled
    start: Parameters
    rows: NDArray
    seen: dict[bytes, tuple[float, float]]
    """Log pseudo-likelihood and log posterior by vector."""
    done: Callable[[float], None]
    """Told of the shares of evaluations. Nearly all steps take one."""

    @classmethod
    def of(cls, labelled: Labelled, start: Parameters, done: Callable[[float], None]) -> _Objective:
        n = len(labelled)
        rows = np.arange(n)
        if n > MOST_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(n, MOST_ROWS, replace=False))
        return cls(labelled, start, rows, {}, done)

    @property
    def total(self) -> float:
        """Weight of all points."""
        return float(self.labelled.counts.sum())

    def loss(self, vector: NDArray) -> tuple[float, NDArray]:
        """Negative log posterior per point, and its gradient."""
        here, prior = self.start.at(vector), self.start.prior()
        covariances = here.kernels.map(lambda kernel: recognise(kernel, self.labelled.X.shape[1]))
        smoothing = 1 / self.total  # of the uniform label, relative to the given labels, which count fully
        found = pseudo_likelihood(
            self.labelled,
            covariances,
            here.mean,
            rows=self.rows,
            smoothing=smoothing,
            done=lambda count: self.done(count / len(self.rows)),
        )
        # So that the sum over randomly drawn rows is an unbiased estimate of the sum over all rows.
        share = len(self.labelled) / len(self.rows)
        log_posterior = share * found.smoothed + prior.log_density(vector)
        gradient = share * np.concatenate([*found.by_theta, found.by_mean]) + prior.gradient(vector)
        self.seen[vector.tobytes()] = share * found.value, log_posterior
        return -log_posterior / self.total, -gradient / self.total


def learn(labelled: Labelled, kernels: PerClass, mean: NDArray, *, learn_mean: bool = True, verbose=0) -> Learned:
    """Climb from the given kernels and means to a maximum of pseudo-likelihood times prior, by L-BFGS-B.

    Parameters
    ----------
    labelled : Labelled
    kernels : PerClass of kernels
        The start. Their free parameters are learned within their bounds. Classes that share a kernel share its
        parameters.
    mean : array of shape (n_classes,)
        The start of the means, and the centre of their prior. Their sum stays the same, because a common shift changes
        no probability.
    learn_mean : bool
    verbose : int
        Above 0, show the progress.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.engine.store import Labelled
    >>> from coxfield.kernels.protocol import PerClass
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 2)) + 2 * y[:, None] * [1, 0]  # the second feature says nothing
    >>> kernels = PerClass.shared_by(1.0 * RBF([1.0, 1.0]), 2)
    >>> learned = learn(Labelled(X, y, 2), kernels, np.zeros(2))
    >>> first, second = learned.kernels[0].k2.length_scale
    >>> bool(second > 2 * first), bool((np.diff(learned.path["log_posterior"]) > 0).all())
    (True, True)
    """
    start = Parameters(kernels.map(with_logarithms), np.asarray(mean, dtype=float))
    bounds = start.bounds(learn_mean=learn_mean)
    if not (bounds[:, 0] < bounds[:, 1]).any():
        raise ValueError(f"there is nothing to learn: everything in {kernels[0]!r} is fixed; give selection=None")
    steps = [np.clip(start.vector, *bounds.T)]
    title, faster = f"learning, {MOST_STEPS} steps at most", "selection='mixture' takes less time"
    with progress(title, MOST_STEPS, verbose, faster, at_most=True) as done:
        objective = _Objective.of(labelled, start, done)

        def arrived(vector: NDArray) -> None:
            steps.append(vector.copy())

        limits = {"maxiter": MOST_STEPS, "ftol": TOLERANCE / objective.total}
        minimize(objective.loss, steps[0], jac=True, method="L-BFGS-B", bounds=bounds, callback=arrived, options=limits)
    end = start.at(steps[-1])
    values = np.array([objective.seen[vector.tobytes()] for vector in steps])
    path = {"step": np.arange(len(steps)), "log_pseudo_likelihood": values[:, 0], "log_posterior": values[:, 1]}
    return Learned(end.kernels, end.mean, path)
