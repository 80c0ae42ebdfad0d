"""Checks of user input. Each error is one sentence that names the value and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from coxfield.arrays.library import Library, as_numpy, is_dispatched
from coxfield.estimators.frames import refuse_columns, trouble
from coxfield.estimators.labels import complete_labels
from coxfield.utils.powers_of_two import power_of_two

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.per_class import PerClass

EXTREME_WEIGHT = 2.0**64  # beyond it, or below its reciprocal, nobody counts points
WIDEST = 2**25  # columns of a sparse matrix; a fit takes some hundred bytes for each, whether it is empty or not


def check_weights(sample_weight, X, precision=None) -> NDArray | None:
    """Weights as an array, in the precision of X by default, or None if every point counts once.

    Of extreme weights only the proportions count: their sums would overflow or vanish.
    """
    if sample_weight is None:
        return None
    sample_weight = as_numpy(sample_weight)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(X.shape[0], float(sample_weight))
    if isinstance(sample_weight, list | tuple):  # some versions of scikit-learn take no lists where they dispatch
        sample_weight = np.asarray(sample_weight)
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got an array of shape {weights.shape}")
    check_consistent_length(X, weights)
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}: leave such rows out instead")
    if not (weights > 0).any():
        raise ValueError("sample_weight is zero everywhere: at least one point must count")
    return _in_proportion(weights).astype(X.dtype if precision is None else precision)


def check_added_weights(sample_weight, X) -> NDArray | None:
    """Weights of rows that join others. Extreme ones are refused: their proportions to the others would be lost."""
    weights = None if sample_weight is None or not X.shape[0] else check_weights(sample_weight, X)
    if weights is not None:
        largest = float(np.max(sample_weight))
        if not 1 / EXTREME_WEIGHT <= largest <= EXTREME_WEIGHT:
            raise ValueError(
                f"sample_weight up to {largest:.3g} cannot be compared with the weights of the rows that are there: "
                f"give weights between {1 / EXTREME_WEIGHT:.2g} and {EXTREME_WEIGHT:.2g}"
            )
    return weights


def _in_proportion(weights: NDArray) -> NDArray:
    """Weights divided by a power of two if the largest is extreme; a weight above 0 stays above 0."""
    if not 1 / EXTREME_WEIGHT <= weights.max() <= EXTREME_WEIGHT:
        for _ in range(2):  # no power of two is small enough for subnormal weights
            weights = weights / power_of_two(float(weights.max()))
    return np.where(weights > 0, np.maximum(weights, np.finfo(np.float32).tiny), 0)


def check_points(estimator, X, *, reset: bool = True, **options):
    """Points as scikit-learn's `validate_data` returns them, with its `options`; `reset` is for fit.

    Of a data frame, the sentence names the column that is wrong.
    """
    if reset:
        _check_width(estimator, X)
    _check_dispatch(estimator, X)
    refuse_columns(X)
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # scikit-learn adds all numbers up to see if one is infinite
            return validate_data(estimator, X, reset=reset, **options)
    except (TypeError, ValueError, OverflowError):
        sentence = trouble(X)
        if sentence is None:
            raise
    raise ValueError(sentence)


def _check_dispatch(estimator, X) -> None:
    """Refuse arrays of other libraries for estimators that can use only those of NumPy."""
    if is_dispatched(X) and not get_tags(estimator).array_api_support:
        raise TypeError(
            f"{type(estimator).__name__} needs NumPy arrays, but X holds {Library.of(X)}: convert X to NumPy, or leave "
            "scikit-learn's array_api_dispatch off"
        )


def _check_width(estimator, X) -> None:
    """Refuse a sparse matrix with so many columns that numbers per column do not fit into memory."""
    if sparse.issparse(X) and X.shape[1] > WIDEST and not get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            f"X has {X.shape[1]} columns, and a fit holds many vectors of one number per column, of "
            f"{8 * X.shape[1] / 2**30:.2g} GiB each: hash the features into at most {WIDEST} columns, or leave out the "
            "empty ones (np.unique(X.indices, return_inverse=True) numbers the others)"
        )


def check_labelled_points(estimator, X, y, **options) -> tuple[Any, NDArray]:
    """Points as from `check_points`, and one known label for each."""
    X = check_points(estimator, X, **options)
    return X, complete_labels(y, X, estimator)


def is_new(X, given) -> bool:
    """Whether checked points are in an array that nobody else holds."""
    return isinstance(X, np.ndarray) and X is not given and X.flags.owndata


def check_share(name: str, value) -> None:
    """Refuse what is not a share above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) <= 1.0:
        raise ValueError(f"{name} must be a number above 0 and at most 1, got {value!r}")


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
