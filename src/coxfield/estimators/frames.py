"""Data frames of pandas and polars: which column cannot be used as a feature, and what to do about it.

scikit-learn says what it found. These functions say where: its messages name types, and users know columns. Rows are
counted from 0. Neither package is imported here. If it is not loaded, no argument is a data frame of it.
"""

from __future__ import annotations

import reprlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


def refuse_columns(X) -> None:
    """Refuse a data frame without columns, with two columns of one name, or with a column of dates or times.

    These are refused before scikit-learn sees them, because it turns dates into numbers in some frames.
    """
    if isinstance(X, _type("polars", "LazyFrame")):
        raise ValueError("X is a LazyFrame, which holds no rows yet: give X.collect()")
    if not _is_frame(X):
        return
    names = list(X.columns)
    if not names:
        raise ValueError(f"X has no columns, its shape is {X.shape}: give at least one feature")
    if len(set(names)) < len(names):
        repeated = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"X has more than one column {repeated!r}: rename or remove one")
    for name, dtype in zip(names, X.dtypes, strict=True):
        if dtype.is_temporal() if hasattr(dtype, "is_temporal") else dtype.kind in "mM":
            raise ValueError(_not_numbers(X, name, f"is of type {dtype}"))


def trouble(X) -> str | None:
    """A sentence on the first column of a data frame that is not finite numbers; None if there is none, or no frame."""
    if not _is_frame(X):
        return None
    return next(filter(None, (_trouble(X, name, column) for name, column in _columns(X))), None)


def _type(package: str, name: str) -> Any:
    return getattr(sys.modules.get(package), name, ())


def _is_polars(X) -> bool:
    return isinstance(X, _type("polars", "DataFrame"))


def _is_frame(X) -> bool:
    return _is_polars(X) or isinstance(X, _type("pandas", "DataFrame"))


def _columns(X) -> Iterator[tuple[Any, Any]]:
    return ((column.name, column) for column in X.iter_columns()) if _is_polars(X) else X.items()


def _trouble(X, name, column) -> str | None:
    if getattr(column.dtype, "kind", "") == "c":
        return (
            f"Complex data not supported: column {name!r} of X holds complex numbers: give their real and imaginary "
            "parts as two columns"
        )
    try:
        numbers = np.asarray(column.to_list(), float) if _is_polars(X) else column.to_numpy(float, na_value=np.nan)
    except (TypeError, ValueError, OverflowError):
        return _not_numbers(X, name, _first_word(column))
    if numbers.ndim > 1:
        return _not_numbers(X, name, f"is of type {column.dtype}")
    if np.isfinite(numbers).all():
        return None
    row = int(np.flatnonzero(~np.isfinite(numbers))[0])
    what, found = ("NaN", "is blank") if np.isnan(numbers[row]) else ("infinity", f"holds {numbers[row]:g}")
    return (
        f"Input X contains {what}: column {name!r} {found} in row {row}, where a finite number is needed: fill in a "
        "number, or remove the row"
    )


def _first_word(column) -> str:
    """What a column holds that is no number, and in which row."""
    blanks = (None, _type("pandas", "NA"))
    for row, value in enumerate(column.to_list()):
        try:
            float("nan" if any(value is blank for blank in blanks) else value)
        except (TypeError, ValueError, OverflowError):
            kind = "text" if isinstance(value, str) else f"a value of type {type(value).__name__}"
            return f"holds {kind}, {reprlib.repr(value)} in row {row}"
    return f"is of type {column.dtype}"


def _not_numbers(X, name, found: str) -> str:
    without = f"X.drop({name!r})" if _is_polars(X) else f"X.drop(columns={[name]!r})"
    return f"Column {name!r} of X {found}, where numbers are needed: encode it as numbers, or leave it out, {without}"
