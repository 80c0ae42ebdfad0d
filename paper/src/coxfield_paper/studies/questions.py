"""What a label is worth if we may choose the point: errors after some questions, for four rules of asking."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min

from coxfield import SLGCPClassifier
from coxfield.plotting import COLOURS, MARKERS, figure
from coxfield_paper.report.blocks import Claim, Figure, Mean, Note, Table, Verdict
from coxfield_paper.report.item import Item
from coxfield_paper.studies.curves import lower
from coxfield_paper.studies.few_labels_sets import draw as draw_set
from coxfield_paper.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from coxfield_paper.report.records import Record

    Found = Mapping[str, Record]
    Errors = Mapping[tuple[str, str], Mapping[int, Mapping[str, float]]]
    """Data set and rule -> seed -> number of questions -> error in per cent."""

NAME = "figure-questions"
START = {"digits": 1, "USPS": 10}  # labels before the first question: per class for digits, in all for USPS
DRAWS = 10
AT_ONCE = 5  # questions between two fits
MOST = 40  # questions
SHOWN = (0, 10, 20, 40)  # questions in the table
OURS, RANDOM = "suggest", "random"
LINES = {OURS: "-", RANDOM: ":", "margin": "--", "farthest first": "-."}
INKS = {OURS: 7, RANDOM: 4, "margin": 1, "farthest first": 0}  # numbers of colours; ours is black

RULES_NOTE = (
    "suggest: `SLGCPClassifier.suggest`. random: any point. margin: the points whose two largest probabilities are "
    "closest. farthest first: the point that is farthest from all labelled ones, one after the other. All rules ask "
    f"{AT_ONCE} questions between two fits, and `SLGCPClassifier()` labels the points for all of them."
)
ERROR_NOTE = (
    "Digits start with one label per class, drawn at random. USPS starts with the ten labels of a published split. "
    "The error is the share of wrong labels among the points that had none at the start. Points that were asked for "
    "are right, whatever the rule."
)
DESIGNED_NOTE = "The rule was chosen on these two data sets, so they are no test of it."


class Asking(SLGCPClassifier):
    """`SLGCPClassifier` that keeps its graphs, because only labels change between two fits."""

    def _shape(self, X, count: int) -> Any:
        if not hasattr(self, "_kept"):
            self._kept = super()._shape(X, count)
        return self._kept


def at_random(clf: SLGCPClassifier, X: NDArray, y: NDArray, rng: np.random.Generator) -> NDArray:
    """Points without a label, each as probable as the others."""
    return rng.choice(np.flatnonzero(y < 0), AT_ONCE, replace=False)


def by_margin(clf: SLGCPClassifier, X: NDArray, y: NDArray, rng: np.random.Generator) -> NDArray:
    """Points without a label whose two largest probabilities are closest."""
    free = np.flatnonzero(y < 0)
    second, first = np.sort(clf.label_distributions_[free], axis=1)[:, -2:].T
    return free[np.argsort(first - second, kind="stable")[:AT_ONCE]]


def farthest_first(clf: SLGCPClassifier, X: NDArray, y: NDArray, rng: np.random.Generator) -> NDArray:
    """The point that is farthest from all labelled points; then the same with this point among them."""
    known = np.flatnonzero(y >= 0)
    for _ in range(AT_ONCE):
        _, distances = pairwise_distances_argmin_min(X, X[known])
        distances[known] = -1  # in case all points are copies of labelled ones
        known = np.append(known, distances.argmax())
    return known[-AT_ONCE:]


def by_suggestion(clf: SLGCPClassifier, X: NDArray, y: NDArray, rng: np.random.Generator) -> NDArray:
    """Points that the classifier suggests."""
    return clf.suggest(AT_ONCE)


Rule = Callable[[SLGCPClassifier, "NDArray", "NDArray", np.random.Generator], "NDArray"]
RULES: dict[str, Rule] = {
    OURS: by_suggestion,
    RANDOM: at_random,
    "margin": by_margin,
    "farthest first": farthest_first,
}


def ask(data: str, rule: str, seed: int) -> dict[str, float]:
    """Errors in per cent after 0, 5, 10, ... questions; the keys are texts, as in JSON."""
    X, truth, y = draw_set(data, START[data], seed)
    y, judged = y.copy(), y < 0
    clf, rng = Asking(random_state=seed), np.random.default_rng(seed)
    errors = {}
    for questions in range(0, MOST + 1, AT_ONCE):
        labels = clf.fit(X, y).transduction_
        errors[str(questions)] = 100 * float(np.mean(labels[judged] != truth[judged]))
        if questions < MOST:
            rows = RULES[rule](clf, X, y, rng)
            y[rows] = truth[rows]
    return errors


STUDY = Study(NAME, ask, ("data", "rule"), {(data, rule): DRAWS for data in START for rule in RULES})


def errors_of(found: Found) -> Errors:
    """The errors of all cells that have some."""
    return {cell: results for cell in STUDY.cells if (results := STUDY.results(found, *cell))}


def mean(errors: Errors, data: str, rule: str, questions: int) -> Mean:
    """Mean error over the draws."""
    return Mean(tuple(one[str(questions)] for one in errors.get((data, rule), {}).values()))


def saved(errors: Errors, data: str, questions: int) -> Mean:
    """The error of random questions minus ours, draw by draw."""
    theirs, ours = (errors.get((data, rule), {}) for rule in (RANDOM, OURS))
    return Mean(tuple(theirs[seed][str(questions)] - ours[seed][str(questions)] for seed in ours if seed in theirs))


def render(found: Found) -> Sequence[Table | Figure | Note]:
    """A figure, a table, and what is missing."""
    errors = errors_of(found)
    known = STUDY.known(found)
    blocks: list[Table | Figure | Note] = []
    if known:
        caption = "Error against the number of questions: mean of the draws, with bars of one standard error."
        blocks += [Figure(caption, draw(errors, known), describe(errors, known), NAME), table(errors, known)]
    return [*blocks, *STUDY.absent(found)]


def rules_of(errors: Errors, data: str) -> list[str]:
    """The rules that have results on a data set."""
    return [rule for rule in RULES if (data, rule) in errors]


def table(errors: Errors, known: Sequence[str]) -> Table:
    """One row per data set and rule, and one column per number of questions."""
    draws = max(map(len, errors.values()))
    return Table(
        caption=f"Error in % after some questions: mean and standard error of {draws} draws of the first labels.",
        headings=("data", "rule", *(f"{questions} questions" for questions in SHOWN)),
        rows=tuple(
            (data, rule, *(str(mean(errors, data, rule, questions)) for questions in SHOWN))
            for data in known
            for rule in rules_of(errors, data)
        ),
        notes=(RULES_NOTE, ERROR_NOTE, DESIGNED_NOTE),
    )


def draw(errors: Errors, known: Sequence[str]) -> Any:
    """One panel per data set: error against the number of questions, one line per rule."""
    from matplotlib.ticker import MaxNLocator

    drawn = figure(1.6 + 3.6 * len(known), 3.8)
    panels = drawn.subplots(1, len(known), squeeze=False)[0]
    for panel, data in zip(panels, known, strict=True):
        for place, rule in enumerate(rules_of(errors, data)):
            _draw_rule(panel, errors, data, rule, shift=0.3 * (place - 1.5))
        panel.set_title(f"{data}, from 10 labels on", fontsize="medium")
        panel.set(xlabel="questions asked", ylim=(0, None), xticks=range(0, MOST + 1, 10))
        panel.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="0.9", linewidth=0.8)
        panel.set_axisbelow(True)
    panels[0].set_ylabel("error, %")
    panels[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, handlelength=4.2)
    return drawn


def _draw_rule(panel, errors: Errors, data: str, rule: str, shift: float) -> None:
    asked = np.arange(0, MOST + 1, AT_ONCE)
    means = [mean(errors, data, rule, questions) for questions in asked.tolist()]
    panel.errorbar(
        asked + shift,  # so that bars do not coincide
        [one.value for one in means],
        np.nan_to_num([one.standard_error for one in means]),  # a single draw has no standard error
        label=rule,
        color=COLOURS[INKS[rule]],
        marker=MARKERS[list(RULES).index(rule)],
        linestyle=LINES[rule],
        linewidth=1.6,
        markersize=5,
        capsize=2.5,
        elinewidth=1,
    )


def describe(errors: Errors, known: Sequence[str]) -> str:
    """The figure in words: where each line ends."""
    return " ".join(
        f"{data}, error after {MOST} questions: "
        + "; ".join(f"{rule} {mean(errors, data, rule, MOST)} %" for rule in rules_of(errors, data))
        + "."
        for data in known
    )


def claims(found: Found) -> list[Claim]:
    """Our own goal, and whether it is met. The paper claims nothing here."""
    errors = errors_of(found)
    return [_beats_random(errors, data) for data in START]


def _beats_random(errors: Errors, data: str) -> Claim:
    counts = SHOWN[1:]
    statement = (
        f"Beyond the paper, our goal for {data}: after {', '.join(map(str, counts))} questions of `suggest` the error "
        "is lower than after as many random ones"
    )
    gains = {questions: saved(errors, data, questions) for questions in counts}
    if not all(gain.values for gain in gains.values()):
        return Claim(statement, "not computed", Verdict.NOT_TESTED)
    finding = ", ".join(f"{gain.text(1)} after {questions}" for questions, gain in gains.items())
    return Claim(
        statement,
        f"percentage points saved: {finding}".replace("-", "−"),
        Verdict.weakest(lower(gain) for gain in gains.values()),
    )


ITEM = Item(NAME, "Which labels to ask for", STUDY.tasks, render, claims, beyond=True)
