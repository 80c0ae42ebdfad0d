"""Messages of commands: summaries for a person or a program, and whether a person is watching."""

import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def watched(quiet: bool) -> bool:
    """Whether a person sees standard error and did not ask for silence."""
    return not quiet and sys.stderr.isatty()


def show_warning(message: Warning | str, *_, **__) -> None:
    """Show a warning as one line on standard error. It takes the arguments of `warnings.showwarning`.

    Of slow work only the state is shown: advice is for those who write Python.
    """
    sentence = " ".join(str(getattr(message, "state", message)).split())
    typer.secho(f"Warning: {sentence}", fg=typer.colors.YELLOW, err=True)


@contextmanager
def gathered() -> "Iterator[list[warnings.WarningMessage]]":
    """A context that gathers warnings, to show them later. Those of slow work are shown at once."""
    from coxfield.progress import SlowWarning

    caught: list[warnings.WarningMessage] = []

    def keep(message, category, *rest) -> None:
        if issubclass(category, SlowWarning):
            show_warning(message)
        else:
            caught.append(warnings.WarningMessage(message, category, *rest))

    with warnings.catch_warnings():
        warnings.showwarning = keep  # type: ignore[assignment]
        yield caught


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
