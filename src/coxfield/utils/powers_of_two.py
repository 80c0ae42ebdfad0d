"""Powers of two as units: dividing by one changes no digit, and squares of what is left neither overflow nor vanish."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Sizes between which squares, sums of many of them, and their squares again are ordinary numbers.
ORDINARY = {np.dtype(np.float64): 2.0**200, np.dtype(np.float32): 2.0**25}


def power_of_two(size: float) -> float:
    """The largest power of two that is not above a size, among normal numbers; 1 for 0.

    Examples
    --------
    >>> power_of_two(5.0), power_of_two(0.3), power_of_two(0.0)
    (4.0, 0.25, 1.0)
    """
    if not size > 0:
        return 1.0
    return math.ldexp(1.0, max(math.frexp(min(size, np.finfo(float).max))[1] - 1, -1022))


def ordinary(sizes: NDArray, dtype) -> NDArray:
    """Whether squares of numbers of these sizes can be computed in a precision; 0 is ordinary.

    Examples
    --------
    >>> ordinary(np.array([0.0, 1e-200, 3.0, 1e200]), np.float64).tolist()
    [True, False, True, False]
    """
    limit = ORDINARY[np.dtype(dtype)]
    return (sizes == 0) | ((sizes <= limit) & (sizes >= 1 / limit))


def units_of(sizes: NDArray, dtype) -> NDArray:
    """A unit for each size: 1 if it is ordinary, otherwise a power of two near it.

    Examples
    --------
    >>> units_of(np.array([0.0, 3.0, 2.0**300]), np.float64).tolist() == [1, 1, 2.0**300]
    True
    """
    extreme = ~ordinary(sizes, dtype)
    units = np.ones(len(sizes))
    units[extreme] = [power_of_two(size) for size in sizes[extreme].tolist()]
    return units
