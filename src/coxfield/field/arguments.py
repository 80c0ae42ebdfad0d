"""Arguments of users, checked once and turned into the contents of a label field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_consistent_length

from coxfield.kernels.per_class import PerClass, class_kernels
from coxfield.kernels.recognise import recognise
from coxfield.utils.numbers import whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Covariance

UNLABELLED = 1000  # so many classes may have no label; with more, labels are no class numbers
BYTES = 2**34  # memory that the numbers of a field may take


def check_labels(labels, X, n_classes: int | None) -> NDArray:
    """Class numbers, -1 for unknown labels."""
    if n_classes is not None:
        whole_number("n_classes", n_classes)
    labels = np.asarray(labels)
    if labels.ndim != 1 or not (labels.dtype.kind in "iu" or labels.size == 0):
        raise ValueError(
            f"labels must be class numbers, -1 for the unknown, got an array of {labels.dtype} of shape {labels.shape}"
            ": np.unique(names, return_inverse=True) numbers the names of classes"
        )
    check_consistent_length(X, labels)
    least, top = (int(labels.min()), int(labels.max())) if labels.size else (-1, -1)
    if least < -1 or top >= (2**63 if n_classes is None else n_classes):
        raise ValueError(f"labels must lie between -1 and n_classes - 1, got {least} to {top}")
    return labels.astype(int)


def number_of_classes(labels: NDArray, n_classes: int | None, *per_class) -> int:
    """The number of classes that is given, or the least that fits the labels and whatever is given once per class.

    It is at least two. Everything that follows holds a number per class, also for classes without labels. So a label
    far above the number of points is refused, and so is a number of classes that does not fit into memory.
    """
    given = [len(one) for one in per_class if isinstance(one, list | tuple | Mapping | np.ndarray)]
    top, n = int(labels.max(initial=-1)), len(labels)
    if n_classes is None and top >= max(UNLABELLED, n, *given):
        raise ValueError(
            f"labels must be class numbers 0, 1, 2 and so on, got {top} for {n} points: number the classes by "
            "np.unique(names, return_inverse=True), or give n_classes"
        )
    found = max([2, top + 1, *given]) if n_classes is None else int(n_classes)
    size = 8 * found * (40 + 6 * n)  # measured: some tables of a number per point and class, and vectors per class
    if size > BYTES:
        raise ValueError(
            f"{found} classes of {n} points would take about {size / 2**30:.3g} GiB of memory: give n_classes as the "
            "number of classes that there are"
        )
    return found


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
