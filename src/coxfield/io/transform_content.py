"""Fitted transformers in a model file: the representations of a mixture.

Those of the default bank are checked array by array. Other transformers of scikit-learn are checked for what could do
harm, and by a trial on a point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

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
    require_keys,
    require_positive,
)
from coxfield.kernels.compression import Compression
from coxfield.kernels.transformer import Transformer
from coxfield.kernels.units import Units
from coxfield.kernels.whitening import Whitening

VALUES = 2**27  # coordinates of all points in a representation; more only if the points themselves have so many


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
    require(isinstance(fitted, BaseEstimator), f"a representation is a {type(fitted).__name__}, not a transformer")
    check_inside(fitted)
    _check_known(fitted, *X.shape)
    try:
        with np.errstate(all="ignore"):
            found = transform.transform(X[:1])
    except Exception as error:  # whatever a transformer of scikit-learn may say to parts that do not fit
        raise Unsound(f"a representation cannot be computed ({quoted(str(error))})") from error
    points = sparse.issparse(found) or type(found) is np.ndarray
    require(points and found.ndim == 2 and found.shape[0] == 1, "a representation does not give a row for each point")
    require(found.dtype.kind == "f", "a representation does not give numbers")
    values = X.shape[0] * found.shape[1]
    require(found.shape[1] > 0 and values <= max(VALUES, 4 * X.shape[0] * X.shape[1]), "a representation is too large")
    return found.shape[1]


def check_inside(thing: Any) -> None:
    """Refuse sparse matrices whose parts do not fit together, and attributes that would hide a method."""
    if sparse.issparse(thing):
        check_sparse(thing, "a sparse matrix in a representation")
    elif isinstance(thing, list | tuple | set):
        for each in thing:
            check_inside(each)
    elif isinstance(thing, dict):
        for each in thing.values():
            check_inside(each)
    elif isinstance(thing, BaseEstimator):
        _check_methods(thing)
        check_inside(vars(thing))


def check_sparse(matrix: Any, what: str) -> None:
    """Refuse a sparse matrix that refers to rows or columns that it does not have: SciPy would read other memory.

    Older versions of skops set the parts of a sparse array one by one, without any check.
    """
    require(matrix.format in ("csr", "csc"), f"{what} is of the form {matrix.format}")
    _check_methods(matrix)
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


def _check_methods(thing: Any) -> None:
    """Refuse an object with an attribute that hides a method of its type."""
    hidden = [name for name in vars(thing) if callable(getattr(type(thing), str(name), None))]
    require(not hidden, f"a {type(thing).__name__} has an attribute that hides a method")


def _check_known(transform: Any, n: int, d: int) -> None:
    """Refuse wrong arrays in a transformer of the default bank."""
    if type(transform) in (Whitening, Compression, Units, StandardScaler, PCA):
        names = {Whitening: WHITENING, Compression: ("centre_", "scale_"), Units: ("units_",)}
        require_keys(vars(transform), names.get(type(transform), ()), f"a {type(transform).__name__}")
    if type(transform) is Whitening:
        _check_whitening(transform, n, d)
    elif type(transform) is Compression:
        require_array(transform.centre_, "centre_ of a Compression", (d,))
        require_positive(transform.scale_, "scale_ of a Compression", (d,))
    elif type(transform) is Units:
        require_positive(transform.units_, "units_ of Units", (d,))
    elif type(transform) is StandardScaler:
        _check_scaler(transform, d)
    elif type(transform) is PCA:
        _check_directions(transform, d)
    elif type(transform) is Pipeline:
        _check_steps(transform, n, d)


WHITENING = ("matrix_", "origin_", "shrinkage_", "class_means_", "labels_", "removal_")


def _check_whitening(transform: Whitening, n: int, d: int) -> None:
    matrix = require_array(transform.matrix_, "matrix_ of a Whitening", (d, None))
    require(0 < matrix.shape[1] <= d, "matrix_ of a Whitening has more directions than there are features")
    require_array(transform.origin_, "origin_ of a Whitening", (d,))
    means = require_array(transform.class_means_, "class_means_ of a Whitening", (None, matrix.shape[1]))
    require_codes(transform.labels_, "labels_ of a Whitening", n, len(means))
    require_positive(transform.removal_, "removal_ of a Whitening", (n,), zero=True)
    require(is_number(transform.shrinkage_), "shrinkage_ of a Whitening is no number")


def _check_scaler(transform: StandardScaler, d: int) -> None:
    for name in ("scale_", "mean_"):
        value = getattr(transform, name, None)
        if value is not None:
            require_array(value, f"{name} of a StandardScaler", (d,))
    require(not (transform.with_std and np.any(transform.scale_ == 0)), "scale_ of a StandardScaler holds a 0")


def _check_directions(transform: PCA, d: int) -> None:
    parts = vars(transform)
    require_keys(parts, ("components_", "mean_", "explained_variance_"), "a PCA")
    directions = require_array(parts["components_"], "components_ of a PCA", (None, d))
    require(0 < len(directions) <= d, "components_ of a PCA has more directions than there are features")
    require_array(parts["mean_"], "mean_ of a PCA", (d,))
    require_positive(parts["explained_variance_"], "explained_variance_ of a PCA", (len(directions),), zero=True)


def _check_steps(transform: Pipeline, n: int, d: int) -> None:
    """The first step has the features, and each of the others what the one before makes of them."""
    steps: Any = getattr(transform, "steps", None)
    pairs = type(steps) is list and all(type(step) is tuple and len(step) == 2 for step in steps)
    require(pairs and len(steps) > 0 and all(is_text(name) for name, _ in steps), "a Pipeline has no steps")
    width: int | None = d
    for _, step in steps:
        if width is not None:
            _check_known(step, n, width)
            width = _width(step, width)


def _width(step: Any, d: int) -> int | None:
    """The number of coordinates after a step; None if it is not known."""
    if type(step) is Whitening:
        return step.matrix_.shape[1]
    if type(step) is PCA:
        return len(step.components_)
    return d if type(step) in (Compression, Units, StandardScaler) else None
