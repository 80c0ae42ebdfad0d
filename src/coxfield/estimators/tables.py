"""Ordinary tables as points: numbers, categories, blanks, ordered levels, booleans and dates.

A table becomes an array of numbers, followed by columns of categories. A category is one column of 0 and 1 for each of
its levels, as they are: two rows with different levels are 2 apart in squared distance, which is the mean squared
difference of a standardised number. So exp(-mismatches / l^2) is the squared exponential on these columns, and a rare
level counts like any other. A level that was never seen is a mismatch with all others. A blank number is filled in by
the median, and that it was blank is a category of its own.

Neither pandas nor polars nor pyarrow is imported here. If it is not loaded, no argument is a table of it.
"""

from __future__ import annotations

import datetime as dt
import math
import reprlib
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

MOST_LEVELS = 30  # of a category; rarer ones together are the last
DIFFERENT = 0.5  # share of rows: with more different words than that, a column is a text, or an id
FEW_ROWS = 20  # rows of which nobody can say whether a column is an id
WORDS = 3  # of an id, at most, on average
APART = math.sqrt(2.0)  # so that rows with a blank, and rows without, are 2 apart in squared distance
YES = {"yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "true": 1.0, "false": 0.0, "t": 1.0, "f": 0.0}
EPOCH = dt.datetime(1970, 1, 1)
CYCLES = {"day of year": 365.2425, "day of week": 7.0, "hour": 1.0}  # days
TABLES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))


class TableError(ValueError):
    """A column that cannot be used: a sentence with its name and the remedy."""


@dataclass(frozen=True)
class Column:
    """How one column of a table becomes numbers."""

    name: Any
    """Its name, or its place in an array."""
    kind: str
    """"number", "yes or no", "ordered", "date", "category", "id" (which is left out) or "empty" (likewise)."""
    levels: tuple[str, ...] = ()
    """Of a category, the most common first; of ordered levels, in their order."""
    blanks: bool = False
    """Whether some rows were blank at the fit."""
    filling: tuple[float, ...] = ()
    """What stands for a blank, for each number."""
    cycles: tuple[str, ...] = ()
    """Of a date, what varies."""
    rare: bool = False
    """Whether there were rarer levels, which are taken together."""

    @property
    def n_numbers(self) -> int:
        """Columns of numbers."""
        if self.kind in ("category", "id", "empty"):
            return 0
        return 1 + 2 * len(self.cycles)

    @property
    def n_categories(self) -> int:
        """Columns of categories: its levels, blank, and all other levels; or whether it was blank."""
        return len(self.levels) + 2 if self.kind == "category" else int(self.blanks and self.n_numbers > 0)

    def numbers(self, values: Sequence) -> NDArray:
        """Shape (n, n_numbers); NaN where it is blank."""
        if self.kind == "date":
            return _dates(values, self.cycles, self.name)
        if self.kind == "ordered":
            places = {level: float(k) for k, level in enumerate(self.levels)}
            return np.array([[places.get(_level(value), math.nan)] for value in values])
        return _floats(values, self.name)[:, None]

    def filled(self, numbers: NDArray) -> NDArray:
        """Numbers without blanks."""
        return np.where(np.isnan(numbers), np.asarray(self.filling), numbers)

    def categories(self, values: Sequence) -> NDArray:
        """Which column is 1, in each row: one of the levels, then blank, then any other level."""
        places = {level: k for k, level in enumerate(self.levels)}
        blank, other = len(self.levels), len(self.levels) + 1
        return np.array([blank if _is_blank(value) else places.get(_level(value), other) for value in values], int)


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, as they were at the fit."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, X: Any, categorical_features: Any = "from_dtype") -> TableColumns | None:
        """What the columns of a table are; None if all are numbers without blanks, so that nothing is to be done."""
        if _are_numbers(X) and _no_choice(categorical_features):
            return None
        found, chosen = list(_columns(X)), _chosen(categorical_features, X)
        columns = tuple(_described(name, values, kind, k in chosen) for k, (name, values, kind) in enumerate(found))
        if all(column.kind == "number" and not column.blanks for column in columns):
            return None
        used = [column for column in columns if column.n_numbers + column.n_categories]
        if not used:
            raise TableError(f"no column of X can be used: {_listed(columns)}; give at least one feature")
        left = [column.name for column in columns if column.kind == "id"]
        if left:
            warnings.warn(
                f"column {left[0]!r} of X names each row by another word, so it is left out as an id: remove it from "
                "X, or give its words as features",
                stacklevel=6,
            )
        return cls(columns)

    @property
    def n_numbers(self) -> int:
        """Columns of numbers, which come first."""
        return sum(column.n_numbers for column in self.columns)

    @property
    def n_categories(self) -> int:
        """Columns of categories, which come last."""
        return sum(column.n_categories for column in self.columns)

    @property
    def owners(self) -> NDArray:
        """For each column of the points, the column of the table that it comes from."""
        parts = [np.repeat(k, column.n_numbers) for k, column in enumerate(self.columns)]
        parts += [np.repeat(k, column.n_categories) for k, column in enumerate(self.columns)]
        return np.concatenate(parts)

    @property
    def summary(self) -> str:
        """What the columns are, in a line."""
        kinds = Counter(column.kind for column in self.columns)
        plural = {"yes or no": "yes or no", "ordered": "ordered", "category": "categories", "empty": "empty"}
        words = [f"{n} {kind if n == 1 else plural.get(kind, kind + 's')}" for kind, n in kinds.items()]
        blank = sum(column.blanks for column in self.columns)
        return ", ".join(words) + (f", blanks in {blank}" if blank else "")

    def points(self, X: Any) -> NDArray:
        """The points of a table, shape (n, n_numbers + n_categories)."""
        n = len(X) if hasattr(X, "__len__") else X.shape[0]
        found = np.zeros((n, self.n_numbers + self.n_categories), _precision(X))
        at, after = 0, self.n_numbers
        for column, (_, values, _) in zip(self.columns, _columns(X), strict=True):
            if column.n_numbers:
                numbers = column.numbers(values)
                found[:, at : at + column.n_numbers] = column.filled(numbers)
                at += column.n_numbers
                if column.blanks:
                    found[:, after] = np.isnan(numbers[:, 0]) * APART
            elif column.n_categories:
                found[np.arange(n), after + column.categories(values)] = 1
            after += column.n_categories
        return found


