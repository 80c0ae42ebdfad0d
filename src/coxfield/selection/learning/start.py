"""Where learning starts: the length scale and signal variance of least leave-one-out log loss.

The pseudo-likelihood has many maxima. From a length scale at which all sums vanish, none of them is found. So the start
is the best of a whole path of length scales.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.preprocessing import StandardScaler

from coxfield.kernels.sklearn_tree import (
    factorise,
    free_length_scales,
    rescale_within_bounds,
    reshape_length,
    with_variance,
)
from coxfield.kernels.units import feature_units, in_units
from coxfield.selection.grid import class_distance, default_factors, given_factors, length_scale_of, within_bounds
from coxfield.selection.learning.priors import DEVIATION, NormalPrior
from coxfield.selection.path import SelectionPath

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass
    from coxfield.selection.loo import Search


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
