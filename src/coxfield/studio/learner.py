"""The model behind the studio: it learns in a thread of its own, and the latest labels win.

Nobody waits for it. Labels are left with `ask`, and a thread takes them when it is done with the ones before. So labels
that came in between are never learned, and the answer is at most one turn late. An `Answer` does not change, so that
others can read it while the next one is computed.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield import SLGCPClassifier
from coxfield.studio.layout import neighbour_places, principal_places
from coxfield.studio.rows import reduced

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

AHEAD = 12  # questions that are known in advance
NOBODY = 255  # the class of a row of which nothing is known
NEAREST = 10  # rows that are asked about a doubtful label
MOST_DOUBTFUL = 30  # labels that are shown as doubtful


@dataclass(frozen=True)
class Answer:
    """What the model says, given some labels."""

    codes: NDArray
    """Class of each row that the labels were, -1 for none."""
    classes: NDArray
    """Class numbers, in the order of the columns of `probabilities`; empty before there are two classes."""
    probabilities: NDArray
    """Shape (n, number of classes), single precision. A row with a label has 1 there."""
    doubtful: list[dict[str, Any]] = field(default_factory=list)
    """Labels against which the others speak, the worst first."""
    few: Any = None
    """What the estimator has learned, to ask it for reasons."""

    @cached_property
    def found(self) -> NDArray:
        """The most probable class of each row, `NOBODY` if there is none."""
        if not len(self.classes):
            return np.full(len(self.codes), NOBODY, np.uint8)
        return self.classes[self.probabilities.argmax(axis=1)].astype(np.uint8)

    @cached_property
    def sure(self) -> NDArray:
        """The probability of the most probable class of each row."""
        return self.probabilities.max(axis=1) if len(self.classes) else np.zeros(len(self.codes))

    @cached_property
    def expected(self) -> float | None:
        """How many rows without a label are to be expected to be wrong, if probabilities are right."""
        return float((1 - self.sure)[self.codes < 0].sum()) if len(self.classes) else None

    def opinion(self, row: int, most: int = 5) -> list[tuple[int, float]]:
        """The most probable classes of a row."""
        if not len(self.classes):
            return []
        order = np.argsort(-self.probabilities[row], kind="stable")[:most]
        return [(int(self.classes[k]), float(self.probabilities[row, k])) for k in order]

    def reasons(self, row: int, most: int = 5) -> list[tuple[int, float]]:
        """The labelled rows that speak loudest about a row, and their shares of what all labelled rows say."""
        rows = np.flatnonzero(self.codes >= 0)
        rows = rows[rows != row]
        if self.few is None or not len(rows):
            return []
        features = self.few.features(np.append(rows, row))
        voices = np.maximum(features[:-1] @ features[-1], 0)
        total = voices.sum() or 1.0
        return [(int(rows[k]), float(voices[k] / total)) for k in np.argsort(-voices, kind="stable")[:most]]


class Learner:
    """A thread that learns.

    Parameters
    ----------
    X : array of shape (n, d)
    tell : callable
        Called by the thread with "places", "colours" or "questions" when there are new ones, or with "trouble".
    random_state : int
    """

    def __init__(self, X: NDArray, tell: Callable[[str], None], random_state: int = 0):
        self.X, self.tell = X, tell
        self.rng = np.random.default_rng(random_state)
        self.model = SLGCPClassifier(classes=[], random_state=random_state)
        self.places = principal_places(X)
        n = len(X)
        self.answer = Answer(np.full(n, -1), np.array([], int), np.zeros((n, 0), np.float32))
        self.questions: list[int] = []
        self.trouble = ""
        self.turns = 0  # answers so far
        self._wanted: tuple[NDArray, NDArray] | None = None
        self._change = threading.Condition()
        self._ended = False
        self._busy = False
        self._thread = threading.Thread(target=self._work, name="studio model", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()
        threading.Thread(target=self._place, name="studio map", daemon=True).start()

    def ask(self, codes: NDArray, barred: NDArray) -> None:
        """Leave labels to learn from, -1 for none. Rows in the mask `barred` are not suggested."""
        with self._change:
            self._wanted = codes.copy(), barred.copy()
            self._change.notify_all()

    def end(self) -> None:
        """Stop as soon as the step at hand is done."""
        with self._change:
            self._ended = True
            self._change.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything that was asked is answered. Return whether it is."""
        with self._change:
            return self._change.wait_for(lambda: (self._wanted is None and not self._busy) or self._ended, timeout)

    @property
    def thinking(self) -> bool:
        """Whether labels wait to be learned, or are being learned."""
        return self._busy or self._wanted is not None

    def _work(self) -> None:
        try:
            points = reduced(self.X)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of little data: the page shows the doubt
                self.model.fit(points, np.full(len(points), -1))
            while self._turn(points):
                pass
        except Exception as error:  # whatever it is, labels can still be given, and the page says so
            self.trouble = f"the model has stopped: {' '.join(str(error).split())}; labels are still saved"
            self.tell("trouble")
        finally:
            with self._change:
                self._busy, self._wanted, self._ended = False, None, True
                self._change.notify_all()

    def _place(self) -> None:
        """Find places for the map. If it fails, those by principal components stay."""
        with suppress(ValueError, MemoryError):
            self.places = neighbour_places(reduced(self.X), self.rng)
            self.tell("places")

    def _turn(self, points: NDArray) -> bool:
        with self._change:
            self._change.wait_for(lambda: self._wanted is not None or self._ended)
            if self._ended or self._wanted is None:
                return False
            (codes, barred), self._wanted, self._busy = self._wanted, None, True
        if (codes < 0).any():
            self._learn(codes, barred, points)
        else:
            self._all_given(codes)
        with self._change:
            self._busy = False
            self._change.notify_all()
        self.tell("questions")
        return True

    def _learn(self, codes: NDArray, barred: NDArray, points: NDArray) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.relabel(codes)
            several = len(self.model.classes_) > 1
            if several:
                shares = self.model.label_distributions_.astype(np.float32)
                classes, few = self.model.classes_.astype(int), self.model._few_labels
                doubtful = list(self.answer.doubtful)  # those of before are shown until the new ones are known
                self.answer = Answer(codes, classes, shares, doubtful, few)
            else:
                self.answer = Answer(codes, np.array([], int), np.zeros((len(codes), 0), np.float32))
            self.turns += 1
            self.tell("colours")
            if self._wanted is not None and self.questions:
                return  # newer labels wait, and there are questions enough until then
            free = codes < 0
            spare = min(int((barred & free).sum()), AHEAD)  # rows that are put off may be among them
            asked = self.model.suggest(min(int(free.sum()), AHEAD + spare))
            self.questions = [int(row) for row in asked if not barred[row]]
            if several and self._wanted is None:  # colours of newer labels come first
                self._doubt(points)

    def _all_given(self, codes: NDArray) -> None:
        classes = np.unique(codes)
        shares = (codes[:, None] == classes).astype(np.float32)
        self.answer, self.questions = Answer(codes, classes, shares), []
        self.turns += 1
        self.tell("colours")

    def _doubt(self, points: NDArray) -> None:
        """Find the labels that the others contradict."""
        counts = np.bincount(self.answer.codes[self.answer.codes >= 0])
        if counts.max() < 2:
            self.answer.doubtful.clear()
            return
        quality = self.model.label_quality()
        against = quality["suggested"] != quality["label"]
        order = np.argsort(quality["rank"])
        worst = [k for k in order if against[k] and quality["suggested_probability"][k] >= 0.5][:MOST_DOUBTFUL]
        if not worst:
            self.answer.doubtful.clear()
            return
        found, listed = self.answer.found, []
        squares = np.einsum("ij,ij->i", points, points)
        all_gaps = squares - 2 * (points[quality["row"][worst]] @ points.T)  # squared distances, up to a constant
        for k, gaps in zip(worst, all_gaps, strict=True):
            row, other = int(quality["row"][k]), int(quality["suggested"][k])
            gaps[row] = np.inf
            near = np.argpartition(gaps, min(NEAREST, len(gaps) - 1))[:NEAREST]
            listed.append(
                {
                    "row": row,
                    "label": int(quality["label"][k]),
                    "other": other,
                    "probability": float(quality["suggested_probability"][k]),
                    "neighbours": int((found[near] == other).sum()),
                    "of": len(near),
                }
            )
        self.answer.doubtful[:] = listed
