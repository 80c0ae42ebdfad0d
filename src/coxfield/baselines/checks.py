"""What the baselines check alike of what users give."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

if TYPE_CHECKING:
    from numpy.typing import NDArray


def class_numbers(y, estimator) -> tuple[NDArray, NDArray]:
    """The classes, at least two, and the class number of each label."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        name = type(estimator).__name__
        raise ValueError(f"{name} needs labels of at least two classes, got only one class: {classes.tolist()[0]!r}")
    return classes, codes


def check_length_scale(length_scale) -> float:
    """A length scale that the user gives, or a sentence about it."""
    if not isinstance(length_scale, Real) or not 0 < float(length_scale) < np.inf:
        raise ValueError(f"length_scale must be a positive finite number, or None to choose it; got {length_scale!r}")
    return float(length_scale)
