"""Tasks: the units of work of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coxfield_paper.report.source_digest import source_digest

if TYPE_CHECKING:
    from collections.abc import Callable


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
