"""Checks of single numbers that users pass, each with one sentence that names the value and the remedy."""

from __future__ import annotations

import math
from numbers import Integral, Real


def whole_number(name: str, value: object, least: int = 1) -> int:
    """Return a whole number of at least `least`, or refuse the value.

    Examples
    --------
    >>> whole_number("n_samples", 5)
    5
    >>> whole_number("n_samples", 2.5, least=2)
    Traceback (most recent call last):
        ...
    ValueError: n_samples must be a whole number of at least 2, got 2.5
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def positive_number(name: str, value: object) -> float:
    """Return a finite number above 0, or refuse the value."""
    if not isinstance(value, Real) or not 0.0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    return float(value)


def number_from_zero(name: str, value: object) -> float:
    """Return a finite number of at least 0, or refuse the value."""
    if not isinstance(value, Real) or not 0.0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)
