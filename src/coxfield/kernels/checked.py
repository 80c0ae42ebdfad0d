"""Calls of a kernel that a user gave. What it returns is checked, and a mistake is one sentence that names the kernel.

Warnings of NumPy are silent during the call: a kernel that overflows is told of by the values that it returns. The
kernel gets copies of the points, because it may write to them. An exception of its own passes through with a note.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.gaussian_process import kernels

from coxfield.kernels.named_rows import PointsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

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
    coxfield.kernels.named_rows.PointsError: RBF(length_scale=1) ** -1 is inf for the points (0) and (99): ...
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
