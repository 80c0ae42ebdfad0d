"""From what users give to what a label field holds: checked once, here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_consistent_length

from coxfield.kernels.covariance import Covariance, check_nonnegative, recognise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def check_labels(labels, X, n_classes: int | None) -> NDArray:
    """Class numbers, -1 for the unknown."""
    labels = np.asarray(labels)
    check_consistent_length(X, labels)
    if labels.ndim != 1 or not (np.issubdtype(labels.dtype, np.integer) or labels.size == 0):
        raise ValueError(f"labels must be class numbers, -1 for the unknown, got an array of {labels.dtype}")
    top = int(labels.max(initial=-1))
    if labels.min(initial=0) < -1 or (n_classes is not None and top >= n_classes):
        raise ValueError(f"labels must lie between -1 and n_classes - 1, got {labels.min()} to {top}")
    return labels.astype(int)


def class_covariances(kernel, n_classes: int, n_features: int) -> tuple[Covariance, ...]:
    """One covariance a class; equal kernels become one object, so that their classes share one pass."""
    if isinstance(kernel, (Mapping, list, tuple)):
        if len(kernel) != n_classes:
            raise ValueError(f"got {len(kernel)} kernels for {n_classes} classes: give one, or one a class")
        kernels = [kernel[c] for c in range(n_classes)]
    else:
        kernels = [kernel] * n_classes
    seen: list[Covariance] = []
    for one in kernels:
        same = next((other for other in seen if other.kernel == one), None)
        if same is None:
            same = recognise(one, n_features)
            check_nonnegative(one)
        seen.append(same)
    return tuple(seen)


def class_means(mean, n_classes: int) -> NDArray:
    """One mean a class; classes that a mapping leaves out have mean 0."""
    if isinstance(mean, Mapping):
        mean = [mean.get(c, 0.0) for c in range(n_classes)]
    means = np.broadcast_to(np.asarray(mean, dtype=float), (n_classes,))
    if not np.isfinite(means).all():
        raise ValueError(f"mean must be finite, got {mean!r}")
    return means


def prior_terms(X, covariances: Sequence[Covariance], means: NDArray) -> NDArray:
    """The terms mu_c + C_c(x, x) / 2 of eq. activationFunction, shape (n, Q)."""
    prior = np.empty((X.shape[0], len(covariances)))
    for c, covariance in enumerate(covariances):
        prior[:, c] = means[c] + (covariance.diagonal(X) / 2 if X.shape[0] else 0)
    return prior
