"""`coxfield forget`: remove rows from a model file by their ids."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import options
from coxfield.apps.cli.live_model import LiveModel

if TYPE_CHECKING:
    from coxfield.io.tables import Table

SHOWN = 5  # ids that a sentence names


def forget(
    model: options.ModelArgument,
    ids: Annotated[
        Path,
        typer.Argument(
            metavar="IDS",
            help="A .csv, .csv.gz or .parquet file with a column of ids, or - for CSV on standard input.",
        ),
    ],
    output: options.ModelOutputOption = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column of IDS that has the ids. Default: as in the table of fit."),
    ] = None,
    ignore_missing: Annotated[
        bool, typer.Option("--ignore-missing", help="Pass over ids that the model does not have.")
    ] = False,
    reselect: options.ReselectOption = False,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Remove rows from a model by their ids: afterwards they are not in its file any more.

    All rows with one of the ids are removed. Other columns of IDS are ignored. The result is that of a fit to the rows
    that are left, except that the covariance stays as it was chosen. It is a summary of all rows that were there then;
    if it should not reflect the removed rows either, choose it again: --reselect.

    The model must have been fitted with --id. Its file is replaced whole or not at all. If an id is not in the model,
    or too few rows would be left, nothing changes. Other copies of the file still have the rows. While another command
    changes the same file, this one waits.

    \b
    Examples:
      coxfield forget model.skops gone.csv
      coxfield forget model.skops gone.csv --reselect -o newer.skops
      coxfield forget model.skops members.parquet --id member --ignore-missing
      printf 'plant\\n7\\n' | coxfield forget model.skops -
    """  # noqa: D301
    with LiveModel.opened(model, output, jobs, quiet) as live:
        known = live.ids
        rows = _read(ids, str(live.saved.id_column) if id_column is None else id_column)
        wanted = rows.ids(rows.rows.columns[0])
        missing = known.missing(wanted)
        if missing and not ignore_missing:
            from coxfield.io.columns import listed

            kind = "an id" if len(missing) == 1 else f"{len(missing)} ids"
            raise ValueError(
                f"{rows.name} has {kind} that the model does not have, {listed(missing, most=SHOWN)}: correct the ids, "
                "or give --ignore-missing"
            )
        places = known.places(wanted)
        live = live.without(places, reselect=reselect)
        if reselect:
            live.saved.model.reselect()
        live.write({"Forgotten": f"{len(places)} rows of {len(set(wanted)) - len(missing)} ids"})


def _read(ids: Path, column: str) -> "Table":
    """The column of ids of a table. It must have its name: a list without one would lose its first id unseen."""
    from coxfield.io import tables

    rows = tables.read(ids, numbers=[])
    if column not in rows.rows.columns:
        raise ValueError(
            f"{rows.name} has no column {column!r} of ids: write that name into its first line, or name another column "
            "with --id"
        )
    return tables.Table(rows.name, rows.rows.select(column))
