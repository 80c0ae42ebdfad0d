"""What we need to know of a covariance function: its profile, its length scale, its value at zero.

Covariance functions are scikit-learn's (`sklearn.gaussian_process.kernels`). Products of constants with one `RBF`,
`Matern` or `RationalQuadratic` are recognised and take the fast path, as a profile of scaled distances; any other
kernel is called block by block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import kernels

from coxfield.kernels import profiles

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Covariance:
    """A covariance C(x, x') = variance * profile(|(x - x') / length_scale|^2), or just a kernel to call.

    `profile` is None for a kernel that was not recognised; `variance` is then 1 and stands for nothing.
    """

    kernel: kernels.Kernel
    profile: profiles.Profile | None = None
    variance: float = 1.0
    length_scale: float | NDArray = 1.0

    @property
    def recognised(self) -> bool:
        """Whether the kernel is a profile of scaled distances."""
        return self.profile is not None

    def log_profile(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances, in units of the length scale, by log C / C(0); recognised kernels only."""
        assert self.profile is not None
        return self.profile.log_of(d2)

    def floored_profile(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by C / C(0), none of them below `profile_floor`; recognised kernels only.

        Arithmetic on subnormal numbers is tens of times slower than on others, and on real data at useful length
        scales a good part of all kernel values would be such.
        """
        logs = self.log_profile(d2)
        np.maximum(logs, _log_floor(logs.dtype.name), out=logs)
        return np.exp(logs, out=logs)

    def diagonal(self, X) -> NDArray:
        """C(x, x) for each row; one entry stands for all rows of a stationary covariance."""
        if not self.recognised:
            return np.asarray(self.kernel.diag(X))
        return np.array([self.variance])


def _log_floor(dtype: str) -> float:
    return float(np.log(8 * np.finfo(dtype).tiny))  # a normal number, also after rounding


@cache
def profile_floor(dtype: str) -> float:
    """The smallest value of `Covariance.floored_profile`; what is no larger stands for zero."""
    # As an array, so that it goes the way of the values, to the last bit.
    return float(np.exp(np.full(64, _log_floor(dtype), dtype))[0])


def recognise(kernel: kernels.Kernel, n_features: int) -> Covariance:
    """Describe a scikit-learn kernel for data with `n_features` columns, or refuse it with a sentence."""
    if not isinstance(kernel, kernels.Kernel):
        raise TypeError(
            f"a covariance must be a kernel of sklearn.gaussian_process.kernels, such as RBF(1.0); got {kernel!r}"
        )
    check_hyperparameters(kernel, n_features)
    found = _factorise(kernel)
    if found is None or found[1] is None:
        return Covariance(kernel)
    variance, base = found
    return Covariance(kernel, _profile(base), variance, _length_scale(base))


def check_hyperparameters(kernel: kernels.Kernel, n_features: int) -> None:
    """Refuse length scales and constants that make no covariance, naming the value."""
    for name, value in kernel.get_params().items():
        if not name.endswith(("length_scale", "constant_value", "nu", "alpha")) or isinstance(value, kernels.Kernel):
            continue
        numbers = np.asarray(value, dtype=float)
        allowed = numbers > 0
        if not name.endswith("nu"):  # Matern(nu=inf) is the squared exponential
            allowed &= np.isfinite(numbers)
        if not allowed.all():
            raise ValueError(f"{name} of the covariance must be positive and finite, got {value!r}")
        if name.endswith("length_scale") and numbers.ndim == 1 and numbers.size not in (1, n_features):
            raise ValueError(
                f"{name} has {numbers.size} entries but the data have {n_features} features: "
                "give one number, or one for each feature"
            )


def _factorise(kernel) -> tuple[float, kernels.Kernel | None] | None:
    """Split a product into (constant, one stationary kernel), or None when it is something else.

    Exact types only: a subclass may compute anything.
    """
    if type(kernel) is kernels.ConstantKernel:
        return float(kernel.constant_value), None
    if type(kernel) in (kernels.RBF, kernels.Matern, kernels.RationalQuadratic):
        return 1.0, kernel
    if type(kernel) is kernels.Product:
        left, right = _factorise(kernel.k1), _factorise(kernel.k2)
        if left and right and (left[1] is None or right[1] is None):
            return left[0] * right[0], left[1] or right[1]
    return None


def _profile(base) -> profiles.Profile:
    if type(base) is kernels.RBF or (type(base) is kernels.Matern and math.isinf(base.nu)):
        return profiles.SquaredExponential()
    if type(base) is kernels.Matern:
        return profiles.Matern(float(base.nu))
    return profiles.RationalQuadratic(float(base.alpha))


def _length_scale(base) -> float | NDArray:
    scale = np.asarray(base.length_scale, dtype=float)
    return float(scale.item()) if scale.size == 1 else scale


def _is_fixed(kernel, name: str) -> bool:
    bounds = kernel.get_params().get(f"{name}_bounds")
    return isinstance(bounds, str) and bounds == "fixed"


def free_length_scales(kernel) -> list[str]:
    """Names of the length-scale parameters that the user has not fixed."""
    names = [name for name in kernel.get_params() if name == "length_scale" or name.endswith("__length_scale")]
    return [name for name in names if not _is_fixed(kernel, name)]


def length_scale_bounds(kernel) -> tuple[float, float]:
    """The factors by which the free length scales may be multiplied within their bounds."""
    lowest, highest = 0.0, math.inf
    params = kernel.get_params()
    for name in free_length_scales(kernel):
        low, high = np.atleast_2d(np.asarray(params[f"{name}_bounds"], dtype=float)).T
        scale = np.asarray(params[name], dtype=float)
        lowest = max(lowest, float((low / scale).max()))
        highest = min(highest, float((high / scale).min()))
    return lowest, highest


def rescale_length(kernel, factor: float):
    """The same kernel with every free length scale multiplied by `factor`."""
    params = kernel.get_params()
    scaled = {name: np.asarray(params[name]) * factor for name in free_length_scales(kernel)}
    return clone(kernel).set_params(**{name: value if value.ndim else value.item() for name, value in scaled.items()})


def variance_is_free(kernel) -> bool:
    """Whether the signal variance may be learned: not when a constant factor of the kernel is fixed."""
    if isinstance(kernel, kernels.Product):
        return variance_is_free(kernel.k1) and variance_is_free(kernel.k2)
    return not (type(kernel) is kernels.ConstantKernel and _is_fixed(kernel, "constant_value"))


def rescale_variance(kernel, factor: float):
    """The kernel multiplied by `factor`, folded into its leading constant when it has one."""
    if factor == 1:
        return kernel
    if isinstance(kernel, kernels.Product) and type(kernel.k1) is kernels.ConstantKernel:
        return rescale_variance(kernel.k2, kernel.k1.constant_value * factor)
    return kernels.ConstantKernel(factor, (factor * 1e-5, factor * 1e5)) * kernel


def rescale(kernel, length_factor: float, variance_factor: float):
    """The kernel with its free length scales and its signal variance multiplied."""
    return rescale_variance(rescale_length(kernel, float(length_factor)), float(variance_factor))


def with_variance(kernel):
    """The kernel with a constant factor for the signal variance to be learned in, unless it has constants of its own.

    The factor has no bounds to speak of: where all sums are small, a useful variance may be 1e14. Kernels that are not
    recognised stay as they are.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> with_variance(RBF(2.0)), with_variance(3.0**2 * RBF(2.0))
    (1**2 * RBF(length_scale=2), 3**2 * RBF(length_scale=2))
    """
    found = _factorise(kernel)
    if found is None or found[1] is None or _constants(kernel):
        return kernel
    return kernels.ConstantKernel(1.0, (1e-300, 1e300)) * kernel


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


def reshape_length(kernel, shape: NDArray):
    """The kernel with `shape` for the length scales of the features, where it has one a feature and they are free."""
    params = kernel.get_params()
    return clone(kernel).set_params(**{name: shape for name in free_length_scales(kernel) if np.size(params[name]) > 1})


NONNEGATIVE = (
    kernels.RBF,
    kernels.Matern,
    kernels.RationalQuadratic,
    kernels.ExpSineSquared,
    kernels.ConstantKernel,
    kernels.WhiteKernel,
)


def check_nonnegative(kernel: kernels.Kernel) -> None:
    """Refuse a kernel that may take a negative value: Theorem 2 needs covariances that never do.

    Judged by what the kernel is made of: sums, products and powers of kernels that are never negative are never
    negative. Exact types only: a subclass may compute anything.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> check_nonnegative(2.0 * RBF(1.0) ** 2)
    >>> check_nonnegative(RBF(1.0) + DotProduct())
    Traceback (most recent call last):
        ...
    ValueError: DotProduct(sigma_0=1) may take negative values, ...
    """
    if type(kernel) in (kernels.Sum, kernels.Product):
        check_nonnegative(kernel.k1)
        check_nonnegative(kernel.k2)
    elif type(kernel) is kernels.Exponentiation:
        check_nonnegative(kernel.kernel)
    elif type(kernel) not in NONNEGATIVE:
        raise ValueError(
            f"{kernel!r} may take negative values, and the label field needs covariances that never do: only then is "
            "the energy submodular and its minimum a minimum cut (Theorem 2). Use RBF, Matern, RationalQuadratic, "
            "ExpSineSquared, ConstantKernel or WhiteKernel, or sums, products and powers of them."
        )
