"""Marks of unknown classes: texts such as NA that stand for a blank cell, and labels that a command has found.

A class may really be named NA, as the code of Namibia is. So a text stands for unknown only if the user says so, and
there is a hint where that may be forgotten. A table that `coxfield label` or the studio has written says itself which
labels were found. To learn from these as if a person had given them would count guesses as knowledge.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from coxfield.io.columns import pl  # polars, or a sentence that says how to get it

if TYPE_CHECKING:
    from collections.abc import Iterable

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
