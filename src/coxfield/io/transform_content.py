"""Fitted transformers in a model file: the representations of a mixture.

They are of the types below and of no other. Each type has its fitted arrays and their shapes here. So the number of
coordinates that a transformer makes, and the memory that it takes, are known before it is called.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from coxfield.io.requirements import (
    Unsound,
    is_integer,
    is_number,
    is_text,
    quoted,
    require,
    require_array,
    require_codes,
    require_fields,
    require_positive,
)
from coxfield.kernels.distances import Units
from coxfield.kernels.transforms import Compression, NormalScores, Transformer, Whitening

VALUES = 2**27  # coordinates of all points in a representation; more only if the points themselves have so many
LARGEST = 100_000  # of a parameter that is a number of things, such as components or quantiles
LIMITS = {"degree": 16, "sample_steps": 1_000}  # of parameters by which coordinates multiply
STEPS = 20  # of a pipeline

#: Fitted arrays of each type. The letters are the shape: n points, d features before and w coordinates after; others
#: are lengths that arrays share. Then + means positive, 0 means not negative, ? means that it may be None.
ARRAYS: dict[type, dict[str, str]] = {
    Compression: {"centre_": "d", "scale_": "d+"},
    NormalScores: {"values_": "kd", "scores_": "kd", "slopes_": "d+"},
    Units: {"units_": "d+"},
    Whitening: {"matrix_": "dw", "origin_": "d", "class_means_": "cw", "removal_": "n0", "moved_points_": "mw"},
    StandardScaler: {"mean_": "d?", "scale_": "d+?"},
    MinMaxScaler: {"min_": "d", "scale_": "d+"},
    MaxAbsScaler: {"scale_": "d+"},
    RobustScaler: {"center_": "d?", "scale_": "d+?"},
    PowerTransformer: {"lambdas_": "d"},
    QuantileTransformer: {"quantiles_": "qd", "references_": "q"},
    PCA: {"components_": "wd", "mean_": "d", "explained_variance_": "w0"},
    FastICA: {"components_": "wd", "mean_": "d?"},
    TruncatedSVD: {"components_": "wd"},
    GaussianRandomProjection: {"components_": "wd"},
    RBFSampler: {"random_weights_": "dw", "random_offset_": "w"},
}
TRANSFORMERS = (*ARRAYS, AdditiveChi2Sampler, FunctionTransformer, Normalizer, Pipeline, PolynomialFeatures)
NAMES = ", ".join(sorted(kind.__name__ for kind in TRANSFORMERS if kind.__module__.startswith("sklearn.")))
#: Functions of one number that `FunctionTransformer` may have.
FUNCTIONS = tuple(name for name, each in vars(np).items() if isinstance(each, np.ufunc) and each.nin == each.nout == 1)


def check_transform(transform: Any, X: Any) -> int:
    """Refuse a transformer that cannot transform the points X, and return its number of coordinates.

    Parameters
    ----------
    transform : object
        None for the features as they are.
    X : array or CSR array of shape (n, d)
        The points that it was fitted to. They are sound.
    """
    if transform is None:
        return X.shape[1]
    if type(transform) is Transformer:
        require_fields(transform, Transformer, "a representation")
    fitted = transform.fitted if type(transform) is Transformer else transform
    check_parameters(fitted)
    width = _checked_width(fitted, *X.shape)
    try:
        with np.errstate(all="ignore"):
            found = transform.transform(X[:1])
    except Exception as error:  # whatever a transformer of scikit-learn may say to parts that do not fit
        raise Unsound(f"a representation cannot be computed ({quoted(str(error))})") from error
    points = sparse.issparse(found) or type(found) is np.ndarray
    require(points and found.shape == (1, width), "a representation does not give a row for each point")
    require(found.dtype.kind == "f", "a representation does not give numbers")
    return width


def check_parameters(transform: Any) -> None:
    """Refuse a transformer, fitted or not, that is not of a known type, or whose parameters could do harm.

    Its attributes are numbers, names and arrays, none of which hides a method.
    """
    kind = type(transform)
    require(kind in TRANSFORMERS, f"a representation is a {kind.__name__}, which is not one of {NAMES}")
    attributes = vars(transform)
    check_methods(transform)
    given = kind._get_param_names()
    require(attributes.keys() >= set(given), f"a {kind.__name__} does not have its parameters")
    for name, value in attributes.items():
        what = f"{name} of a {kind.__name__}"
        if kind is Pipeline and name == "steps":
            _check_steps(value)
        elif kind is PowerTransformer and name == "_scaler":
            require(type(value) is StandardScaler, f"{what} is not a StandardScaler")
            check_parameters(value)
        elif kind is FunctionTransformer and name in ("func", "inverse_func"):
            known = value is None or any(value is getattr(np, each) for each in FUNCTIONS)
            require(known, f"{what} is not a function of NumPy")
        elif name == "_sklearn_output_config":  # what `set_output` leaves behind
            names = type(value) is dict and all(map(is_text, (*value, *value.values())))
            require(names, f"{what} is not a mapping of names")
        elif name in ("memory", "kw_args", "inv_kw_args"):
            require(value is None, f"{what} is given, which a model file cannot have")
        else:
            require(_is_plain(value), f"{what} is neither a number nor a name nor an array")
        if name in given and name != "random_state":
            limit, listed = LIMITS.get(name, LARGEST), value if type(value) in (list, tuple) else [value]
            large = any(is_integer(each) and abs(int(each)) > limit for each in listed)
            require(not large, f"{what} is {quoted(value)}, and {limit} is the most that is loaded")


def _check_steps(steps: Any) -> None:
    pairs = type(steps) is list and all(type(step) is tuple and len(step) == 2 for step in steps)
    require(pairs and 0 < len(steps) <= STEPS, f"a Pipeline does not have 1 to {STEPS} steps")
    for name, step in steps:
        require(is_text(name), "the name of a step of a Pipeline is no text")
        check_parameters(step)


def _is_plain(value: Any) -> bool:
    """Whether an attribute is a number, a name, an array of numbers, or some of these."""
    if type(value) is np.ndarray:
        return value.dtype.kind in "biuf"
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    plain = str | int | float | np.integer | np.floating | np.bool_ | np.random.RandomState
    return value is None or isinstance(value, plain)


def _checked_width(transform: Any, n: int, d: int) -> int:
    """The number of coordinates that a transformer makes of d features. Its arrays fit together, and it has a limit."""
    kind = type(transform)
    if kind is Pipeline:
        width = d
        for _, step in transform.steps:
            width = _checked_width(step, n, width)
        return width
    width = _width_by_arrays(transform, n, d) if kind in ARRAYS else _width_by_parameters(transform, n, d)
    require(0 < n * width <= max(VALUES, 4 * n * d), "a representation is too large")
    if kind is PowerTransformer and transform.standardize:
        require("_scaler" in vars(transform), "a PowerTransformer has no _scaler")
        _width_by_arrays(transform._scaler, n, d)
    return width


def _width_by_arrays(transform: Any, n: int, d: int) -> int:
    """Check the fitted arrays of a transformer."""
    name, arrays = type(transform).__name__, ARRAYS[type(transform)]
    missing = [array for array in arrays if array not in vars(transform)]
    require(not missing, f"a {name} has no {', '.join(missing)}")
    sizes = {"n": n, "d": d}
    for array, letters in arrays.items():
        value, what, shape = vars(transform)[array], f"{array} of a {name}", letters.rstrip("+0?")
        if value is None and "?" in letters:
            continue
        expected = tuple(map(sizes.get, shape))
        if "+" in letters or "0" in letters:
            require_positive(value, what, expected, zero="0" in letters)
        else:
            require_array(value, what, expected)
        sizes.update(zip(shape, value.shape, strict=True))
    if type(transform) is Whitening:
        labels = require_array(vars(transform).get("labels_"), "labels_ of a Whitening", (n,), kinds="i")
        require_codes(labels + 1, "labels_ + 1 of a Whitening", n, sizes["c"] + 1)  # -1 of a point that came later
        moved = require_codes(vars(transform).get("moved_"), "moved_ of a Whitening", sizes["m"], n)
        require(bool((np.diff(moved) > 0).all()), "moved_ of a Whitening is not ascending")
        require(is_number(vars(transform).get("shrinkage_")), "shrinkage_ of a Whitening is no number")
    return sizes.get("w", d)


def _width_by_parameters(transform: Any, n: int, d: int) -> int:
    """The number of coordinates of a transformer without fitted arrays."""
    if type(transform) is AdditiveChi2Sampler:
        steps = transform.sample_steps
        require(is_integer(steps) and steps > 0, f"sample_steps of an AdditiveChi2Sampler is {quoted(steps)}")
        return d * (2 * int(steps) - 1)
    if type(transform) is not PolynomialFeatures:
        return d
    degree = transform.degree[-1] if type(transform.degree) is tuple and transform.degree else transform.degree
    require(is_integer(degree) and degree >= 0, f"degree of a PolynomialFeatures is {quoted(degree)}")
    require(n * comb(d + int(degree), d) <= max(VALUES, 4 * n * d), "a representation is too large")
    try:  # it takes memory by what it says that it was fitted with
        fresh = clone(transform).fit(np.zeros((1, d)))
        same = vars(fresh) == vars(transform)
    except Exception as error:  # whatever scikit-learn may say of parameters
        raise Unsound(f"a PolynomialFeatures has wrong parameters ({quoted(str(error))})") from error
    require(same, "a PolynomialFeatures does not have the parts that it was fitted with")
    return fresh.n_output_features_


def check_sparse(matrix: Any, what: str) -> None:
    """Refuse a sparse matrix that refers to rows or columns that it does not have: SciPy would read other memory.

    Older versions of skops set the parts of a sparse array one by one, without any check.
    """
    require(matrix.format in ("csr", "csc"), f"{what} is of the form {matrix.format}")
    check_methods(matrix)
    names = ("data", "indices", "indptr")
    parts = [vars(matrix).get(name) for name in names]
    arrays = all(type(part) is np.ndarray and part.ndim == 1 for part in parts)
    require(arrays and all(part.dtype.kind == "i" for part in parts[1:]), f"{what} has parts that are no arrays")
    try:
        matrix.check_format(full_check=True)
        known = type(matrix.shape) is tuple and len(matrix.shape) == 2 and all(map(is_integer, matrix.shape))
    except Exception as error:
        raise Unsound(f"{what} has parts that do not fit together") from error
    require(known, f"{what} has parts that do not fit together")


def check_methods(thing: Any) -> None:
    """Refuse an object with an attribute that hides a method of its type."""
    hidden = [name for name in vars(thing) if callable(getattr(type(thing), str(name), None))]
    require(not hidden, f"a {type(thing).__name__} has an attribute that hides a method")
