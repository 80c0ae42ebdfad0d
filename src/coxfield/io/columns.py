"""Columns of a table: features, weights and labels taken out of its rows, and marks of unknown classes.

Every refusal is a `TableError`. Its sentence names the table, the column and, where there is one, the row. Rows are
counted from 1, without the header.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

try:
    import polars as pl
except ImportError:
    raise ImportError("tables need polars: pip install 'coxfield[cli]'") from None

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


class TableError(ValueError):
    """A table cannot be used as it is. The message says why, and what to do."""


@dataclass(frozen=True)
class Table:
    """Rows and columns, and the name of the table in messages."""

    name: str
    rows: pl.DataFrame
    taken: tuple[str, ...] = ()
    """What was guessed when it was read."""

    def require(self, columns: Iterable[str]) -> None:
        """Refuse a table without these columns."""
        present = set(self.rows.columns)
        missing = [column for column in columns if column not in present]
        if missing:
            kind = "column" if len(missing) == 1 else "columns"
            has = f"{listed(self.rows.columns)}{_separator_hint(self.rows.columns)}"
            raise TableError(f"{self.name} has no {kind} {listed(missing)}; it has {has}")

    def feature_names(self, *, apart: Iterable[str | None], only: Sequence[str], drop: Sequence[str]) -> list[str]:
        """Names of the feature columns: those in `only`, or all except those in `apart` and `drop`."""
        others = [name for name in apart if name is not None]
        self.require([*others, *only, *drop])
        taken = [name for name in only if name in others]
        if taken:
            raise TableError(f"Column {taken[0]!r} cannot be a feature and the target, id or weight at once")
        names = list(dict.fromkeys(only)) or [name for name in self.rows.columns if name not in {*others, *drop}]
        if not names:
            raise TableError(f"{self.name} has no columns left to use as features")
        if "" in names and not only:  # how data frames write their row numbers, which are not features
            raise TableError(f"{self.name} has a column without a name: give it a name, or leave it out with --drop ''")
        return names

    def features(self, names: Sequence[str]) -> NDArray | pl.DataFrame:
        """The feature columns: a matrix if all are numbers, float32 if all are; otherwise the columns as they are.

        Blank cells of numbers are NaN. Infinite numbers, and columns that hold lists and the like, are refused.
        """
        self.require(names)
        columns = self.rows.select(names)
        for column in columns:
            if column.dtype.is_float() and column.is_infinite().any():
                self._numbers(column.name)
            if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object, pl.Time):
                raise TableError(self._not_numbers(column))
        if not all(map(_holds_numbers, columns.dtypes)):
            return columns
        precision = pl.Float32 if set(columns.dtypes) == {pl.Float32} else pl.Float64
        return columns.cast(precision).to_numpy()

    def matrix(self, names: Sequence[str]) -> NDArray:
        """The feature columns as a matrix of numbers, NaN where they are blank. Words are refused."""
        found = self.features(names)
        if isinstance(found, np.ndarray):
            return found
        wrong = next(column for column in found if not _holds_numbers(column.dtype))
        if wrong.null_count() < len(wrong):
            raise TableError(self._not_numbers(wrong))
        filled = Table(self.name, self.rows.with_columns(pl.lit(None, pl.Float64).alias(wrong.name)))
        return filled.matrix(names)

    def described(self, names: Sequence[str]) -> str:
        """What was taken of a table, in a line: how it is written, what its columns are, how many cells are blank."""
        columns = self.rows.select(names)
        kinds = Counter(_kind(column.dtype) for column in columns)
        plural = {"category": "categories", "yes or no": "yes or no", "ordered": "ordered"}
        words = [f"{n} {kind if n == 1 else plural.get(kind, kind + 's')}" for kind, n in kinds.items()]
        blanks = [count for count in (int(blank(column).sum()) for column in columns) if count]
        if blanks:
            cells = "blank" if sum(blanks) == 1 else "blanks"
            words.append(f"{sum(blanks)} {cells} in {len(blanks)} {'column' if len(blanks) == 1 else 'columns'}")
        return ", ".join([*self.taken, *words])

    def weights(self, name: str) -> NDArray:
        """A column of weights: finite numbers that are not negative."""
        weights = self._numbers(name).cast(pl.Float64).to_numpy()
        if (weights < 0).any():
            row = int(np.flatnonzero(weights < 0)[0])
            raise TableError(
                f"Column {name!r} of {self.name} holds a negative weight, {weights[row]:g}, in row {row + 1}: "
                "weights are 0 or positive"
            )
        return weights

    def missing_labels(self, target: str) -> NDArray:
        """True for the rows whose target is blank: null, NaN, or a string of spaces only."""
        return blank(self.rows[target]).to_numpy()

    def ids(self, name: str) -> list[str]:
        """The ids of all rows as text. Several rows may have the same id. Blank cells are refused."""
        self.require([name])
        column = self.rows[name]
        if not is_writable(column.dtype):
            raise TableError(
                f"Column {name!r} of {self.name} is of type {column.dtype}, and ids must be text or numbers: write the "
                "ids in this way, or name another column"
            )
        self._refuse_blanks(name, "their ids")
        texts = column.cast(pl.String)
        if texts.str.contains("\0", literal=True).any():
            raise TableError(f"Column {name!r} of {self.name} holds an id with a zero byte: write ids as plain text")
        return texts.to_list()

    def _refuse_blanks(self, name: str, what: str) -> None:
        blanks = np.flatnonzero(blank(self.rows[name]).to_numpy())
        if blanks.size:
            raise TableError(
                f"Column {name!r} of {self.name} is blank in {blanks.size} of {self.rows.height} rows, first in row "
                f"{blanks[0] + 1}: remove these rows, or fill in {what}"
            )

    def labels(self, target: str, *, least: int = 2) -> NDArray:
        """The classes of all rows as strings, integers or booleans. Blank cells, and one class only, are refused.

        With ``least=1``, one class is enough.
        """
        self.require([target])
        self._refuse_blanks(target, "their classes")
        labels = self._classes(target)
        if len(set(labels.tolist())) < least:
            raise TableError(
                f"Column {target!r} of {self.name} holds one class only, {labels[0]!s}: a classifier needs at least two"
            )
        return labels

    def known_labels(self, target: str) -> NDArray:
        """The classes of the rows that have one. The table must have blank rows and others."""
        missing = self.missing_labels(target)
        if not missing.any():
            raise TableError(
                f"Column {target!r} of {self.name} has no blank cell, so there is nothing to label: to learn from all "
                "rows, use coxfield fit"
            )
        if missing.all():
            raise TableError(
                f"Column {target!r} of {self.name} is blank in all {self.rows.height} rows: fill in at least one row "
                "of each class"
            )
        return Table(self.name, self.rows.filter(~missing)).labels(target)

    def with_labels(self, target: str, labels: NDArray) -> pl.DataFrame:
        """The rows with `labels` as their target. The type of the target column stays the same."""
        return self.rows.with_columns(pl.Series(target, labels).cast(self.rows[target].dtype))

    def _classes(self, target: str) -> NDArray:
        """The target column as an array whose values can name classes."""
        column = self.rows[target]
        if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
            column = column.cast(pl.String).str.strip_chars()
            self._refuse_fractions(column.cast(pl.Float64, strict=False), target)
            if column.str.contains("\0", literal=True).any():  # NumPy would drop it at the end of a text
                raise TableError(
                    f"Column {target!r} of {self.name} holds a class with a zero byte: write classes as plain text"
                )
            return column.to_numpy().astype(str)
        if column.dtype.is_float():
            self._refuse_fractions(column.cast(pl.Float64), target)
        elif not (column.dtype.is_integer() or column.dtype == pl.Boolean):
            raise TableError(
                f"Column {target!r} of {self.name} is of type {column.dtype}: classes must be strings, "
                "integers or booleans"
            )
        elif column.dtype not in (pl.Boolean, pl.UInt64):  # NumPy has no integers of 128 bits
            large = column.filter(column.cast(pl.Int64, strict=False).is_null())
            if len(large):
                raise TableError(
                    f"Column {target!r} of {self.name} holds the integer {large[0]}, which is beyond 64-bit integers: "
                    "write such classes as text"
                )
            column = column.cast(pl.Int64) if column.dtype == pl.Int128 else column
        return column.to_numpy()

    def _refuse_fractions(self, numbers: pl.Series, target: str) -> None:
        fractions = numbers.filter(numbers.is_finite() & (numbers != numbers.round(0)))
        if numbers.null_count() == 0 and len(fractions):
            raise TableError(
                f"Column {target!r} of {self.name} holds numbers such as {fractions[0]:g}, which are quantities, not "
                "classes: choose another column, or write the classes as integers or text"
            )

    def _numbers(self, name: str) -> pl.Series:
        """A column of finite numbers. Anything else is refused, with the first row where it is found."""
        column = self.rows[name]
        all_blank = column.null_count() == len(column)  # its type means nothing then
        if not (_holds_numbers(column.dtype) or all_blank):
            raise TableError(self._not_numbers(column))
        unusable = column.is_null()
        if column.dtype.is_float():
            unusable = unusable | ~column.is_finite()
        row = unusable.arg_max() if unusable.any() else None
        if row is not None:
            value = column[row]
            found = "is blank" if value is None else f"holds {value}"
            raise TableError(
                f"Column {name!r} of {self.name} {found} in row {row + 1}, where a finite number is needed: "
                "fill in a number, or remove the row"
            )
        return column

    def _not_numbers(self, column: pl.Series) -> str:
        """A sentence that says what a column holds instead of numbers, and what can be done."""
        found = f"is of type {column.dtype}"
        if column.dtype == pl.String:
            numbers = column.cast(pl.Float64, strict=False)
            text = (numbers.is_null() & column.is_not_null()).arg_max() or 0
            found = f"holds text, {column[text]!r} in row {text + 1}"
        return (
            f"Column {column.name!r} of {self.name} {found}, where numbers are needed: encode it as numbers, "
            f"or leave it out of the features with --drop {shlex.quote(column.name)} when fitting"
        )


def _holds_numbers(kind: pl.DataType) -> bool:
    return kind.is_numeric() or kind == pl.Boolean


def _kind(dtype: pl.DataType) -> str:
    """What a column of a type is, in a word."""
    if dtype.is_numeric():
        return "number"
    if dtype.is_temporal():
        return "date"
    return {pl.Boolean: "yes or no", pl.Enum: "ordered"}.get(dtype.base_type(), "category")


# Columns from which nothing should be learned.


FEW_ROWS = 20  # of which nobody can say whether a column names them
UNIQUE = 0.95  # share of different values, from which on a column may name rows
NAMING = re.compile(r"(.*[_ .-])?(id|uuid|guid|key|nr|no|number|index|row)s?", re.IGNORECASE)


@dataclass(frozen=True)
class Suspects:
    """Columns from which nothing should be learned."""

    ids: list[str]
    """Those that name or count the rows."""
    constant: list[str]
    """Those that are the same in all rows."""
    leaks: list[str]
    """Those that tell the class of every row."""

    @classmethod
    def among(cls, rows: pl.DataFrame, names: Sequence[str], y: NDArray) -> Suspects:
        """Suspects among some columns of a table with classes y."""
        ids, constant, leaks = [], [], []
        codes = np.unique(y, return_inverse=True)[1]
        for name in names:
            column = rows[name]
            if column.n_unique() == 1:
                constant.append(name)
            elif len(column) >= FEW_ROWS and _names_rows(column, codes):
                ids.append(name)
            elif len(column) >= FEW_ROWS and _tells_all(column, codes):
                leaks.append(name)
        return cls(ids, constant, leaks)


def _names_rows(column: pl.Series, codes: NDArray) -> bool:
    """Whether a column has another word in nearly every row, or counts the rows, or numbers them class by class."""
    there = column.drop_nulls()
    if len(there) < UNIQUE * len(column) or there.n_unique() < UNIQUE * len(there):
        return False
    if column.dtype == pl.String:
        return bool(np.mean([len(word.split()) for word in there.to_list()]) <= 3)
    if not column.dtype.is_integer():
        return False
    numbers = there.cast(pl.Float64).to_numpy()
    along = (np.diff(numbers) > 0).all() or (np.diff(numbers) < 0).all()
    dense = np.ptp(numbers) < 1.2 * len(numbers)
    by_class = _changes(column, codes) < codes.max() + 1
    return bool(along or dense or by_class or NAMING.fullmatch(column.name))


def _changes(column: pl.Series, codes: NDArray) -> int:
    """How often the class changes along the values of a column."""
    order = column.arg_sort().to_numpy()
    return int(np.count_nonzero(np.diff(codes[order])))


def _tells_all(column: pl.Series, codes: NDArray) -> bool:
    """Whether each value belongs to one class: each level, or each of as many ranges as there are classes."""
    if column.null_count():
        return False
    pairs = pl.DataFrame({"value": column, "class": codes}).unique()
    alone = pairs.height == column.n_unique()
    if column.dtype.is_float() or (column.dtype.is_numeric() and column.n_unique() > 30) or column.dtype.is_temporal():
        return alone and _changes(column, codes) == codes.max()
    return alone and column.n_unique() <= len(column) / 2


def blank(column: pl.Series) -> pl.Series:
    """True where a column is blank: null, NaN, or a string of spaces only."""
    missing = column.is_null()
    if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
        return missing | (column.cast(pl.String).str.strip_chars() == "").fill_null(True)
    return missing | column.is_nan().fill_null(True) if column.dtype.is_float() else missing


def is_writable(kind: pl.DataType) -> bool:
    """Whether values of a type can be written as text, as CSV and ids are."""
    return not (kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration))


def written_differently(labels: NDArray) -> str:
    """A sentence on classes that differ only in capital letters and spaces; empty if there are none."""
    counts = Counter(labels.tolist())
    alike: dict[str, list] = {}
    for label in counts:
        alike.setdefault("".join(str(label).casefold().split()), []).append(label)
    groups = [
        " and ".join(
            f"{label!r} ({counts[label]} {'row' if counts[label] == 1 else 'rows'})"
            for label in sorted(group, key=lambda one: -counts[one])
        )
        for group in alike.values()
        if len(group) > 1
    ]
    return f"{'; '.join(groups)} are taken as different classes: write them in the same way" if groups else ""


def _separator_hint(names: Sequence[str]) -> str:
    if len(names) == 1 and re.search("[;\t|]", names[0]):
        return " (give --read separator=;)"
    return ""


def listed(names: Sequence[str], *, quoted: bool = True, most: int = 12) -> str:
    """Names in a message, separated by commas. Of a long list the last names are only counted."""
    shown = ", ".join(map(repr if quoted else str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


# Marks of unknown classes: texts such as NA that stand for a blank cell, and labels that a command has found.
#
# A class may really be named NA, as the code of Namibia is. So a text stands for unknown only if the user says so, and
# there is a hint where that may be forgotten. A table that `coxfield label` or the studio has written says itself
# which
# labels were found. To learn from these as if a person had given them would count guesses as knowledge.


USUAL = ("na", "n/a", "#n/a", "nan", "null", "none", "-1", "?", "unknown", "missing")  # in small letters
SHOWN = 3  # marks that a hint names


def blanked(column: pl.Series, marks: Iterable[str]) -> pl.Series:
    """The column with null in the cells that equal one of the marks."""
    for mark in marks:
        column = pl.select(pl.when(~_equals(column, mark)).then(column).alias(column.name)).to_series()
    return column


def hint(column: pl.Series) -> str:
    """What to say of a column of classes that holds usual marks of unknown ones; empty if there are none."""
    found = _suspects(column)
    if not found:
        return ""
    counts = " and ".join(f'{count} {"cell" if count == 1 else "cells"} "{text}"' for text, count in found)
    options = " ".join(_option(text) for text, _ in found)
    return f"the column holds {counts}: give {options} if they stand for unknown"


def found_by_a_model(rows: pl.DataFrame, target: str) -> tuple[list[str], pl.Series]:
    """The columns that `coxfield label` or the studio has added to a table, and in which rows they found the target.

    There are none if the table is of another kind. A row that was added by hand, with nothing in these columns, was
    given.
    """
    none = pl.Series([False] * rows.height, dtype=pl.Boolean)
    if target not in rows.columns:
        return [], none
    of_studio = [f"{target}_source", f"{target}_probability"]
    if {*of_studio} <= {*rows.columns}:
        said = rows[of_studio[0]].cast(pl.String, strict=False)
        if said.drop_nulls().is_in(["given", "found", ""]).all():
            return of_studio, (said == "found").fill_null(False)
    column = rows[target]
    classes = (column.cast(pl.String) if column.dtype.is_float() else _texts(column)).drop_nulls().unique().to_list()
    numbers = [f"{kind}_{name}" for kind in ("score", "probability") for name in classes]
    added = [name for name in rows.columns if name in numbers]
    if "given" not in rows.columns or not added:
        return [], none
    said = rows["given"].cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
    if not said.drop_nulls().is_in(["true", "false", ""]).all():
        return [], none
    return [name for name in rows.columns if name in ("given", "certified", *added)], (said == "false").fill_null(False)


def _equals(column: pl.Series, mark: str) -> pl.Series:
    """True where a cell is the mark. Spaces around it do not count, and numbers are compared as numbers."""
    if column.dtype.is_numeric():
        number = pl.Series([mark.strip()]).cast(pl.Float64, strict=False)
        return column.cast(pl.Float64).is_in(number.drop_nulls()).fill_null(False)
    return (_texts(column) == mark.strip()).fill_null(False)


def _texts(column: pl.Series) -> pl.Series:
    """The cells as text, null where they are of a type that names no class."""
    named = isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum | pl.Boolean) or column.dtype.is_integer()
    if not named:
        return pl.Series(column.name, [None] * len(column), dtype=pl.String)
    return column.cast(pl.String).str.strip_chars()


def _suspects(column: pl.Series) -> list[tuple[str, int]]:
    """The usual marks in a column with the number of their cells, the most frequent first."""
    texts = _texts(column)
    texts = texts.filter(texts.str.to_lowercase().is_in(USUAL).fill_null(False))
    counts = texts.value_counts().rows()
    return sorted(counts, key=lambda row: (-row[1], row[0]))[:SHOWN]


def _option(text: str) -> str:
    """The option as it is typed into a shell. A value that begins with a dash looks like an option of its own."""
    return f"--missing={text}" if text.startswith("-") else f"--missing {shlex.quote(text)}"
