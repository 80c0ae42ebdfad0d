"""Kernels of scikit-learn in a model file: of a known type, with the parameters of that type, and these are numbers."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels

from coxfield.io.requirements import is_number, is_text, quoted, require

KINDS = {
    kind: tuple(inspect.signature(kind).parameters)
    for _, kind in inspect.getmembers(kernels, inspect.isclass)
    if issubclass(kind, kernels.Kernel) and kind.__module__ == kernels.__name__ and not inspect.isabstract(kind)
}
PARTS = ("k1", "k2", "kernel")
SIGNED = ("exponent", "gamma")  # parameters that may be negative
TERMS = 200  # kernels in one sum or product


def check_kernel(kernel: Any, n_features: int | None = None) -> None:
    """Refuse a kernel with parameters that no fit would accept.

    Parameters
    ----------
    kernel : object
    n_features : int, optional
        Number of features of the points; None if it is not known.
    """
    _check_parts(kernel, n_features, TERMS)


def _check_parts(kernel: Any, n_features: int | None, terms: int) -> int:
    """Check a kernel and those it is made of; the number of kernels that may still come."""
    require(terms > 0, f"a kernel has more than {TERMS} parts")
    require(type(kernel) in KINDS, f"a kernel is a {type(kernel).__name__}, which is no kernel of scikit-learn")
    name, parameters = type(kernel).__name__, vars(kernel)
    require(parameters.keys() == set(KINDS[type(kernel)]), f"a kernel does not have the parameters of {name}")
    terms -= 1
    for parameter, value in parameters.items():
        if parameter in PARTS:
            terms = _check_parts(value, n_features, terms)
        else:
            _check_parameter(f"{parameter} of {name}", parameter, value, n_features)
    return terms


def _check_parameter(what: str, parameter: str, value: Any, n_features: int | None) -> None:
    if parameter == "kernels":
        require(False, "a kernel is a CompoundKernel, which is no covariance")
    elif parameter.endswith("_bounds"):
        require(_is_bounds(value), f"{what} is neither 'fixed' nor pairs of numbers")
    elif parameter == "metric":
        require(is_text(value), f"{what} is no name")
    elif parameter == "pairwise_kernels_kwargs":
        plain = value is None or (isinstance(value, dict) and all(map(is_number, value.values())))
        require(plain, f"{what} does not hold numbers")
    elif parameter == "length_scale":
        _check_length_scale(what, value, n_features)
    elif parameter == "nu" and isinstance(value, float) and np.isposinf(value):
        pass  # the squared exponential
    else:
        require(is_number(value), f"{what} is {quoted(value)}, which is no finite number")
        require(parameter in SIGNED or value >= 0, f"{what} is negative")
        require(parameter in (*SIGNED, "sigma_0", "noise_level") or value > 0, f"{what} is 0")


def _check_length_scale(what: str, value: Any, n_features: int | None) -> None:
    """One number, or one per feature."""
    if type(value) in (list, tuple):
        require(all(map(is_number, value)), f"{what} holds {quoted(value)}, which are not all finite numbers")
    else:
        numbers = type(value) is np.ndarray and value.ndim <= 1 and value.dtype.kind in "iuf"
        require(numbers or is_number(value), f"{what} is {quoted(value)}, which is no finite number")
    scales = np.asarray(value, dtype=float)
    require(bool((np.isfinite(scales) & (scales > 0)).all()), f"{what} is {quoted(value)}, which is not positive")
    fits = scales.ndim == 0 or n_features is None or scales.size in (1, n_features)
    require(fits and scales.size > 0, f"{what} has {scales.size} entries for {n_features} features")


def _is_bounds(value: Any) -> bool:
    if isinstance(value, str):
        return value == "fixed"
    if type(value) is np.ndarray:
        return value.dtype.kind in "iuf" and value.shape[-1:] == (2,)
    pair = type(value) in (list, tuple) and len(value) == 2
    return pair and all(is_number(end) or _is_bounds(end) for end in value)
