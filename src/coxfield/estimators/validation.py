"""Checks of user input. Each error is one sentence that names the value and the remedy."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.per_class import PerClass


def check_weights(sample_weight, X) -> NDArray | None:
    """Weights as an array in the precision of X, or None if every point counts once."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(X.shape[0], float(sample_weight))
    weights = check_array(sample_weight, ensure_2d=False, dtype=X.dtype, input_name="sample_weight")
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got an array of shape {weights.shape}")
    check_consistent_length(X, weights)
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}: leave such rows out instead")
    if not (weights > 0).any():
        raise ValueError("sample_weight is zero everywhere: at least one point must count")
    return weights


def separate_labels(y, missing_label, X) -> tuple[NDArray, NDArray]:
    """Labels as an array, and which of them are known.

    None and NaN mean the same, because data frames turn one into the other.
    """
    y = column_or_1d(np.asarray(y, dtype=object) if _mixes_types(y) else y, warn=True)
    check_consistent_length(X, y)
    blank = np.array([_is_blank(label) for label in y.tolist()], dtype=bool)
    if _is_blank(missing_label):
        missing = blank
    else:
        if blank.any():
            raise ValueError(
                f"y holds NaN or None in row {int(np.flatnonzero(blank)[0])}, but missing_label is {missing_label!r}: "
                "give missing_label=None if that stands for unknown"
            )
        missing = np.array([type(label) is not bool and label == missing_label for label in y.tolist()], dtype=bool)
    known = ~missing
    if y.dtype == object and known.any():
        y = np.where(known, y, y[known][0])  # any value of the same type, so that labels can be sorted
        y = np.array(y.tolist())
    return y, known


def _is_blank(label) -> bool:
    missing = getattr(sys.modules.get("pandas"), "NA", None)  # if pandas is not loaded, no label is pandas.NA
    return label is None or label is missing or (isinstance(label, Real) and bool(np.isnan(float(label))))


def class_numbers(y, estimator) -> tuple[NDArray, NDArray]:
    """The classes, at least two, and the class number of each label."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        name = type(estimator).__name__
        raise ValueError(f"{name} needs labels of at least two classes, got only one class: {classes.tolist()[0]!r}")
    return classes, codes


def known_class_numbers(y, missing_label, X, estimator) -> tuple[NDArray, NDArray]:
    """The classes, at least two, and the class number of each row, -1 where the label is missing."""
    y, known = separate_labels(y, missing_label, X)
    if not known.any():
        raise ValueError(
            f"no point is labelled: every entry of y is missing_label={missing_label!r}; label at least one "
            "of each class, or give another missing_label"
        )
    classes, numbers = class_numbers(y[known], estimator)
    codes = np.full(len(known), -1)
    codes[known] = numbers
    return classes, codes


def _mixes_types(y) -> bool:
    """Whether NumPy would change labels of a list: among strings it would turn -1 into the string "-1"."""
    if not isinstance(y, list | tuple):
        return False
    return any(label is None for label in y) or len({isinstance(label, str) for label in y}) > 1


def like(X, training):
    """X made sparse or dense like the training points, because distances need both in the same form."""
    if sparse.issparse(X) == sparse.issparse(training):
        return X
    return X.toarray() if sparse.issparse(X) else sparse.csr_array(X)


def shown_kernel(kernels: PerClass, given, classes: NDArray):
    """The kernels as users see them: one, or a mapping class -> kernel where they gave a mapping."""
    return dict(zip(classes.tolist(), kernels, strict=True)) if isinstance(given, Mapping) else kernels[0]


def check_option(name: str, value, allowed) -> None:
    """Refuse a value that is not allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")
