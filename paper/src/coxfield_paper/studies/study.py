"""Studies of one shape: the same measurement for every data set, method and seed, with a task and a record for each.

A cell is a data set and a method, and whatever else is varied. Its seeds are partitions of the data set, or draws of
its labels. A study says which cells there are; what its tables show is the matter of each item.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any

from coxfield_paper.report.blocks import MISSING, Mean, Note
from coxfield_paper.report.item import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from coxfield_paper.report.records import Record

    Found = Mapping[str, Record]
    Cell = tuple[Any, ...]


@dataclass(frozen=True)
class Study:
    """A measurement, and the cells and seeds for which it is made.

    Examples
    --------
    >>> study = Study("table-1", print, ("data", "method"), {("Banana", "SVM"): 2})
    >>> [(task.name, task.arguments) for task in study.tasks(quick=False)][1]
    ('table-1/Banana/SVM/1', {'data': 'Banana', 'method': 'SVM', 'seed': 1})
    """

    name: str
    """Of the item, or of its part: all names of tasks begin with it."""
    measure: Callable[..., dict[str, Any]]
    """Takes the parts of a cell and a seed by the names of `axes` and `seed`."""
    axes: tuple[str, ...]
    """What a cell consists of; the data set comes first."""
    cells: Mapping[Cell, int]
    """Each cell with its number of seeds, in the order of the tables."""
    quick: Mapping[Cell, int] = field(default_factory=dict)
    """The same for a quick run."""
    alone: Collection[Cell] = ()
    """Cells whose tasks use all processors themselves."""

    def task(self, *parts: Any) -> str:
        """The name of the task of a cell and a seed."""
        return "/".join(map(str, (self.name, *parts)))

    def tasks(self, quick: bool) -> list[Task]:
        """One task per cell and seed."""
        return [
            Task(
                self.task(*cell, seed), self.measure, dict(zip((*self.axes, "seed"), (*cell, seed), strict=True)), alone
            )
            for cell, seeds in (self.quick if quick else self.cells).items()
            for alone in [cell in self.alone]
            for seed in range(seeds)
        ]

    def records(self, found: Found, *cell: Any) -> dict[int, Record]:
        """The records of a cell, by seed."""
        names = {seed: self.task(*cell, seed) for seed in range(self.cells.get(cell, 0))}
        return {seed: found[name] for seed, name in names.items() if name in found}

    def results(self, found: Found, *cell: Any) -> dict[int, dict[str, Any]]:
        """What was measured in a cell, by seed."""
        return {seed: record.result for seed, record in self.records(found, *cell).items() if record.done}

    def known(self, found: Found) -> list[str]:
        """The data sets that have a result."""
        return list(dict.fromkeys(cell[0] for cell in self.cells if self.results(found, *cell)))

    def absent(self, found: Found) -> list[Note]:
        """A note that names the data sets without a result, if there are any."""
        known = self.known(found)
        missing = dict.fromkeys(cell[0] for cell in self.cells if cell[0] not in known)
        run = f"Run `coxfield reproduce {self.name}`."
        return [Note(f"There are no results for {', '.join(missing)}. {run}")] if missing else []


def crossed(seeds: Mapping[str, int], methods: Callable[[str], Sequence[str]]) -> dict[Cell, int]:
    """Cells of data sets with their numbers of seeds, and of the methods that each of them has."""
    return {(data, method): count for data, count in seeds.items() for method in methods(data)}


def mean(results: Mapping[int, Mapping[str, Any]], key: str) -> Mean:
    """The mean of one number over seeds."""
    return Mean(tuple(result[key] for result in results.values()))


def short(number: float) -> str:
    """A time or a ratio, to two digits; one digit below a tenth.

    Examples
    --------
    >>> short(12.3), short(1.23), short(0.0123), short(float("nan"))
    ('12', '1.2', '0.01', '–')
    """
    if isnan(number):
        return MISSING
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}" if number >= 0.1 else f"{number:.1g}"
