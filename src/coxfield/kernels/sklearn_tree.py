"""Kernels of scikit-learn as trees: their factors, their free parameters, and copies with other parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_VARIANCE = 1e290
STATIONARY = (kernels.RBF, kernels.Matern, kernels.RationalQuadratic)
POSITIVE = ("length_scale", "constant_value", "nu", "alpha", "noise_level", "periodicity")  # parameters by name


def check_kernel(kernel) -> None:
    """Refuse an object that is not a kernel of scikit-learn."""
    if not isinstance(kernel, kernels.Kernel):
        raise TypeError(
            f"a covariance must be a kernel of sklearn.gaussian_process.kernels, such as RBF(1.0); got {kernel!r}"
        )
    if any(isinstance(part, kernels.CompoundKernel) for part in (kernel, *kernel.get_params().values())):
        raise ValueError(f"{kernel!r} has several values for each pair of points: give a kernel with one value")


def check_hyperparameters(kernel: kernels.Kernel, n_features: int) -> None:
    """Refuse length scales and constants that are not valid, and name the value."""
    for name, value in _params(kernel).items():
        if name.rsplit("__", 1)[-1] not in POSITIVE or isinstance(value, kernels.Kernel):
            continue
        numbers = np.asarray(value, dtype=float)
        allowed = numbers > 0
        if not name.endswith("nu"):  # Matern(nu=inf) is the squared exponential
            allowed &= np.isfinite(numbers)
        if not allowed.all():
            raise ValueError(f"{name} of the covariance must be positive and finite, got {value!r}")
        if name.endswith("constant_value"):
            check_variance(float(value), kernel)
        if name.endswith("length_scale") and numbers.ndim == 1 and numbers.size not in (1, n_features):
            raise ValueError(
                f"{name} has {numbers.size} entries but the data have {n_features} features: "
                "give one number, or one per feature"
            )


def check_variance(variance: float, kernel) -> None:
    """Refuse a constant, or a product of constants, with which sums over many points would overflow or vanish."""
    if not 1 / LARGEST_VARIANCE <= variance <= LARGEST_VARIANCE:
        raise ValueError(
            f"the signal variance of {kernel!r} is {variance:.3g}: it must be between {1 / LARGEST_VARIANCE:g} and "
            f"{LARGEST_VARIANCE:g}"
        )


def _params(kernel) -> dict:
    """The parameters of a kernel of scikit-learn; none for any other covariance."""
    return kernel.get_params() if isinstance(kernel, kernels.Kernel) else {}


def factorise(kernel) -> tuple[float, kernels.Kernel | None] | None:
    """Split a product into (constant, one stationary kernel); None if the kernel has another form.

    Only exact types count, because a subclass may compute anything.
    """
    if type(kernel) is kernels.ConstantKernel:
        return float(kernel.constant_value), None
    if type(kernel) in STATIONARY:
        return 1.0, kernel
    if type(kernel) is kernels.Product:
        left, right = factorise(kernel.k1), factorise(kernel.k2)
        if left and right and (left[1] is None or right[1] is None):
            return left[0] * right[0], left[1] or right[1]
    return None


def _is_fixed(kernel, name: str) -> bool:
    bounds = kernel.get_params().get(f"{name}_bounds")
    return isinstance(bounds, str) and bounds == "fixed"


def free_length_scales(kernel) -> list[str]:
    """Names of the length-scale parameters that the user has not fixed."""
    names = [name for name in _params(kernel) if name == "length_scale" or name.endswith("__length_scale")]
    return [name for name in names if not _is_fixed(kernel, name)]


def length_scale_bounds(kernel) -> tuple[float, float]:
    """The factors by which the free length scales may be multiplied within their bounds."""
    lowest, highest = 0.0, math.inf
    params = kernel.get_params()
    for name in free_length_scales(kernel):
        bounds = params.get(f"{name}_bounds", (0.0, math.inf))  # a kernel of the user may have none
        low, high = np.atleast_2d(np.asarray(bounds, dtype=float)).T
        scale = np.asarray(params[name], dtype=float)
        with np.errstate(over="ignore"):  # a bound that no number can reach
            lowest = max(lowest, float((low / scale).max()))
            highest = min(highest, float((high / scale).min()))
    return lowest, highest


def rescale_length(kernel, factor: float):
    """The same kernel with every free length scale multiplied by `factor`."""
    params = kernel.get_params()
    limits = np.finfo(float)
    with np.errstate(over="ignore"):
        scaled = {
            name: np.clip(np.asarray(params[name]) * factor, limits.tiny, limits.max)
            for name in free_length_scales(kernel)
        }
    return clone(kernel).set_params(**{name: value if value.ndim else value.item() for name, value in scaled.items()})


def variance_is_free(kernel) -> bool:
    """Whether the signal variance may be learned. It may not if a constant factor of the kernel is fixed."""
    if isinstance(kernel, kernels.Product):
        return variance_is_free(kernel.k1) and variance_is_free(kernel.k2)
    return not (type(kernel) is kernels.ConstantKernel and _is_fixed(kernel, "constant_value"))


def rescale_variance(kernel, factor: float):
    """The kernel multiplied by `factor`, folded into its leading constant when it has one."""
    if factor == 1:
        return kernel
    if isinstance(kernel, kernels.Product) and type(kernel.k1) is kernels.ConstantKernel:
        return rescale_variance(kernel.k2, kernel.k1.constant_value * factor)
    factor = min(max(factor, 1 / LARGEST_VARIANCE), LARGEST_VARIANCE)
    return kernels.ConstantKernel(factor, (factor * 1e-5, factor * 1e5)) * kernel


def rescale(kernel, length_factor: float, variance_factor: float):
    """The kernel with its free length scales and its signal variance multiplied."""
    return rescale_variance(rescale_length(kernel, float(length_factor)), float(variance_factor))


def with_variance(kernel):
    """The kernel times a constant in which the signal variance can be learned, unless it already has a constant.

    The bounds of the constant are practically infinite: if all sums are small, a useful variance may be 1e14. Kernels
    that are not a product of constants with one stationary kernel are returned unchanged.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> with_variance(RBF(2.0)), with_variance(3.0**2 * RBF(2.0))
    (1**2 * RBF(length_scale=2), 3**2 * RBF(length_scale=2))
    """
    found = factorise(kernel)
    if found is None or found[1] is None or _constants(kernel):
        return kernel
    return kernels.ConstantKernel(1.0, (1 / LARGEST_VARIANCE, LARGEST_VARIANCE)) * kernel


def _constants(kernel) -> list[str]:
    return [name for name in kernel.get_params() if name.split("__")[-1] == "constant_value"]


def rescale_within_bounds(kernel, length_factor: float, variance_factor: float):
    """The kernel with free length scales and signal variance multiplied, each as far as its bounds allow.

    Unlike `rescale`, the kernel keeps its form and its bounds.
    """
    scaled = rescale_length(kernel, float(length_factor))
    free = [name for name in _constants(scaled) if not _is_fixed(scaled, name)]
    if free:
        scaled.set_params(**{free[0]: scaled.get_params()[free[0]] * float(variance_factor)})
    low, high = scaled.bounds.reshape(-1, 2).T
    return scaled.clone_with_theta(np.clip(scaled.theta, low, high))


def with_logarithms(kernel):
    """The kernel with free parameters of 0 moved to their lower bounds, because learning takes logarithms.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> with_logarithms(DotProduct(0.0, (1e-3, 1e3)))
    DotProduct(sigma_0=0.001)
    """
    with np.errstate(divide="ignore"):
        theta = kernel.theta
    zero = np.isneginf(theta)
    return kernel.clone_with_theta(np.where(zero, kernel.bounds[:, 0], theta)) if zero.any() else kernel


def reshape_length(kernel, shape: NDArray):
    """The kernel with `shape` as its length scales, if it has one per feature and they are free."""
    params = kernel.get_params()
    return clone(kernel).set_params(**{name: shape for name in free_length_scales(kernel) if np.size(params[name]) > 1})


def free_parameters(kernel) -> list[str]:
    """The names of the free parameters of a kernel, in the order of `kernel.theta`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> free_parameters(2.0 * RBF([1.0, 2.0])), free_parameters(2.0 * RBF(1.0, "fixed"))
    (['constant_value', 'length_scale'], ['constant_value'])
    """
    return [parameter.name.rsplit("__", 1)[-1] for parameter in kernel.hyperparameters if not parameter.fixed]


def typical_length_scale(kernel) -> float:
    """Geometric mean of the free length scales of a kernel, 1 if there is none."""
    params = _params(kernel)
    logs = [np.log(params[name]).mean() for name in free_length_scales(kernel)]
    return float(np.exp(np.mean(logs))) if logs else 1.0


def length_unit(kernel) -> float | NDArray:
    """The unit of distances: the length scale of a stationary kernel, one number or one per feature.

    For other kernels it is the typical length scale.
    """
    found = factorise(kernel)
    if found is None or found[1] is None:
        return typical_length_scale(kernel)
    scale = np.asarray(found[1].length_scale, dtype=float)
    return float(scale.item()) if scale.size == 1 else scale
