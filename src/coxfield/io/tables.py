"""Tables of rows: reading and writing CSV and Parquet, and taking features and labels out of them.

Every refusal is a `TableError` whose sentence names the file, the column and, where there is one, the row. Rows are
counted from 1, the header left out.
"""

from __future__ import annotations

import gzip
import re
import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from coxfield.io.whole_files import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

FORMATS = (".csv", ".csv.gz", ".parquet")
STANDARD_INPUT = Path("-")


class TableError(ValueError):
    """A table that cannot be used as it is; the message says why and what to do."""


@dataclass(frozen=True)
class Table:
    """Rows and columns, and the name that messages call them by."""

    name: str
    rows: pl.DataFrame

    def require(self, columns: Iterable[str]) -> None:
        """Refuse to go on without these columns."""
        missing = [column for column in columns if column not in self.rows.columns]
        if missing:
            kind = "column" if len(missing) == 1 else "columns"
            has = f"{listed(self.rows.columns)}{_separator_hint(self.rows.columns)}"
            raise TableError(f"{self.name} has no {kind} {listed(missing)}; it has {has}")

    def feature_names(self, *, apart: Iterable[str | None], only: Sequence[str], drop: Sequence[str]) -> list[str]:
        """Names of the feature columns: those in `only`, or all but the ones set apart and dropped."""
        others = [name for name in apart if name is not None]
        self.require([*others, *only, *drop])
        taken = [name for name in only if name in others]
        if taken:
            raise TableError(f"Column {taken[0]!r} cannot be a feature and the target, id or weight at once")
        names = list(dict.fromkeys(only)) or [name for name in self.rows.columns if name not in {*others, *drop}]
        if not names:
            raise TableError(f"{self.name} has no columns left to use as features")
        if "" in names and not only:  # how data frames write their row numbers, the last thing to learn from
            raise TableError(f"{self.name} has a column without a name: give it one, or leave it out with --drop ''")
        return names

    def features(self, names: Sequence[str]) -> NDArray:
        """The feature columns as a matrix of finite numbers, float32 if all of them are and float64 otherwise."""
        self.require(names)
        columns = [self._numbers(name) for name in names]
        precision = pl.Float32 if all(column.dtype == pl.Float32 for column in columns) else pl.Float64
        return pl.DataFrame(columns).cast(precision).to_numpy()

    def weights(self, name: str) -> NDArray:
        """A column of weights: finite numbers, none of them negative."""
        weights = self._numbers(name).cast(pl.Float64).to_numpy()
        if (weights < 0).any():
            row = int(np.flatnonzero(weights < 0)[0])
            raise TableError(
                f"Column {name!r} of {self.name} holds a negative weight, {weights[row]:g}, in row {row + 1}"
            )
        return weights

    def missing_labels(self, target: str) -> NDArray:
        """True for the rows whose target is blank: null, NaN, or a string of nothing but spaces."""
        return blank(self.rows[target]).to_numpy()

    def labels(self, target: str) -> NDArray:
        """The classes of all rows as strings, integers or booleans; blank ones and fewer than two are refused."""
        blanks = np.flatnonzero(self.missing_labels(target))
        if blanks.size:
            raise TableError(
                f"Column {target!r} of {self.name} is blank in {blanks.size} of {self.rows.height} rows, first in row "
                f"{blanks[0] + 1}: leave these rows out, or fill in their classes"
            )
        labels = self._classes(target)
        if len(set(labels.tolist())) < 2:
            raise TableError(
                f"Column {target!r} of {self.name} holds one class only, {labels[0]!s}; a classifier needs at least two"
            )
        return labels

    def known_labels(self, target: str) -> NDArray:
        """The classes of the rows that have one; a table without blank rows, or of nothing else, is refused."""
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
        """The rows with `labels` as their target, of the type that it had."""
        return self.rows.with_columns(pl.Series(target, labels).cast(self.rows[target].dtype))

    def _classes(self, target: str) -> NDArray:
        """The target column as an array whose values can name classes."""
        column = self.rows[target]
        if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
            column = column.cast(pl.String)
            self._refuse_fractions(column.cast(pl.Float64, strict=False), target)
            return column.to_numpy().astype(str)
        if column.dtype.is_float():
            self._refuse_fractions(column.cast(pl.Float64), target)
        elif not (column.dtype.is_integer() or column.dtype == pl.Boolean):
            raise TableError(
                f"Column {target!r} of {self.name} is of type {column.dtype}; classes are strings, integers or booleans"
            )
        return column.to_numpy()

    def _refuse_fractions(self, numbers: pl.Series, target: str) -> None:
        fractions = numbers.filter(numbers.is_finite() & (numbers != numbers.round(0)))
        if numbers.null_count() == 0 and len(fractions):
            raise TableError(
                f"Column {target!r} of {self.name} holds numbers such as {fractions[0]:g}, which are quantities rather "
                "than classes: is it the right column?"
            )

    def _numbers(self, name: str) -> pl.Series:
        """A column of finite numbers; anything else is refused with the first row that is to blame."""
        column = self.rows[name]
        all_blank = column.null_count() == len(column)  # and of whatever type the reader made of it
        if not (column.dtype.is_numeric() or column.dtype == pl.Boolean or all_blank):
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
                "fill it in, or leave the row out"
            )
        return column

    def _not_numbers(self, column: pl.Series) -> str:
        """Say what a column that is not numeric holds instead, and what can be done."""
        found = f"is of type {column.dtype}"
        if column.dtype == pl.String:
            numbers = column.cast(pl.Float64, strict=False)
            text = (numbers.is_null() & column.is_not_null()).arg_max() or 0
            found = f"holds text, {column[text]!r} in row {text + 1}"
        return (
            f"Column {column.name!r} of {self.name} {found}, where numbers are needed: encode it as numbers, "
            f"or leave it out of the features with --drop {column.name} when fitting"
        )


