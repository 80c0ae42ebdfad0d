"""Checks of single numbers that users pass, each with one sentence that names the value and the remedy."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


def check_folds(n_folds) -> None:
    """Refuse a number of folds that is not an integer of at least 2."""
    if not isinstance(n_folds, int | np.integer) or n_folds < 2:
        raise ValueError(f"n_folds must be an integer of at least 2, got {n_folds!r}")


def logs_of(values) -> NDArray:
    """Natural logarithms; that of 0 is minus infinity, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(values)


# Powers of two as units: dividing by one changes no digit, and squares of what is left neither overflow nor vanish.


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


# What users pass as `random_state`, turned into the one kind of generator that the package uses.


RandomState = int | np.random.RandomState | np.random.Generator | None


def generator(random_state: RandomState = None) -> np.random.Generator:
    """Return a NumPy generator for a `random_state` as scikit-learn takes it.

    Parameters
    ----------
    random_state : int, RandomState instance, numpy Generator or None, default=None
        An integer seeds a new generator, as ``numpy.random.default_rng`` does. A generator is returned itself. A
        RandomState, or the module ``numpy.random`` for the global one, gives the seed of a new generator. That takes
        numbers from it, so that the next call gives another generator. None seeds a new generator from the system.

    Returns
    -------
    numpy.random.Generator

    Examples
    --------
    >>> generator(0).random() == np.random.default_rng(0).random()
    True
    >>> generator("seed")
    Traceback (most recent call last):
        ...
    ValueError: random_state='seed' must be None, an integer, a RandomState or a numpy.random.Generator; pass a number.
    """
    if random_state is np.random:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if isinstance(random_state, bool) or not isinstance(random_state, Integral | np.random.Generator | None):
        raise ValueError(
            f"random_state={random_state!r} must be None, an integer, a RandomState or a numpy.random.Generator; "
            "pass a number."
        )
    if isinstance(random_state, Integral) and random_state < 0:
        raise ValueError(f"random_state={random_state!r} is negative; pass a seed of at least 0.")
    return np.random.default_rng(random_state)


def weighted_mean(values: NDArray, weights: NDArray) -> tuple[float, float]:
    """A mean and its standard error."""
    shares = weights / weights.sum()
    mean = float(shares @ values)
    return mean, float(np.hypot.reduce(shares * (values - mean)))  # squares of far values would overflow
