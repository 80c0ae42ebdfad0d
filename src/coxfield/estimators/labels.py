"""Labels that users give: which of them are known, and the class number of each.

Each error is one sentence that names the label, its row, counted from 0, and the remedy.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Collection, Iterator, Mapping, Set
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from coxfield.arrays.library import as_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

INTEGERS = range(-(2**63), 2**63)  # that NumPy holds beside each other
UNSIGNED = range(2**64)  # likewise
KINDS = "biufSUmM"  # of arrays whose values can name classes
NAMES = (str, bytes, Real, np.bool_, np.datetime64, np.timedelta64)  # types of values that can


def complete_labels(y, X, estimator) -> NDArray:
    """Labels of all rows of X. A row without a label is refused."""
    _require(y, estimator)
    y = _column(y)
    check_consistent_length(X, y)
    blank = _blanks(y)
    if blank.any():
        row = int(blank.argmax())
        raise ValueError(
            f"Input y contains {_shown(y[row])} in row {row}, where a class is needed: remove the row, or let "
            "SLGCPClassifier(missing_label=None) label it"
        )
    return _usable(y, ~blank)


def separate_labels(y, missing_label, X) -> tuple[NDArray, NDArray]:
    """Labels as an array, and which of them are known.

    None, NaN and NaT mean the same, because data frames turn one into the other.
    """
    if isinstance(missing_label, Collection) and not isinstance(missing_label, str | bytes):
        raise ValueError(
            f"missing_label must be one value, such as -1, 'unknown' or None, got {_brief(missing_label)}: give "
            "the one that marks unknown labels in y"
        )
    y = _column(y)
    check_consistent_length(X, y)
    missing = _blanks(y)
    if not _is_blank(missing_label):
        if missing.any():
            row = int(missing.argmax())
            raise ValueError(
                f"y holds {_shown(y[row])} in row {row}, but missing_label is {missing_label!r}: give "
                "missing_label=None if that stands for unknown"
            )
        missing = np.array([_equal(label, missing_label) for label in _listed(y)], dtype=bool)
    return _usable(y, ~missing), ~missing


def class_numbers(y, estimator) -> tuple[NDArray, NDArray]:
    """The classes, at least two, and the class number of each label."""
    with np.errstate(invalid="ignore"):  # numbers that are too large for integers are refused as quantities
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        name = type(estimator).__name__
        raise ValueError(f"{name} needs labels of at least two classes, got only one class: {classes.tolist()[0]!r}")
    return classes, codes


def announced_classes(classes, known: NDArray) -> NDArray:
    """Classes that a user announces, in the type of the known ones; none if `classes` is None."""
    if classes is None:
        return known[:0]
    listed = _column(classes)
    if _blanks(listed).any():
        raise ValueError("classes holds a blank value, which names no class: remove it")
    found = np.unique(_usable(listed, np.ones(len(listed), bool)))
    if (found.dtype.kind in "US") != (known.dtype.kind in "US"):
        raise ValueError(
            f"classes holds {_shown(found[0])!r}, but the known classes are such as {known.tolist()[0]!r}: write all "
            "as text, or none"
        )
    return found


def numbers_among(y: NDArray, classes: NDArray) -> NDArray:
    """The class number of each label; a label that is no class is refused."""
    different, codes = np.unique(y, return_inverse=True)
    strange = (
        ~np.isin(different, classes)
        if (different.dtype.kind in "US") == (classes.dtype.kind in "US")
        else (np.ones(len(different), bool))
    )
    if strange.any():
        label = different[strange].tolist()[0]
        raise ValueError(
            f"y holds the class {label!r}, which is new: announce it by classes=[{label!r}], or correct the label; "
            f"known are {_brief(classes.tolist())}"
        )
    return np.searchsorted(classes, different)[codes]


def known_class_numbers(y, missing_label, X, estimator) -> tuple[NDArray, NDArray]:
    """The classes, at least two, and the class number of each row, -1 where the label is missing."""
    _require(y, estimator)
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


def _require(y, estimator) -> None:
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None: give y")


def _column(y) -> NDArray:
    """Labels as a vector. Those of a list stay what they are: NumPy would turn -1 among strings into "-1"."""
    if isinstance(y, str | bytes | Set | Mapping | Iterator):
        raise ValueError(f"y must be a list or an array with one label per row, got a {type(y).__name__}: give a list")
    y = as_numpy(y)
    if isinstance(y, list | tuple) or getattr(getattr(y, "dtype", None), "kind", None) == "c":
        y = np.asarray(y, dtype=object)
    return column_or_1d(y, warn=True)


def _listed(y: NDArray) -> list:
    """Labels one by one. Dates stay dates: some of them would become integers."""
    return list(y) if y.dtype.kind in "mM" else y.tolist()


def _blanks(y: NDArray) -> NDArray:
    if y.dtype.kind in "biuSU":  # all values of these types are labels
        return np.zeros(len(y), dtype=bool)
    return np.array([_is_blank(label) for label in _listed(y)], dtype=bool)


def _is_blank(label) -> bool:
    """Whether a label is None or pandas.NA, or differs from itself: NaN and NaT of all kinds do."""
    if label is None or label is getattr(sys.modules.get("pandas"), "NA", None):
        return True
    try:
        return bool(label != label)
    except (ArithmeticError, TypeError, ValueError):  # no single value
        return False


def _equal(label, missing_label) -> bool:
    """Whether a label is the mark of unknown labels. True is not the number 1."""
    try:
        return not isinstance(label, bool) and bool(label == missing_label)
    except (TypeError, ValueError):
        return False


def _usable(y: NDArray, known: NDArray) -> NDArray:
    """Labels in an array that can be sorted. Where a label is not known, there may be any other one."""
    rows = np.flatnonzero(known)
    if not len(rows):
        return y
    if y.dtype.kind not in KINDS:
        labels = _of_one_type(y[rows].tolist(), rows)
        y = np.full(len(y), labels[0], dtype=labels.dtype)
        y[rows] = labels
    if y.dtype.kind == "f" and not np.isfinite(y[rows]).all():
        row = rows[~np.isfinite(y[rows])][0]
        raise ValueError(
            f"Input y contains infinity in row {row}, which names no class: remove the row, or write its class as an "
            "integer or text"
        )
    return y


def _of_one_type(labels: list, rows: NDArray) -> NDArray:
    """Labels of Python as an array. They must be all text or all something else that can be sorted."""
    unsigned = all(type(label) is int and label in UNSIGNED for label in labels) and max(labels) not in INTEGERS
    for label, row in zip(labels, rows, strict=True):
        if not isinstance(label, NAMES):
            raise ValueError(_no_name(label, row))
        if isinstance(label, str | bytes) and label and label[-1] in ("\0", 0):  # arrays lose it
            raise ValueError(f"y holds {_brief(label)} in row {row}, which ends in a zero byte: write it without")
        if isinstance(label, int) and label not in INTEGERS and not unsigned:
            raise ValueError(
                f"y holds the integer {_brief(label)} in row {row}, which is beyond 64-bit integers: write such "
                "labels as text"
            )
    words = [isinstance(label, str) for label in labels]
    if len(set(words)) > 1:
        word, other = words.index(True), words.index(False)
        raise ValueError(
            f"y holds text and other labels, {labels[word]!r} in row {rows[word]} and {labels[other]!r} in row "
            f"{rows[other]}: write all labels as text, or none"
        )
    found = np.array(labels, dtype=np.uint64 if unsigned else None)
    if found.dtype.kind not in KINDS:
        raise ValueError(_no_name(labels[0], rows[0]))
    return found


def _no_name(label, row: int) -> str:
    return (
        f"y holds labels of type {type(label).__name__}, {_brief(label)} in row {row}: write labels as text, "
        "integers or booleans"
    )


def _brief(value) -> str:
    """A value of any kind in one short line."""
    return " ".join(reprlib.repr(value).split())


def _shown(label) -> str:
    return "NaN" if str(label) == "nan" else str(label)
