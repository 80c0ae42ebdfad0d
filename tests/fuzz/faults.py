"""Invariants of probabilities, labels and numbers, for all estimators."""

import numpy as np

TOLERANCE = {"float32": 1e-6, "float64": 1e-9}


class BrokenError(Exception):
    """An invariant that does not hold, and in which step."""


def check_probabilities(values, name):
    """Finite, not negative, and with sum one in every row."""
    values = np.asarray(values)
    if not np.isfinite(values).all():
        raise BrokenError(f"{name} is not finite")
    tolerance = TOLERANCE.get(str(values.dtype), 1e-9)
    if (values < 0).any() or (np.abs(values.sum(axis=1, dtype=float) - 1) > tolerance).any():
        raise BrokenError(f"{name} does not sum to one")


def check_labels(estimator, labels, name):
    """Labels are classes."""
    if not np.isin(np.asarray(labels), estimator.classes_).all():
        raise BrokenError(f"{name} gives labels that are no classes")


def check_numbers(values, name):
    """Scores may be infinite, but never NaN."""
    if np.isnan(values).any():
        raise BrokenError(f"{name} is NaN")
