r"""Which label to ask for next: the one that takes most variance away from the points in doubt.

The experts have one covariance: the mean of those of the members, weighted by their shares. A Gaussian process with
this covariance has a variance at every point, given the labelled points. A label at x lowers the variance at x' by
:math:`c(x', x)^2 / (c(x, x) + s)`, where c is the covariance given the labels so far and s the noise. The point to ask
for makes the sum of these over all x' largest, each times the entropy of the class distribution at x'. The answer does
not matter for the variance, so the second point follows from the first, without waiting.

Without the entropies this is V-optimal design (Ji and Han, 2012). It covers the data, but spends labels on points that
are certain. Doubt alone asks for points at borders, several times at the same border. The expected entropy after the
answer asks for labels that make the model more certain, right or wrong. It was no better than random questions.

Two samples keep it fast: points that could be asked for, and points x' over which the sum runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg
from scipy.special import entr

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


NOISE = 0.1  # s, relative to the variance before the first label; from 0.01 to 1 it hardly matters
CANDIDATES = 300  # points that could be asked for
WATCHED = 800  # points over which variances are added up
MOST_KNOWN = 2000  # labelled points that count, so that no matrix becomes large
AT_ONCE = 100  # questions after which candidates are drawn anew


def suggest(
    features: Callable[[NDArray], NDArray],
    distributions: NDArray,
    labelled: NDArray,
    n: int,
    rng: np.random.Generator,
) -> NDArray:
    """The rows of the n points whose labels teach most, in the order of asking.

    Parameters
    ----------
    features : callable
        It takes row numbers, and returns vectors whose inner products are the covariance of the experts.
    distributions : array of shape (n_points, n_classes)
        What the experts say about all points.
    labelled : array of row numbers
    n : int
        At most the number of points without a label.
    rng : numpy Generator
        It draws the samples.
    """
    doubt = entr(distributions).sum(axis=1)
    known = np.zeros(len(doubt), dtype=bool)
    known[labelled] = True
    asked: list[int] = []
    while len(asked) < n:
        candidates, watched = _samples(np.flatnonzero(~known), doubt, rng)
        chosen = design(
            features(candidates),
            features(watched),
            features(_some(known, rng)),
            weights=_weights(doubt[watched]),
            n=min(n - len(asked), AT_ONCE),
        )
        asked += candidates[chosen].tolist()
        known[asked] = True
    return np.array(asked)


def design(candidates: NDArray, watched: NDArray, known: NDArray, weights: NDArray, n: int) -> list[int]:
    """Numbers of n candidates that lower the weighted sum of variances most, one after the other.

    Parameters
    ----------
    candidates, watched, known : arrays of shape (number of points, n_features)
        Features of the points that could be asked for, of those whose variances count, and of those with a label.
    weights : array of shape (number of watched points,)
    n : int

    Examples
    --------
    Two points watch the second candidate, and one the first. The third is where a label is already:

    >>> axes = np.eye(3)
    >>> design(axes, watched=axes[[0, 1, 1, 2]], known=axes[[2]], weights=np.ones(4), n=3)
    [1, 0, 2]
    """
    to_watched, among = _given_known(candidates, watched, known)
    free = np.ones(len(candidates), dtype=bool)
    chosen: list[int] = []
    for _ in range(n):
        variances = np.diag(among) + NOISE
        gains = np.where(free, weights @ to_watched**2 / variances, -np.inf)
        best = int(gains.argmax())
        chosen.append(best)
        free[best] = False
        step = among[best] / variances[best]
        to_watched = to_watched - np.outer(to_watched[:, best], step)
        among = among - np.outer(among[:, best], step)
    return chosen


def _given_known(candidates: NDArray, watched: NDArray, known: NDArray) -> tuple[NDArray, NDArray]:
    """Covariances of watched points with candidates, and of candidates among themselves, given the labels."""
    noisy = known @ known.T + NOISE * np.eye(len(known))
    explained = linalg.solve(noisy, known @ candidates.T, assume_a="pos")
    to_watched, among = (points @ candidates.T - (points @ known.T) @ explained for points in (watched, candidates))
    return to_watched, among


def _samples(free: NDArray, doubt: NDArray, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Candidates and watched points among points without a label. Half of the candidates follow the doubt."""
    chances = _weights(doubt[free])
    chances = chances / chances.sum() + 1 / len(free)
    candidates = rng.choice(free, min(CANDIDATES, len(free)), replace=False, p=chances / chances.sum())
    return candidates, rng.choice(free, min(WATCHED, len(free)), replace=False)


def _weights(doubt: NDArray) -> NDArray:
    """The doubt, or ones if nothing is in doubt."""
    return doubt if doubt.any() else np.ones_like(doubt)


def _some(known: NDArray, rng: np.random.Generator) -> NDArray:
    """The labelled points, or a sample if there are many."""
    rows = np.flatnonzero(known)
    return rows if len(rows) <= MOST_KNOWN else rng.choice(rows, MOST_KNOWN, replace=False)
