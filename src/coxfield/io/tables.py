"""Files of tables: CSV and Parquet, read and written.

Every refusal is a `TableError` whose sentence names the file.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from coxfield.io.columns import Table, TableError, blank, is_writable, pl  # polars, or a sentence on how to get it
from coxfield.io.marks import blanked
from coxfield.utils.whole_files import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FORMATS = (".csv", ".csv.gz", ".parquet")
STANDARD_INPUT = Path("-")


def read(
    path: Path,
    *,
    verbatim: Iterable[str | None] = (),
    numbers: Iterable[str] | None = None,
    missing: Mapping[str, Sequence[str]] | None = None,
) -> Table:
    """Read a CSV (plain or gzipped) or Parquet file by its ending; ``-`` is CSV on standard input.

    Parameters
    ----------
    path : Path
    verbatim : iterable of str
        Columns of a CSV that must be written as they were read, such as ids and classes. ``007`` stays a string there;
        another column would read 7. Names of columns that do not exist are allowed.
    numbers : iterable of str, optional
        If given, all columns of a CSV except these are verbatim.
    missing : mapping of str to sequences of str, optional
        For some columns, values that stand for a blank cell.

    Returns
    -------
    Table
        With at least one row.
    """
    name = "standard input" if path == STANDARD_INPUT else str(path)
    ending = ".csv" if path == STANDARD_INPUT else _format_of(path)
    content = _content(path, ending)
    missing = {} if missing is None else missing
    try:
        if ending == ".parquet":
            rows = pl.read_parquet(BytesIO(content))
            rows = rows.with_columns(blanked(rows[one], missing[one]) for one in missing if one in rows.columns)
        else:
            rows = _read_csv(content, {column for column in verbatim if column is not None}, numbers, missing)
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
    """Refuse a path to which no table can be written. Called before the work is done."""
    _format_of(path)
    if not path.parent.is_dir():
        raise TableError(f"There is no folder {path.parent} to write {path.name} to")
    if path.exists() and any(source.exists() and path.samefile(source) for source in inputs):
        raise TableError(f"{path} is the input and cannot be the output too: give another output file")


def write(rows: pl.DataFrame, path: Path) -> None:
    """Write a table in the format of the ending, whole or not at all. An existing file is replaced."""
    content = _encoded(rows, _format_of(path))
    with whole_file(path) as stream:
        stream.write(content)


def check_columns(rows: pl.DataFrame, path: Path | None) -> None:
    """Refuse columns that the format of a path cannot hold; None is CSV on standard output. Called before the work."""
    if path is not None and _format_of(path) == ".parquet":
        return
    for name, kind in rows.schema.items():
        if not is_writable(kind):
            raise TableError(
                f"Column {name!r} is of type {kind}, which CSV cannot hold: give an output file that ends in .parquet, "
                "or remove the column"
            )


def as_csv(rows: pl.DataFrame) -> bytes:
    """The bytes of a table as CSV."""
    check_columns(rows, None)
    buffer = BytesIO()
    rows.write_csv(buffer)
    return buffer.getvalue()


def _encoded(rows: pl.DataFrame, ending: str) -> memoryview:
    """The bytes of a table. They are not written by polars, which has errors of its own if a disk is full."""
    buffer = BytesIO()
    if ending == ".parquet":
        rows.write_parquet(buffer)
    elif ending == ".csv":
        buffer.write(as_csv(rows))
    else:
        # No time stamp: the same rows make the same file.
        with gzip.GzipFile(fileobj=buffer, mode="wb", filename="", mtime=0) as compressed:
            compressed.write(as_csv(rows))
    return buffer.getbuffer()


def _format_of(path: Path) -> str:
    for ending in FORMATS:
        if path.name.lower().endswith(ending):
            return ending
    raise TableError(f"The ending of {path} is none of {', '.join(FORMATS)}: give the file one of these endings")


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
    except (EOFError, OSError, zlib.error) as error:
        raise TableError(f"{path} cannot be read as gzip: {error}") from None


def _read_csv(
    content: bytes, verbatim: set[str], numbers: Iterable[str] | None, missing: Mapping[str, Sequence[str]]
) -> pl.DataFrame:
    """Parse a CSV. All rows decide the type of a column. Blank lines at the end are not rows."""
    content = content.rstrip(b"\r\n")
    if numbers is not None:
        verbatim = verbatim.union(set(pl.read_csv(BytesIO(content), n_rows=0).columns).difference(numbers))
    as_text = dict.fromkeys(verbatim.union(missing), pl.String)
    rows = pl.read_csv(BytesIO(content), schema_overrides=as_text, infer_schema_length=None)
    texts = (blanked(column, missing.get(column.name, ())) for column in rows if column.name in as_text)
    return rows.with_columns(map(_typed, texts))


def _typed(text: pl.Series) -> pl.Series:
    """Text as integers or booleans if writing these gives the same text; otherwise the text."""
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
    """Refuse two columns of one name: polars renames the second, and a feature would count twice."""
    present = set(names)
    for name in names:
        renamed = re.fullmatch(r"(.*)_duplicated_\d+", name)
        if renamed and renamed[1] in present:
            raise TableError(f"{table} has more than one column {renamed[1]!r}: rename or remove one")
