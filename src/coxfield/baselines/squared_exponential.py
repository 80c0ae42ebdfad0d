"""The squared exponential of the baselines, for points and length scales of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.kernels.units import feature_sizes
from coxfield.utils.powers_of_two import ORDINARY, units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def log_kernel(d2: NDArray, length_scale: float) -> NDArray:
    """-d2 / (2 l^2); -inf if that is no number, and 0 for the same point.

    Examples
    --------
    >>> log_kernel(np.array([0.0, 2.0]), 1.0).tolist(), log_kernel(np.array([0.0, 2.0]), 1e-200).tolist()
    ([0.0, -1.0], [0.0, -inf])
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        logs = d2 / (-2 * np.square(np.float64(length_scale)))
    return np.where(d2 == 0, 0.0, logs)


def unit_of(X: NDArray) -> float:
    """A power of two in which squared distances of the points neither overflow nor vanish; 1 for ordinary points."""
    return float(units_of(feature_sizes(X).max(keepdims=True), X.dtype)[0])


def in_unit(X: NDArray, unit: float) -> NDArray:
    """Points in a unit; those so far away that squares would overflow are brought nearer."""
    limit = ORDINARY[X.dtype]
    with np.errstate(over="ignore"):
        return np.clip(X / unit, -limit, limit)
