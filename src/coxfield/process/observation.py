"""The observation model: each point of the processes is seen with the same probability, independently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from coxfield.geometry.window import Window
from coxfield.kernels.checked import values_of
from coxfield.process.densities import subset_log_densities, subsets
from coxfield.process.grid import Grid
from coxfield.process.labels import LabelDistribution, check_classes, check_number, normalised
from coxfield.process.poisson import check_gamma
from coxfield.progress import progress
from coxfield.utils.numbers import whole_number
from coxfield.utils.randomness import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.process.lgcp import LogGaussianCoxProcess

GROUPS = 50  # groups of samples; each is left out once, for the standard errors
CELLS = {1: 256, 2: 32, 3: 16}  # along the longest side, by dimension; enough for an integral over the window


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