def is_table(X: Any) -> bool:
    """Whether X is a table of pandas, polars or pyarrow."""
    return any(isinstance(X, _type(package, name)) for package, name in TABLES)


def _type(package: str, name: str) -> Any:
    return getattr(sys.modules.get(package), name, ())


def _no_choice(categorical_features: Any) -> bool:
    if categorical_features is None or isinstance(categorical_features, str):
        return True
    return not np.size(categorical_features)


def _are_numbers(X: Any) -> bool:
    """Whether X is an array of finite numbers, or not a table at all."""
    if is_table(X):
        return False
    if sparse.issparse(X) or not hasattr(X, "dtype") or not hasattr(X, "shape") or len(X.shape) != 2:
        return True
    if not isinstance(X, np.ndarray):  # of another library
        return True
    if X.dtype.kind in "OUS":
        return not any(isinstance(value, str) or _is_blank(value) for value in X.ravel().tolist())
    return X.dtype.kind != "f" or not np.isnan(X).any()


def _precision(X: Any) -> Any:
    return X.dtype if isinstance(X, np.ndarray) and X.dtype == np.float32 else np.float64


def _columns(X: Any) -> Iterator[tuple[Any, Sequence, str]]:
    """Name, values and kind of each column; the kind is what its type says, "" if that is nothing."""
    if isinstance(X, np.ndarray):
        yield from ((k, column, "number" if X.dtype.kind in "fiub" else "") for k, column in enumerate(X.T))
    elif isinstance(X, _type("polars", "DataFrame")):
        yield from ((column.name, *_of_polars(column)) for column in X.iter_columns())
    elif isinstance(X, _type("pyarrow", "Table")):
        yield from ((name, *_of_arrow(X.column(name))) for name in X.column_names)
    else:
        yield from ((name, *_of_pandas(column)) for name, column in X.items())


