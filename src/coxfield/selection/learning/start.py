"""Where learning starts: the length scale and signal variance of least leave-one-out log loss.

The pseudo-likelihood has many maxima, and none is found from a length scale at which all sums vanish. The path of
length scales sees all of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.preprocessing import StandardScaler

from coxfield.engine.class_sums import arrange
from coxfield.kernels.covariance import (
    free_length_scales,
    recognise,
    rescale_within_bounds,
    reshape_length,
    with_variance,
)
from coxfield.selection.learning.priors import DEVIATION, NormalPrior
from coxfield.selection.length_scale_path import candidate_factors, default_factors, within_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.engine.class_sums import TrainingPoints
    from coxfield.selection.loo import LooPath
    from coxfield.selection.search import Search


@dataclass(frozen=True)
class Start:
    """Kernels to learn from."""

    kernels: list
    """One a class."""
    columns: dict[str, NDArray]
    """The path along which they were found, as of `LooPath.columns`."""


def starting_points(training: TrainingPoints, kernels: Sequence, search: Search) -> list[Start]:
    """Look for starts along the path of length scales; `kernels` are one a class, all of them recognised.

    With a length scale a feature there are two: from the given proportions, and from those of the features' standard
    deviations.
    """
    given = {id(kernel): with_variance(kernel) for kernel in kernels}
    deviations = StandardScaler(with_mean=False).fit(training.X, sample_weight=training.weights).scale_
    standardised = {key: reshape_length(kernel, deviations) for key, kernel in given.items()}
    candidates = [given] if standardised == given else [given, standardised]
    return [_along_path(training, [candidate[id(k)] for k in kernels], search) for candidate in candidates]


def _along_path(training: TrainingPoints, kernels: list, search: Search) -> Start:
    distinct = {id(kernel): kernel for kernel in kernels}
    described = {key: recognise(kernel, training.X.shape[1]) for key, kernel in distinct.items()}
    training = arrange(training.X, training.y, [described[id(kernel)] for kernel in kernels], training.weights)
    path = search.path(training, [*distinct.values()], _factors(training, [*distinct.values()], search))
    best = _best(path, training, [*distinct.values()])
    factors = path.factor[best], path.variance[best]
    chosen = {key: rescale_within_bounds(kernel, *factors) for key, kernel in distinct.items()}
    return Start([chosen[id(kernel)] for kernel in kernels], path.columns(training, best))


def _best(path: LooPath, training: TrainingPoints, kernels: list) -> int:
    """Index of the least leave-one-out log loss on the path, with what the prior says of the signal variance.

    Where there is next to nothing to learn, a length scale so short that one pair of points decides may win by chance,
    with a variance of 1e20: then this counts.
    """
    total = len(training.y) if training.weights is None else training.weights.sum(dtype=float)
    log_v = np.log(path.variance)[:, None] + [np.log(group.covariance.variance) for group in training.groups]
    prior = NormalPrior(np.zeros(log_v.shape[1]), np.full(log_v.shape[1], DEVIATION["constant_value"]))
    return int(np.argmax([prior.log_density(row) for row in log_v] - total * path.loo_log_loss))


def _factors(training: TrainingPoints, kernels: list, search: Search) -> NDArray:
    """Factors of the length scales to try; only 1 where none is free, or none of the grid within bounds."""
    if not any(map(free_length_scales, kernels)):
        return np.ones(1)
    if search.length_scales is not None:
        return candidate_factors(training, kernels, search.length_scales, bounded=search.bounded)
    factors = default_factors(training)
    inside = within_bounds(factors, kernels) if search.bounded else factors
    return inside if inside.size else np.ones(1)
