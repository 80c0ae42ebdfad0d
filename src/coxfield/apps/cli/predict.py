"""`coxfield predict`: predict the classes of the rows of a table with a model file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import messages, options, outputs

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from coxfield import LGCPClassifier
    from coxfield.io.model_file import SavedModel
    from coxfield.io.tables import Table

ROWS_AT_ONCE = 8192  # per step of the progress bar: few enough that a person sees it move


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .skops file that coxfield fit wrote.")],
    table: options.TableArgument,
    output: options.TableOutputOption = None,
    proba: Annotated[bool, typer.Option("--proba", "-p", help="Add the probability of each class.")] = False,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column to copy to the predictions. Default: the id column that was given to fit.",
        ),
    ] = None,
    no_id: Annotated[bool, typer.Option("--no-id", help="Copy no id column.")] = False,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Predict the classes of the rows of a table.

    The features are found by their names, in any order. Other columns are ignored. The result has the id column, if
    there is one, and the predicted class under the name of the target. With --proba it also has a column proba_CLASS
    for each class. If the table has the target, the error rate is printed to standard error.

    \b
    Examples:
      coxfield predict model.skops new.csv
      coxfield predict model.skops new.csv --proba -o predictions.csv
      coxfield predict model.skops new.parquet --no-id -o predictions.parquet
      cat new.csv | coxfield predict model.skops - | head -n 3
    """  # noqa: D301
    if no_id and id_column is not None:
        raise typer.BadParameter("--id and --no-id contradict each other")
    from coxfield.io import model_file, tables

    if output is not None:
        tables.check_output(output, inputs=[table])
    saved = model_file.load(model)
    saved.model.set_params(n_jobs=jobs)
    remembered = None if no_id else saved.id_column
    kept = remembered if id_column is None else id_column
    # A feature may serve as id. It is then read as numbers.
    rows = tables.read(table, verbatim={saved.target, kept}.difference(saved.features))
    result = _predictions(saved, rows, kept, proba, messages.watched(quiet))
    if output is None:
        outputs.print_table(result)
    else:
        tables.write(result, output)
    if not quiet:
        _print_outcome(saved, rows, result, output)


def _predictions(saved: "SavedModel", rows: "Table", kept: str | None, proba: bool, watched: bool) -> "pl.DataFrame":
    """The predictions as a table: the id, the classes and, if asked for, their probabilities."""
    import polars as pl

    if kept is not None and kept not in rows.rows.columns:
        raise ValueError(f"{rows.name} has no id column {kept!r}: name another column with --id, or give --no-id")
    classes, probabilities = _predict(saved.model, rows.features(saved.features), proba, watched)
    columns = [] if kept is None else [rows.rows[kept]]
    columns.append(pl.Series(saved.target, classes))
    if probabilities is not None:
        columns += [
            pl.Series(f"proba_{messages.label_text(label)}", column)
            for label, column in zip(saved.model.classes_.tolist(), probabilities.T, strict=True)
        ]
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise ValueError(
            f"The id column {kept!r} has the name of a column of predictions: name another column with --id"
        )
    return pl.DataFrame(columns)


def _predict(model: "LGCPClassifier", X: "NDArray", proba: bool, watched: bool) -> "tuple[NDArray, NDArray | None]":
    """Classes and, if asked for, probabilities. Rows are taken in parts, so that the progress bar can move."""
    import numpy as np

    from coxfield.progress import progress

    parts = []
    with progress("predicting", len(X), watched) as done:
        for start in range(0, len(X), ROWS_AT_ONCE):
            part = X[start : start + ROWS_AT_ONCE]
            parts.append(model.predict_with_proba(part) if proba else (model.predict(part), None))
            done(len(part))
    classes, probabilities = zip(*parts, strict=True)
    return np.concatenate(classes), np.concatenate(probabilities) if proba else None


def _print_outcome(saved: "SavedModel", rows: "Table", result: "pl.DataFrame", output: Path | None) -> None:
    """Print where the predictions are and, if the table has the true classes, the error rate, to standard error."""
    if output is not None:
        typer.echo(f"{result.height} predictions in {output}", err=True)
    if saved.target not in rows.rows.columns:
        return
    import polars as pl

    known = ~rows.missing_labels(saved.target)
    # Compared as text: a table may hold integers only, where the table of the fit also had strings.
    truth = rows.rows[saved.target].cast(pl.String).filter(known)
    wrong = (truth != result[saved.target].cast(pl.String).filter(known)).to_numpy()
    if truth.is_in([messages.label_text(label) for label in saved.model.classes_.tolist()]).any():
        typer.echo(f"Error rate {wrong.mean():.4g} ({wrong.sum()} of {len(wrong)} rows)", err=True)
    elif len(truth):
        typer.echo(f"No error rate: {saved.target!r} of {rows.name} holds none of the model's classes", err=True)
