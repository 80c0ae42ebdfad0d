"""What few labels are worth: errors, log losses and times of our classifiers, beside other methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coxfield_paper.report.blocks import Claim, Figure, Note, Table
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies import few_labels_calibration as calibration
from coxfield_paper.studies import few_labels_claims as goals
from coxfield_paper.studies import few_labels_tables as tables
from coxfield_paper.studies.few_labels_methods import (
    FROM_GRAPH_LEARNING,
    METHODS,
    PAPER,
    SELF_TRAINING,
    has_graph_learning,
    measure,
)
from coxfield_paper.studies.few_labels_sets import FAMILIES, FAMILY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from coxfield_paper.report.records import Record

    Found = Mapping[str, Record]

NAME = "table-few-labels"
FEWER = {("digits", PAPER): 2}  # draws of what is too slow for all of them
ALONE = {("digits", 1): (SELF_TRAINING,)}  # left out: with one label per class there is nothing to validate with
DESIGNED = (
    "The graphs behind `SLGCP` were designed while looking at errors on these data sets. What is chosen for a draw is "
    "chosen from its labels only. But the figures of `SLGCP` are no test of the design. On data that the design has "
    "never seen, expect a smaller advantage."
)


def name(data: str, labels: int, method: str, seed: int) -> str:
    """The name of a task."""
    return f"{NAME}/{data}/{labels}/{method}/{seed}"


def draws_of(data: str, labels: int, method: str) -> int:
    """How many draws of the labelled points a method sees."""
    if method in ALONE.get((data, labels), ()):
        return 0
    return FEWER.get((data, method), FAMILY[data].draws)


def _cells() -> Iterator[tuple[str, int, str]]:
    """Every data set, number of labels and method, in the order of the tables."""
    for family in FAMILIES:
        for data in family.sets:
            for labels in family.labels:
                yield from ((data, labels, method) for method in METHODS)


def tasks(quick: bool) -> list[Task]:
    """One task per data set, number of labels, method and draw; none in a quick run, because they take an hour.

    Methods of a package that is not installed have no tasks.
    """
    methods = [method for method in METHODS if method not in FROM_GRAPH_LEARNING or has_graph_learning()]
    return [
        Task(
            name(data, labels, method, seed),
            measure,
            {"data": data, "labels": labels, "method": method, "seed": seed},
        )
        for data, labels, method in _cells()
        for seed in range(draws_of(data, labels, method))
        if method in methods and not quick
    ]


def results(found: Found) -> dict[tuple[str, int, str], dict[int, dict[str, Any]]]:
    """What was measured, by data set, number of labels and method, and there by seed."""
    sorted_out = {}
    for data, labels, method in _cells():
        records = {seed: found.get(name(data, labels, method, seed)) for seed in range(FAMILY[data].draws)}
        done = {seed: record.result for seed, record in records.items() if record is not None and record.done}
        sorted_out[data, labels, method] = {seed: one for seed, one in done.items() if "skipped" not in one}
    return sorted_out


def render(found: Found) -> Sequence[Table | Figure | Note]:
    """Errors, one table per family of data sets; probabilities; times; and what is missing."""
    measured = results(found)
    known = {data for (data, _, _), by_seed in measured.items() if by_seed}
    blocks: list[Table | Figure | Note] = [Note(DESIGNED), *tables.notes(measured)] if known else []
    blocks += [tables.errors(family, measured) for family in FAMILIES if known & set(family.sets)]
    if known:
        blocks += [*calibration.blocks(measured, NAME), tables.seconds(measured)]
    if missing := [data for data in FAMILY if data not in known]:
        blocks.append(Note(f"There are no results for {', '.join(missing)}. Run `coxfield reproduce {NAME}`."))
    return blocks


def claims(found: Found) -> Sequence[Claim]:
    """Our own goals, and whether they are met. The paper claims nothing here."""
    return goals.claims(results(found))


ITEM = Item(NAME, "Beyond the paper: few labels, and graphs of all points", tasks, render, claims)
