"""Items: a table or figure as tasks that compute, and functions that show the results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coxfield_paper.report.blocks import Section
from coxfield_paper.report.source_digest import source_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coxfield_paper.report.blocks import Claim, Figure, Note, Table
    from coxfield_paper.report.records import Record, Records

    Found = Mapping[str, Record]


@dataclass(frozen=True)
class Task:
    """A function of a module, its arguments, and the name of its record."""

    name: str
    """Parts separated by slashes, such as `table-1/Banana/SVM/3`."""
    function: Callable[..., dict[str, Any]]
    """Returns what JSON can hold. It depends on nothing but its arguments and its code."""
    arguments: dict[str, Any] = field(default_factory=dict)
    alone: bool = False
    """Whether nothing else may run at the same time: its time is of interest, or it uses all processors itself."""

    @property
    def code(self) -> str:
        """Digest of the source code of the function and of what its module imports."""
        return source_digest(self.function)


def _no_claims(found: Found) -> Sequence[Claim]:
    return ()


@dataclass(frozen=True)
class Item:
    """One table or figure: what to compute, and how to show it."""

    name: str
    """What the command line calls it."""
    title: str
    tasks: Callable[[bool], list[Task]]
    """Quick or not -> what to compute. A quick run has embedded and simulated data only, and fewer repetitions."""
    render: Callable[[Found], Sequence[Table | Figure | Note]]
    """Records by the names of their tasks -> what to show. Rendering takes no time worth mentioning."""
    claims: Callable[[Found], Sequence[Claim]] = _no_claims
    """Records -> statements of the paper, with verdicts."""
    beyond: bool = False
    """Whether it is about more than the paper, so that its claims are goals of our own."""

    def section(self, records: Records) -> Section:
        """The section of the page, from the records in a folder that are current, of quick runs and full ones."""
        tasks = {task.name: task for quick in (False, True) for task in self.tasks(quick)}
        kept = {name: records.current(task) for name, task in tasks.items()}
        found = {name: record for name, record in kept.items() if record is not None}
        return Section(
            name=self.name,
            title=self.title,
            blocks=tuple(self.render(found)),
            seconds=sum(record.seconds for record in found.values()),
            missing=tuple(dict.fromkeys(record.reason for record in found.values() if not record.done)),
            claims=tuple(self.claims(found)),
            computed=any(record.done for record in found.values()),
            beyond=self.beyond,
        )
