"""Kernels of scikit-learn as trees: their factors, their free parameters, and copies with other parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import kernels

from coxfield.kernels.protocol import PointsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


# Covariances that are never negative. Theorem 2, and so every minimum cut, needs them.


NONNEGATIVE = (
    kernels.RBF,
    kernels.Matern,
    kernels.RationalQuadratic,
    kernels.ExpSineSquared,
    kernels.ConstantKernel,
    kernels.WhiteKernel,
)


def check_nonnegative(kernel: kernels.Kernel) -> None:
    """Refuse a kernel that may take a negative value: Theorem 2 needs covariances that are never negative.

    The structure of the kernel decides: sums, products and powers of kernels that are never negative are never
    negative. Only exact types count, because a subclass may compute anything.

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
            f"{kernel!r} may take negative values, but the label field needs covariances that are never negative: "
            "otherwise the most probable labelling is not a minimum cut (Theorem 2). Use RBF, Matern, "
            "RationalQuadratic, ExpSineSquared, ConstantKernel or WhiteKernel, or sums, products and powers of them."
        )


# Calls of a kernel that a user gave. What it returns is checked, and a mistake is one sentence that names the kernel.
#
# Warnings of NumPy are silent during the call: a kernel that overflows is told of by the values that it returns. The
# kernel gets copies of the points, because it may write to them. An exception of its own passes through with a note.


LARGEST = 1e290  # of a value: sums over many points must not overflow
REAL = "fiub"  # kinds of NumPy types that are real numbers
FINITE = f"it must be finite, and at most {LARGEST:g}"
ROUNDING = 1e-12  # absolute difference of two computations of 0
SAME = 1e-5  # relative difference of two computations of one number, some of them in single precision


def values_of(kernel, X, Y=None) -> NDArray:
    """C between all rows of X and of Y, or among the rows of X, as a new array in double precision.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> values_of(RBF(1.0) ** -1, np.array([[0.0]]), np.array([[99.0]]))
    Traceback (most recent call last):
        ...
    coxfield.kernels.protocol.PointsError: RBF(length_scale=1) ** -1 is inf for the points (0) and (99): ...
    """
    others = X if Y is None else Y
    shape = X.shape[0], others.shape[0]
    count = counted(shape[0]) if Y is None else f"{shape[0]} and {counted(shape[1])}"
    found = _call(kernel, kernel, (X,) if Y is None else (X, Y), {}, count)
    values = _array(kernel, found, "an array", shape, count)
    _check_pairs(kernel, values, X, others)
    return values


def diagonal_of(kernel, X) -> NDArray:
    """C(x, x) of each row, in double precision. For the first row it is compared with what a call says."""
    count = counted(X.shape[0])
    found = _array(kernel, _call(kernel, kernel.diag, (X,), {}, count), "a diagonal", X.shape[:1], count)
    row = _wrong(found, least=0.0)
    if row is not None:
        what = f"the variance of {name_of(kernel)} is {found[row]:.3g}"
        raise PointsError.at(what, [X[[row[0]]]], f"it must be finite, not negative, and at most {LARGEST:g}")
    if len(found):
        _check_first(kernel, float(found[0]), X[:1])
    return found


def _check_first(kernel, variance: float, point) -> None:
    try:
        called = float(values_of(kernel, point)[0, 0])
    except Exception:
        return  # calls on more points will say it better
    if not math.isclose(variance, called, rel_tol=SAME, abs_tol=ROUNDING):
        what = f"the variance of {name_of(kernel)} is {variance:.3g} by its diag, but {called:.3g} by a call,"
        raise PointsError.at(what, [point], "the two must agree")


def gradient_of(kernel, X) -> tuple[NDArray, NDArray]:
    """C among the rows of X, and its derivatives by the free parameters of the kernel, shape (n, n, parameters)."""
    n, p = X.shape[0], int(kernel.n_dims)
    count = counted(n)
    found = _call(kernel, kernel, (X,), {"eval_gradient": True}, count)
    if not isinstance(found, tuple) or len(found) != 2:
        kind = f"{len(found)} items" if isinstance(found, tuple) else f"one {type(found).__name__}"
        raise ValueError(
            f"{name_of(kernel)} returned {kind} with eval_gradient=True: it must return two arrays, the values and "
            "their gradient"
        )
    values = _array(kernel, found[0], "an array", (n, n), count)
    _check_pairs(kernel, values, X, X)
    gradient = _array(kernel, found[1], "a gradient", (n, n, p), f"{count} and {p} free parameters")
    if _of_sklearn(kernel):
        gradient[np.isnan(gradient)] = 0  # where a value underflows, a power below 1 of it takes 0 times infinity
    _check_pairs(kernel, gradient, X, X, "the gradient of ")
    return values, gradient


