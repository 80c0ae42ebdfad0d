"""The observation model: labels of points that were seen by independent thinning of what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from coxfield.process.densities import subset_log_densities, subsets
from coxfield.process.grid import Grid
from coxfield.process.labels import LabelDistribution, check_classes, check_number, normalised
from coxfield.process.poisson import check_gamma
from coxfield.process.window import Window, check_points
from coxfield.utils.randomness import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.process.lgcp import LogGaussianCoxProcess

GROUPS = 50  # of samples, left out in turn for the standard errors
CELLS = {1: 256, 2: 32, 3: 16}  # along the longest side: the window is only integrated over


def thinned_label_distribution(
    processes, points, window, gamma: float, *, n_samples: int = 2000, resolution=None, random_state=None
) -> LabelDistribution:
    """Distribution of the labels given all that was seen in a window, at thinning probability gamma (Pr_gamma).

    Pr_gamma(y | x) is proportional to E[exp(-gamma int_A rho_T) prod_j rho_{y_j}(x_j)], the expectation over the
    intensities: points were seen at x, each with its label, and none elsewhere in A. Multiplying by the intensities at
    points is a change of measure that moves the mean of the Gaussian process, so class by class

        E[exp(-gamma int_A rho) prod_{x_j in S} rho(x_j)] = m(S) E[exp(-gamma int_A rho(u) exp(sum_{x_j in S}
        C(u - x_j)) du)],

    and that is what is averaged. The smaller gamma is, the more it gains over averaging products of intensities, which
    have heavy tails: as gamma tends to 0 the mean tends to 1, without noise, and what is left is eq. conditionalModel.

    Parameters
    ----------
    processes : sequence of LogGaussianCoxProcess, or mapping class -> LogGaussianCoxProcess
        One a class.
    points : array of shape (N, d)
        In the window.
    window : Window or pairs
        A, in which all points that survived the thinning are seen.
    gamma : float in [0, 1]
        Probability that a point survives.
    n_samples : int
        Intensities drawn for each class.
    resolution : int or sequence of int, optional
        Cells along the longest side of the window, over which intensities are summed.
    random_state : int, RandomState instance, numpy Generator or None

    Returns
    -------
    LabelDistribution
        With standard errors by the jackknife over groups of samples.

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
    points = _inside(check_points(points, window.dimension), window)
    check_number(len(processes), len(points))
    if n_samples < 2 * GROUPS:
        raise ValueError(f"n_samples must be at least {2 * GROUPS} for standard errors, got {n_samples}")
    grid = Grid.over(window, CELLS.get(window.dimension) if resolution is None else resolution)
    rng = generator(random_state)
    logs = [subset_log_densities(points, process.kernel, process.mean) for process in processes]
    # Classes of one process share their samples: what does not tell them apart then differs by no noise.
    distinct = [process for k, process in enumerate(processes) if process not in processes[:k]]
    survival = [_log_survival(process, points, grid, gamma, n_samples, rng) for process in distinct]
    return _jackknife(logs, [survival[distinct.index(process)] for process in processes])


def _inside(points: NDArray, window: Window) -> NDArray:
    outside = points[~window.contains(points)]
    if len(outside):
        raise ValueError(f"the point {outside[0].tolist()} lies outside of the window {window.sides}: leave it out")
    return points


def _log_survival(
    process: LogGaussianCoxProcess, points: NDArray, grid: Grid, gamma: float, n_samples: int, rng: np.random.Generator
) -> NDArray:
    """-gamma int_A rho(u) exp(sum_{x_j in S} C(u - x_j)) du for sampled rho and all subsets S: (n_samples, 2^N).

    Logarithms of the chance to see nothing more, because in a crowded window the chance itself underflows.
    """
    # Logarithm of what points do to the intensity elsewhere, subset by subset.
    raised = process.kernel(grid.centres(), points) @ subsets(len(points)).T
    factors = np.exp(raised) * grid.cell_volume
    rho = process.draw_intensities(grid, n_samples, rng)
    return -gamma * np.stack([one.values.ravel() @ factors for one in rho])


def _jackknife(logs: list[NDArray], survival: list[NDArray]) -> LabelDistribution:
    """Estimate from all samples, and its standard error from estimates that leave out one group each.

    The probabilities are ratios of means, of which groups left out tell the error without another formula.
    """
    n_samples = len(survival[0])
    partial = [_estimate(logs, survival, np.arange(n_samples) % GROUPS != group) for group in range(GROUPS)]
    errors = np.sqrt((GROUPS - 1) * np.var(partial, axis=0))
    return LabelDistribution(_estimate(logs, survival, slice(None)), errors)


def _estimate(logs: list[NDArray], survival: list[NDArray], samples) -> NDArray:
    """Pr_gamma of all labellings, from some of the samples."""
    # Means up to the number of samples, which is the same for all.
    means = [logsumexp(values[samples], axis=0) for values in survival]
    return normalised([log + mean for log, mean in zip(logs, means, strict=True)]).probabilities
