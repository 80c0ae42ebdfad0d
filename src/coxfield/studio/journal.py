"""What was said about the rows, step by step: an append-only file, and the labels that follow from it.

Every step is one line of a CSV, on the disk before anybody hears of it. Nothing is ever rewritten: an undo is a line
too. So a program that is killed has lost nothing, and a line without an end was never confirmed. Labels are what the
steps give that are not undone, in their order. Several programs may write to one file: each reads what the others have
added before it adds a line of its own.
"""

from __future__ import annotations

import csv
import io
import os
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from coxfield.utils.whole_files import FileNotWrittenError, alone, whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

COLUMNS = ("step", "time", "by", "action", "rows", "label", "other", "expected_errors")
ACTIONS = ("open", "class", "label", "check", "clear", "skip", "rename", "undo")
MOST_CLASSES = 250  # a class is one byte on its way to the page


class JournalError(ValueError):
    """A file of labels cannot be used. The message says why, and what to do."""


class Source(IntEnum):
    """Where the label of a row comes from."""

    none = 0
    table = 1
    key = 2
    bulk = 3
    check = 4


@dataclass(frozen=True)
class Step:
    """One thing that somebody did."""

    action: str
    """"label" and "check" give a label, "clear" takes it away, "skip" puts a row off, "class" adds a class, "rename"
    renames one (to the name of another: they become one), "undo" takes a step back, "open" says what the table is."""
    rows: NDArray = field(default_factory=lambda: np.array([], dtype=int))
    """Row numbers, from 0."""
    label: str = ""
    other: str = ""
    """The new name of a class; the number of the step that is undone."""
    number: int = 0
    """Lines of one number are one step: they are undone together."""
    by: str = ""
    time: str = ""
    expected: float | None = None
    """Errors to be expected among the rows without a label, as they were known when the step was made."""


@dataclass
class Labels:
    """The labels of all rows, as they follow from steps.

    Parameters
    ----------
    start : sequence of str or None
        The labels that the table has already.
    classes : iterable of str
        Classes that are known from the start, beside those of `start`.
    """

    start: Sequence[str | None]
    known: Iterable[str] = ()
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = tuple(self.known)
        self._replay()

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def undone(self) -> set[int]:
        """Numbers of the steps that are undone."""
        return {int(step.other) for step in self.steps if step.action == "undo"}

    def names(self) -> list[str]:
        """The classes that are in use. A class that was merged into another keeps its place in `classes`, as None."""
        return [name for name in self.classes if name is not None]

    def apply(self, step: Step) -> None:
        """Add a step."""
        self.steps.append(step)
        self._replay() if step.action == "undo" else self._do(step)

    def last(self, by: str) -> int | None:
        """The number of the step to undo: the last one of `by`, or of anybody if there is none."""
        undone = self.undone
        free = [one for one in self.steps if one.number not in undone and one.action not in ("undo", "open")]
        own = [one for one in free if one.by == by]
        return (own or free)[-1].number if free else None

    def of(self, number: int) -> list[Step]:
        """All lines of a step."""
        return [step for step in self.steps if step.number == number]

    def _replay(self) -> None:
        n = len(self.start)
        self.classes: list[str | None] = []
        self.codes = np.full(n, -1)
        self.sources = np.zeros(n, dtype=np.uint8)
        self.skipped = np.zeros(n, dtype=bool)
        present = dict.fromkeys(label for label in self.start if label is not None)
        for label in sorted(present, key=_order) + list(self.known):
            self._code(label)
        for row, given in enumerate(self.start):
            if given is not None:
                self.codes[row], self.sources[row] = self._code(given), Source.table
        undone = self.undone
        for step in self.steps:
            if step.number not in undone:
                self._do(step)

    def _code(self, label: str) -> int:
        if label not in self.classes:
            if len(self.classes) >= MOST_CLASSES:
                raise JournalError(f"there are {MOST_CLASSES} classes already, and {label!r} would be one more")
            self.classes.append(label)
        return self.classes.index(label)

    def _do(self, step: Step) -> None:
        if step.action in ("label", "check"):
            many = Source.bulk if len(step.rows) > 1 else Source.key
            self.codes[step.rows] = self._code(step.label)
            self.sources[step.rows] = Source.check if step.action == "check" else many
            self.skipped[step.rows] = False
        elif step.action == "clear":
            self.codes[step.rows], self.sources[step.rows] = -1, Source.none
        elif step.action == "skip":
            self.skipped[step.rows] = True
        elif step.action == "class":
            self._code(step.label)
        elif step.action == "rename" and step.label in self.classes:
            self._rename(step.label, step.other)

    def _rename(self, old: str, new: str) -> None:
        place = self.classes.index(old)
        if new not in self.classes:
            self.classes[place] = new
        elif new != old:  # the two become one
            self.codes[self.codes == place] = self.classes.index(new)
            self.classes[place] = None


def _order(label: str) -> tuple:
    """Numbers by size, then texts."""
    try:
        return (0, float(label), label)
    except ValueError:
        return (1, 0.0, label)