def _of_sklearn(kernel) -> bool:
    """Whether a kernel is made of kernels of scikit-learn alone."""
    parts = (part for part in kernel.get_params().values() if isinstance(part, kernels.Kernel))
    return all(type(part).__module__ == kernels.__name__ for part in (kernel, *parts))


def counted(n: int) -> str:
    """A number of points, in words of a sentence."""
    return f"{n} point{'s' * (n != 1)}"


def name_of(thing) -> str:
    """What an object of the user is called in a sentence, also if its own `repr` fails."""
    try:
        return " ".join(repr(thing).split())  # that of a pipeline has several lines
    except Exception:
        return f"{type(thing).__name__}()"


def kind_of(array: NDArray) -> str:
    """What an array holds that is no real number, in words of a sentence."""
    if array.dtype.kind in "US":
        return "text"
    if array.dtype.kind == "c":
        return "complex numbers"
    return type(array.item()).__name__ if array.ndim == 0 else f"values of type {array.dtype.name}"


def call_noted(function: Callable, arguments: tuple, options: dict[str, Any], thing, how: str) -> Any:
    """Call a function of a thing of the user on copies of points, which it may change.

    If it raises, a note says which thing that was, and `how` it was called.
    """
    with np.errstate(all="ignore"):
        try:
            return function(*(points.copy() for points in arguments), **options)
        except Exception as error:
            if type(thing).__module__.startswith("sklearn."):
                spoken = not isinstance(error, IndexError) and "array element" not in str(error)  # not of NumPy itself
                if not spoken and any(map(sparse.issparse, arguments)):
                    raise ValueError(f"{name_of(thing)} takes no sparse points: give dense ones") from error
                what = f"{type(error).__name__}: {error}"  # such as numbers that overflow, or wrong parameters
                raise ValueError(f"{name_of(thing)} cannot be computed for these points ({what})") from error
            error.add_note(f"(raised by {name_of(thing)}, {how})")
            raise


def _call(kernel, function: Callable, arguments: tuple, options: dict[str, Any], count: str) -> Any:
    return call_noted(function, arguments, options, kernel, f"called on {count}")


def _array(kernel, found, what: str, shape: tuple[int, ...], count: str) -> NDArray:
    """What a kernel returned, as a new array of real numbers of the shape that was asked for."""
    if sparse.issparse(found):
        raise ValueError(f"{name_of(kernel)} returned a sparse matrix for {count}: it must return an array")
    try:
        array = np.asarray(found)
    except ValueError:  # lists of different lengths
        array = np.asarray(found, dtype=object)
    if array.dtype.kind not in REAL:
        raise ValueError(f"{name_of(kernel)} returned {kind_of(array)} for {count}: it must return real numbers")
    if array.shape != shape:
        raise ValueError(
            f"{name_of(kernel)} returned {what} of shape {array.shape} for {count}: it must have the shape {shape}"
        )
    with np.errstate(over="ignore"):
        return np.array(array, dtype=float)  # a copy: what the kernel returned may be its own


def _wrong(values: NDArray, least: float = -LARGEST) -> tuple[int, ...] | None:
    """The place of a value that is not a number to compute with, None if all are."""
    if not values.size or (values.min() >= least and values.max() <= LARGEST):  # also false if there is a NaN
        return None
    return tuple(int(k) for k in np.argwhere(~((values >= least) & (values <= LARGEST)))[0])


def _check_pairs(kernel, values: NDArray, X, Y, what: str = "") -> None:
    """Refuse values of pairs, shape (rows of X, rows of Y, ...), that are not finite."""
    place = _wrong(values)
    if place is not None:
        said = f"{what}{name_of(kernel)} is {values[place]:.3g}"
        raise PointsError.at(said, (X[[place[0]]], Y[[place[1]]]), FINITE)


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
