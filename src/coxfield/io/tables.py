"""Files of tables, read as people have them, and written: CSV of any kind, JSON, Excel and Parquet.

What a text file does not say is guessed: its encoding, what separates values, which lines come before the header, and
how numbers, dates and blanks are written. `Table.taken` says what was guessed, and a `Form` overrides each guess. Every
refusal is a `TableError` whose sentence names the file.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import sys
import zlib
from collections import Counter
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coxfield.io.columns import (  # polars, or a sentence on how to get it
    Table,
    TableError,
    blank,
    blanked,
    is_writable,
    pl,
)
from coxfield.utils.whole_files import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FORMATS = (".csv", ".csv.gz", ".parquet")  # that are written
TEXTS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
READ = (*TEXTS, ".parquet", ".json", ".jsonl", ".ndjson", ".xlsx")
STANDARD_INPUT = Path("-")


@dataclass(frozen=True)
class Form:
    """How a file is written; None where that is to be guessed."""

    separator: str | None = None
    decimal: str | None = None
    """What is before the digits of a fraction: a point or a comma."""
    encoding: str | None = None
    skip: int | None = None
    """Lines before the header."""
    sheet: str | None = None
    """Of a workbook; the first, if it is None."""
    blanks: tuple[str, ...] = ()
    """Words that stand for a blank cell, beside the usual ones."""

    @classmethod
    def of(cls, words: Iterable[str] | None) -> Form:
        """The form that a user describes in words such as ``separator=;``."""
        found: dict[str, Any] = {"blanks": ()}
        for word in words or ():
            what, _, value = word.partition("=")
            if what == "blank":
                found["blanks"] += (value,)
            elif what == "skip" and value.isdecimal():
                found["skip"] = int(value)
            elif value and (
                what in ("encoding", "sheet")
                or (what, value) in DECIMALS
                or (what == "separator" and _is_separator(value))
            ):
                found[what] = value
            else:
                raise TableError(
                    f"--read {word} is not understood: give separator=;, decimal=, or decimal=., encoding=latin-1, "
                    "skip=2, sheet=NAME or blank=WORD"
                )
        return cls(**found)


DECIMALS = (("decimal", ","), ("decimal", "."))
GUESSED = Form()


def _is_separator(value: str) -> bool:
    return len(value) == 1 or value == "\\t"


def read(
    path: Path,
    *,
    verbatim: Iterable[str | None] = (),
    numbers: Iterable[str] | None = None,
    missing: Mapping[str, Sequence[str]] | None = None,
    form: Form = GUESSED,
) -> Table:
    """Read a table by the ending of its file; ``-`` is text on standard input.

    Parameters
    ----------
    path : Path
    verbatim : iterable of str
        Columns of a text that must be written as they were read, such as ids and classes. ``007`` stays a string there;
        another column would read 7. Names of columns that do not exist are allowed.
    numbers : iterable of str, optional
        If given, all columns of a text except these are verbatim.
    missing : mapping of str to sequences of str, optional
        For some columns, values that stand for a blank cell.
    form : Form
        What not to guess.

    Returns
    -------
    Table
        With at least one row.
    """
    name = "standard input" if path == STANDARD_INPUT else str(path)
    ending = ".csv" if path == STANDARD_INPUT else _ending(path, READ)
    content, missing = _content(path, ending), {} if missing is None else missing
    taken: list[str] = []
    try:
        if ending in TEXTS:
            named = {column for column in verbatim if column is not None}
            rows = _read_text(content, named, numbers, missing, form, taken)
        else:
            rows = _read_typed(content, ending, form, taken)
            rows = rows.with_columns(blanked(rows[one], missing[one]) for one in missing if one in rows.columns)
    except pl.exceptions.NoDataError:
        raise TableError(f"{name} is empty: it has neither a header nor rows") from None
    except TableError as error:
        raise TableError(f"{name} {error}") from None
    except (pl.exceptions.PolarsError, UnicodeError) as error:
        kind = {".parquet": "Parquet", ".xlsx": "Excel"}.get(ending, "JSON" if "json" in ending else "CSV")
        reason = str(error).strip().splitlines()[0]
        raise TableError(f"{name} cannot be read as {kind}: {reason}{_advice(kind)}") from None
    if rows.is_empty():
        raise TableError(f"{name} has a header but no rows")
    _refuse_repeated_names(rows.columns, name)
    return Table(name, rows, tuple(taken))


def _advice(kind: str) -> str:
    return "; say how it is written, such as --read separator=; or --read skip=2" if kind == "CSV" else ""


def _read_typed(content: bytes, ending: str, form: Form, taken: list[str]) -> pl.DataFrame:
    """A table from a file that has types."""
    if ending == ".parquet":
        return pl.read_parquet(BytesIO(content))
    if ending == ".xlsx":
        sheet = {"sheet_id": 1} if form.sheet is None else {"sheet_name": form.sheet}
        try:
            from fastexcel import FastExcelError
        except ModuleNotFoundError:
            raise TableError("is a workbook, and reading it needs fastexcel: pip install 'coxfield[excel]'") from None
        try:
            rows = pl.read_excel(BytesIO(content), **sheet)
        except (ValueError, FastExcelError) as error:
            raise TableError(f"cannot be read as Excel: {str(error).splitlines()[0]}") from None
        taken.append("the first sheet" if form.sheet is None else f"sheet {form.sheet}")
    elif ending == ".json" and content.lstrip()[:1] in (b"[", b"{") and not content.lstrip().startswith(b'{\n"'):
        rows = _read_json(content)
    else:
        rows = pl.read_ndjson(BytesIO(content), infer_schema_length=None)
    return _tidied(rows, set(), form, taken)


def _read_json(content: bytes) -> pl.DataFrame:
    """Records in a list, or columns by name; lines of records, if it is neither."""
    import json

    try:
        found = json.loads(content)
    except json.JSONDecodeError:
        return pl.read_ndjson(BytesIO(content), infer_schema_length=None)
    records = isinstance(found, list) and found and all(isinstance(one, dict) for one in found)
    try:
        if not records and not isinstance(found, dict):
            raise TypeError
        return pl.DataFrame(found, infer_schema_length=None, strict=False)
    except (TypeError, ValueError):
        raise TableError("is JSON, but not a list of records: write [{column: value, ...}, ...]") from None


def check_output(path: Path, *, inputs: Iterable[Path] = ()) -> None:
    """Refuse a path to which no table can be written. Called before the work is done."""
    _ending(path, FORMATS)
    if not path.parent.is_dir():
        raise TableError(f"There is no folder {path.parent} to write {path.name} to")
    if path.exists() and any(source.exists() and path.samefile(source) for source in inputs):
        raise TableError(f"{path} is the input and cannot be the output too: give another output file")


def write(rows: pl.DataFrame, path: Path) -> None:
    """Write a table in the format of the ending, whole or not at all. An existing file is replaced."""
    content = _encoded(rows, _ending(path, FORMATS))
    with whole_file(path) as stream:
        stream.write(content)


def check_columns(rows: pl.DataFrame, path: Path | None) -> None:
    """Refuse columns that the format of a path cannot hold; None is CSV on standard output. Called before the work."""
    if path is not None and _ending(path, FORMATS) == ".parquet":
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


def _ending(path: Path, allowed: Sequence[str]) -> str:
    for ending in sorted(allowed, key=len, reverse=True):
        if path.name.lower().endswith(ending):
            return ending
    raise TableError(f"The ending of {path} is none of {', '.join(allowed)}: give the file one of these endings")


def _content(path: Path, ending: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    if path.is_dir():
        raise TableError(f"{path} is a folder, not a table")
    if not path.exists():
        raise TableError(f"There is no file {path}")
    content = path.read_bytes()
    if not ending.endswith(".gz"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise TableError(f"{path} cannot be read as gzip: {error}") from None


# Text: what is between its cells, and where it begins.


SEPARATORS = {";": "; separated", "\t": "tab separated", "|": "| separated", ",": "", " ": "separated by spaces"}
SAMPLE = 400  # lines that are looked at
AGREED = 0.9  # share of lines that have the same number of values
COMMENTS = ("#", "%", "//")


def _read_text(
    content: bytes,
    verbatim: set[str],
    numbers: Iterable[str] | None,
    missing: Mapping[str, Sequence[str]],
    form: Form,
    taken: list[str],
) -> pl.DataFrame:
    """Parse a text. All rows decide the type of a column. Blank lines at the end are not rows."""
    text = _decoded(content, form, taken).rstrip("\r\n")
    text, separator = _body(text, form, taken)
    rows = pl.read_csv(BytesIO(text.encode()), separator=separator, infer_schema=False)
    names = {name: name.strip() for name in rows.columns}
    if len(set(names.values())) == len(names) and any(name != new for name, new in names.items()):
        rows = rows.rename(names)
    if numbers is not None:
        verbatim = verbatim.union(set(names.values()).difference(numbers))
    as_text = verbatim.union(missing)
    texts = (blanked(column, missing.get(column.name, ())) for column in rows if column.name in as_text)
    return _tidied(rows.with_columns(map(_typed, texts)), as_text, form, taken)


def _decoded(content: bytes, form: Form, taken: list[str]) -> str:
    """The characters of a file: by its mark, or UTF-8, or what Windows writes in western Europe."""
    if form.encoding is not None:
        try:
            return content.decode(form.encoding).removeprefix("\ufeff")
        except LookupError:
            raise TableError(f"cannot be read, because nothing is known of the encoding {form.encoding!r}") from None
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if wide or content[:200].count(b"\0") > len(content[:200]) // 3:
        taken.append("UTF-16")
        if wide:
            return content.decode("utf-16")
        return content.decode("utf-16-le" if content[1:2] == b"\0" else "utf-16-be")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        taken.append("Latin-1")
        return content.decode("cp1252", errors="replace")


def _body(text: str, form: Form, taken: list[str]) -> tuple[str, str]:
    """The text from its header on, and what separates its values."""
    lines = text.split("\n")
    skip = form.skip if form.skip is not None else _comments(lines)
    separator = form.separator or _separator(lines[skip : skip + SAMPLE])
    separator = "\t" if separator == "\\t" else separator
    widths = _widths(lines[skip : skip + SAMPLE], separator)
    usual = Counter(width for width in widths if width > 1).most_common(1)
    if form.skip is None and usual:
        titles = next((k for k, width in enumerate(widths) if width >= max(2, usual[0][0] - 1)), 0)
        skip, widths = skip + titles, widths[titles:]
    if SEPARATORS.get(separator, separator):
        taken.append(SEPARATORS.get(separator, f"{separator} separated"))
    if skip:
        taken.append(f"{skip} {'line' if skip == 1 else 'lines'} before the header left out")
    body = [line for line in lines[skip:] if not (skip and line.startswith(COMMENTS[0]))] if skip else lines
    if separator == " ":
        body, separator = ["\t".join(line.split()) for line in body if line.strip()], "\t"
    if usual and len(widths) > 1 and widths[0] == usual[0][0] - 1 == widths[1] - 1:  # row names without a heading
        body[0] = separator + body[0]
    return "\n".join(body), separator


def _comments(lines: Sequence[str]) -> int:
    """How many lines at the beginning are comments, or blank."""
    return next((k for k, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(COMMENTS)), 0)


def _separator(lines: Sequence[str]) -> str:
    """What most lines have the same number of, and at least once; a comma may be part of numbers, so it is the last."""
    agreed = {}
    for separator in SEPARATORS:
        widths = [width for width in _widths(lines, separator) if width]
        usual = Counter(width for width in widths if width > 1).most_common(1)
        agreed[separator] = usual[0][1] / len(widths) if usual else 0.0
        if separator == " " and usual and widths[0] < max(2, usual[0][0] - 1):  # a heading above sentences
            agreed[separator] = 0.0
    return next(
        (one for one in SEPARATORS if agreed[one] >= AGREED), max(agreed, key=lambda one: (agreed[one], one == ","))
    )


def _widths(lines: Sequence[str], separator: str) -> list[int]:
    """The number of values in each line; 0 of a blank line."""
    if separator == " ":
        return [len(line.split()) for line in lines]
    try:
        return [len(row) for row in csv.reader([line.rstrip("\r") for line in lines], delimiter=separator)]
    except (csv.Error, TypeError):
        return [line.count(separator) + 1 if line.strip() else 0 for line in lines]


# Cells: numbers, dates and blanks as people write them.


BLANKS = ("", "na", "n/a", "#n/a", "nan", "null", "?")  # in small letters
BLANK_NUMBERS = (*BLANKS, "-", "--", ".", "none", "nil", "n.a.", "#null!", "#div/0!", "#value!")  # among numbers, dates
MOSTLY = 0.8  # share of the cells of a column: a few words among so many numbers are not levels
INDEX = re.compile(r"(unnamed: ?\d+|index|rownames|row|row ?n(ame|umber|o|r)s?|)", re.IGNORECASE)
PLAIN = r"^[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|inf|Inf|INF|Infinity)$"
GROUPED = {
    ".": r"^[-+]?\d{1,3}([,'\u00a0\u202f ]\d{3})+(\.\d+)?$",
    ",": r"^[-+]?\d{1,3}([.'\u00a0\u202f ]\d{3})+(,\d+)?$",
}
COMMA = r"^[-+]?\d*,\d+$"
SYMBOLS = r"^\s*([-+]?)\s*(?:[$\u20ac\u00a3\u00a5]\s*)?([-+]?.*?)\s*(?:[$\u20ac\u00a3\u00a5%])?\s*$"
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d %b %Y", "%b %d, %Y", "%d.%m.%y")
TIMES = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
)


def _tidied(rows: pl.DataFrame, verbatim: set[str], form: Form, taken: list[str]) -> pl.DataFrame:
    """The table with its texts as numbers or dates where they are that, and without a column of row numbers."""
    rows = rows.select(column for column in rows if column.name or column.null_count() < len(column))
    texts = [column for column in rows if column.dtype == pl.String and column.name not in verbatim]
    decimal = form.decimal or _decimal(texts)
    if decimal == ",":
        taken.append("decimal comma")
    rows = rows.with_columns(_understood(column, decimal, form.blanks, taken) for column in texts)
    first = rows.columns[0] if rows.width > 1 else None
    if first is not None and first not in verbatim - {""} and INDEX.fullmatch(first) and _counts(rows[first], first):
        taken.append(f"row numbers in the first column{f' {first!r}' if first else ''} left out")
        return rows.drop(first)
    return rows


def _counts(column: pl.Series, name: str) -> bool:
    """Whether a column counts the rows, or names them and has no name itself."""
    if column.dtype.is_integer() and not column.null_count():
        return bool((column.diff().drop_nulls() == 1).all())
    return not name and column.n_unique() == len(column)


def _decimal(texts: Sequence[pl.Series]) -> str:
    """What is before the digits of a fraction, by the cells that can be read in one way only."""
    commas = sum(int(column.str.strip_chars().str.contains(r"^[-+]?\d*,(\d{1,2}|\d{4,})$").sum()) for column in texts)
    points = sum(int(column.str.contains(r"^\D{0,2}\d[\d,' ]*\.(\d{1,2}|\d{4,})\D{0,2}$").sum()) for column in texts)
    return "," if commas > points else "."


def _understood(column: pl.Series, decimal: str, blanks: Sequence[str], taken: list[str]) -> pl.Series:
    """Text as numbers, truth or dates if all cells are that; otherwise as words, without spaces around them."""
    words = column.str.strip_chars()
    mine = [mark.strip().lower() for mark in blanks]
    there = pl.select(pl.when(~words.str.to_lowercase().is_in([*BLANK_NUMBERS, *mine])).then(words)).to_series()
    present = there.drop_nulls()
    if len(present):
        numbers = _numbers(there, decimal)
        if numbers.null_count() == there.null_count():
            return numbers.alias(column.name)
        dates = _dates(there, column.name, taken)
        if dates is not None:
            return dates.alias(column.name)
        if present.str.to_lowercase().is_in(["true", "false"]).all():
            return (there.str.to_lowercase() == "true").alias(column.name)
        _refuse_words(numbers, there, column.name)
    kept = pl.when(~words.str.to_lowercase().is_in([*BLANKS, *mine])).then(words)
    return pl.select(kept.alias(column.name)).to_series()


def _refuse_words(numbers: pl.Series, words: pl.Series, name: str) -> None:
    """Refuse a column of many different numbers in which a few cells are words."""
    wrong = numbers.is_null() & words.is_not_null()
    found = len(numbers) - numbers.null_count()
    if found < MOSTLY * (found + int(wrong.sum())) or numbers.n_unique() <= 30:
        return
    import shlex

    row = wrong.arg_max() or 0
    option = shlex.quote(f"blank={words[row]}")
    raise TableError(
        f"has {int(wrong.sum())} cells in column {name!r} that are not numbers, {words[row]!r} in row {row + 1}, and "
        f"{found} that are: give --read {option} if that stands for a blank cell, or correct it"
    )


def _numbers(words: pl.Series, decimal: str) -> pl.Series:
    """Words as numbers, null where they are not: 1,234.5 and 1 234,5, $5 and 5 %."""
    bare = words.str.replace(SYMBOLS, "$1$2")
    grouped = bare.str.contains(GROUPED[decimal])
    apart = r"[.'\u00a0\u202f ]" if decimal == "," else r"[,'\u00a0\u202f ]"
    joined = pl.select(pl.when(grouped).then(bare.str.replace_all(apart, "")).otherwise(bare)).to_series()
    if decimal == ",":
        simple = joined.str.contains(COMMA)
        joined = pl.select(
            pl.when(simple).then(joined.str.replace(",", ".", literal=True)).otherwise(joined)
        ).to_series()
    plain = pl.select(pl.when(joined.str.contains(PLAIN)).then(joined)).to_series()
    integers = plain.cast(pl.Int64, strict=False)
    return integers if integers.null_count() == words.null_count() else plain.cast(pl.Float64, strict=False)


def _dates(words: pl.Series, name: str, taken: list[str]) -> pl.Series | None:
    """Words as dates, in the first way of writing that fits all of them; None if there is none."""
    if not words.drop_nulls().str.contains(r"\d").all():
        return None
    fits = []
    for form in (*DATES, *TIMES):
        parse = words.str.to_date if form in DATES else words.str.to_datetime
        found = parse(form, strict=False)
        if found.null_count() == words.null_count():
            fits.append((form, found))
            if form != "%d/%m/%Y":
                break
    if len(fits) > 1:
        taken.append(f"dates of {name!r} as day/month")
    return fits[0][1] if fits else None


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
