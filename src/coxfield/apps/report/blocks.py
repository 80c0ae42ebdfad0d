"""Blocks: what a page is made of, whatever it will look like: tables, figures, notes, claims and sections of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

MISSING = "–"  # what stands where there is no figure


@dataclass(frozen=True)
class Table:
    """Rows of text under headings; the first column names the row."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> list[int]:
        """Columns of words without a single digit, to be read from the left."""
        columns = ["".join(row[k] for row in self.rows) for k in range(len(self.headings))]
        return [k for k, text in enumerate(columns) if text.strip(MISSING) and not any(map(str.isdigit, text))]

    @property
    def grouped(self) -> bool:
        """Whether rows share names, so that a line between groups helps."""
        return len({row[0] for row in self.rows}) < len(self.rows)


@dataclass(frozen=True)
class Figure:
    """A matplotlib figure with what it shows in words, for those who cannot see it too."""

    caption: str
    figure: Any
    description: str
    name: str
    """Of the file, if it is written to one."""

    @property
    def wide(self) -> bool:
        """Whether it is too wide to be read on a telephone without moving it."""
        return self.figure.get_figwidth() > 9


@dataclass(frozen=True)
class Note:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, what we found, and whether that bears it out; None when it could not be tested."""

    statement: str
    finding: str
    holds: bool | None


@dataclass(frozen=True)
class Section:
    """One item of the paper."""

    name: str
    """What the command line calls it."""
    title: str
    blocks: tuple[Table | Figure | Note, ...]
    seconds: float = 0.0
    """Time its tasks took, added up."""
    missing: tuple[str, ...] = ()
    """Why tasks have no result, each reason once."""
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Mean:
    """A mean over partitions, with its standard error when there are several."""

    values: tuple[float, ...] = field(default=())

    @property
    def value(self) -> float:
        """The mean; NaN of nothing."""
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN of fewer than two values."""
        count = len(self.values)
        return float(np.std(self.values, ddof=1) / np.sqrt(count)) if count > 1 else float("nan")

    @property
    def range(self) -> str:
        """The least and the largest value, one decimal each."""
        return f"{min(self.values):.1f}–{max(self.values):.1f}" if len(self.values) > 1 else MISSING

    def __str__(self) -> str:
        """The mean and its standard error, two decimals each.

        Examples
        --------
        >>> print(Mean((1.0, 2.0, 3.0)), Mean((4.0,)), Mean())
        2.00 ± 0.58 4.00 –
        """
        if not self.values:
            return MISSING
        return f"{self.value:.2f}" + (f" ± {self.standard_error:.2f}" if len(self.values) > 1 else "")


def difference(ours: Mean, paper: float | None) -> str:
    """Ours less the paper's, with its sign.

    Examples
    --------
    >>> difference(Mean((8.7,)), 9.1)
    '−0.40'
    """
    if paper is None or not ours.values:
        return MISSING
    return f"{ours.value - paper:+.2f}".replace("-", "−")


def mean_of(records: Sequence, key: str) -> Mean:
    """The mean of one figure over the records that have a result."""
    return Mean(tuple(record.result[key] for record in records if record.done))


def seconds(records: Sequence) -> str:
    """The mean time of the records that have a result, to two digits."""
    taken = [record.seconds for record in records if record.done]
    return f"{np.mean(taken):.2g}" if taken and np.mean(taken) < 100 else f"{np.mean(taken):.0f}" if taken else MISSING
