"""`coxfield update`: add the rows of a table to a model file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import options
from coxfield.apps.cli.fit import WeightOption
from coxfield.apps.cli.live_model import LiveModel

if TYPE_CHECKING:
    from coxfield.io.model_file import SavedModel
    from coxfield.io.tables import Table


SHOWN = 5  # ids that a sentence names


def update(
    model: options.ModelArgument,
    table: options.TableArgument,
    output: options.ModelOutputOption = None,
    weight: WeightOption = None,
    new_classes: Annotated[
        bool, typer.Option("--new-classes", help="Accept classes that the model does not have yet.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="If the model has an id already, forget its old rows.")
    ] = False,
    add: Annotated[
        bool, typer.Option("--add", help="If the model has an id already, keep its old rows beside the new ones.")
    ] = False,
    reselect: options.ReselectOption = False,
    read: options.ReadOption = None,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Add the rows of a table to a model. The rows that it has are not needed again.

    The table must have the features, the target and, if the model has ids, the id column, under the same names. Other
    columns are ignored. The result is that of a fit to all rows, except that the covariance stays as it was chosen,
    until there are half as many rows again, or a tenth of up to 1,000. Then it is chosen again. To have that now, give
    --reselect.

    A class that the model does not know may be a mistake, so it is refused unless --new-classes is given. An id that
    the model has already is refused unless --replace or --add is given. The model file is replaced whole or not at all.
    While another command changes the same file, this one waits.

    \b
    Examples:
      coxfield update model.skops more.csv
      coxfield update model.skops more.csv --reselect -o newer.skops
      coxfield update model.skops corrected.csv --replace
      coxfield update model.skops more.parquet --new-classes --quiet
    """  # noqa: D301
    if replace and add:
        raise typer.BadParameter("--replace and --add contradict each other: give only one of the two")
    with LiveModel.opened(model, output, jobs, quiet) as live:
        rows = _read(live.saved, table, weight, read)
        live, counts = _with_rows(live, rows, weight, new_classes, replace, add, reselect)
        if reselect:
            live.saved.model.reselect()
        _write(live, counts, reselect)


def _with_rows(
    live: LiveModel, rows: "Table", weight: str | None, new_classes: bool, replace: bool, add: bool, reselect: bool
) -> tuple[LiveModel, dict[str, str]]:
    """The model with the rows of a table, and how many came and went."""
    from coxfield.io.columns import listed

    saved = live.saved
    X = options.features_for(saved.model, rows, saved.features)
    y = options.labels_like(rows, saved.target, saved.model.classes_)
    new = options.new_classes(rows, saved.target, y, saved.model.classes_, allowed=new_classes)
    weights = None if weight is None else rows.weights(weight)
    ids = None if saved.ids is None or saved.id_column is None else rows.ids(saved.id_column)
    if ids is not None and weights is not None:  # rows that do not count are not added
        ids = [text for text, each in zip(ids, weights, strict=True) if each > 0]
    known = [] if ids is None or add else live.ids.known(ids)
    if known and not replace:
        raise ValueError(
            f"{rows.name} has ids that the model has already, {listed(known, most=SHOWN)}: give --replace to forget "
            "their old rows, or --add to keep both"
        )
    before, old = len(saved.model.y_fit_), live.ids.places(known) if known else None
    live = live.with_rows(X, y, new, weights, ids)
    counts = {"Added": f"{len(saved.model.y_fit_) - before} rows"}
    if old is not None:
        counts["Replaced"] = f"{len(old)} rows of {len(known)} ids"
        live = live.without(old, reselect=reselect)
    return live, counts


def _write(live: LiveModel, counts: dict[str, str], reselect: bool) -> None:
    """Write the model. If it does not work with the new rows, say what can be done."""
    from coxfield.io.model_file import ModelFileError

    try:
        live.write(counts)
    except ModelFileError as error:
        if reselect:
            raise
        raise ValueError(
            f"{error}: the new rows may be far from those from which the covariance was chosen; give --reselect, or "
            "leave out such rows"
        ) from error


def _read(saved: "SavedModel", table: Path, weight: str | None, read: list[str] | None) -> "Table":
    """The table, with the columns that the model needs."""
    from coxfield.io import tables

    own = [saved.target, *([] if saved.ids is None or saved.id_column is None else [saved.id_column])]
    if weight in (*own, *saved.features):
        raise typer.BadParameter(f"--weight must be a column of its own, and {weight} is the target, id or a feature")
    numbers = [*saved.features, *([] if weight is None else [weight])]
    rows = tables.read(table, verbatim=own, numbers=numbers, form=tables.Form.of(read))
    rows.require([*own, *numbers])
    return rows


# `coxfield forget`: remove rows from a model file by their ids.


def forget(
    model: options.ModelArgument,
    ids: Annotated[
        Path,
        typer.Argument(
            metavar="IDS",
            help="A table, such as a .csv or .parquet file, with a column of ids, or - for CSV on standard input.",
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
        rows = _read_ids(ids, str(live.saved.id_column) if id_column is None else id_column)
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


def _read_ids(ids: Path, column: str) -> "Table":
    """The column of ids of a table. It must have its name: a list without one would lose its first id unseen."""
    from coxfield.io import tables

    rows = tables.read(ids, numbers=[])
    if column not in rows.rows.columns:
        raise ValueError(
            f"{rows.name} has no column {column!r} of ids: write that name into its first line, or name another column "
            "with --id"
        )
    return tables.Table(rows.name, rows.rows.select(column))
