"""The command line: `coxfield fit` and `coxfield predict`. It parses, calls and prints; the work is done elsewhere.

Anything heavy is imported inside the commands, so that `coxfield --help` answers at once.
"""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from coxfield import __version__

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from coxfield.classifier import LGCPClassifier
    from coxfield.model_file import SavedModel
    from coxfield.tables import Table

ROWS_AT_ONCE = 8192  # predictions between two moves of the progress bar: few enough to see it move


class Selection(StrEnum):
    """How the length scale is chosen: `selection` of `LGCPClassifier`, spelt for a command line."""

    loo_error = "loo_error"
    loo_log_loss = "loo_log_loss"


class CommandGroup(TyperGroup):
    """Commands whose refusals are one sentence on standard error and exit code 1, never a traceback."""

    def invoke(self, ctx):
        """Run a command; the errors of this package and of the file system are sentences already."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of a pipe has seen enough; typer knows what to do
            raise
        except (ValueError, OSError) as error:
            typer.secho(f"Error: {_in_one_line(error)}", fg=typer.colors.RED, err=True)
            raise typer.Exit(1) from error


# Help as plain text: boxes break the lines of the examples, which are there to be copied.
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
      coxfield fit train.csv --target species -o model.skops
      coxfield predict model.skops new.csv -o predictions.csv
    """  # noqa: D301  # the backspace must reach typer, which keeps the lines after it apart


TableArgument = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A .csv, .csv.gz or .parquet file; - for CSV on standard input.")
]
JobsOption = Annotated[int | None, typer.Option("--jobs", "-j", help="Threads; -1 for all processors.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]


@app.command()
def fit(
    table: TableArgument,
    target: Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="Column that holds the classes.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The model: a .skops file, replaced if it exists."),
    ],
    id_column: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column that tells rows apart: no feature; copied to predictions."),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option("--weight", "-w", metavar="COLUMN", help="Column of weights: a row of weight 2 counts twice."),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", "-f", metavar="COLUMN", help="Column to use; repeat for more. Default: all others."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", "-d", metavar="COLUMN", help="Column to leave out; repeat for more.")
    ] = None,
    selection: Annotated[
        Selection,
        typer.Option("--selection", "-s", help="Choose the length scale by this leave-one-out loss."),
    ] = Selection.loo_error,
    length_scale: Annotated[
        float | None,
        typer.Option("--length-scale", "-l", metavar="X", help="Use this length scale instead of choosing one."),
    ] = None,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Fit a classifier to rows of known class, and save it.

    All columns but the target, the id and the weight are features, and must be numbers.

    \b
    Examples:
      coxfield fit train.csv --target species -o model.skops
      coxfield fit train.csv -t species --id plant --drop year -o model.skops
      coxfield fit train.parquet -t species -f length -f width -o model.skops
      coxfield fit train.csv -t species --length-scale 0.5 -o model.skops
    """  # noqa: D301
    length_scales = _length_scales(length_scale)
    _check_roles(target, id_column, weight)
    if feature and drop:
        raise typer.BadParameter("--feature names all the features: leave --drop away")
    from coxfield import model_file, tables
    from coxfield.classifier import LGCPClassifier

    model_file.check_output(output)
    rows = tables.read(table, verbatim=(target, id_column))
    names = rows.feature_names(apart=(target, id_column, weight), only=feature or (), drop=drop or ())
    X, y = rows.features(names), rows.labels(target)
    sample_weight = None if weight is None else rows.weights(weight)
    model = LGCPClassifier(
        selection=selection.value, length_scales=length_scales, n_jobs=jobs, verbose=int(_watched(quiet))
    )
    model.fit(X, y, sample_weight=sample_weight)
    summary = {} if quiet else _summary(model, names, y, output)
    # How many threads, and who was watching, is no part of the model.
    model.set_params(n_jobs=None, verbose=0)
    model_file.save(model, output, target=target, features=names, id_column=id_column)
    _print_summary(summary)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .skops file that coxfield fit wrote.")],
    table: TableArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A .csv, .csv.gz or .parquet file, replaced if it exists. Default: CSV on standard output.",
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", "-p", help="Add the probability of each class.")] = False,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column to copy, instead of the one given to fit.")
    ] = None,
    no_id: Annotated[bool, typer.Option("--no-id", help="Copy no id column.")] = False,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Predict the classes of the rows of a table.

    The features are found by their names, in any order; other columns are ignored. The result has the id column, if
    any, the predicted class under the name of the target, and with --proba a column proba_CLASS for each class. If
    the table has the target too, the error rate goes to standard error.

    \b
    Examples:
      coxfield predict model.skops new.csv
      coxfield predict model.skops new.csv --proba -o predictions.csv
      coxfield predict model.skops new.parquet --no-id -o predictions.parquet
      cat new.csv | coxfield predict model.skops - | head -n 3
    """  # noqa: D301
    if no_id and id_column is not None:
        raise typer.BadParameter("--id and --no-id contradict each other")
    from coxfield import model_file, tables

    if output is not None:
        tables.check_output(output, inputs=[table])
    saved = model_file.load(model)
    saved.model.set_params(n_jobs=jobs)
    remembered = None if no_id else saved.id_column
    kept = remembered if id_column is None else id_column
    # A feature may serve as id, and is then read as the numbers it stands for.
    rows = tables.read(table, verbatim={saved.target, kept}.difference(saved.features))
    result = _predictions(saved, rows, kept, proba, _watched(quiet))
    if output is None:
        typer.echo(result.write_csv().encode(), nl=False)
    else:
        tables.write(result, output)
    if not quiet:
        _print_outcome(saved, rows, result, output)


