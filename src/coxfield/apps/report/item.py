"""Items: a table or figure of the paper as tasks that compute, and a way to show what they found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coxfield.apps.report.blocks import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coxfield.apps.report.blocks import Claim, Figure, Note, Table
    from coxfield.apps.report.records import Record, Records
    from coxfield.apps.report.tasks import Task

    Found = Mapping[str, Record]


def _no_claims(found: Found) -> Sequence[Claim]:
    return ()


@dataclass(frozen=True)
class Item:
    """One item of the paper: what to compute, and how to show it."""

    name: str
    """What the command line calls it."""
    title: str
    tasks: Callable[[bool], list[Task]]
    """Quick or not -> what to do. Quick is embedded and simulated data, and fewer repetitions of the same tasks."""
    render: Callable[[Found], Sequence[Table | Figure | Note]]
    """Records by the names of their tasks -> what to show; rendering computes nothing that takes time."""
    claims: Callable[[Found], Sequence[Claim]] = _no_claims
    """Records -> the statements of the paper that they bear on."""

    def section(self, records: Records) -> Section:
        """The section of the page that the records in a folder make, of a quick run or a full one."""
        tasks = {task.name: task for quick in (False, True) for task in self.tasks(quick)}
        kept = {name: records.load(name) for name in tasks}
        found = {name: record for name, record in kept.items() if record and record.answers(tasks[name].arguments)}
        return Section(
            name=self.name,
            title=self.title,
            blocks=tuple(self.render(found)),
            seconds=sum(record.seconds for record in found.values()),
            missing=tuple(dict.fromkeys(record.reason for record in found.values() if not record.done)),
            claims=tuple(self.claims(found)),
        )
