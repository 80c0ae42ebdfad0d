"""The program `coxfield`: its commands, and how errors are shown."""

import sys
import warnings
from importlib.metadata import entry_points
from typing import Annotated

import typer
from typer.core import TyperGroup

from coxfield import __version__
from coxfield.apps.cli import (
    card,
    check,
    console,
    fit,
    label,
    pattern,
    predict,
    serve,
    simulate,
    studio,
    suggest,
    update,
)


class CommandGroup(TyperGroup):
    """Commands whose errors are one sentence on standard error and exit code 1, never a traceback."""

    def invoke(self, ctx):
        """Run a command. The messages of this package and of the file system are sentences already."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = console.show_warning
                return super().invoke(ctx)
        except BrokenPipeError:  # the reader of a pipe has closed it; typer handles that
            raise
        except (ValueError, OSError) as error:
            sentence = " ".join(str(error).split())
        except MemoryError:
            sentence = "there is not enough memory for this: give fewer rows or columns, or a coarser resolution"
        typer.secho(f"Error: {sentence}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1)


# Help is plain text: boxes would break the lines of the examples, and readers copy these.
app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coxfield {__version__}")
        raise typer.Exit


@app.callback()
def coxfield(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Classify with log Gaussian Cox processes, on CSV and Parquet tables.

    \b
    Examples:
      coxfield check train.csv --target species --id plant -o doubtful.csv
      coxfield fit train.csv --target species --id plant -o model.skops
      coxfield predict model.skops new.csv --reasons 5 -o predictions.csv
      coxfield update model.skops more.csv
      coxfield forget model.skops gone.csv
      coxfield label data.csv --target species -o labelled.csv
      coxfield studio data.csv --target species
      coxfield card model.skops -o card.md
      coxfield serve model.skops
      coxfield simulate --window 0 10 0 10 -o pattern.csv --plot pattern.png
      coxfield pattern points.csv --x east --y north -o report/
      coxfield reproduce --quick
    """  # noqa: D301  # typer needs the backspace: it keeps the lines after it apart


app.command()(fit.fit)
app.command()(predict.predict)
app.command()(update.update)
app.command()(update.forget)
app.command()(check.check)
app.command()(card.card)
app.command()(serve.serve)
app.command()(label.label)
app.command()(studio.studio)
app.command()(suggest.suggest)
app.command(cls=simulate.WindowCommand)(simulate.simulate)
app.command()(pattern.pattern)


def reproduce() -> None:
    """Compute the paper again; not installed yet."""
    raise ValueError("the reproduction of the paper is not installed: pip install 'coxfield[report]'")


def add_commands(group: str = "coxfield.commands") -> None:
    """Add the commands that other distributions offer as entry points, and a word on what is not installed."""
    offered = {entry.name: entry for entry in entry_points(group=group)}
    for name, entry in offered.items():
        app.command(name)(entry.load())
    if "reproduce" not in offered:
        app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(reproduce)


add_commands()


def main() -> None:
    """Run the command line. `coxfield.__main__` calls this."""
    try:
        app(prog_name="coxfield")
    except OSError as error:  # of help and version; commands have said theirs already
        sys.exit(f"Error: standard output could not be written, because of '{error.strerror}'")