def _length_scales(length_scale: float | None) -> list[float] | None:
    """The one length scale that was asked for, as the only candidate: the signal variance is still chosen."""
    if length_scale is not None and not 0 < length_scale < float("inf"):
        raise typer.BadParameter(f"--length-scale must be positive and finite, got {length_scale:g}")
    return None if length_scale is None else [length_scale]


def _check_roles(target: str, id_column: str | None, weight: str | None) -> None:
    given = [name for name in (target, id_column, weight) if name is not None]
    if len(set(given)) < len(given):
        raise typer.BadParameter("--target, --id and --weight must be different columns")


def _predictions(saved: "SavedModel", rows: "Table", kept: str | None, proba: bool, watched: bool) -> "pl.DataFrame":
    """The id, the predicted classes and, if asked for, their probabilities, as a table."""
    import polars as pl

    if kept is not None and kept not in rows.rows.columns:
        raise ValueError(f"{rows.name} has no id column {kept!r}: name another with --id, or go without by --no-id")
    classes, probabilities = _predict(saved.model, rows.features(saved.features), proba, watched)
    columns = [] if kept is None else [rows.rows[kept]]
    columns.append(pl.Series(saved.target, classes))
    if probabilities is not None:
        columns += [
            pl.Series(f"proba_{_label_text(label)}", column)
            for label, column in zip(saved.model.classes_.tolist(), probabilities.T, strict=True)
        ]
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise ValueError(f"The id column {kept!r} has the name of a column of predictions: choose another by --id")
    return pl.DataFrame(columns)


def _predict(model: "LGCPClassifier", X: "NDArray", proba: bool, watched: bool) -> "tuple[NDArray, NDArray | None]":
    """Classes and, if asked for, probabilities, some rows at a time for the sake of the progress bar."""
    import numpy as np

    from coxfield.progress import progress

    classes, probabilities = [], []
    with progress("predicting", len(X), watched) as done:
        for start in range(0, len(X), ROWS_AT_ONCE):
            part = X[start : start + ROWS_AT_ONCE]
            classes.append(model.predict(part))
            if proba:
                probabilities.append(model.predict_proba(part))
            if done is not None:
                done(len(part))
    return np.concatenate(classes), np.concatenate(probabilities) if proba else None


def _label_text(label) -> str:
    """A class as CSV writes it."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def _summary(model: "LGCPClassifier", features: list[str], y: "NDArray", output: Path) -> dict[str, str]:
    """What a person wants to know of a fitted model, line by line."""
    import numpy as np

    from coxfield.tables import listed

    classes, counts = np.unique(y, return_counts=True)
    sizes = [f"{_label_text(label)}: {n}" for label, n in zip(classes.tolist(), counts.tolist(), strict=True)]
    return {
        "Rows": str(len(y)),
        "Features": f"{len(features)} ({listed(features, quoted=False)})",
        "Classes": f"{len(classes)} ({listed(sizes, quoted=False)})",
        "Kernel": str(model.kernel_),
        "Leave-one-out error": f"{model.loo_error_:.4g}",
        "Model": str(output),
    }


def _print_summary(summary: dict[str, str]) -> None:
    """Print the summary: aligned for a person, one whole line for each entry for a program."""
    if not (summary and sys.stdout.isatty()):
        for name, value in summary.items():
            typer.echo(f"{name}: {value}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, value in summary.items():
        grid.add_row(Text(name, style="bold"), Text(value))
    Console().print(grid)


def _print_outcome(saved: "SavedModel", rows: "Table", result: "pl.DataFrame", output: Path | None) -> None:
    """Say on standard error where the predictions went and, if the table has the answers, how good they are."""
    if output is not None:
        typer.echo(f"{result.height} predictions in {output}", err=True)
    if saved.target not in rows.rows.columns:
        return
    import polars as pl

    known = ~rows.missing_labels(saved.target)
    # As text: a table may hold integers only where the one fitted to had strings as well.
    truth = rows.rows[saved.target].cast(pl.String).filter(known)
    wrong = (truth != result[saved.target].cast(pl.String).filter(known)).to_numpy()
    if truth.is_in([_label_text(label) for label in saved.model.classes_.tolist()]).any():
        typer.echo(f"Error rate {wrong.mean():.4g} ({wrong.sum()} of {len(wrong)} rows)", err=True)
    elif len(truth):
        typer.echo(f"No error rate: {saved.target!r} of {rows.name} holds none of the model's classes", err=True)


def _watched(quiet: bool) -> bool:
    """Whether a person sees standard error, and wants to."""
    return not quiet and sys.stderr.isatty()


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def main() -> None:
    """Run the command line: the entry point of the `coxfield` script."""
    app(prog_name="coxfield")


if __name__ == "__main__":
    main()
