"""What `fit` guarantees of a model. A file that holds anything else is refused before a model is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import Kernel

from coxfield import LGCPClassifier
from coxfield.io.kernel_content import check_kernel
from coxfield.io.mixture_content import check_mixture, check_points
from coxfield.io.requirements import (
    is_integer,
    is_number,
    is_text,
    quoted,
    require,
    require_array,
    require_codes,
    require_fields,
    require_keys,
    require_letters,
    require_positive,
)
from coxfield.io.transform_content import check_parameters
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.mixture_ladder import Member

PARAMETERS = tuple(LGCPClassifier().get_params())
FITTED = ("X_fit_", "y_fit_", "classes_", "mean_", "kernel_", "n_features_in_", "_weights")
HELD = ("X_fit_", "y_fit_", "_weights")  # which a model holds in another form
TABLES = ("mixture_", "selection_path_", "learning_path_")  # that only some fits make
HEADER = ("format", "version", "target", "features", "id_column")
MOST_THREADS = 2**15


def check_header(header: Any, n_features: int, *, has_ids: bool = False) -> None:
    """Refuse names of columns that no table of a fit has. `has_ids` says whether training rows have ids."""
    require_keys(header, HEADER, "its description")
    for name in ("version", "target"):
        require(is_text(header[name]), f"the {name} in it is no text")
    require(header["id_column"] is None or is_text(header["id_column"]), "the id_column in it is no text")
    require(header["id_column"] is not None or not has_ids, "it has ids, but no name of their column")
    features = header["features"]
    require(type(features) is list, "the features in it are no list of names")
    require(len(features) == n_features, f"it has {len(features)} names for {n_features} features")
    require(all(map(is_text, features)), "the features in it are no list of names")
    require(len(set(features)) == len(features), "two of its features have the same name")


def check_state(state: Any) -> None:
    """Refuse a state that no fit of `LGCPClassifier` leaves behind.

    Parameters
    ----------
    state : dict
        As ``LGCPClassifier.__getstate__`` returns it.
    """
    require_keys(state, (*PARAMETERS, *FITTED), "the model")
    hidden = [name for name in state if hasattr(LGCPClassifier, name) and name not in HELD]
    require(not hidden, f"the model has an entry {quoted(hidden)} that hides a part of its class")
    check_points(state["X_fit_"], "X_fit_")
    n, d = state["X_fit_"].shape
    classes = _checked_classes(state["classes_"])
    require_codes(state["y_fit_"], "y_fit_", n, len(classes))
    _check_weights(state["_weights"], state["X_fit_"], len(classes))
    for name, length in (("_chosen_from", n), ("_announced", len(classes)), ("_arrived", len(classes))):
        if name in state:
            _check_mask(state[name], name, length)
    changed = state.get("_changed", 0)
    require(is_integer(changed) and changed >= 0, f"_changed is {quoted(changed)}")
    require_array(state["mean_"], "mean_", (len(classes),))
    require(is_integer(state["n_features_in_"]) and state["n_features_in_"] == d, f"n_features_in_ is not {d}")
    if "feature_names_in_" in state:
        _check_feature_names(state["feature_names_in_"], d)
    _check_kernels(state, classes)
    _check_parameters(state, d)
    _check_tables(state)


def _check_feature_names(names: Any, d: int) -> None:
    what = "feature_names_in_"
    require(type(names) is np.ndarray and names.shape == (d,), f"{what} does not hold the name of each feature")
    if names.dtype.kind == "U":
        require_letters(names, what)
    require(all(map(is_text, names.tolist())), f"{what} holds values that are no text")


def _checked_classes(classes: Any) -> list:
    """The classes as a list: sorted, different from each other, and at least two."""
    require(type(classes) is np.ndarray and classes.ndim == 1, "classes_ is no array of classes")
    kind = classes.dtype
    require(kind.kind in "biufmMUO" and kind.isnative, f"classes_ is of type {quoted(kind.str)}")
    if kind.kind == "U":
        require_letters(classes, "classes_")
    listed = classes.tolist()
    require(len(listed) >= 2, "classes_ holds fewer than two classes")
    if kind.kind in "UO":
        require(all(map(is_text, listed)), "classes_ holds values that are no text")
    else:
        require(bool(np.isfinite(classes).all()), "classes_ holds values that are not finite")
    require(all(one < other for one, other in pairwise(listed)), "classes_ is not sorted")
    return listed


def _check_mask(mask: Any, name: str, length: int) -> None:
    require(type(mask) is np.ndarray and mask.dtype == bool and mask.shape == (length,), f"{name} is no mask")


def _check_weights(weights: Any, X: Any, n_classes: int) -> None:
    """None, one positive number per point, or one number per point and class."""
    if weights is None:
        return
    n = X.shape[0]
    if type(weights) is np.ndarray and weights.ndim == 2:
        shares = require_positive(weights, "_weights", (n, n_classes), zero=True)
        require(bool(shares.any()), "_weights are all 0")
    else:
        require_positive(weights, "_weights", (n,))
        require(weights.dtype == X.dtype, "_weights are not in the precision of the points")


def _check_kernels(state: dict, classes: list) -> None:
    """The covariance in use: one for all classes, or one for each of them."""
    kernel, d = state["kernel_"], state["X_fit_"].shape[1]
    if isinstance(kernel, dict):
        require(len(kernel) == len(classes) and all(label in kernel for label in classes), "kernel_ has wrong classes")
    for each in kernel.values() if isinstance(kernel, dict) else [kernel]:
        if isinstance(each, Mixture):
            check_mixture(each)
            require(each.X.shape[1] == d, f"the mixture is of points with {each.X.shape[1]} features, not {d}")
        else:
            check_kernel(each, d)
    if "mixture_" in state:
        _check_learned(state)


def _check_learned(state: dict) -> None:
    """A mixture that was learned from the points refers to them, and knows their densities."""
    mixture, weights, X = state["kernel_"], state["_weights"], state["X_fit_"]
    require(isinstance(mixture, Mixture), "it has a table of a mixture, but no mixture")
    if "_chosen_from" in state and mixture.n_reference != X.shape[0]:  # densities of files of format 4 and before
        chosen = state["_chosen_from"]
        weights, X = None if weights is None else weights[chosen], X[chosen]
    require(_same_points(mixture.X, X), "the points of the mixture are not X_fit_")
    counts = mixture.counts
    if counts is None:  # rows with weights may have come later; then those from which it was chosen count once
        same = weights is None or bool((weights == 1).all())
    else:
        same = weights is not None and np.array_equal(counts, weights)
    require(same, "counts of the mixture are not the weights of the points")
    require(mixture.log_densities is not None, "the mixture has no densities")


def _same_points(one: Any, other: Any) -> bool:
    """Whether two arrays, dense or sparse, hold the same points."""
    if one is other:
        return True
    if type(one) is not type(other) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    return not (one != other).nnz if sparse.issparse(one) else np.array_equal(one, other)


def _check_parameters(state: dict, d: int) -> None:
    """The parameters that the user gave; a prediction reads only the number of threads."""
    jobs = state["n_jobs"]
    require(jobs is None or (is_integer(jobs) and 0 < abs(jobs) <= MOST_THREADS), f"n_jobs is {quoted(jobs)}")
    for name in ("mean", "selection", "length_scales", "learn_mean", "selection_part", "random_state", "verbose"):
        require(_is_plain(state[name]), f"{name} is not made of numbers and names")
    given = state["kernel"]
    listed = given.values() if isinstance(given, Mapping) else given if isinstance(given, list | tuple) else [given]
    for each in listed:
        _check_given(each)


def _check_given(kernel: Any) -> None:
    """A kernel, a mixture or a member as users give it."""
    if isinstance(kernel, Mixture):
        check_mixture(kernel)
    elif isinstance(kernel, Kernel):
        check_kernel(kernel)
    elif kernel is not None:
        require_fields(kernel, Member, "kernel")
        if kernel.kernel is not None:
            check_kernel(kernel.kernel)
        if not isinstance(kernel.transform, str):
            check_parameters(kernel.transform)
        require(_is_plain(kernel.alphas), "alphas of a member are no numbers")


def _is_plain(value: Any) -> bool:
    """Whether a value is made of numbers, names, arrays, lists and mappings."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return value is None or isinstance(value, str | int | float | np.generic) or type(value) is np.ndarray


def _check_tables(state: dict) -> None:
    """Tables of the selection: a mapping from names to columns of the same length."""
    for name in TABLES:
        if name in state:
            require_keys(state[name], (), name)
            columns = list(state[name].values())
            arrays = all(type(column) is np.ndarray and column.ndim == 1 for column in columns)
            require(arrays and len({len(column) for column in columns}) == 1, f"{name} has columns of different length")
            for column in columns:
                if column.dtype.kind == "U":
                    require_letters(column, name)
    if "loo_error_" in state:
        require(is_number(state["loo_error_"]) and 0 <= state["loo_error_"] <= 1, "loo_error_ is no share")
