"""Curves of error against the number of labels: from records to a figure and a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.plotting import COLOURS, MARKERS, figure
from coxfield_paper.report.blocks import Mean, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

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
