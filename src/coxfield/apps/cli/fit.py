"""`coxfield fit`: fit a model to a table of known classes, and write it to a file."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coxfield.apps.cli import console, options
from coxfield.apps.cli.live_model import alone_with, summary

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from coxfield import LGCPClassifier
    from coxfield.io.tables import Table


# What `coxfield fit` and `coxfield check` have in common: their options, and a fit to the rows of a table.


class Selection(StrEnum):
    """How parameters are chosen: the values of `selection` of `LGCPClassifier`."""

    mixture = "mixture"
    loo_error = "loo_error"
    loo_log_loss = "loo_log_loss"
    pseudo_likelihood = "pseudo_likelihood"


TargetOption = Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="Column that holds the classes.")]
WeightOption = Annotated[
    str | None,
    typer.Option("--weight", "-w", metavar="COLUMN", help="Column of weights. A row of weight 2 counts twice."),
]
SelectionOption = Annotated[
    Selection,
    typer.Option(
        "--selection",
        "-s",
        help="How the covariance is chosen. mixture: many length scales on the raw, standardised and whitened "
        "features, with weights learned by leave-one-out. loo_error, loo_log_loss: one length scale of the least "
        "leave-one-out loss. pseudo_likelihood: one length scale of the largest pseudo-likelihood.",
    ),
]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what, and how it is written."""

    target: str
    id_column: str | None
    weight: str | None
    feature: list[str] | None
    drop: list[str] | None
    keep: list[str] | None = None
    missing: list[str] | None = None
    """Values of the target that stand for a blank cell."""
    read: list[str] | None = None
    found: bool = False
    """Whether labels that a command has found are taken as given ones."""

    def check(self) -> None:
        """Refuse options that contradict each other."""
        roles = {"--target": self.target, "--id": self.id_column, "--weight": self.weight}
        options.check_columns(roles, self.feature, self.drop)


@dataclass(frozen=True)
class LabelledTable:
    """The rows of a table as a classifier needs them."""

    rows: "Table"
    features: list[str]
    X: "NDArray | pl.DataFrame"
    y: "NDArray"
    weights: "NDArray | None"
    ids: list[str] | None
    given: "NDArray"
    """The row of the file that each row is, counted from 0: rows without a class are left out."""

    @classmethod
    def read(cls, table: Path, columns: Columns, quiet: bool = False) -> "LabelledTable":
        """Read a table, and take its columns apart."""
        import numpy as np

        target, id_column, weight = columns.target, columns.id_column, columns.weight
        whole, names = options.read_features(
            table,
            verbatim=[target, id_column],
            feature=columns.feature,
            drop=columns.drop,
            weight=weight,
            missing={target: columns.missing} if columns.missing else None,
            read=columns.read,
            found=columns.found,
            quiet=quiet,
        )
        given = np.flatnonzero(~whole.missing_labels(target))
        rows = _with_classes(whole, target, given, quiet)
        y = rows.labels(target)
        _speak_of_classes(rows, target, y, quiet)
        names = _trusted(rows, names, columns, y, quiet)
        X = rows.features(names)
        weights = None if weight is None else rows.weights(weight)
        return cls(rows, names, X, y, weights, None if id_column is None else rows.ids(id_column), given)

    def fit(self, **parameters: Any) -> "LGCPClassifier":
        """A classifier with some parameters, fitted to the rows."""
        from coxfield import LGCPClassifier

        return LGCPClassifier(**parameters).fit(self.X, self.y, sample_weight=self.weights)

    @property
    def places(self) -> "NDArray":
        """The row of the table that each training row is, counted from 0. Rows of weight zero are no training rows."""
        return self.given[self._counted]

    @property
    def training_ids(self) -> list[str] | None:
        """The id of each training row."""
        return None if self.ids is None else [self.ids[place] for place in self._counted]

    @property
    def _counted(self) -> "NDArray":
        import numpy as np

        return np.arange(len(self.y)) if self.weights is None else np.flatnonzero(self.weights)


def _with_classes(rows: "Table", target: str, given: "NDArray", quiet: bool) -> "Table":
    """The rows that have a class, and a note on those that have none."""
    from coxfield.io.columns import Table

    if len(given) == rows.rows.height or not len(given):
        return rows
    blank = rows.rows.height - len(given)
    options.note(f"{blank} of {rows.rows.height} rows have no {target!r} and are left out", quiet)
    return Table(rows.name, rows.rows[given], rows.taken)


def _speak_of_classes(rows: "Table", target: str, y: "NDArray", quiet: bool) -> None:
    """Say which classes may be a mistake."""
    from coxfield.io.columns import hint, written_differently

    sentence = written_differently(y)
    if sentence:
        console.show_warning(sentence)
    advice = hint(rows.rows[target])
    if advice:
        options.note(f"{advice}; without it they are a class", quiet)


