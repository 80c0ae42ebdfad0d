"""Ordinary tables as points: numbers, categories, blanks, ordered levels, booleans and dates.

A table becomes an array of numbers, followed by columns of categories. A category is one column of 0 and 1 for each of
its levels, as they are: two rows with different levels are 2 apart in squared distance, which is the mean squared
difference of a standardised number. So exp(-mismatches / l^2) is the squared exponential on these columns, and a rare
level counts like any other. A level that was never seen is as far from every level as they are from each other: it is
one more corner of the regular simplex that they are the corners of. A column of 0 and 1 that is called a category is
one such column, so a category that is already split, one column for each level, gives the same points. Booleans, and
yes and no, are numbers. A blank number is filled in by what the other numbers of its row say, and that it was blank is
a column of its own beside the categories.

Neither pandas nor polars nor pyarrow is imported here. If it is not loaded, no argument is a table of it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import reprlib
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

MOST_LEVELS = 30  # of a category; rarer ones together are the last
UNIQUE = 0.9  # share of rows: with more different words than that, a column names rows
FEW_ROWS = 20  # rows of which nobody can say whether a column names them
WORDS = 3  # of a name, at most, on average; more are a text
APART = 0.5  # from a blank to the number that stands for it: farther apart was worse, whatever the cause of blanks
RIDGE = 0.1  # added to the variances of standardised numbers, and as many as numbers per row: noise of the correlations
STEPS = 10  # of expectation and maximisation; blanks change little after that
MOST_JOINT = 64  # numbers of a row that are filled in from each other; of more, blanks are medians
MOST_ROWS = 1000  # from which correlations are learned
FARTHEST = 4.0  # standard deviations that a number counts in a filling, so that a wrong cell spoils no other
EPOCH = dt.datetime(1970, 1, 1)
DAY = dt.timedelta(days=1)
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
CYCLES = {"day of year": 365.2425, "day of week": 7.0, "hour": 1.0}  # days
TABLES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))
USED = ("number", "yes or no", "ordered", "date")  # kinds that become numbers
KINDS = (*USED, "category", "indicator", "id", "empty")
YES = {"yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "true": 1.0, "false": 0.0, "t": 1.0, "f": 0.0}
PAIRS = ({"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"})
INDICATORS = ({"0", "1"}, {"False", "True"})  # levels of a category that was split


class TableError(ValueError):
    """A column that cannot be used: a sentence with its name and the remedy."""


class Cells(NamedTuple):
    """A column as it comes."""

    name: Any
    values: Sequence
    kind: str = ""
    """What its type says: "number", "boolean", "category", "ordered", "date", or nothing."""
    levels: tuple[str, ...] = ()
    """Of ordered levels, in their order."""


@dataclass(frozen=True)
class Column:
    """How one column of a table becomes numbers."""

    name: Any
    """Its name, or its place in an array."""
    kind: str
    """One of `KINDS`; what is an id, or empty, is left out."""
    levels: tuple[str, ...] = ()
    """Of a category, the most common first; of ordered levels, in their order."""
    blanks: bool = False
    """Whether some rows were blank at the fit."""
    filling: tuple[float, ...] = ()
    """The median of each number."""
    cycles: tuple[str, ...] = ()
    """Of a date, what varies."""
    rare: bool = False
    """Whether there were rarer levels, which are taken together."""

    @property
    def n_numbers(self) -> int:
        """Columns of numbers."""
        return 1 + 2 * len(self.cycles) if self.kind in USED else 0

    @property
    def n_categories(self) -> int:
        """Columns of categories: its levels, blank and rarer levels, if there were any; or whether it was blank."""
        if self.kind == "category":
            return len(self.levels) + self.blanks + self.rare
        return 1 if self.kind == "indicator" else int(self.blanks and self.kind in USED)

    def with_filling(self, medians: NDArray | None, blanks: bool) -> Column:
        """The column with what stands for its blanks; None if there is no number in any row."""
        if medians is None:
            return Column(self.name, "empty")
        return replace(self, blanks=blanks, filling=tuple(medians.tolist()))

    def numbers(self, values: Sequence) -> NDArray:
        """Shape (n, n_numbers); NaN where it is blank."""
        if self.kind == "date":
            return _dates(values, self.cycles, self.name)
        if self.kind == "ordered":
            places = {level: float(k) for k, level in enumerate(self.levels)}
            return np.array([[places.get(_level(value), math.nan)] for value in values], float).reshape(-1, 1)
        return _floats(values, self.name)[:, None]

    def categories(self, values: Sequence) -> NDArray:
        """Shape (n, n_categories) of a category or an indicator."""
        if self.kind == "indicator":
            return np.nan_to_num(_floats(values, self.name), nan=0.5)[:, None]
        n = self.n_categories
        places = {level: k for k, level in enumerate(self.levels)}
        blank = len(self.levels) if self.blanks else n
        other = n - 1 if self.rare else n
        found = [blank if _is_blank(value) else places.get(_level(value), other) for value in values]
        unseen = np.full((1, n), (1 - math.sqrt(1 + n)) / n)
        return np.concatenate([np.eye(n), unseen])[np.array(found, int)]


@dataclass(frozen=True)
class Joint:
    """Numbers of a row as a Gaussian, whose conditional mean given the others fills in the blank ones.

    With z the numbers in units of their scale from the centre, S their covariance and r a ridge, blank numbers m are
    S_mo (S_oo + r I)^-1 z_o given the others o. No label is used.
    """

    centre: tuple[float, ...]
    scale: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    """Of the numbers in units of their scale."""
    ridge: float

    @classmethod
    def of(cls, numbers: NDArray, medians: NDArray) -> Joint | None:
        """The Gaussian of rows with blanks, by expectation and maximisation; None for one number, or too many."""
        if not 2 <= numbers.shape[1] <= MOST_JOINT:
            return None
        rows = numbers[:: -(-len(numbers) // MOST_ROWS)]
        n, d = rows.shape
        blank = np.isnan(rows)
        unit = np.max(np.abs(rows), axis=0, initial=0, where=~blank)  # first, so that no square overflows
        unit[unit == 0] = 1
        apart = np.where(blank, 0, rows / unit - medians / unit)
        scale = np.sqrt(np.sum(apart**2, axis=0) / np.maximum((~blank).sum(axis=0), 1))
        scale[scale == 0] = 1
        with np.errstate(over="ignore"):
            whole = scale * unit
        if not (np.isfinite(whole) & (whole > 0)).all():  # beyond floating point
            return None
        z = np.clip(apart / scale, -FARTHEST, FARTHEST)
        ridge, mean, covariance = RIDGE + d / n, z.mean(axis=0), np.cov(z.T, bias=True)
        for _ in range(STEPS * bool(blank.any())):
            filled, left = _expected(z - mean, blank, covariance, ridge)
            filled += mean
            mean = filled.mean(axis=0)
            covariance = (filled - mean).T @ (filled - mean) / n + left / n
        listed = tuple(map(tuple, covariance.tolist()))
        return cls(tuple((medians + mean * whole).tolist()), tuple(whole.tolist()), listed, ridge)

    def filled(self, numbers: NDArray) -> NDArray:
        """Numbers without blanks."""
        found, rows = numbers.copy(), np.flatnonzero(np.isnan(numbers).any(axis=1))
        for some in np.array_split(rows, -(-len(rows) // MOST_ROWS) or 1):
            blank = np.isnan(numbers[some])
            with np.errstate(over="ignore"):  # numbers that are far beyond those of the fit
                z = np.clip((numbers[some] - self.centre) / np.array(self.scale), -FARTHEST, FARTHEST)
            said, _ = _expected(np.where(blank, 0, z), blank, np.array(self.covariance), self.ridge)
            found[some] = np.where(blank, self.centre + said * self.scale, numbers[some])
        return found


def _expected(z: NDArray, blank: NDArray, covariance: NDArray, ridge: float) -> tuple[NDArray, NDArray]:
    """Centred rows with the conditional mean where they are blank, and the conditional covariances, added up."""
    there, unit = ~blank, np.eye(z.shape[1])
    known = there[:, :, None] & there[:, None, :]
    inverse = np.linalg.inv(np.where(known, covariance + ridge * unit, unit)) * known
    said = (inverse @ np.where(there, z, 0)[:, :, None])[:, :, 0] @ covariance
    left = (covariance - covariance @ inverse @ covariance) * (blank[:, :, None] & blank[:, None, :])
    return np.where(there, z, said), left.sum(axis=0)


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, as they were at the fit."""

    columns: tuple[Column, ...]
    joint: Joint | None = None
    """How blank numbers follow from others; None if they are medians."""

    @classmethod
    def of(cls, X: Any, categorical_features: Any = "from_dtype") -> TableColumns | None:
        """What the columns of a table are; None if all are numbers without blanks, so that nothing is to be done."""
        check_choice(categorical_features)
        if _are_numbers(X) and no_choice(categorical_features):
            return None
        found = list(columns_of(X))
        chosen = chosen_columns(categorical_features, [cells.name for cells in found])
        columns = tuple(_described(cells, k in chosen) for k, cells in enumerate(found))
        if all(
            cells.kind == column.kind == "number" and not column.blanks
            for cells, column in zip(found, columns, strict=True)
        ):
            return None
        table = cls(columns)
        table.check(stacklevel=7)
        return replace(table, joint=Joint.of(table.numbers(X), table.medians))

    @classmethod
    def of_numbers(cls, points: NDArray, names: Sequence) -> TableColumns:
        """Columns of numbers without blanks, for queries that have some."""
        filling = np.median(points, axis=0)
        columns = [Column(name, "number", filling=(float(one),)) for name, one in zip(names, filling, strict=True)]
        return cls(tuple(columns), Joint.of(points.astype(float), filling.astype(float)))

    def check(self, stacklevel: int) -> None:
        """Refuse a table of which no column can be used, and say which columns are left out as ids."""
        if not any(column.n_numbers + column.n_categories for column in self.columns):
            raise TableError(f"no column of X can be used: {_listed(self.columns)}; give at least one feature")
        left = [column.name for column in self.columns if column.kind == "id"]
        if left:
            named, it = (f"column {left[0]!r}", "it is") if len(left) == 1 else (f"columns {left!r}", "they are")
            warnings.warn(
                f"{named} of X has another word in nearly every row, so {it} left out as an id: remove it from X, or "
                "name it in categorical_features",
                stacklevel=stacklevel,
            )

    @property
    def medians(self) -> NDArray:
        """What stands for blank numbers if nothing else is known of a row, shape (n_numbers,)."""
        return np.array([one for column in self.columns for one in column.filling])

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

    def numbers(self, X: Any) -> NDArray:
        """The numbers of a table, shape (n, n_numbers), NaN where they are blank."""
        pairs = zip(self.columns, columns_of(X), strict=True)
        found = [column.numbers(cells.values) for column, cells in pairs if column.n_numbers]
        return np.concatenate(found, axis=1) if found else np.empty((_n_rows(X), 0))

    def filled(self, numbers: NDArray) -> NDArray:
        """Numbers without blanks."""
        if self.joint is not None:
            return self.joint.filled(numbers)
        return np.where(np.isnan(numbers), self.medians, numbers)

    def points(self, X: Any) -> NDArray:
        """The points of a table, shape (n, n_numbers + n_categories)."""
        numbers, at = self.numbers(X), 0
        parts = [self.filled(numbers)]
        for column, cells in zip(self.columns, columns_of(X), strict=True):
            if column.n_numbers and column.blanks:
                parts.append(np.isnan(numbers[:, [at]]) * APART)
            elif column.n_categories:
                parts.append(column.categories(cells.values))
            at += column.n_numbers
        return np.concatenate(parts, axis=1, dtype=_precision(X), casting="same_kind")


