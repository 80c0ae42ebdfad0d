"""The length scales that the baselines try: those of `LGCPClassifier`, so that no method has a better search."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from coxfield.selection.grid import default_factors, given_factors, typical_distance

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_length_scale(length_scale) -> float:
    """The length scale that the user gives; a wrong one is refused."""
    if not isinstance(length_scale, Real) or not 0 < float(length_scale) < np.inf:
        raise ValueError(f"length_scale must be a positive finite number, or None to choose it; got {length_scale!r}")
    return float(length_scale)


def candidates(X, length_scales) -> NDArray:
    """The length scales to try, longest first: the given ones, or 24 in steps of sqrt(2) that suit the data."""
    if length_scales is not None:
        return given_factors(length_scales)
    if not (X[:1] != X).any():  # a range may be too large for a number
        raise ValueError("all points are the same, so there is no length scale to choose: give length_scale")
    return default_factors(typical_distance(X))
