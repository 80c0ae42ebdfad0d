"""Checks of the covariance function and the mean of a log Gaussian Cox process."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from coxfield.kernels.checked import diagonal_of, values_of
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.sklearn_tree import check_hyperparameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Mean = float | Callable[[NDArray], NDArray]

REMEDY = "use RBF, Matern or RationalQuadratic, or sums and products of them"


def check_kernel(kernel: Kernel | Mixture) -> None:
    """Refuse what is not a kernel, and kernels that say they are not stationary.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> check_kernel(DotProduct())
    Traceback (most recent call last):
        ...
    ValueError: DotProduct(sigma_0=1) is not stationary, ...
    """
    if not isinstance(kernel, Kernel | Mixture):
        raise TypeError(
            f"a covariance must be a kernel of sklearn.gaussian_process.kernels, such as RBF(1.0); got {kernel!r}"
        )
    if not kernel.is_stationary():
        raise ValueError(f"{kernel!r} is not stationary, but the covariance must depend on x - x' alone: {REMEDY}")


def check_in_dimension(kernel: Kernel, dimension: int) -> None:
    """Refuse a kernel that is not a stationary and continuous covariance for points of `dimension` coordinates.

    A kernel may wrongly say that it is stationary, so its values are checked too.
    """
    check_hyperparameters(kernel, dimension)
    steps = np.linspace(0.0, 2.0, 5)[:, None] * np.linspace(1.0, 0.6, dimension)
    here = values_of(kernel, np.zeros((1, dimension)), steps)
    there = values_of(kernel, np.full((1, dimension), 1.25), steps + 1.25)
    if not np.allclose(here, there, rtol=1e-6, atol=1e-9 * variance(kernel, dimension)):
        raise ValueError(f"{kernel!r} calls itself stationary, but its values change when points are moved: {REMEDY}")
    if not math.isclose(here[0, 0], variance(kernel, dimension), rel_tol=1e-9):
        raise ValueError(
            f"{kernel!r} jumps at distance zero, so its Gaussian process is not continuous and has no intensity: "
            "leave WhiteKernel out"
        )


def variance(kernel: Kernel, dimension: int) -> float:
    """C(0)."""
    return float(diagonal_of(kernel, np.zeros((1, dimension)))[0])


def check_mean(mean: Mean) -> None:
    """Refuse a mean that is neither a finite number nor a function."""
    if callable(mean):
        return
    if not isinstance(mean, Real):
        raise TypeError(f"mean must be a number or a function of points of shape (n, d), got {mean!r}")
    if not math.isfinite(mean):
        raise ValueError(f"mean must be finite, got {mean!r}: give a finite number")


def mean_at(mean: Mean, points: NDArray) -> NDArray:
    """mu at each point, shape (n,), from a number or a function of points of shape (n, d)."""
    if not callable(mean):
        return np.full(len(points), float(mean))
    values = np.asarray(mean(points), dtype=float)
    if values.shape != (len(points),):
        raise ValueError(
            f"the mean function gave an array of shape {values.shape} for {len(points)} points: it must take points "
            "of shape (n, d) and give n numbers"
        )
    if not np.isfinite(values).all():
        at = points[np.flatnonzero(~np.isfinite(values))[0]].tolist()
        raise ValueError(
            f"the mean function must be finite in the window, but it is not at {at}: take a smaller window"
        )
    return values
