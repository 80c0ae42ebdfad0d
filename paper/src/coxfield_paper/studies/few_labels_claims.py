"""Goals for few labels: errors that the default should not exceed, and whether it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coxfield_paper.report.blocks import Claim, Mean, Verdict
from coxfield_paper.studies.few_labels_methods import OURS, PAPER
from coxfield_paper.studies.few_labels_sets import FAMILY

if TYPE_CHECKING:
    from collections.abc import Mapping

    Results = Mapping[tuple[str, int, str], Mapping[int, Mapping[str, Any]]]

# Per cent of the unlabelled points, by number of labels.
GOALS: dict[str, dict[int, float]] = {
    "digit1": {10: 6.0, 100: 2.4},
    "USPS": {100: 4.7},
    "g241c": {10: 29.0, 100: 19.2},
    "BCI": {100: 31.5},
    "digits": {1: 14.0, 2: 8.0, 5: 4.8, 10: 3.4},
}
BESIDE_PAPER = ("oil", "rMNIST", "double helix", "two rings", "three rings")
MARGIN = 1.0  # percentage points that the default may be behind the paper's method


def claims(results: Results) -> list[Claim]:
    """One claim per data set: a goal in per cent, or to be no worse than the paper's method by more than a point."""
    return [
        *(_goal(data, wanted, results) for data, wanted in GOALS.items()),
        *(_no_worse(data, results) for data in BESIDE_PAPER),
    ]


def _goal(data: str, wanted: Mapping[int, float], results: Results) -> Claim:
    unit = FAMILY[data].unit
    bounds = ", ".join(f"{error:g} % with {labels}" for labels, error in wanted.items())
    statement = f"Beyond the paper, our goal for {data}: an error of at most {bounds} {unit}"
    found = {labels: _errors(results, data, labels) for labels in wanted}
    if not all(mean.values for mean in found.values()):
        return Claim(statement, "not computed", Verdict.NOT_TESTED)
    finding = ", ".join(f"{mean.text(2)} % with {labels}" for labels, mean in found.items())
    return Claim(statement, finding, Verdict.of(all(found[labels].value <= wanted[labels] for labels in wanted)))


def _errors(results: Results, data: str, labels: int) -> Mean:
    return Mean(tuple(one["error"] for one in results[data, labels, OURS].values()))


def _no_worse(data: str, results: Results) -> Claim:
    statement = f"Beyond the paper, our goal for {data}: at most one percentage point behind the paper's method"
    found = {labels: _behind(results, data, labels) for labels in FAMILY[data].labels}
    if not all(mean.values for mean in found.values()):
        return Claim(statement, "not computed", Verdict.NOT_TESTED)
    finding = ", ".join(
        f"{mean.value:+.1f} with {FAMILY[data].counted(labels)}" for labels, mean in found.items()
    ).replace("-", "−")
    return Claim(
        statement,
        f"difference in percentage points, ours minus the paper's: {finding}",
        Verdict.of(all(mean.value <= MARGIN for mean in found.values())),
    )


def _behind(results: Results, data: str, labels: int) -> Mean:
    """Our error minus that of the paper's method, draw by draw."""
    ours, papers = (results[data, labels, method] for method in (OURS, PAPER))
    return Mean(tuple(ours[seed]["error"] - papers[seed]["error"] for seed in ours if seed in papers))