def _of_polars(column: Any) -> tuple[Sequence, str]:
    dtype = column.dtype
    if dtype.is_numeric():
        return column.to_list() if column.null_count() else column.to_numpy(), "number"
    if type(dtype).__name__ == "Enum":
        return column.to_list(), "ordered:" + "\0".join(dtype.categories.to_list())
    kinds = {"Categorical": "category", "Boolean": "number", "Date": "date", "Datetime": "date"}
    return column.to_list(), kinds.get(type(dtype).__name__, "")


def _of_arrow(column: Any) -> tuple[Sequence, str]:
    name = str(column.type)
    kind = next((kind for start, kind in ARROW_KINDS.items() if name.startswith(start)), "")
    return column.to_pylist(), kind


ARROW_KINDS = {"dictionary": "category", "bool": "number", "date": "date", "timestamp": "date"} | dict.fromkeys(
    ("int", "uint", "float", "double", "half", "decimal"), "number"
)


def _of_pandas(column: Any) -> tuple[Sequence, str]:
    dtype = column.dtype
    if hasattr(dtype, "categories"):
        if dtype.ordered:
            return column.to_list(), "ordered:" + "\0".join(_level(level) for level in dtype.categories)
        return column.to_list(), "category"
    kind = getattr(dtype, "kind", "O")
    if kind in "iufb":
        numpy = isinstance(dtype, np.dtype)
        return column.to_numpy() if numpy else column.to_list(), "number"
    return column.to_list(), "date" if kind == "M" else ""


def _chosen(categorical_features: Any, X: Any) -> set[int]:
    """The places of the columns that a user calls categories."""
    if _no_choice(categorical_features):
        if categorical_features not in (None, "from_dtype"):
            raise ValueError(
                "categorical_features must be 'from_dtype', None, or names, places or a mask of columns; got "
                f"{categorical_features!r}"
            )
        return set()
    names = [name for name, _, _ in _columns(X)]
    asked = np.asarray(categorical_features).ravel()
    if asked.dtype.kind == "b":
        if len(asked) != len(names):
            raise ValueError(f"categorical_features is a mask of {len(asked)} columns, but X has {len(names)}")
        return set(np.flatnonzero(asked).tolist())
    places = {name: k for k, name in enumerate(names)}
    found = set()
    for one in asked.tolist():
        place = places.get(one, one if isinstance(one, int) and -len(names) <= one < len(names) else None)
        if place is None:
            raise ValueError(f"categorical_features names {one!r}, which is not a column of X: give one of its columns")
        found.add(place % len(names))
    return found


def _described(name: Any, values: Sequence, kind: str, chosen: bool) -> Column:
    """What a column is."""
    if chosen or kind == "category":
        return _category(name, values)
    if kind.startswith("ordered:"):
        levels = tuple(kind.removeprefix("ordered:").split("\0"))
        return _of_numbers(Column(name, "ordered", levels), values)
    if kind == "number":
        return _of_numbers(Column(name, "number"), values)
    present = [value for value in values if not _is_blank(value)]
    if not present:
        return Column(name, "empty")
    if kind == "date" or all(isinstance(value, dt.date) for value in present):
        return _of_numbers(Column(name, "date", cycles=_cycles(present)), values)
    if all(isinstance(value, str) for value in present):
        words = {value.strip().lower() for value in present}
        if words <= YES.keys() and len({YES[word] for word in words}) == 2:
            return _of_numbers(Column(name, "yes or no"), values)
        if _in_numbers(present):
            return _of_numbers(Column(name, "number"), values)
        return _of_words(name, values, present)
    if any(isinstance(value, str) for value in present) or any(isinstance(value, tuple) for value in present):
        return _category(name, values)
    return _of_numbers(Column(name, "number"), values)  # refuses what is not a number


def _of_words(name: Any, values: Sequence, present: list[str]) -> Column:
    """A category; an id, if each row has another word; a text is refused."""
    different = len(set(present))
    if different <= MOST_LEVELS or len(present) < FEW_ROWS or different <= DIFFERENT * len(present):
        return _category(name, values)
    words = np.mean([len(value.split()) for value in present])
    if different == len(present) and words <= WORDS:
        return Column(name, "id")
    raise TableError(
        f"Column {name!r} of X holds text, {different} different values in {len(present)} rows, such as "
        f"{reprlib.repr(present[0])}: turn it into numbers, by scikit-learn's TfidfVectorizer or an embedding, name it "
        "in categorical_features, or leave it out"
    )


