"""Distributions of the labels of a few points: exact in the limit of vanishing thinning, estimated at finite thinning.

The limit is what the classifiers condition on. A model of labels given points meets the *no-interference condition* if
a point without a label says nothing about the labels of the other points; `interference` measures how far it is from
that, and `gp_classifier_prior` is a classifier that meets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp, softmax

from coxfield.geometry.window import Window, check_points
from coxfield.kernels.sklearn_tree import values_of
from coxfield.process.densities import MOST_SUBSETS, subset_log_densities, subsets
from coxfield.process.fields import Grid
from coxfield.process.lgcp import LogGaussianCoxProcess
from coxfield.process.pattern import check_gamma
from coxfield.progress import progress
from coxfield.utils.numbers import generator, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

GROUPS = 50  # groups of samples; each is left out once, for the standard errors
CELLS = {1: 256, 2: 32, 3: 16}  # along the longest side, by dimension; enough for an integral over the window


@dataclass(frozen=True, eq=False)
class LabelDistribution:
    """A probability for each labelling of N points with Q classes.

    Examples
    --------
    >>> coins = LabelDistribution(np.array([[0.5, 0.25], [0.25, 0.0]]))
    >>> float(coins.probabilities[0, 1])  # the first point has class 0, the second class 1
    0.25
    >>> coins.marginal([0]).probabilities.tolist()
    [0.75, 0.25]
    """

    probabilities: NDArray
    """Shape (Q, ..., Q), with one axis per point: entry [y_1, ..., y_N] is the probability of these labels."""
    standard_errors: NDArray | None = None
    """Standard errors of the probabilities, if these were estimated."""

    def marginal(self, points: Sequence[int]) -> LabelDistribution:
        """The distribution of the labels of some points, in the order given; other labels are summed out."""
        n = self.probabilities.ndim
        if len(set(points)) < len(points) or not set(points) <= set(range(n)):
            raise ValueError(
                f"points must be different numbers from 0 to {n - 1}, got {list(points)}: give each point once"
            )
        summed = tuple(sorted(set(range(n)).difference(points)))
        left = sorted(points)
        return LabelDistribution(self.probabilities.sum(axis=summed).transpose([left.index(j) for j in points]))


def label_distribution(processes, points) -> LabelDistribution:
    """Distribution of the labels of points, in the limit of vanishing thinning probability (eq. conditionalModel).

    Pr(y)[x] = prod_i m^(i)(x^(i)) / M(x), where M(x) is the sum of the numerator over all labellings. The result is
    exact: all Q^N labellings of N points are enumerated.

    Parameters
    ----------
    processes : sequence of LogGaussianCoxProcess, or mapping class -> LogGaussianCoxProcess
        One process per class; classes are numbered in the order given.
    points : array of shape (N, d)

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> cats = dogs = LogGaussianCoxProcess(RBF(1.0))
    >>> label_distribution([cats, dogs], [[0.0], [0.1]]).probabilities.round(2)  # neighbours tend to agree
    array([[0.37, 0.13],
           [0.13, 0.37]])
    """
    processes, points = check_classes(processes), check_points(points)
    check_number(len(processes), len(points))
    return normalised([subset_log_densities(points, process.kernel, process.mean) for process in processes])


def log_superposition_density(processes, points) -> float:
    """Logarithm of M(x), the product density of the superposed processes.

    M(x) is also the partition function of the label field.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> cats = dogs = LogGaussianCoxProcess(RBF(1.0))
    >>> round(log_superposition_density([cats, dogs], [[0.0]]), 4)  # log(2 exp(1/2))
    1.1931
    """
    processes, points = check_classes(processes), check_points(points)
    check_number(len(processes), len(points))
    weights = [subset_log_densities(points, process.kernel, process.mean) for process in processes]
    return float(np.logaddexp.reduce(_log_weights(weights).ravel()))


def normalised(log_densities: list[NDArray]) -> LabelDistribution:
    """The distribution that is proportional to the product of one density per class, at the points of the class.

    Parameters
    ----------
    log_densities : list of arrays of shape (2^N,)
        For each class, the logarithm of the density of each subset of the points, in the order of `subsets`.
    """
    return LabelDistribution(softmax(_log_weights(log_densities)))


def _log_weights(log_densities: list[NDArray]) -> NDArray:
    """Logarithm of the numerator of eq. conditionalModel for all labellings, shape (Q, ..., Q)."""
    n = log_densities[0].size.bit_length() - 1
    labels = np.indices((len(log_densities),) * n)
    total = np.zeros(labels.shape[1:])
    for code, log_density in enumerate(log_densities):
        # The subset x^(i), written as a binary number.
        own = np.tensordot(1 << np.arange(n), labels == code, axes=1)
        total += log_density[own]
    return total


def check_classes(processes) -> list[LogGaussianCoxProcess]:
    """Processes as a list, one per class."""
    listed = list(processes.values() if isinstance(processes, Mapping) else processes)
    if not listed or not all(isinstance(process, LogGaussianCoxProcess) for process in listed):
        raise TypeError(
            f"processes must be a list or mapping with a LogGaussianCoxProcess for each class, got {processes!r}"
        )
    return listed


def check_number(n_classes: int, n_points: int) -> None:
    """Refuse to enumerate too many labellings, or those of no points."""
    if n_points < 1:
        raise ValueError("there are no points to label: give at least one")
    if n_classes**n_points > MOST_SUBSETS or n_points > MOST_SUBSETS.bit_length() - 1:
        raise ValueError(
            f"{n_classes}^{n_points} labellings are too many to enumerate, the limit is {MOST_SUBSETS}: give fewer "
            "points, or use coxfield.field for the most probable labelling of many points"
        )


def thinned_label_distribution(
    processes, points, window, gamma: float, *, n_samples: int = 2000, resolution=None, random_state=None
) -> LabelDistribution:
    """Distribution of the labels given all points seen in a window, at thinning probability gamma (Pr_gamma).

    Pr_gamma(y | x) is proportional to E[exp(-gamma int_A rho_T) prod_j rho_{y_j}(x_j)], an expectation over the
    intensities. It means that points with these labels were seen at x, and none elsewhere in A. Multiplying by the
    intensities at the points is a change of measure that moves the mean of the Gaussian process. So for each class

        E[exp(-gamma int_A rho) prod_{x_j in S} rho(x_j)] = m(S) E[exp(-gamma int_A rho(u) exp(sum_{x_j in S}
        C(u - x_j)) du)],

    and the right-hand side is what is averaged. Averaging products of intensities would be noisier, because they have
    heavy tails. As gamma goes to 0, the mean on the right goes to 1 without noise, and the result is eq.
    conditionalModel.

    Parameters
    ----------
    processes : sequence of LogGaussianCoxProcess, or mapping class -> LogGaussianCoxProcess
        One process per class.
    points : array of shape (N, d)
        Points in the window.
    window : Window or pairs
        A: all points in it that survive the thinning are seen.
    gamma : float in [0, 1]
        Probability that a point survives.
    n_samples : int
        Number of intensities drawn for each class.
    resolution : int or sequence of int, optional
        Cells along the longest side of the window, or one number per axis. Intensities are summed over the cells.
    random_state : int, RandomState instance, numpy Generator or None

    Returns
    -------
    LabelDistribution
        The standard errors come from the jackknife over groups of samples.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.process import LogGaussianCoxProcess
    >>> cats = dogs = LogGaussianCoxProcess(RBF(1.0))
    >>> seen = thinned_label_distribution([cats, dogs], [[1.0], [1.1]], (0, 4), gamma=1.0, random_state=0)
    >>> seen.probabilities.round(2)
    array([[0.31, 0.19],
           [0.19, 0.31]])
    """
    processes, gamma, window = check_classes(processes), check_gamma(gamma), Window.of(window)
    points = window.check_inside(points)
    check_number(len(processes), len(points))
    n_samples = whole_number("n_samples", n_samples, least=2 * GROUPS)  # for the standard errors
    grid = Grid.over(window, CELLS.get(window.dimension) if resolution is None else resolution)
    rng = generator(random_state)
    logs = [subset_log_densities(points, process.kernel, process.mean) for process in processes]
    # Classes with the same process share their samples, so that no noise tells them apart.
    distinct = [process for k, process in enumerate(processes) if process not in processes[:k]]
    survival = [_log_survival(process, points, grid, gamma, n_samples, rng) for process in distinct]
    return _jackknife(logs, [survival[distinct.index(process)] for process in processes])


def _log_survival(
    process: LogGaussianCoxProcess, points: NDArray, grid: Grid, gamma: float, n_samples: int, rng: np.random.Generator
) -> NDArray:
    """-gamma int_A rho(u) exp(sum_{x_j in S} C(u - x_j)) du for sampled rho and all subsets S: (n_samples, 2^N).

    These are logarithms of the probability to see no other point. In a crowded window the probability underflows.
    """
    # For each subset: the logarithm of the factor by which its points raise the intensity elsewhere.
    raised = values_of(process.kernel, grid.centres(), points) @ subsets(len(points)).T
    factors = np.exp(raised) * grid.cell_volume
    survival = np.empty((n_samples, factors.shape[1]))
    with progress(f"{n_samples} intensities", n_samples, None, "fewer n_samples take less time") as done:
        for number, rho in enumerate(process.draw_intensities(grid, n_samples, rng)):
            survival[number] = -gamma * (rho.values.ravel() @ factors)
            done(1)
    return survival


def _jackknife(logs: list[NDArray], survival: list[NDArray]) -> LabelDistribution:
    """Estimate from all samples, with its standard error from estimates that leave out one group each.

    The probabilities are ratios of means. For these the jackknife needs no extra formula.
    """
    n_samples = len(survival[0])
    partial = [_estimate(logs, survival, np.arange(n_samples) % GROUPS != group) for group in range(GROUPS)]
    errors = np.sqrt((GROUPS - 1) * np.var(partial, axis=0))
    return LabelDistribution(_estimate(logs, survival, slice(None)), errors)


def _estimate(logs: list[NDArray], survival: list[NDArray], samples) -> NDArray:
    """Pr_gamma of all labellings, from some of the samples."""
    # Sums instead of means: the number of samples is the same for all classes.
    means = [logsumexp(values[samples], axis=0) for values in survival]
    return normalised([log + mean for log, mean in zip(logs, means, strict=True)]).probabilities


def interference(distribution: Callable[[np.ndarray], LabelDistribution], points, others) -> float:
    """Measure how far a model is from the no-interference condition; 0 if it is met.

    The largest absolute value of ``sum_{y*} Pr(y*, y | x*, x) - Pr(y | x)`` over the labellings y, where x* are the
    points in `others`.

    Parameters
    ----------
    distribution : function of points of shape (n, d) that returns a LabelDistribution
    points : array of shape (N, d)
        x, the points whose labels are compared.
    others : array of shape (M, d)
        x*, the points whose labels are summed out.

    Examples
    --------
    Gaussian process classification meets the condition, classification with Cox processes does not:

    >>> from functools import partial
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.process import LogGaussianCoxProcess, label_distribution
    >>> points, others = [[0.0], [2.0]], [[1.0]]
    >>> round(interference(partial(gp_classifier_prior, RBF(1.0)), points, others), 12)
    0.0
    >>> round(interference(partial(label_distribution, [LogGaussianCoxProcess(RBF(1.0))] * 2), points, others), 3)
    0.021
    """
    points, others = check_points(points), check_points(others)
    together = distribution(np.concatenate([points, others])).marginal(range(len(points)))
    return float(np.abs(together.probabilities - distribution(points).probabilities).max())


def gp_classifier_prior(kernel: Kernel, points) -> LabelDistribution:
    """Distribution of the labels of up to three points under Gaussian process classification, in closed form.

    There are two classes, a Gaussian process f of mean zero and a probit likelihood: a label is the sign of f(x) + e,
    where e is standard normal. Let r_jk be the correlation of f + e at two points, and s_j = -1 or +1 the labels. Then

        Pr(y | x) = 2^-N (1 + 2/pi sum_{j<k} s_j s_k arcsin r_jk).

    This is the probability of an orthant. It has no such form for more than three points (Sheppard, 1899).

    Parameters
    ----------
    kernel : scikit-learn kernel
    points : array of shape (N, d), N at most 3

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> gp_classifier_prior(RBF(1.0), [[0.0], [0.1]]).probabilities.round(2)
    array([[0.33, 0.17],
           [0.17, 0.33]])
    """
    points = check_points(points)
    n = len(points)
    if not 1 <= n <= 3:
        raise ValueError(
            f"the probabilities have a closed form for one, two or three points, got {n}: give at most three"
        )
    covariance = values_of(kernel, points) + np.eye(n)
    scale = np.sqrt(np.diag(covariance))
    angles = np.triu(np.arcsin(np.clip(covariance / np.outer(scale, scale), -1, 1)), 1)
    signs = 2 * np.indices((2,) * n) - 1
    return LabelDistribution((1 + 2 / np.pi * np.einsum("j...,jk,k...->...", signs, angles, signs)) / 2**n)
