"""Whether probabilities from few labels are right: a table, and a diagram with a panel per data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coxfield.plotting import plot_reliability
from coxfield_paper.report.blocks import MISSING, Figure, Mean, Table
from coxfield_paper.studies.bins import pooled
from coxfield_paper.studies.few_labels_methods import LAPLACE, OURS, SPREADING
from coxfield_paper.studies.few_labels_sets import FAMILIES
from coxfield_paper.studies.mixture_calibration import chance_error, panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coxfield.calibration import Reliability

    Results = Mapping[tuple[str, int, str], Mapping[int, Mapping[str, Any]]]

JUDGED = (OURS, SPREADING, LAPLACE)  # methods in the table
DRAWN = (OURS, SPREADING)  # methods in the diagram
NOTES = (
    "Log loss in nats: probabilities of unlabelled points, held above 1e-12. A point that is wrong and entirely sure "
    "costs 28 nats. ECE: expected calibration error, the mean distance of accuracy from probability, in ten bins. By "
    "chance: what it would be if the probabilities of SLGCP were right."
)


def blocks(results: Results, name: str) -> list[Table | Figure]:
    """The table, and the diagram if our probabilities are known for a data set."""
    found: list[Table | Figure] = [table(results)]
    judged = {data: ways for data, ways in _pooled(results).items() if OURS in ways}
    return [*found, diagram(judged, name)] if judged else found


def table(results: Results) -> Table:
    """Log losses and calibration errors: one row per data set and number of labels."""
    losses, distances = ([f"{what}, {method}" for method in JUDGED] for what in ("log loss", "ECE"))
    rows = [
        _row(data, family.counted(labels), [list(results[data, labels, method].values()) for method in JUDGED])
        for family in FAMILIES
        for data in family.sets
        for labels in family.labels
        if any(results[data, labels, method] for method in JUDGED)
    ]
    return Table(
        caption="Log loss and calibration of the probabilities of unlabelled points.",
        headings=("data", "labels", *losses, distances[0], "ECE by chance", *distances[1:]),
        rows=tuple(rows),
        notes=(NOTES,),
    )


def _row(data: str, labels: str, by_method: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    losses, errors = (
        [Mean(tuple(one[key] for one in found)).text(3) for found in by_method] for key in ("log_loss", "ece")
    )
    chance = Mean(tuple(chance_error(pooled([one])) for one in by_method[0]))
    shown = f"{chance.value:.3f}" if chance.values else MISSING
    return data, labels, *losses, errors[0], shown, *errors[1:]


def _pooled(results: Results) -> dict[str, dict[str, Reliability]]:
    """Reliability by data set and method, with all draws and numbers of labels together."""
    by_set: dict[str, dict[str, list]] = {}
    for (data, _, method), by_seed in results.items():
        if method in DRAWN and by_seed:
            by_set.setdefault(data, {}).setdefault(method, []).extend(by_seed.values())
    return {data: {method: pooled(found) for method, found in ways.items()} for data, ways in by_set.items()}


def diagram(judged: Mapping[str, Mapping[str, Reliability]], name: str) -> Figure:
    """Reliability, one panel per data set."""
    drawn = panels(judged, _panel, above=0.5)
    handles, _ = drawn.axes[0].get_legend_handles_labels()
    drawn.legend(handles, next(iter(judged.values())), loc="outside upper center", ncols=len(DRAWN), frameon=False)
    caption = (
        "How often the predicted class was right, against its probability: unlabelled points of all draws and all "
        "numbers of labels together. Bars are two standard errors as if points were independent. Those of one draw are "
        "not."
    )
    return Figure(caption, drawn, _describe(judged), name)


def _panel(panel, data: str, ways: Mapping[str, Reliability]) -> None:
    """One data set. Its name is the title, and the names of axes and methods stand once, beside all panels."""
    plot_reliability(dict(ways), panel)
    panel.get_legend().remove()
    panel.set(xlabel="", ylabel="")
    panel.set_title(data, fontsize="medium")


def _describe(panels: Mapping[str, Mapping[str, Reliability]]) -> str:
    distances = (
        f"{data}, {method}: {found.expected_calibration_error:.3f}"
        for data, ways in panels.items()
        for method, found in ways.items()
    )
    return f"Mean distance of accuracy from probability. {'; '.join(distances)}."