def blank(column: pl.Series) -> pl.Series:
    """True where a column says nothing: null, NaN, or a string of nothing but spaces."""
    missing = column.is_null()
    if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
        return missing | (column.cast(pl.String).str.strip_chars() == "").fill_null(True)
    return missing | column.is_nan().fill_null(True) if column.dtype.is_float() else missing


def read(path: Path, *, verbatim: Iterable[str | None] = (), numbers: Iterable[str] | None = None) -> Table:
    """Read a CSV (plain or gzipped) or Parquet file by its ending; ``-`` is CSV on standard input.

    Parameters
    ----------
    path : Path
    verbatim : iterable of str
        Columns of a CSV that must come back out as they were written, whether they exist or not: ids and classes.
        ``007`` stays a string there, where another column would read 7.
    numbers : iterable of str, optional
        If given, all columns of a CSV but these are verbatim.

    Returns
    -------
    Table
        With at least one row.
    """
    name = "standard input" if path == STANDARD_INPUT else str(path)
    ending = ".csv" if path == STANDARD_INPUT else _format_of(path)
    content = _content(path, ending)
    try:
        if ending == ".parquet":
            rows = pl.read_parquet(BytesIO(content))
        else:
            rows = _read_csv(content, {column for column in verbatim if column is not None}, numbers)
    except pl.exceptions.NoDataError:
        raise TableError(f"{name} is empty: it has neither a header nor rows") from None
    except pl.exceptions.PolarsError as error:
        kind = "Parquet" if ending == ".parquet" else "CSV"
        reason = str(error).strip().splitlines()[0]
        raise TableError(f"{name} cannot be read as {kind}: {reason}") from None
    if rows.is_empty():
        raise TableError(f"{name} has a header but no rows")
    _refuse_repeated_names(rows.columns, name)
    return Table(name, rows)


def check_output(path: Path, *, inputs: Iterable[Path] = ()) -> None:
    """Refuse a path that no table will be written to, before the work is done rather than after."""
    _format_of(path)
    if not path.parent.is_dir():
        raise TableError(f"There is no folder {path.parent} to write {path.name} to")
    if path.exists() and any(source.exists() and path.samefile(source) for source in inputs):
        raise TableError(f"{path} is read from and cannot be written to at the same time: give another output file")


def write(rows: pl.DataFrame, path: Path) -> None:
    """Write a table in the format of its ending, whole or not at all; an existing file is replaced."""
    ending = _format_of(path)
    with whole_file(path) as stream:
        if ending == ".parquet":
            rows.write_parquet(stream)
        elif ending == ".csv":
            rows.write_csv(stream)
        else:
            # No time stamp: the same rows make the same file.
            with gzip.GzipFile(fileobj=stream, mode="wb", filename="", mtime=0) as compressed:
                compressed.write(rows.write_csv().encode())


def _format_of(path: Path) -> str:
    for ending in FORMATS:
        if path.name.lower().endswith(ending):
            return ending
    raise TableError(f"The ending of {path} is none of {', '.join(FORMATS)}, which are the tables coxfield knows")


def _content(path: Path, ending: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    if path.is_dir():
        raise TableError(f"{path} is a folder, not a table")
    if not path.exists():
        raise TableError(f"There is no file {path}")
    content = path.read_bytes()
    if ending != ".csv.gz":
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError) as error:
        raise TableError(f"{path} cannot be read as gzip: {error}") from None


def _read_csv(content: bytes, verbatim: set[str], numbers: Iterable[str] | None) -> pl.DataFrame:
    """Parse a CSV, the types of its columns being judged by all rows; blank lines at the end are no rows."""
    content = content.rstrip(b"\r\n")
    if numbers is not None:
        verbatim = verbatim.union(set(pl.read_csv(BytesIO(content), n_rows=0).columns).difference(numbers))
    as_text = dict.fromkeys(verbatim, pl.String)
    rows = pl.read_csv(BytesIO(content), schema_overrides=as_text, infer_schema_length=None)
    return rows.with_columns(_typed(rows[name]) for name in verbatim if name in rows.columns)


def _typed(text: pl.Series) -> pl.Series:
    """Text as integers or booleans if that loses nothing of what was written, otherwise as it is."""
    written = text.filter(~blank(text))
    if written.is_empty():
        return text
    if written.is_in(["true", "false"]).all():
        return pl.select(pl.when(~blank(text)).then(text == "true").alias(text.name)).to_series()
    integers = written.cast(pl.Int64, strict=False)
    if integers.null_count() == 0 and (integers.cast(pl.String) == written).all():
        return text.cast(pl.Int64, strict=False)
    return text


def _refuse_repeated_names(names: Sequence[str], table: str) -> None:
    """Polars renames the second of two equal headers; a feature that counts twice is nobody's wish."""
    for name in names:
        renamed = re.fullmatch(r"(.*)_duplicated_\d+", name)
        if renamed and renamed[1] in names:
            raise TableError(f"{table} has more than one column {renamed[1]!r}: rename or remove one")


def _separator_hint(names: Sequence[str]) -> str:
    if len(names) == 1 and re.search("[;\t|]", names[0]):
        return " (are its values separated by something else than commas?)"
    return ""


def listed(names: Sequence[str], *, quoted: bool = True, most: int = 12) -> str:
    """Names in a row for a message, the end of a long list being counted only."""
    shown = ", ".join(map(repr if quoted else str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