def _trusted(rows: "Table", names: list[str], columns: Columns, y: "NDArray", quiet: bool) -> list[str]:
    """The features without ids and constant columns, unless the user has named them. What is left out is said."""
    import shlex

    from coxfield.io.columns import Suspects, TableError, listed

    named = {*(columns.feature or ()), *(columns.keep or ())}
    suspects = Suspects.among(rows.rows, names, y)
    ids, constant = ([name for name in some if name not in named] for some in (suspects.ids, suspects.constant))
    left = [name for name in names if name not in {*ids, *constant}]
    if not left:
        found = [
            *(f"{name!r} names the rows" for name in ids),
            *(f"{name!r} is the same in all rows" for name in constant),
        ]
        again = " ".join(f"--keep {shlex.quote(name)}" for name in names[:3])
        raise TableError(f"{rows.name} has no column to learn from: {', '.join(found)}; to use them, give {again}")
    for some, reason in (
        (ids, "names or counts the rows, and is left out as an id"),
        (constant, "is the same in all rows, and is left out"),
    ):
        if some:
            again = " ".join(f"--keep {shlex.quote(name)}" for name in some[:3])
            options.note(f"{listed(some)} {reason}; to learn from it, give {again}", quiet)
    for name in suspects.leaks if len(left) > 1 else ():
        console.show_warning(
            f"{name!r} alone tells the class of every row: if new rows come without it, give --drop {shlex.quote(name)}"
        )
    return left


def fit(
    table: options.TableArgument,
    target: TargetOption,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File for the model, ending in .skops. It is replaced if it exists."
        ),
    ],
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column that identifies rows. It is not a feature. The model keeps it: see coxfield forget.",
        ),
    ] = None,
    weight: WeightOption = None,
    feature: options.FeatureOption = None,
    drop: options.DropOption = None,
    keep: options.KeepOption = None,
    missing: options.MissingOption = None,
    found: options.FoundOption = False,
    read: options.ReadOption = None,
    selection: SelectionOption = Selection.mixture,
    length_scale: options.LengthScaleOption = None,
    selection_part: Annotated[
        float,
        typer.Option(
            "--selection-part",
            metavar="X",
            help="Share of the rows, drawn at random, from which the covariance is chosen. All rows count in "
            "predictions. Below 1, the guarantee of coxfield predict --coverage is exact.",
        ),
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the draw of --selection-part.")] = 0,
    details: options.DetailsOption = False,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Fit a classifier to rows of known class, and save it.

    All columns except the target, the id and the weight are features: numbers, words, dates, truth, and blank cells
    among them. Columns that name the rows, or are the same in all rows, are left out with a note. Rows without a class
    are left out too, and so are labels that coxfield label or the studio has found, unless --found is given. How the
    table is written is guessed, and the summary says what was taken.

    The leave-one-out error is that of predicting each row from all others. Beside it is the error of always saying the
    most common class.

    With --id the model file has the id of each row, as text. coxfield forget and coxfield update find rows by it, and
    coxfield predict --reasons names them. Several rows may have the same id, such as those of one person.

    \b
    Examples:
      coxfield fit train.csv --target species -o model.skops
      coxfield fit train.csv -t species --id plant --drop year -o model.skops
      coxfield fit train.csv -t species --read separator=, --read blank=unknown -o model.skops
      coxfield fit train.parquet -t species -f length -f width -o model.skops
      coxfield fit train.csv -t species --selection loo_error -o model.skops
      coxfield fit train.csv -t species --length-scale 0.5 -o model.skops
      coxfield fit train.csv -t species --selection-part 0.5 -o model.skops
    """  # noqa: D301
    length_scales = options.length_scales(length_scale)
    if not 0 < selection_part <= 1:
        raise typer.BadParameter(f"--selection-part must be above 0 and at most 1, got {selection_part:g}")
    columns = Columns(target, id_column, weight, feature, drop, keep, missing, read, found)
    columns.check()
    from coxfield.io import model_file

    model_file.check_output(output)
    data, watched = LabelledTable.read(table, columns, quiet), int(console.watched(quiet))
    parameters = {"selection": selection.value, "length_scales": length_scales, "selection_part": selection_part}
    draw = None if selection_part == 1 else seed
    model = data.fit(**parameters, random_state=draw, n_jobs=jobs, verbose=watched)
    lines = {} if quiet else {"Read": data.rows.described(data.features)}
    lines |= {} if quiet else summary(model, data.features, data.y, details=details) | {"Model": str(output)}
    # The number of threads, and whether a person was watching, are no part of the model.
    model.set_params(n_jobs=None, verbose=0)
    with alone_with(output, quiet):
        model_file.save(
            model, output, target=target, features=data.features, id_column=id_column, ids=data.training_ids
        )
    console.print_summary(lines)
