"""Tables and pictures that commands write. They are checked before the work, and written all or none."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl


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