class Journal:
    """The file of steps, and the labels that follow from it.

    Parameters
    ----------
    labels : Labels
        Without steps.
    path : Path or None
        None keeps the steps in memory only.
    mark : str
        What the table is. A file that was begun with another mark belongs to other rows.
    by : str
        Who writes.
    """

    def __init__(self, labels: Labels, path: Path | None, mark: str, by: str):
        self.labels, self.path, self.mark, self.by = labels, path, mark, by
        self.end = 0  # bytes of the file that are read
        if path is not None:
            self.read()
        if not labels.steps:
            self.add([Step("open", np.arange(len(labels)), label=mark)])

    def add(self, steps: Sequence[Step], *, expected: float | None = None) -> int:
        """Write lines as one step, have them on the disk, and only then count them. Return the number of the step."""
        with nullcontext() if self.path is None else alone(self.path):
            if self.path is not None:
                self.read()
            number = 1 + max((step.number for step in self.labels.steps), default=0)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            new = [replace(one, number=number, by=self.by, time=now, expected=expected) for one in steps]
            if self.path is not None:
                self._append(_lines(new))
        for step in new:
            self.labels.apply(step)
        return number

    def undo(self) -> list[Step]:
        """Undo the last step of this writer. Return its lines; none if there is nothing to undo."""
        number = self.labels.last(self.by)
        if number is None:
            return []
        self.add([Step("undo", other=str(number))])
        return self.labels.of(number)

    def read(self) -> bool:
        """Take over what others have added. Return whether there was anything."""
        if self.path is None:
            return False
        if not self.path.exists():
            if self.labels.steps:  # somebody has removed the file: everything is still here
                self._rewrite()
            return False
        size = self.path.stat().st_size
        if size == self.end:
            return False
        if size < self.end:
            raise JournalError(
                f"{self.path} is shorter than what was written to it, so another program has changed it: put the file "
                "back, or move it away, and the labels of this session are written again"
            )
        with self.path.open("rb") as stream:
            stream.seek(self.end)
            content = stream.read()
        whole = content[: content.rfind(b"\n") + 1]  # a line without an end was never confirmed
        for step in self._parsed(whole):
            self._check(step)
            self.labels.apply(step)
        self.end += len(whole)
        return bool(whole)

    def _append(self, content: bytes) -> None:
        assert self.path is not None
        header = b"" if self.end else _line(COLUMNS)
        number = None
        try:
            number = os.open(self.path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            os.ftruncate(number, self.end)  # what stands behind is half a line of a program that was killed
            os.lseek(number, self.end, os.SEEK_SET)
            _write_all(number, header + content)
            os.fsync(number)
        except OSError as error:
            with suppress(OSError):
                if number is not None:
                    os.ftruncate(number, self.end)
            raise FileNotWrittenError(self.path, error) from error
        finally:
            if number is not None:
                os.close(number)
        self.end += len(header) + len(content)

    def _rewrite(self) -> None:
        assert self.path is not None
        content = _line(COLUMNS) + _lines(self.labels.steps)
        with whole_file(self.path) as stream:
            stream.write(content)
        self.end = len(content)

    def _parsed(self, content: bytes) -> list[Step]:
        try:
            lines = list(csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True))
            if self.end == 0 and lines and tuple(lines.pop(0)) != COLUMNS:
                raise ValueError
            return [_step(line) for line in lines]
        except (ValueError, csv.Error, IndexError):
            raise JournalError(
                f"{self.path} is not a file of labels that the studio wrote, or it was edited: move it away"
            ) from None

    def _check(self, step: Step) -> None:
        if step.action == "open" and step.label != self.mark:
            raise JournalError(
                f"{self.path} holds the labels of another table, or the table has changed since: put the old table "
                "back, or move the file of labels away to start anew"
            )
        if step.rows.size and not 0 <= step.rows.min() <= step.rows.max() < len(self.labels):
            raise JournalError(
                f"{self.path} has a label for row {step.rows.max() + 1}, but there are {len(self.labels)} rows: move "
                "the file of labels away, or put the old table back"
            )


def _write_all(number: int, content: bytes) -> None:
    while content:
        content = content[os.write(number, content) :]


def _lines(steps: Iterable[Step]) -> bytes:
    return b"".join(
        _line(
            (
                *(step.number, step.time, step.by, step.action, _ranges(step.rows), step.label, step.other),
                "" if step.expected is None else f"{step.expected:.1f}",
            )
        )
        for step in steps
    )


def _line(values: Iterable) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode("utf-8")


def _step(line: list[str]) -> Step:
    number, time, by, action, rows, label, other, expected = line
    if action not in ACTIONS:
        raise ValueError
    if action == "undo":
        int(other)
    found = _numbers(rows)
    return Step(action, found, label, other, int(number), by, time, float(expected) if expected else None)


def _ranges(rows: NDArray) -> str:
    """Row numbers as people count them, from 1: ``3 7-12``.

    >>> _ranges(np.array([6, 2, 7, 8]))
    '3 7-9'
    """
    if not len(rows):
        return ""
    ordered = np.unique(rows) + 1
    parts = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    return " ".join(f"{part[0]}" if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _numbers(text: str) -> NDArray:
    """The rows that `_ranges` has written.

    >>> _numbers("3 7-9")
    array([2, 6, 7, 8])
    """
    found = []
    for part in text.split():
        first, _, last = part.partition("-")
        found.append(np.arange(int(first) - 1, int(last or first)))
    return np.concatenate(found) if found else np.array([], dtype=int)