def _category(name: Any, values: Sequence) -> Column:
    counts = Counter(_level(value) for value in values if not _is_blank(value))
    common = sorted(counts, key=lambda level: (-counts[level], level))
    rare = len(common) > MOST_LEVELS
    blanks = sum(counts.values()) < len(values)
    return Column(name, "category", tuple(common[: MOST_LEVELS - rare]), blanks, rare=rare)


def _of_numbers(column: Column, values: Sequence) -> Column:
    """The column with what stands for its blanks."""
    numbers = column.numbers(values)
    blank = np.isnan(numbers[:, 0])
    if blank.all():
        return Column(column.name, "empty")
    filling = np.median(numbers[~blank], axis=0)
    return Column(column.name, column.kind, column.levels, bool(blank.any()), tuple(filling.tolist()), column.cycles)


def _in_numbers(present: list[str]) -> bool:
    try:
        return all(math.isfinite(float(value)) for value in present)
    except ValueError:
        return False


def _is_blank(value: Any) -> bool:
    """Whether a cell is blank: None, NaN, NaT, NA, or text without a letter."""
    if value is None or value is getattr(sys.modules.get("pandas"), "NA", None):
        return True
    if isinstance(value, str):
        return not value.strip()
    try:
        return bool(value != value)
    except (ArithmeticError, TypeError, ValueError):
        return False


def _level(value: Any) -> str:
    """The name of a level. The number 1 is one level, however it is written."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value).strip()


def _floats(values: Sequence, name: Any) -> NDArray:
    """Numbers, NaN where there is none."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        found = values.astype(float)
    else:
        found = np.array([_float(value, row, name) for row, value in enumerate(values)], float)
    if np.isinf(found).any():
        row = int(np.flatnonzero(np.isinf(found))[0])
        raise TableError(
            f"Input X contains infinity: column {name!r} holds {found[row]:g} in row {row}, where a number is needed: "
            "leave it blank, or remove the row"
        )
    return found


def _float(value: Any, row: int, name: Any) -> float:
    if _is_blank(value):
        return math.nan
    try:
        word = value.strip().lower() if isinstance(value, str) else ""
        return YES[word] if word in YES else float(value)
    except (TypeError, ValueError, OverflowError):
        kind = "complex numbers" if isinstance(value, complex) else "text" if isinstance(value, str) else None
        shown = f"{kind}, {reprlib.repr(value)}" if kind else f"a value of type {type(value).__name__}"
        raise TableError(
            f"Column {name!r} of X holds {shown} in row {row}, where numbers are needed: correct the cell, leave it "
            "blank, or name the column in categorical_features"
        ) from None


def _days(value: Any, name: Any, row: int) -> float:
    """Days since 1970; NaN for a blank."""
    if _is_blank(value):
        return math.nan
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            raise TableError(
                f"Column {name!r} of X holds {reprlib.repr(value)} in row {row}, where a date is needed: write dates "
                "like 2024-12-31, or leave the cell blank"
            ) from None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return (value - EPOCH) / dt.timedelta(days=1)


def _dates(values: Sequence, cycles: Sequence[str], name: Any = None) -> NDArray:
    """The day, and sine and cosine of what varies."""
    days = np.array([_days(value, name, row) for row, value in enumerate(values)], float)
    turns = [2 * np.pi * days / CYCLES[cycle] for cycle in cycles]
    return np.stack([days, *(f(turn) for turn in turns for f in (np.sin, np.cos))], axis=1)


def _cycles(present: Sequence) -> tuple[str, ...]:
    """What varies in some dates: days of the year over more than one year, days of the week over more than one week."""
    days = _dates(present, ())[:, 0]
    span = np.ptp(days)
    found = [("day of year", span > CYCLES["day of year"]), ("day of week", span > CYCLES["day of week"])]
    found.append(("hour", bool((days % 1).any()) and span > 1))
    return tuple(cycle for cycle, varies in found if varies)


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(f"{column.name!r} is {'an id' if column.kind == 'id' else column.kind}" for column in columns)
