"""Whether the probabilities of mixtures of covariances are right: a table, and a diagram with a panel per data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.plotting import figure, plot_reliability
from coxfield_paper.report.blocks import Figure, Mean, Table
from coxfield_paper.studies.bins import pooled
from coxfield_paper.studies.mixture_methods import MIXTURE, PLAIN, SVM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coxfield.calibration import Reliability

    Results = Sequence[Mapping[str, Any]]

JUDGED = (MIXTURE, PLAIN, SVM)  # methods in the table
COLUMNS = 3  # of the diagram
NOTES = (
    "Expected calibration error: mean distance of accuracy from probability, in ten bins. By chance: what it would be "
    "if the probabilities of the mixture were right, because a test part has only so many points. Members: covariances "
    "in the mixture that have a weight."
)


def table(judged: Mapping[str, Mapping[str, Results]]) -> Table:
    """One row per data set, from the results of each method that is judged."""
    return Table(
        caption="Expected calibration error of the default, beside two others.",
        headings=("data", "members", MIXTURE, "by chance", *JUDGED[1:]),
        rows=tuple(_row(data, results) for data, results in judged.items()),
        notes=(NOTES,),
    )


def _row(data: str, results: Mapping[str, Results]) -> tuple[str, ...]:
    mixed = results[MIXTURE]
    members = Mean(tuple(result["members"] for result in mixed))
    chance = Mean(tuple(chance_error(pooled([result])) for result in mixed))
    errors = [Mean(tuple(result["ece"] for result in results[method])).text(3) for method in JUDGED]
    return data, f"{members.value:.0f}", errors[0], f"{chance.value:.3f}", *errors[1:]


def chance_error(judged: Reliability) -> float:
    """The expected calibration error that chance alone makes, if the probabilities are right.

    The accuracy of a bin is about normal around its probability. The mean distance is sqrt(2 / pi) standard errors.

    Examples
    --------
    >>> from coxfield.calibration import reliability
    >>> coins = reliability([0, 1] * 50, np.full((100, 2), 0.5))  # a standard error of 0.05 for 100 coins
    >>> round(chance_error(coins), 3)
    0.04
    """
    full = judged.counts > 0
    return float(np.average(np.sqrt(2 / np.pi) * judged.standard_error[full], weights=judged.counts[full]))


def diagram(results: Mapping[str, Results], name: str) -> Figure:
    """Reliability of the mixture, one panel per data set, with the predictions of all partitions together."""
    judged = {data: pooled(each) for data, each in results.items()}
    drawn = panels(judged, _panel)
    description = "; ".join(f"{data}: {_distance(one)}" for data, one in judged.items())
    caption = (
        "How often the class predicted by the mixture was right, against its probability. ECE: expected calibration "
        "error. The predictions of all partitions are taken together, so chance adds less to it than in the table. "
        "Bars are two standard errors as if test points were independent; random partitions share test points."
    )
    return Figure(caption, drawn, f"Mean distance of accuracy from probability. {description}.", name)


def panels(judged: Mapping[str, Any], draw: Callable[[Any, str, Any], None], above: float = 0.0):
    """A figure with a panel per data set, each drawn by `draw`, and `above` inches of room for a legend."""
    lines = -(-len(judged) // COLUMNS)
    drawn = figure(9, 3 * lines + above)
    axes = drawn.subplots(lines, COLUMNS, squeeze=False).ravel()
    for panel, (data, one) in zip(axes, judged.items(), strict=False):
        draw(panel, data, one)
    for empty in axes[len(judged) :]:
        empty.set_axis_off()
    drawn.supxlabel("probability of the predicted class")
    drawn.supylabel("share of predictions that were right")
    return drawn


def _panel(panel, data: str, judged: Reliability) -> None:
    """One data set. Its name is the title, and the names of the axes stand once, beside all panels."""
    plot_reliability({data: judged}, panel)
    panel.get_legend().remove()
    panel.set(xlabel="", ylabel="")
    panel.set_title(f"{data}: ECE {_distance(judged)}", fontsize="medium")


def _distance(judged: Reliability) -> str:
    return f"{judged.expected_calibration_error:.3f}"
