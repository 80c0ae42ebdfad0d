"""Product densities of log Gaussian Cox processes, and what their covariance and their mean may be."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from coxfield.geometry.window import check_points
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.sklearn_tree import check_hyperparameters, diagonal_of, values_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Mean = float | Callable[[NDArray], NDArray]

REMEDY = "use RBF, Matern or RationalQuadratic, or sums and products of them"
MOST_SUBSETS = 2**16  # those of 16 points; more would take too long to enumerate


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
    here = covariances(kernel, steps)
    there = values_of(kernel, np.full((1, dimension), 1.25), steps + 1.25)[0]
    if not np.allclose(here, there, rtol=1e-6, atol=1e-9 * variance(kernel, dimension)):
        raise ValueError(f"{kernel!r} calls itself stationary, but its values change when points are moved: {REMEDY}")
    if not math.isclose(here[0], variance(kernel, dimension), rel_tol=1e-9):
        raise ValueError(
            f"{kernel!r} jumps at distance zero, so its Gaussian process is not continuous and has no intensity: "
            "leave WhiteKernel out"
        )


def variance(kernel: Kernel, dimension: int) -> float:
    """C(0)."""
    return float(diagonal_of(kernel, np.zeros((1, dimension)))[0])


def covariances(kernel: Kernel, lags: NDArray) -> NDArray:
    """C(h) at lags of shape (n, d), or at distances of shape (n,); shape (n,)."""
    lags = lags[:, None] if lags.ndim == 1 else lags
    return values_of(kernel, np.zeros((1, lags.shape[1])), lags)[0]


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


def log_product_density(points, kernel: Kernel, mean: Mean = 0.0) -> float:
    """Logarithm of the product density of a log Gaussian Cox process at K points (eq. LGCPproductDensity).

    log m(x_1, ..., x_K) = sum_j mu(x_j) + 1/2 sum_{j,k} C(x_j - x_k)

    Parameters
    ----------
    points : array of shape (K, d)
        The density of no points is 1.
    kernel : scikit-learn kernel
        Stationary.
    mean : float or function of points of shape (n, d)

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> log_product_density([[0.0, 0.0], [0.0, 0.0]], RBF(1.0), mean=0.5)  # 2 mu + 4 C(0) / 2
    3.0
    """
    check_kernel(kernel)
    check_mean(mean)
    points = check_points(points)
    if not len(points):
        return 0.0
    check_in_dimension(kernel, points.shape[1])
    # eq. LGCPproductDensity
    return float(mean_at(mean, points).sum() + values_of(kernel, points).sum() / 2)


def subset_log_densities(points: NDArray, kernel: Kernel, mean: Mean) -> NDArray:
    """Logarithms of the product densities of all subsets of N points, shape (2^N,).

    Bit j of the position says whether point j belongs to the subset.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> subset_log_densities(np.zeros((2, 1)), RBF(1.0), 0.5).tolist()  # none, the first, the second, both
    [0.0, 1.0, 1.0, 3.0]
    """
    check_in_dimension(kernel, points.shape[1])
    members = subsets(len(points)).astype(float)
    pairs = np.einsum("sj,jk,sk->s", members, values_of(kernel, points), members, optimize=True)
    return members @ mean_at(mean, points) + pairs / 2  # eq. LGCPproductDensity


def subsets(n: int) -> NDArray:
    """Whether each of n points belongs to each subset, shape (2^n, n).

    Subsets are in the order of binary numbers; point 0 is the lowest bit.
    """
    if 2**n > MOST_SUBSETS:
        raise ValueError(
            f"{n} points have too many subsets to enumerate: give at most {MOST_SUBSETS.bit_length() - 1} points"
        )
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
