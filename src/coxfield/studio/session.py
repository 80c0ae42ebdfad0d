"""A session of labelling: which row to ask next, what was said, what the model makes of it, and when to stop.

Now and then a question is a check: a random row, asked without showing what the model thinks. The model never learns
from the answers to checks. So its error among them is its error among all rows that had no label, and the interval is
that of a binomial distribution (Clopper and Pearson): it is right at least as often as it says.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from coxfield.studio.journal import Journal, JournalError, Labels, Source, Step
from coxfield.studio.learner import NOBODY, Learner
from coxfield.studio.rows import digest, from_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from coxfield.studio.rows import Rows

CONFIDENCE = 0.95
RESERVED = "nlavdse"  # letters that are commands of the page
LETTERS = "".join(letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in RESERVED)
LONGEST = 100  # characters in the name of a class
MOST_FOUND = 20  # rows that a search lists


@dataclass(frozen=True)
class Measured:
    """The error that checks have measured."""

    checks: int
    wrong: int
    low: float
    high: float

    @classmethod
    def of(cls, checks: int, wrong: int, confidence: float = CONFIDENCE) -> Measured:
        """The share of errors, with the interval of Clopper and Pearson."""
        if not checks:
            return cls(0, 0, 0.0, 1.0)
        found = stats.binomtest(wrong, checks).proportion_ci(confidence, method="exact")
        return cls(checks, wrong, float(found.low), float(found.high))


class Session:
    """Rows, what was said about them, and a model that learns from it.

    Parameters
    ----------
    rows : Rows
    path : Path, optional
        The file that every step is appended to. None keeps steps in memory.
    check_every : int, default=10
        Each question of this number is a check. 0 for no checks.
    random_state : int, default=0
    by : str
        Who labels: a few letters that are not the same in two sessions.
    source : Path, optional
        The file of the table. It must not change.
    """

    def __init__(
        self,
        rows: Rows,
        path: Path | None = None,
        *,
        check_every: int = 10,
        random_state: int = 0,
        by: str = "me",
        source: Path | None = None,
    ):
        self.rows, self.source, self.check_every = rows, source, check_every
        guessed = dict.fromkeys(guess for guess in rows.guesses or () if guess is not None)
        self.labels = Labels(rows.start, sorted(guessed))
        self.journal = Journal(self.labels, path, rows.mark, by)
        self.rng = np.random.default_rng(random_state)
        self.lock = threading.RLock()
        self.listeners: list[Callable[[str], None]] = []
        self.learner = Learner(rows.X, self._told, random_state)
        self.held: dict[str, int] = {}  # tab -> the row that it shows
        self.passed: list[int] = []  # rows that were skipped, in this order
        self.checking: dict[int, int] = {}  # row of a check that was asked -> what the model thought
        self.asked = int((self.labels.sources >= Source.key).sum())
        self.curve = [
            (self._number_of_labels(upto), step.expected)
            for upto, step in enumerate(self.labels.steps)
            if step.expected is not None
        ]

    def start(self) -> None:
        """Let the model begin."""
        self._ask()
        self.learner.start()

    def end(self) -> None:
        """Stop the model."""
        self.learner.end()

    # What is said.

    def label(self, rows: NDArray, name: str, *, check: bool = False) -> NDArray:
        """Give rows a label. Of many at once, rows that have a label of their own keep it. Return the rows."""
        name = _checked_name(name)
        with self.lock:
            rows = self._rows(rows)
            if len(rows) > 1:
                rows = rows[~np.isin(self.labels.sources[rows], (Source.key, Source.check, Source.table))]
            if not len(rows):
                return rows
            blind = check and len(rows) == 1 and int(rows[0]) in self.checking
            self._do([Step("check" if blind else "label", rows, name)])
            self.asked += 1
            return rows

    def accept(self, rows: NDArray) -> NDArray:
        """Confirm what the model, or else the guesses, say about rows, in one step. Return the rows."""
        with self.lock:
            rows = self._rows(rows)
            rows = rows[self.labels.codes[rows] < 0]
            names = [self._best(int(row)) for row in rows]
            known = sorted({name for name in names if name is not None})
            steps = [Step("label", rows[[one == name for one in names]], name) for name in known]
            if steps:
                self._do(steps)
                self.asked += 1
            return np.sort(np.concatenate([step.rows for step in steps])) if steps else rows[:0]

    def clear(self, rows: NDArray) -> None:
        """Take labels away."""
        with self.lock:
            self._do([Step("clear", self._rows(rows))])

    def skip(self, row: int) -> None:
        """Put a row off."""
        with self.lock:
            self._do([Step("skip", self._rows([row]))])
            self.passed.append(row)

    def add_class(self, name: str) -> None:
        """Add a class."""
        name = _checked_name(name)
        with self.lock:
            if name not in self.labels.classes:
                self._do([Step("class", label=name)])

    def rename(self, old: str, new: str) -> None:
        """Rename a class. If the new name is that of another class, the two become one."""
        new = _checked_name(new)
        with self.lock:
            if old not in self.labels.classes:
                raise ValueError(f"there is no class {old!r}")
            if old != new:
                self._do([Step("rename", label=old, other=new)])

    def undo(self) -> dict[str, Any] | None:
        """Take the last step back. Return what it was, and the row to show."""
        with self.lock:
            lines = self.journal.undo()
            if not lines:
                return None
            rows = np.concatenate([line.rows for line in lines])
            if len(rows) == 1 and lines[0].action == "check":
                self.checking.setdefault(int(rows[0]), NOBODY)
            if len(rows) == 1 and int(rows[0]) in self.passed:
                self.passed.remove(int(rows[0]))
            self._changed()
            return {"action": lines[0].action, "count": len(rows), "row": int(rows[0]) if len(rows) == 1 else None}

    def refresh(self) -> bool:
        """Take over what other programs have added to the file of labels. Return whether there was anything."""
        with self.lock:
            if not self.journal.read():
                return False
            self._changed()
            return True

    def _do(self, steps: list[Step]) -> None:
        expected = self.learner.answer.expected
        self.journal.add(steps, expected=expected)
        if expected is not None and steps[0].action == "label":
            self.curve.append((self._number_of_labels(), expected))
        self._changed()

    def _changed(self) -> None:
        self._ask()
        self._told("labels")

    def _ask(self) -> None:
        """Leave the labels with the model, except the answers to checks."""
        codes = np.where(self.labels.sources == Source.check, -1, self.labels.codes)
        self.learner.ask(codes, (self.labels.codes >= 0) | self.labels.skipped)

    def _told(self, news: str) -> None:
        for listener in tuple(self.listeners):
            listener(news)

    def _rows(self, rows: Any) -> NDArray:
        found = np.unique(np.asarray(rows, dtype=int).ravel())
        if found.size and not 0 <= found[0] <= found[-1] < len(self.rows):
            raise ValueError(f"there is no row {found[-1] + 1}: the table has {len(self.rows)} rows")
        return found

    def _number_of_labels(self, upto: int | None = None) -> int:
        if upto is None:
            return int(((self.labels.codes >= 0) & (self.labels.sources != Source.table)).sum())
        return sum(len(step.rows) for step in self.labels.steps[:upto] if step.action in ("label", "check"))

    # What is asked.

    def next(self, tab: str = "") -> int | None:
        """The row to ask next in a tab; None if all rows have a label."""
        with self.lock:
            taken = {row for other, row in self.held.items() if other != tab}
            row = self._check_row(taken) if self._due() else None
            if row is None:
                row = self._question(taken | {self.held.get(tab, -1)})
            if row is None:
                row = self._question(taken)
            if row is None:
                self.held.pop(tab, None)
            else:
                self.held[tab] = row
            return row

    def peek(self, tab: str = "") -> int | None:
        """The row that will probably be asked after the one that a tab shows; None if that cannot be known."""
        with self.lock:
            if self._due(ahead=1) or not self.learner.questions:
                return None
            taken = set(self.held.values())
            free = (self.labels.codes < 0) & ~self.labels.skipped
            return next((row for row in self.learner.questions if free[row] and row not in taken), None)

    def prefer(self, tab: str, row: int) -> int | None:
        """Ask a row that a tab shows already, or another one if this is no longer possible."""
        with self.lock:
            others = {shown for other, shown in self.held.items() if other != tab}
            if self._due() or not 0 <= row < len(self.rows) or self.labels.codes[row] >= 0 or row in others:
                return self.next(tab)
            self.held[tab] = row
            return row

    def hold(self, tab: str, row: int) -> None:
        """Note that a tab shows a row."""
        with self.lock:
            self.held[tab] = row
            self.checking.pop(row, None)  # somebody has looked it up

    def leave(self, tab: str) -> None:
        """Note that a tab is closed."""
        with self.lock:
            self.held.pop(tab, None)

    def is_check(self, row: int) -> bool:
        """Whether a row is asked blind."""
        return row in self.checking and bool(self.labels.codes[row] < 0)

    def _due(self, ahead: int = 0) -> bool:
        if not self.check_every or not len(self.learner.answer.classes):
            return False
        checks = int((self.labels.sources == Source.check).sum())
        asked = sum(self.labels.codes[row] < 0 for row in self.checking)
        return (self.asked + 1 + ahead) // self.check_every > checks + asked

    def _check_row(self, taken: set[int]) -> int | None:
        free = np.flatnonzero(self.labels.codes < 0)
        free = free[~np.isin(free, list(taken))]
        if not len(free):
            return None
        row = int(self.rng.choice(free))
        self.checking[row] = int(self.learner.answer.found[row])
        return row

    def _question(self, taken: set[int]) -> int | None:
        open_ = (self.labels.codes < 0) & ~self.labels.skipped
        for row in self.learner.questions:
            if open_[row] and row not in taken:
                return row
        free = np.flatnonzero(open_)
        free = free[~np.isin(free, list(taken))]
        if len(free):  # the model is not ready
            return int(self.rng.choice(free))
        late = [row for row in self.passed if self.labels.codes[row] < 0 and row not in taken]
        late += [int(row) for row in np.flatnonzero((self.labels.codes < 0) & self.labels.skipped)]
        late = [row for row in late if row not in taken]
        if not late:
            return None
        if late[0] in self.passed:  # at the end once more, so that skipping goes round
            self.passed.remove(late[0])
            self.passed.append(late[0])
        return late[0]

    def _best(self, row: int) -> str | None:
        """What the model says about a row, or else the guess."""
        found = int(self.learner.answer.found[row])
        if found != NOBODY and found < len(self.labels.classes):
            return self.labels.classes[found]
        return None if self.rows.guesses is None else self.rows.guesses[row]

    # What is shown.

    def card(self, row: int) -> dict[str, Any]:
        """All that is shown of a row."""
        row = int(self._rows([row])[0])
        with self.lock:
            blind = self.is_check(row)
            code = int(self.labels.codes[row])
            return {
                "row": row,
                "cells": self.rows.card(row),
                "more": max(0, len(self.rows.cells) - 80),
                "text": None if self.rows.texts is None else self.rows.texts[row],
                "image": self.rows.images is not None,
                "check": blind,
                "label": None if code < 0 else code,
                "source": Source(self.labels.sources[row]).name,
                "opinion": [] if blind else self._opinion(row),
                "guess": None if blind or self.rows.guesses is None else self.rows.guesses[row],
            }

    def _opinion(self, row: int) -> list[dict[str, Any]]:
        if self.labels.codes[row] >= 0:
            return []
        found = self.learner.answer.opinion(row)
        return [{"code": code, "probability": share} for code, share in found if code < len(self.labels.classes)]

    def why(self, row: int) -> list[dict[str, Any]]:
        """The labelled rows that speak loudest about a row."""
        row = int(self._rows([row])[0])
        if self.is_check(row) or self.learner.thinking:  # new reasons are on their way
            return []
        answer = self.learner.answer
        return [
            {"row": other, "code": int(answer.codes[other]), "share": share} for other, share in answer.reasons(row)
        ]

    def classes(self) -> list[dict[str, Any]]:
        """The classes, their keys, how many rows have them, and how sure these are."""
        answer, keys = self.learner.answer, keys_of(self.labels.classes)
        found, sure, unknown = answer.found, answer.sure, self.labels.codes < 0
        listed = []
        for code, name in enumerate(self.labels.classes):
            if name is None:
                continue
            mine = unknown & (found == code)
            listed.append(
                {
                    "code": code,
                    "name": name,
                    "key": keys[code],
                    "given": int((self.labels.codes == code).sum()),
                    "found": int(mine.sum()),
                    "sure": float(sure[mine].mean()) if mine.any() else None,
                }
            )
        return listed

    def measured(self) -> Measured:
        """The error of the model on the answers to checks."""
        answer = self.learner.answer
        rows = np.flatnonzero(self.labels.sources == Source.check)
        if not len(answer.classes) or not len(rows):
            return Measured.of(0, 0)
        return Measured.of(len(rows), int((answer.found[rows] != self.labels.codes[rows]).sum()))

    def state(self) -> dict[str, Any]:
        """Everything but the rows: sent after each step."""
        with self.lock:
            answer, measured = self.learner.answer, self.measured()
            given = self.labels.codes >= 0
            doubtful = [
                one
                for one in answer.doubtful
                if self.labels.codes[one["row"]] == one["label"] and one["other"] < len(self.labels.classes)
            ]
            return {
                "steps": len(self.labels.steps),
                "rows": len(self.rows),
                "name": self.rows.name,
                "target": self.rows.target,
                "labelled": int(given.sum()),
                "by_hand": self._number_of_labels(),
                "skipped": int((self.labels.skipped & ~given).sum()),
                "classes": self.classes(),
                "expected": self._expected(),
                "curve": thinned(self.curve),
                "checks": vars(measured),
                "doubtful": doubtful,
                "guesses": self.rows.guesses is not None,
                "thinking": self.learner.thinking,
                "trouble": self.learner.trouble,
                "turns": self.learner.turns,
            }

    def _expected(self) -> float | None:
        answer = self.learner.answer
        if not len(answer.classes):
            return None
        return float((1 - answer.sure)[self.labels.codes < 0].sum())

    def colours(self) -> bytes:
        """For each row a byte of its class, of its doubt, of its given label and of flags.

        Flags: 1 for a label that others contradict, 2 for a guess that the model contradicts, 4 for a check, 8 for a
        row that was skipped.
        """
        with self.lock:
            answer, labels = self.learner.answer, self.labels
            given = labels.codes >= 0
            classes = len(answer.classes)
            found = np.where(given, labels.codes, answer.found).astype(np.uint8)
            found[[row for row in self.checking if labels.codes[row] < 0]] = NOBODY  # the map is blind too
            doubt = np.clip((1 - answer.sure) / (1 - 1 / classes), 0, 1) if classes > 1 else np.ones(len(labels))
            flags = (labels.sources == Source.check) * 4 + (labels.skipped & ~given) * 8
            contradicted = [one["row"] for one in answer.doubtful if labels.codes[one["row"]] == one["label"]]
            flags[contradicted] += 1
            if self.rows.guesses is not None:
                codes = {name: code for code, name in enumerate(labels.classes)}
                guessed = np.array([codes.get(guess, NOBODY) if guess else NOBODY for guess in self.rows.guesses])
                nothing = found == NOBODY
                found = np.where(nothing, guessed, found).astype(np.uint8)
                flags += ((guessed != NOBODY) & (found != NOBODY) & (guessed != found)) * 2
            table = np.empty((len(labels), 4), np.uint8)
            table[:, 0], table[:, 1] = found, np.where(given, 0, np.round(255 * doubt))
            table[:, 2], table[:, 3] = np.where(given, labels.codes, NOBODY), flags
            return table.tobytes()

    def find(self, words: str) -> list[dict[str, Any]]:
        """Rows by number, or by words in their cells, texts or labels."""
        words = words.strip().lower()
        found: list[int] = []
        if words.isdigit() and 1 <= int(words) <= len(self.rows):
            found.append(int(words) - 1)
        columns: list[Any] = [values for values in self.rows.cells.values() if isinstance(values, list)]
        columns += [self.rows.texts] if self.rows.texts is not None else []
        for row in range(len(self.rows)) if words else ():
            if len(found) >= MOST_FOUND:
                break
            if row not in found and any(words in str(values[row]).lower() for values in columns):
                found.append(row)
        return [{"row": row, "about": self._about(row)} for row in found]

    def _about(self, row: int) -> str:
        if self.rows.texts is not None:
            return self.rows.texts[row][:80]
        return ", ".join(f"{cell['name']} {cell['value']}" for cell in self.rows.card(row, most=3))

    # What is kept.

    def labelled(self) -> dict[str, NDArray]:
        """For each row the label, its probability and its source: given, found, or nothing."""
        with self.lock:
            answer, labels = self.learner.answer, self.labels
            names = np.array([*labels.classes, None], dtype=object)
            given = labels.codes >= 0
            found = np.where(answer.found == NOBODY, len(names) - 1, answer.found)
            codes = np.where(given, labels.codes, found)
            known = given | (answer.found != NOBODY)
            return {
                "label": names[codes],
                "probability": np.where(given, 1.0, np.where(known, answer.sure, np.nan)),
                "source": np.array([None, "found", "given"], dtype=object)[known.astype(int) + given],
            }

    def given(self) -> NDArray:
        """The labels that people gave, None for all other rows."""
        names = np.array([*self.labels.classes, None], dtype=object)
        return names[self.labels.codes]

    def check_source(self) -> None:
        """Refuse to write a result for a table that has changed."""
        if self.source is None:
            return
        if not self.source.exists() or digest(self.source) != self.rows.mark:
            raise JournalError(
                f"{self.source} has changed since the studio was opened, so its rows may be others: put the old table "
                f"back; the labels are safe in {self.journal.path}"
            )


def keys_of(classes: list[str | None]) -> list[str]:
    """A key for each class: its own name if that is one digit, or else a digit and then a letter that is free.

    >>> keys_of(["cat", "7", "dog"])
    ['1', '7', '2']
    """
    own = {name for name in classes if name is not None and len(name) == 1 and name in "0123456789" + LETTERS}
    free = [key for key in "123456789" + LETTERS if key not in own]
    keys = []
    for name in classes:
        if name is None:
            keys.append("")
        else:
            keys.append(name if name in own else free.pop(0) if free else "")
    return keys


def thinned(curve: list[tuple[int, float]], most: int = 300) -> list[tuple[int, float]]:
    """Some points of a long curve, with both ends."""
    if len(curve) <= most:
        return curve
    places = np.unique(np.linspace(0, len(curve) - 1, most).astype(int))
    return [curve[place] for place in places]


def _checked_name(name: str) -> str:
    name = " ".join(str(name).split())
    if not name:
        raise ValueError("a class needs a name")
    if len(name) > LONGEST:
        raise ValueError(f"the name of a class has at most {LONGEST} letters, this one has {len(name)}")
    return name


def open_studio(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    images: Any = None,
    texts: Sequence[str] | None = None,
    prior: Sequence | None = None,
    columns: Sequence[str] | None = None,
    missing_label: Any = None,
    journal: str | Path | None = None,
    check_every: int = 10,
    port: int = 0,
    browser: bool = True,
    announce: Callable[[str], None] = print,
    random_state: int = 0,
) -> NDArray:
    """Open the studio for arrays or a data frame, wait until it is closed, and return the labels.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        What the model compares, as it is: give columns comparable units. For texts alone, an array without columns.
    y : array-like of shape (n_samples,), optional
        Labels that are known already, with `missing_label` for all others.
    images : array of shape (n_samples, height, width) or (n_samples, height, width, 3), or sequence of paths, optional
        A picture of each row.
    texts : sequence of str, optional
        A text of each row. If X has no columns, the model compares the texts.
    prior : sequence, optional
        A guess for each row, which can be confirmed.
    columns : sequence of str, optional
        Names of the columns of X, if it is an array.
    missing_label : optional
        The mark of an unknown label in `y`. None and NaN always are.
    journal : path, optional
        A file that every key press is appended to. If it exists, labelling goes on where it stopped.
    check_every : int, default=10
        Each question of this number is a check: a random row, asked blind. 0 for no checks.
    port : int, default=0
        0 for one that is free.
    browser : bool, default=True
        Whether to open a browser. Otherwise follow the address that is announced.
    announce : callable, default=print
        Called with the address of the page.
    random_state : int, default=0

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels that were given, as text, and None for all other rows: `SLGCPClassifier(missing_label=None)` takes
        them.
    """
    from coxfield.studio.server import Studio, run  # which needs the extra

    rows = from_arrays(X, y, images=images, texts=texts, guesses=prior, missing_label=missing_label, columns=columns)
    path = None if journal is None else Path(journal)
    session = Session(rows, path, check_every=check_every, random_state=random_state, by=secrets.token_hex(2))
    run(Studio(session, port=port), browser=browser, announce=announce)
    return session.given()
