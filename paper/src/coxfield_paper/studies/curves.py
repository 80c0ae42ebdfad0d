"""Curves of error against the number of labels: a figure, a table, and what the paper says about them.

All differences between methods are taken partition by partition. A verdict is based on the confidence interval of their
mean: a difference that could be chance decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.plotting import COLOURS, MARKERS, figure
from coxfield_paper.report.blocks import Claim, Mean, Table, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coxfield_paper.report.records import Record

NAMES = {"SVM": "SVM", "GPC": "GPC", "LGCP": "LGCP", "SLGCP": "SLGCP", "harmonic": "harmonic functions"}
SUPERVISED = ("SVM", "GPC", "LGCP")
LINES = {"SVM": ":", "GPC": "-.", "LGCP": "--", "SLGCP": "-", "harmonic": (0, (6, 2, 1, 2, 1, 2))}
INKS = {"SVM": 4, "GPC": 5, "LGCP": 2, "SLGCP": 7, "harmonic": 1}  # numbers of colours; the paper's method is black
JITTER = 0.035  # shift between two methods, relative to the number of labels, so that error bars do not coincide


@dataclass(frozen=True)
class Curves:
    """Errors in per cent for each method, number of labels and partition."""

    errors: dict[tuple[str, int], dict[int, float]]

    @property
    def labels(self) -> list[int]:
        """Numbers of labels that have results."""
        return sorted({labels for _, labels in self.errors})

    @property
    def methods(self) -> list[str]:
        """Methods that have results, in the order of the paper."""
        return [method for method in NAMES if any(method == known for known, _ in self.errors)]

    def mean(self, method: str, labels: int) -> Mean:
        """Mean error over partitions."""
        return Mean(tuple(self.errors.get((method, labels), {}).values()))

    def difference(self, one: str, other: str, labels: int) -> Mean:
        """Mean of the error of `one` minus the error of `other`, over the partitions that both have."""
        first, second = (self.errors.get((method, labels), {}) for method in (one, other))
        return Mean(tuple(first[seed] - second[seed] for seed in first if seed in second))

    @property
    def partitions(self) -> int:
        """The largest number of partitions in any mean."""
        return max(map(len, self.errors.values()), default=0)


def curves_of(records: Iterable[Record]) -> Curves:
    """The errors of all records that have one, arranged by the arguments of their tasks."""
    errors: dict[tuple[str, int], dict[int, float]] = {}
    for record in records:
        if record.done and "error" in record.result:
            asked = record.arguments
            errors.setdefault((asked["method"], asked["labels"]), {})[asked["seed"]] = record.result["error"]
    return Curves(errors)


def table(curves: Curves, notes: tuple[str, ...] = ()) -> Table:
    """One row per method and one column per number of labels."""
    return Table(
        caption=f"Test error, % of the unlabelled points: mean and standard error of {curves.partitions} partitions.",
        headings=("method", *(f"{labels} labels" for labels in curves.labels)),
        rows=tuple(
            (NAMES[method], *(str(curves.mean(method, labels)) for labels in curves.labels))
            for method in curves.methods
        ),
        notes=notes,
    )


def draw(curves: Curves):
    """Error against the number of labels: one line per method, with bars of one standard error."""
    from matplotlib.ticker import FixedLocator, NullLocator

    drawn = figure(7.2, 4.4)
    ax = drawn.subplots()
    for place, method in enumerate(curves.methods):
        _draw_method(ax, curves, method, (1 + JITTER) ** (place - (len(curves.methods) - 1) / 2))
    ax.set(xscale="log", xlabel="number of labelled points", ylabel="test error, %")
    ax.set_ylim(-0.03 * ax.get_ylim()[1], None)  # room for markers near zero
    ax.xaxis.set_major_locator(FixedLocator(curves.labels))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    # Beside the axes, where it covers nothing. The lines are long enough to show their dashes.
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, handlelength=4.2)
    return drawn


def _draw_method(ax, curves: Curves, method: str, shift: float) -> None:
    known = [labels for labels in curves.labels if curves.mean(method, labels).values]
    means = [curves.mean(method, labels) for labels in known]
    bars = np.nan_to_num([mean.standard_error for mean in means])  # a single partition has no standard error
    number = INKS[method]
    ax.errorbar(
        shift * np.array(known),
        [mean.value for mean in means],
        bars,
        label=NAMES[method],
        color=COLOURS[number],
        marker=MARKERS[list(NAMES).index(method)],
        linestyle=LINES[method],
        linewidth=1.6,
        markersize=6,
        capsize=3,
        elinewidth=1,
    )


def describe(curves: Curves) -> str:
    """The figure in words: where each curve begins and ends."""
    if not curves.labels:
        return "no results"
    first, last = curves.labels[0], curves.labels[-1]
    return f"Test error with {first} and with {last} labels: " + "; ".join(
        f"{NAMES[method]} {curves.mean(method, first)} % and {curves.mean(method, last)} %" for method in curves.methods
    )


FEWEST = 10
ALIKE = 2.0  # percentage points: curves that are closer cannot be told apart in the paper's figures
NO_RESULTS = "no results"


def lower(difference: Mean) -> Verdict:
    """Whether the second of two errors is lower, given the first minus the second.

    Examples
    --------
    >>> from coxfield_paper.report.blocks import Mean
    >>> print(lower(Mean((4.0, 5.0, 6.0))), "|", lower(Mean((-1.0, 1.0, 2.0))), "|", lower(Mean((5.0,))))
    borne out | not decided | not decided
    """
    low, high = difference.interval
    if low > 0:
        return Verdict.BORNE_OUT
    return Verdict.NOT_BORNE_OUT if high <= 0 else Verdict.UNDECIDED


def alike(difference: Mean) -> Verdict:
    """Whether two errors are alike: with confidence less than two percentage points apart.

    Examples
    --------
    >>> from coxfield_paper.report.blocks import Mean
    >>> print(alike(Mean((0.1, 0.2, 0.0))), "|", alike(Mean((9.0, 9.5, 10.0))), "|", alike(Mean((-9.0, 9.0))))
    borne out | not borne out | not decided
    """
    low, high = difference.interval
    if low >= -ALIKE and high <= ALIKE:
        return Verdict.BORNE_OUT
    return Verdict.NOT_BORNE_OUT if low > 0 or high < 0 else Verdict.UNDECIDED


def beats_supervised(curves: Curves, data: str) -> Claim:
    """Whether the error of SLGCP with the fewest labels is below the error of each supervised method."""
    statement = f"{data}: SLGCP beats every supervised method with {FEWEST} labels"
    differences = {method: curves.difference(method, "SLGCP", FEWEST) for method in SUPERVISED}
    if not all(mean.values for mean in differences.values()):
        return Claim(statement, NO_RESULTS, Verdict.NOT_TESTED)
    finding = f"SLGCP {curves.mean('SLGCP', FEWEST)} %; " + ", ".join(
        f"{method} {curves.mean(method, FEWEST)} %" for method in SUPERVISED
    )
    return Claim(statement, finding, Verdict.weakest(map(lower, differences.values())))


def like_harmonic(curves: Curves, data: str, labels: Sequence[int]) -> Claim:
    """Whether SLGCP and harmonic functions have like errors with each of some numbers of labels."""
    statement = f"{data}: SLGCP and harmonic functions perform alike with {_listed(labels)} labels"
    differences = {count: curves.difference("SLGCP", "harmonic", count) for count in labels}
    if not differences or not all(mean.values for mean in differences.values()):
        return Claim(statement, NO_RESULTS, Verdict.NOT_TESTED)
    verdicts = {count: alike(mean) for count, mean in differences.items()}
    finding = "SLGCP minus harmonic functions, in percentage points: " + ", ".join(
        f"{mean} with {count}{_remark(verdicts[count])}" for count, mean in differences.items()
    )
    needed = f"; alike means less than {ALIKE:g} apart with 95 % confidence"
    return Claim(statement, finding.replace("-", "−") + needed, Verdict.weakest(verdicts.values()))


def _remark(verdict: Verdict) -> str:
    return {Verdict.NOT_BORNE_OUT: " (apart)", Verdict.UNDECIDED: " (too uncertain)"}.get(verdict, "")


def harmonic_ahead(curves: Curves, data: str) -> Claim:
    """Whether the error of harmonic functions is below the error of SLGCP with the fewest labels."""
    statement = f"{data}: harmonic functions have a lower error than SLGCP with {FEWEST} labels"
    difference = curves.difference("SLGCP", "harmonic", FEWEST)
    if not difference.values:
        return Claim(statement, NO_RESULTS, Verdict.NOT_TESTED)
    shown = {method: curves.mean(method, FEWEST) for method in ("harmonic", "SLGCP")}
    finding = ", ".join(f"{NAMES[method]} {mean} %" for method, mean in shown.items())
    return Claim(statement, f"{finding}; difference {difference}".replace("-", "−"), lower(difference))


def _listed(counts: Sequence[int]) -> str:
    *head, last = map(str, counts)
    return f"{', '.join(head)} and {last}" if head else last
