"""Blocks: the parts of a page, independent of its layout: tables, figures, notes, claims and sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MISSING = "–"  # stands where there is no number
CONFIDENCE = 0.95  # of the intervals that verdicts are based on


@dataclass(frozen=True)
class Table:
    """Rows of text under headings; the first column names the row."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> list[int]:
        """Numbers of the columns that hold words and no digits. They are aligned to the left."""
        columns = ["".join(row[k] for row in self.rows) for k in range(len(self.headings))]
        return [k for k, text in enumerate(columns) if text.strip(MISSING) and not any(map(str.isdigit, text))]

    @property
    def grouped(self) -> bool:
        """Whether rows share their first cell, so that lines between groups help."""
        return len({row[0] for row in self.rows}) < len(self.rows)


@dataclass(frozen=True)
class Figure:
    """A matplotlib figure, and a description in words for readers who cannot see it."""

    caption: str
    figure: Any
    description: str
    name: str
    """Name of the file, without its ending."""

    @property
    def wide(self) -> bool:
        """Whether it is too wide for the screen of a telephone."""
        return self.figure.get_figwidth() > 9


@dataclass(frozen=True)
class Note:
    """A paragraph."""

    text: str


class Verdict(StrEnum):
    """What the results say about a claim."""

    BORNE_OUT = "borne out"
    NOT_SEEN = "not seen at these sizes"
    """The claim is about larger sizes than those that were computed."""
    UNDECIDED = "not decided"
    """The confidence intervals are too wide."""
    NOT_BORNE_OUT = "not borne out"
    NOT_TESTED = "not tested"
    """There are no results."""

    @classmethod
    def of(cls, holds: bool) -> Verdict:
        """The verdict about a claim that the results decide."""
        return cls.BORNE_OUT if holds else cls.NOT_BORNE_OUT

    @classmethod
    def weakest(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """The verdict about several claims together: the one that stands last in this class."""
        return max(verdicts, key=list(cls).index)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or a goal of our own beyond it; what we found, and the verdict."""

    statement: str
    finding: str
    verdict: Verdict


@dataclass(frozen=True)
class Section:
    """One table or figure of the paper, with what belongs to it."""

    name: str
    """What the command line calls it."""
    title: str
    blocks: tuple[Table | Figure | Note, ...]
    seconds: float = 0.0
    """Sum of the times of its tasks."""
    missing: tuple[str, ...] = ()
    """Why tasks have no result; each reason once."""
    claims: tuple[Claim, ...] = ()
    computed: bool = True
    """Whether any task has a result."""
    beyond: bool = False
    """Whether it is about more than the paper, so that its claims are goals of our own."""

    @property
    def tested(self) -> tuple[Claim, ...]:
        """The claims about which there are results."""
        return tuple(claim for claim in self.claims if claim.verdict != Verdict.NOT_TESTED)

    @property
    def untested(self) -> int:
        """The number of claims without results."""
        return len(self.claims) - len(self.tested)


@dataclass(frozen=True)
class Mean:
    """A mean over partitions, with its standard error if there are several."""

    values: tuple[float, ...] = field(default=())

    @property
    def value(self) -> float:
        """The mean; NaN if there are no values."""
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN if there are fewer than two values."""
        count = len(self.values)
        return float(np.std(self.values, ddof=1) / np.sqrt(count)) if count > 1 else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence interval of the mean by Student's distribution; NaN if there are fewer than two values.

        Examples
        --------
        >>> low, high = Mean((1.0, 2.0, 3.0)).interval
        >>> print(f"{low:.1f} to {high:.1f}")
        -0.5 to 4.5
        """
        reach = student.ppf((1 + CONFIDENCE) / 2, max(len(self.values) - 1, 1)) * self.standard_error
        return float(self.value - reach), float(self.value + reach)

    @property
    def range(self) -> str:
        """The least and the largest value, with one decimal."""
        return f"{min(self.values):.1f}–{max(self.values):.1f}" if len(self.values) > 1 else MISSING

    def __str__(self) -> str:
        """The mean and its standard error, with two decimals.

        Examples
        --------
        >>> print(Mean((1.0, 2.0, 3.0)), Mean((4.0,)), Mean())
        2.00 ± 0.58 4.00 –
        """
        return self.text(2)

    def text(self, digits: int) -> str:
        """The mean and its standard error, with so many decimals."""
        if not self.values:
            return MISSING
        error = f" ± {self.standard_error:.{digits}f}" if len(self.values) > 1 else ""
        return f"{self.value:.{digits}f}{error}"


def difference(ours: Mean, paper: float | None) -> str:
    """Our mean minus the paper's number, with its sign.

    Examples
    --------
    >>> difference(Mean((8.7,)), 9.1)
    '−0.40'
    """
    if paper is None or not ours.values:
        return MISSING
    return f"{ours.value - paper:+.2f}".replace("-", "−")


def mean_of(records: Sequence, key: str) -> Mean:
    """The mean of one number over the records that have a result."""
    return Mean(tuple(record.result[key] for record in records if record.done))


def seconds(records: Sequence) -> str:
    """The mean time of the records that have a result, to two digits."""
    taken = [record.seconds for record in records if record.done]
    return f"{np.mean(taken):.2g}" if taken and np.mean(taken) < 100 else f"{np.mean(taken):.0f}" if taken else MISSING
