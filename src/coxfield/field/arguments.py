"""Arguments of users, checked once and turned into the contents of a label field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_consistent_length

from coxfield.kernels.per_class import PerClass, class_kernels
from coxfield.kernels.recognise import recognise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Covariance


def check_labels(labels, X, n_classes: int | None) -> NDArray:
    """Class numbers, -1 for unknown labels."""
    labels = np.asarray(labels)
    check_consistent_length(X, labels)
    if labels.ndim != 1 or not (np.issubdtype(labels.dtype, np.integer) or labels.size == 0):
        raise ValueError(f"labels must be class numbers, -1 for the unknown, got an array of {labels.dtype}")
    top = int(labels.max(initial=-1))
    if labels.min(initial=0) < -1 or (n_classes is not None and top >= n_classes):
        raise ValueError(f"labels must lie between -1 and n_classes - 1, got {labels.min()} to {top}")
    return labels.astype(int)


def number_of_classes(labels: NDArray, *per_class) -> int:
    """The least number of classes, at least two, that fits the labels and whatever is given once per class."""
    given = [len(one) for one in per_class if isinstance(one, list | tuple | Mapping | np.ndarray)]
    return max([2, int(labels.max(initial=-1)) + 1, *given])


def field_covariances(kernel, n_classes: int, n_features: int) -> PerClass[Covariance]:
    """One covariance per class, never negative, from a kernel or a sequence or mapping of kernels."""
    if isinstance(kernel, PerClass):
        kernels = kernel
    elif isinstance(kernel, list | tuple):
        kernel = dict(enumerate(kernel))
        if len(kernel) != n_classes:
            raise ValueError(f"got {len(kernel)} kernels for {n_classes} classes: give one, or one per class")
        kernels = class_kernels(kernel, np.arange(n_classes))
    else:
        kernels = class_kernels(kernel, np.arange(n_classes))
    covariances = kernels.map(lambda one: recognise(one, n_features))
    for covariance in covariances.distinct:
        covariance.check_nonnegative()
    return covariances
