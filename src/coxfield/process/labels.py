"""Distributions of the labels of a few points, and the one that the paper's classifier conditions on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from coxfield.geometry.window import check_points
from coxfield.process.densities import MOST_SUBSETS, subset_log_densities
from coxfield.process.lgcp import LogGaussianCoxProcess

if TYPE_CHECKING:
    from numpy.typing import NDArray


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

    Returns
    -------
    LabelDistribution

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
