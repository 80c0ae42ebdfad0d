"""Options that several commands have, and functions that interpret them."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.io.tables import Table


# Classes of new rows, compared with the classes that a model has.


def labels_like(rows: "Table", target: str, classes: "NDArray") -> "NDArray":
    """The labels of all rows in the type of the classes of a model.

    A CSV of integers is read as integers, also where the model knows text: the table of the fit may have had other
    classes beside them.
    """
    import numpy as np

    labels = rows.labels(target, least=1)
    if _kind(classes) == "text":
        return np.array([console.label_text(label) for label in labels.tolist()])
    if _kind(labels) != _kind(classes):
        raise ValueError(
            f"Column {target!r} of {rows.name} holds {_kind(labels)}, but the classes of the model are "
            f"{_kind(classes)} such as {console.label_text(classes.tolist()[0])}: write the classes in the same way"
        )
    alike = labels.astype(classes.dtype)
    return alike if (alike == labels).all() else labels


def _kind(labels: "NDArray") -> str:
    """What labels are, in words."""
    kinds = {"U": "text", "O": "text", "b": "booleans", "m": "times", "M": "dates"}
    return kinds.get(labels.dtype.kind, "numbers")


def new_classes(rows: "Table", target: str, labels: "NDArray", classes: "NDArray", *, allowed: bool) -> "NDArray":
    """The classes that a model does not have. They are refused unless they are allowed: each may be a mistake."""
    import numpy as np

    from coxfield.io.columns import listed

    strange = ~np.isin(labels, classes)
    if strange.any() and not allowed:
        row = int(strange.argmax())
        known = listed([console.label_text(label) for label in classes.tolist()], quoted=False)
        raise ValueError(
            f"Column {target!r} of {rows.name} holds the class {console.label_text(labels.tolist()[row])} in row "
            f"{row + 1}, which is new to the model: correct it, or give --new-classes; known are {known}"
        )
    return np.unique(labels[strange])


TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A .csv, .tsv, .txt, .json, .xlsx or .parquet file, text also gzipped, or - for CSV on standard input.",
    ),
]
ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="WHAT=VALUE",
        help="How the table is written, where the guess is wrong: separator=; decimal=, encoding=latin-1 skip=2 (lines "
        "before the header) sheet=NAME blank=WORD (that stands for a blank cell). Repeat the option for more.",
    ),
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="VALUE",
        help="Value of the target that stands for a blank cell. Repeat the option for more.",
    ),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="COLUMN",
        help="Column to learn from although it looks like an id or never changes. Repeat the option for more.",
    ),
]
FoundOption = Annotated[
    bool,
    typer.Option(
        "--found",
        help="In a table that coxfield label or the studio has written, take labels that were found as given ones.",
    ),
]
DetailsOption = Annotated[
    bool, typer.Option("--details", help="Say which covariances were chosen, on which representations of the columns.")
]
FeatureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        "-f",
        metavar="COLUMN",
        help="Column to use as a feature. Repeat the option for more. Default: all other columns.",
    ),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option("--drop", "-d", metavar="COLUMN", help="Column to leave out. Repeat the option for more."),
]
LengthScaleOption = Annotated[
    float | None,
    typer.Option(
        "--length-scale",
        "-l",
        metavar="X",
        help="Length scale to use, in every representation of a mixture. Default: it is chosen.",
    ),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A .skops file that coxfield fit wrote.")]
ModelOutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File for the new model, ending in .skops. Default: MODEL is replaced.",
    ),
]
ReselectOption = Annotated[
    bool,
    typer.Option("--reselect", help="Choose the covariance again, from all rows that the model has then."),
]
TableOutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="A .csv, .csv.gz or .parquet file. It is replaced if it exists. Default: CSV on standard output.",
    ),
]


def check_jobs(jobs: int | None) -> int | None:
    """Refuse a number of threads or processes that is neither positive nor -1."""
    if jobs is not None and jobs < 1 and jobs != -1:
        raise typer.BadParameter(f"{jobs} is no number of workers: give 1 or more, or -1 for one per processor")
    return jobs


JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", callback=check_jobs, help="Number of threads; -1 for one per processor."),
]


def _hush(quiet: bool) -> bool:
    """Those who want quiet are not told either that work takes long."""
    if quiet:
        from coxfield.progress import SlowWarning

        warnings.simplefilter("ignore", SlowWarning)
    return quiet


QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_hush, help="Show no progress bar and no summary.")
]


def length_scales(length_scale: float | None) -> list[float] | None:
    """The length scale that was asked for, as the only candidate. The signal variance is still chosen."""
    if length_scale is not None and not 0 < length_scale < float("inf"):
        raise typer.BadParameter(f"--length-scale must be positive and finite, got {length_scale:g}")
    return None if length_scale is None else [length_scale]


def check_columns(roles: dict[str, str | None], feature: list[str] | None, drop: list[str] | None) -> None:
    """Refuse options that contradict each other. `roles` are the columns that are not features, by option."""
    named = [name for name in roles.values() if name is not None]
    if len(set(named)) < len(named):
        *first, last = roles
        raise typer.BadParameter(f"{', '.join(first)} and {last} must be different columns")
    if feature and drop:
        raise typer.BadParameter("--feature names all features, so --drop has no effect: give only one of the two")


def read_features(
    table: Path,
    *,
    verbatim: list[str | None],
    feature: list[str] | None,
    drop: list[str] | None,
    weight: str | None = None,
    missing: dict[str, list[str]] | None = None,
    read: list[str] | None = None,
    found: bool = False,
    quiet: bool = False,
) -> "tuple[Table, list[str]]":
    """Read a table, and find its features: the columns in `feature`, or all columns that have no other role.

    The first column of `verbatim` is the target. `missing` are the values that stand for a blank cell, by column.
    Labels that a command has found are blank, unless `found` says to take them.
    """
    from coxfield.io import tables

    numbers = [*feature, *([] if weight is None else [weight])] if feature else None
    form = tables.Form.of(read)
    rows = tables.read(table, verbatim=[*verbatim, *(drop or ())], numbers=numbers, missing=missing, form=form)
    rows, added = _as_given(rows, verbatim[0], feature or [], found, quiet)
    drop = [name for name in drop or () if name not in added]
    return rows, rows.feature_names(apart=(*verbatim, weight), only=feature or (), drop=drop)


def _as_given(
    rows: "Table", target: str | None, feature: list[str], found: bool, quiet: bool
) -> "tuple[Table, list[str]]":
    """The table as it was before a command found labels and added columns, and the names of these columns."""
    import polars as pl

    from coxfield.io.columns import Table, found_by_a_model

    added, mask = ([], None) if target is None else found_by_a_model(rows.rows, target)
    added = [name for name in added if name not in feature]
    if target is None or mask is None or not added:
        return rows, []
    left = rows.rows.drop(added)
    n_found = int((mask & left[target].is_not_null()).sum())
    if n_found and not found:
        left = left.with_columns(pl.when(~mask).then(pl.col(target)).alias(target))
        which = f"{target}_source to given" if f"{target}_source" in added else "given to true"
        note(
            f"{n_found} of {left.height} labels in {rows.name} were found by coxfield, not given, so they count as "
            f"blank: set {which} in rows that you have checked, or give --found to take all of them",
            quiet,
        )
    return Table(rows.name, left, rows.taken), added


def features_for(model, rows: "Table", names: "Sequence[str]"):
    """The features of a table as a fitted model needs them: a table, or a matrix of numbers."""
    if getattr(model, "columns_", None) is None:
        return rows.matrix(names)
    rows.features(names)  # refuses what cannot be used
    return rows.rows.select(names)


def note(sentence: str, quiet: bool = False) -> None:
    """Say something that a person may want to know, on standard error."""
    if not quiet:
        typer.echo(f"Note: {sentence}", err=True)
