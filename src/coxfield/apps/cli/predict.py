"""`coxfield predict`: predict the classes of the rows of a table with a model file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import messages, options, outputs
from coxfield.apps.cli.prediction_columns import Wishes, is_exact, predictions

if TYPE_CHECKING:
    import polars as pl

    from coxfield.io.model_file import SavedModel
    from coxfield.io.tables import Table


def predict(
    model: options.ModelArgument,
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
    reasons: Annotated[
        int | None,
        typer.Option(
            "--reasons",
            metavar="N",
            help="Name the N training rows that speak loudest for the predicted class.",
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage", metavar="X", help="Add a set of classes that holds the true one with this probability."
        ),
    ] = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Hold the --coverage in each class, not only in all classes together.")
    ] = False,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Predict the classes of the rows of a table.

    The features are found by their names, in any order. Other columns are ignored. The result has the id column, if
    there is one, and the predicted class under the name of the target. With --proba it also has a column proba_CLASS
    for each class. If the table has the target, the error rate is printed to standard error.

    With --coverage 0.9 it has a column set: classes, separated by |, among which the true class is with a probability
    of at least 0.9. set_size is their number. A set may be empty: then the row is unlike all training rows. The
    probability is guaranteed if new rows come from where the training rows came from, and if the model was fitted with
    --selection-part below 1.

    With --reasons 5 it has columns reason_1 to reason_5: the training rows that speak loudest for the predicted class,
    by their ids, or by their numbers in the model, counted from 1, if it has no ids. share_1 to share_5 are what each
    adds to the score of the class, and share_rest is what everything else adds. Their sum is the score: the logarithm
    of the probability, up to a constant that all classes share.

    \b
    Examples:
      coxfield predict model.skops new.csv
      coxfield predict model.skops new.csv --proba -o predictions.csv
      coxfield predict model.skops new.parquet --no-id -o predictions.parquet
      coxfield predict model.skops new.csv --reasons 5 -o predictions.csv
      coxfield predict model.skops new.csv --coverage 0.9 --per-class -o predictions.csv
      cat new.csv | coxfield predict model.skops - | head -n 3
    """  # noqa: D301
    if no_id and id_column is not None:
        raise typer.BadParameter("--id and --no-id contradict each other")
    wishes = Wishes(proba, reasons, coverage, per_class)
    wishes.check()
    from coxfield.io import model_file, tables

    if output is not None:
        tables.check_output(output, inputs=[table])
    saved = model_file.load(model)
    saved.model.set_params(n_jobs=jobs)
    remembered = None if no_id else saved.id_column
    kept = remembered if id_column is None else id_column
    # A feature may serve as id. It is then read as numbers.
    rows = tables.read(table, verbatim={saved.target, kept}.difference(saved.features))
    if kept is not None and kept in rows.rows.columns:
        tables.check_columns(rows.rows.select(kept), output)
    result = predictions(saved, rows, kept, wishes, messages.watched(quiet))
    if output is None:
        outputs.print_table(result)
    else:
        tables.write(result, output)
    if coverage is not None and not is_exact(saved.model):
        messages.show_warning(
            "the coverage is not guaranteed exactly, because the covariance was chosen from all rows: for a guarantee, "
            "fit the model with --selection-part 0.5"
        )
    if not quiet:
        _print_outcome(saved, rows, result, output)


def _print_outcome(saved: "SavedModel", rows: "Table", result: "pl.DataFrame", output: Path | None) -> None:
    """Print where the predictions are and, if the table has the true classes, the error rate, to standard error."""
    if output is not None:
        typer.echo(f"{result.height} predictions in {output}", err=True)
    from coxfield.io.columns import is_writable, pl

    if saved.target not in rows.rows.columns or not is_writable(rows.rows[saved.target].dtype):
        return
    known = ~rows.missing_labels(saved.target)
    # Compared as text: a table may hold integers only, where the table of the fit also had strings.
    truth = rows.rows[saved.target].cast(pl.String).filter(known)
    wrong = (truth != result[saved.target].cast(pl.String).filter(known)).to_numpy()
    if truth.is_in([messages.label_text(label) for label in saved.model.classes_.tolist()]).any():
        typer.echo(f"Error rate {wrong.mean():.4g} ({wrong.sum()} of {len(wrong)} rows)", err=True)
    elif len(truth):
        typer.echo(f"No error rate: {saved.target!r} of {rows.name} holds none of the model's classes", err=True)
