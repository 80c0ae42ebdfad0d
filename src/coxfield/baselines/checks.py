"""What the baselines check alike of what users give."""

from __future__ import annotations

from numbers import Real

import numpy as np


def check_length_scale(length_scale) -> float:
    """A length scale that the user gives, or a sentence about it."""
    if not isinstance(length_scale, Real) or not 0 < float(length_scale) < np.inf:
        raise ValueError(f"length_scale must be a positive finite number, or None to choose it; got {length_scale!r}")
    return float(length_scale)
