"""Tables and pictures that commands write. They are checked before the work, and written all or none."""

import sys
import warnings
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl


# Messages of commands: summaries for a person or a program, and whether a person is watching.


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


def check(output: Path | None, plot: Path | None, *, inputs: "Iterable[Path]" = ()) -> None:
    """Refuse files that cannot be written, and a picture that cannot be drawn. Called before the work is done."""
    from coxfield.io import tables

    if output is not None:
        tables.check_output(output, inputs=inputs)
    if plot is not None:
        from coxfield import plotting

        try:
            plotting.check_picture(plot)
        except ImportError as error:
            raise ValueError(f"--plot: {error}") from None


def write(rows: "pl.DataFrame", output: Path | None, picture: bytes | None, plot: Path | None) -> None:
    """Write the table and the picture. If one of the files fails, neither is written."""
    from coxfield.io import tables
    from coxfield.utils.whole_files import whole_file

    with nullcontext() if plot is None else whole_file(plot) as stream:
        if stream is not None and picture is not None:
            stream.write(picture)
        if output is not None:
            tables.write(rows, output)
    if output is None:
        print_table(rows)


def print_table(rows: "pl.DataFrame") -> None:
    """Write a table to standard output, as CSV."""
    from coxfield.io import tables
    from coxfield.utils.whole_files import FileNotWrittenError

    content = tables.as_csv(rows)
    try:
        typer.echo(content, nl=False)
    except BrokenPipeError:  # the reader has seen enough
        raise
    except OSError as error:
        raise FileNotWrittenError("standard output", error) from error