def is_table(X: Any) -> bool:
    """Whether X is a table of pandas, polars or pyarrow."""
    return any(isinstance(X, _type(package, name)) for package, name in TABLES)


def has_blanks(X: Any) -> bool:
    """Whether some cells of a table, an array or a list of rows are blank."""
    if isinstance(X, list | tuple):
        return any(_is_blank(value) for row in X if isinstance(row, list | tuple) for value in row)
    if isinstance(X, np.ndarray):
        return not _are_numbers(X)
    return is_table(X) and any(_is_blank(value) for cells in columns_of(X) for value in cells.values)


def as_rows(X: Any) -> Any:
    """Lists of rows that hold text or blanks, as an array of objects; anything else as it is."""
    if not isinstance(X, list | tuple) or not all(isinstance(row, list | tuple) for row in X):
        return X
    if len({len(row) for row in X}) != 1 or not any(isinstance(v, str) or _is_blank(v) for row in X for v in row):
        return X
    found = np.empty((len(X), len(X[0])), object)
    found[:] = X
    return found


def _n_rows(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _type(package: str, name: str) -> Any:
    return getattr(sys.modules.get(package), name, ())


def no_choice(categorical_features: Any) -> bool:
    """Whether a user calls no column a category."""
    return categorical_features is None or isinstance(categorical_features, str) or not np.size(categorical_features)


def check_choice(categorical_features: Any) -> None:
    """Refuse a word that is not a choice."""
    if isinstance(categorical_features, str) and categorical_features != "from_dtype":
        raise ValueError(
            "categorical_features must be 'from_dtype', None, or a list of names or places or a mask of columns; got "
            f"{categorical_features!r}"
        )


def _are_numbers(X: Any) -> bool:
    """Whether X is an array of finite numbers, or not a table at all."""
    if is_table(X):
        return False
    if not isinstance(X, np.ndarray) or X.ndim != 2:  # sparse, a list, or of another library
        return True
    if X.dtype.kind in "OUS":
        return not any(isinstance(value, str) or _is_blank(value) for value in X.ravel().tolist())
    return X.dtype.kind != "f" or not np.isnan(X).any()


def _precision(X: Any) -> Any:
    return X.dtype if isinstance(X, np.ndarray) and X.dtype == np.float32 else np.float64


def columns_of(X: Any) -> Iterator[Cells]:
    """The columns of a table or an array."""
    if isinstance(X, np.ndarray):
        yield from (Cells(k, column, "number" if X.dtype.kind in "fiub" else "") for k, column in enumerate(X.T))
    elif isinstance(X, _type("polars", "DataFrame")):
        yield from map(_of_polars, X.iter_columns())
    elif isinstance(X, _type("pyarrow", "Table")):
        yield from (_of_arrow(name, X.column(name)) for name in X.column_names)
    else:
        yield from (_of_pandas(name, column) for name, column in X.items())


def _of_polars(column: Any) -> Cells:
    dtype = column.dtype
    if dtype.is_numeric():
        return Cells(column.name, column.to_list() if column.null_count() else column.to_numpy(), "number")
    kind = type(dtype).__name__
    kinds = {"Enum": "ordered", "Categorical": "category", "Boolean": "boolean", "Date": "date", "Datetime": "date"}
    levels = tuple(dtype.categories.to_list()) if kind == "Enum" else ()
    return Cells(column.name, column.to_list(), kinds.get(kind, ""), levels)


ARROW_KINDS = {"dictionary": "category", "bool": "boolean", "date": "date", "timestamp": "date"} | dict.fromkeys(
    ("int", "uint", "float", "double", "half", "decimal"), "number"
)


def _of_arrow(name: str, column: Any) -> Cells:
    kind = next((kind for start, kind in ARROW_KINDS.items() if str(column.type).startswith(start)), "")
    return Cells(name, column.to_pylist(), kind)


def _of_pandas(name: Any, column: Any) -> Cells:
    dtype = column.dtype
    if hasattr(dtype, "categories"):
        levels = tuple(map(_level, dtype.categories)) if dtype.ordered else ()
        return Cells(name, column.to_list(), "ordered" if dtype.ordered else "category", levels)
    kind = getattr(dtype, "kind", "O")
    if kind in "iufb":
        values = column.to_numpy() if isinstance(dtype, np.dtype) else column.to_list()
        return Cells(name, values, "boolean" if kind == "b" else "number")
    return Cells(name, column.to_list(), "date" if kind == "M" else "")


def chosen_columns(categorical_features: Any, names: Sequence) -> set[int]:
    """The places of the columns that a user calls categories."""
    if no_choice(categorical_features):
        return set()
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


def _described(cells: Cells, chosen: bool) -> Column:
    """What a column is, with what stands for its blanks."""
    column = Seen.of(cells, chosen).column(chosen)
    if not column.n_numbers:
        return column
    numbers = column.numbers(cells.values)
    present = numbers[~np.isnan(numbers[:, 0])]
    return column.with_filling(np.median(present, axis=0) if len(present) else None, len(present) < len(numbers))


@dataclass(frozen=True)
class Seen:
    """What some rows of a column hold, as far as it decides what the column is. That of more rows is the sum."""

    name: Any
    kind: str
    """As in `Cells`."""
    levels: tuple[str, ...]
    n_rows: int
    counts: Counter[tuple[type, str]]
    """How many cells that are not blank have each type and level, in the order of their first rows. Of a column whose
    type says that it holds numbers there are none, and of dates only those that say what varies."""
    values: dict[tuple[type, str], Any]
    """One of these cells."""

    @classmethod
    def of(cls, cells: Cells, chosen: bool) -> Seen:
        """Look at all rows; `chosen` says whether a user calls the column a category."""
        name, values, kind, levels = cells
        present: Any = [] if not chosen and kind in ("number", "ordered") else (v for v in values if not _is_blank(v))
        if kind == "date" and not chosen:
            present = _telling(list(present))
        counts: Counter[tuple[type, str]] = Counter()
        found: dict[tuple[type, str], Any] = {}
        for value in present:
            key = type(value), _level(value)
            counts[key] += 1
            found.setdefault(key, value)
        return cls(name, kind, levels, len(values), counts, found)

    def __add__(self, more: Seen) -> Seen:
        if self.n_rows and more.n_rows and self.levels != more.levels:
            raise TableError(
                f"Column {self.name!r} of X has the ordered levels {list(self.levels)} in one part and "
                f"{list(more.levels)} in another, so their order is not known: give all parts the same ordered type"
            )
        levels = self.levels if self.n_rows else more.levels
        n_rows, counts = self.n_rows + more.n_rows, self.counts + more.counts
        return Seen(self.name, self.kind, levels, n_rows, counts, more.values | self.values)

    def column(self, chosen: bool) -> Column:
        """What the column is. What stands for blank numbers is not known yet."""
        name, kind, present = self.name, self.kind, [self.values[key] for key in self.counts]
        if chosen or kind == "category":
            return self._category()
        if kind == "ordered":
            return Column(name, "ordered", self.levels)
        if kind == "number":
            return Column(name, "number")
        if not present:
            return Column(name, "empty")
        if kind == "boolean" or all(isinstance(value, bool | np.bool_) for value in present):
            return self._yes_or_no()
        if kind == "date" or all(isinstance(value, dt.date) or _is_iso(value) for value in present):
            return Column(name, "date", cycles=_cycles(present))
        words = [value for value in present if isinstance(value, str)]
        if not words:
            tuples = any(isinstance(value, tuple) for value in present)
            return self._category() if tuples else Column(name, "number")  # whose cells say what is not one
        if len(words) == len(present) and {word.strip().lower() for word in words} in PAIRS:
            return self._yes_or_no()
        numbers = sum(self.counts[key] for key, value in self.values.items() if _is_number(value))
        if numbers == self.counts.total():
            return Column(name, "number")
        mostly = 2 * numbers > self.counts.total() and len(self.of_level) > MOST_LEVELS
        return Column(name, "number") if mostly and not _are_floats(present) else self._of_words()

    @property
    def of_level(self) -> Counter[str]:
        """The number of rows of each level, in the order of their first rows."""
        found: Counter[str] = Counter()
        for (_, level), count in self.counts.items():
            found[level] += count
        return found

    def _yes_or_no(self) -> Column:
        """A number; with blanks a category, because a blank is neither."""
        return Column(self.name, "yes or no") if self.counts.total() == self.n_rows else self._category()

    def _of_words(self) -> Column:
        """A category; an id, if nearly each row has another word; a text is refused."""
        found, n = self.of_level, self.counts.total()
        if len(found) <= MOST_LEVELS or n < FEW_ROWS:
            return self._category()
        if sum(count * len(level.split()) for level, count in found.items()) > WORDS * n:
            raise TableError(
                f"Column {self.name!r} of X holds text, {len(found)} different values in {n} rows, such as "
                f"{reprlib.repr(next(iter(found)))}: turn it into numbers, by scikit-learn's TfidfVectorizer or an "
                "embedding, name it in categorical_features, or leave it out"
            )
        return Column(self.name, "id") if len(found) >= UNIQUE * n else self._category()

    def _category(self) -> Column:
        """Levels by their number of rows; of those with the same number, the first in the table first."""
        counts = self.of_level
        if not counts:
            return Column(self.name, "empty")
        if set(counts) in INDICATORS and counts.total() == self.n_rows:
            return Column(self.name, "indicator")
        common = [level for level, _ in counts.most_common()]
        rare = len(common) > MOST_LEVELS
        blanks = counts.total() < self.n_rows
        return Column(self.name, "category", tuple(common[: MOST_LEVELS - rare]), blanks, rare=rare)


def _telling(dates: Sequence) -> list:
    """Dates that say what varies in all of them: the first, the last, and one with a time of day."""
    if not len(dates):
        return []
    days = _dates(dates, ())[:, 0]
    return [dates[k] for k in sorted({int(days.argmin()), int(days.argmax()), int((days % 1 > 0).argmax())})]


def _are_floats(values: Sequence) -> bool:
    try:
        _floats(values, None)
    except TableError:
        return False
    return True


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _is_iso(value: Any) -> bool:
    """Whether a text is a date that begins like 2024-12-31."""
    try:
        return bool(isinstance(value, str) and ISO.fullmatch(value.strip()) and _days(value, None, 0) is not None)
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
    if isinstance(value, dt.timedelta):
        return value / DAY
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
    return (value - EPOCH) / DAY


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
