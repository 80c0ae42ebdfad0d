"""Messages of commands: summaries for a person or a program, and whether a person is watching."""

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence


def watched(quiet: bool) -> bool:
    """Whether a person sees standard error and did not ask for silence."""
    return not quiet and sys.stderr.isatty()


def label_text(label) -> str:
    """A class as it is written in CSV."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def counted(names: "Sequence[str]") -> str:
    """The number of names, and the names."""
    from coxfield.io.columns import listed

    return f"{len(names)} ({listed(names, quoted=False)})"


def print_summary(summary: dict[str, str], *, err: bool = False) -> None:
    """Print the summary: aligned for a person; for a program one line per entry, never broken."""
    stream = sys.stderr if err else sys.stdout
    if not (summary and stream.isatty()):
        for name, value in summary.items():
            typer.echo(f"{name}: {value}", err=err)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, value in summary.items():
        grid.add_row(Text(name, style="bold"), Text(value))
    Console(file=stream).print(grid)
