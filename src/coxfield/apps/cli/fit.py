"""`coxfield fit`: fit a model to a table of known classes, and write it to a file."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coxfield.apps.cli import console, options
from coxfield.apps.cli.live_model import alone_with, summary

if TYPE_CHECKING:
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
    """Which columns of a table are what."""

    target: str
    id_column: str | None
    weight: str | None
    feature: list[str] | None
    drop: list[str] | None

    def check(self) -> None:
        """Refuse options that contradict each other."""
        roles = {"--target": self.target, "--id": self.id_column, "--weight": self.weight}
        options.check_columns(roles, self.feature, self.drop)


@dataclass(frozen=True)
class LabelledTable:
    """The rows of a table as a classifier needs them."""

    rows: "Table"
    features: list[str]
    X: "NDArray"
    y: "NDArray"
    weights: "NDArray | None"
    ids: list[str] | None

    @classmethod
    def read(cls, table: Path, columns: Columns) -> "LabelledTable":
        """Read a table, and take its columns apart."""
        target, id_column, weight = columns.target, columns.id_column, columns.weight
        rows, names = options.read_features(
            table, verbatim=[target, id_column], feature=columns.feature, drop=columns.drop, weight=weight
        )
        X, y = rows.features(names), rows.labels(target)
        weights = None if weight is None else rows.weights(weight)
        return cls(rows, names, X, y, weights, None if id_column is None else rows.ids(id_column))

    def fit(self, **parameters: Any) -> "LGCPClassifier":
        """A classifier with some parameters, fitted to the rows."""
        from coxfield import LGCPClassifier

        return LGCPClassifier(**parameters).fit(self.X, self.y, sample_weight=self.weights)

    @property
    def places(self) -> "NDArray":
        """The row of the table that each training row is, counted from 0. Rows of weight zero are no training rows."""
        import numpy as np

        return np.arange(len(self.y)) if self.weights is None else np.flatnonzero(self.weights)

    @property
    def training_ids(self) -> list[str] | None:
        """The id of each training row."""
        return None if self.ids is None else [self.ids[place] for place in self.places]


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
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Fit a classifier to rows of known class, and save it.

    All columns except the target, the id and the weight are features. Features must be numbers.

    With --id the model file has the id of each row, as text. coxfield forget and coxfield update find rows by it, and
    coxfield predict --reasons names them. Several rows may have the same id, such as those of one person.

    \b
    Examples:
      coxfield fit train.csv --target species -o model.skops
      coxfield fit train.csv -t species --id plant --drop year -o model.skops
      coxfield fit train.parquet -t species -f length -f width -o model.skops
      coxfield fit train.csv -t species --selection loo_error -o model.skops
      coxfield fit train.csv -t species --length-scale 0.5 -o model.skops
      coxfield fit train.csv -t species --selection-part 0.5 -o model.skops
    """  # noqa: D301
    length_scales = options.length_scales(length_scale)
    if not 0 < selection_part <= 1:
        raise typer.BadParameter(f"--selection-part must be above 0 and at most 1, got {selection_part:g}")
    columns = Columns(target, id_column, weight, feature, drop)
    columns.check()
    from coxfield.io import model_file

    model_file.check_output(output)
    data, watched = LabelledTable.read(table, columns), int(console.watched(quiet))
    parameters = {"selection": selection.value, "length_scales": length_scales, "selection_part": selection_part}
    draw = None if selection_part == 1 else seed
    model = data.fit(**parameters, random_state=draw, n_jobs=jobs, verbose=watched)
    lines = {} if quiet else summary(model, data.features, data.y) | {"Model": str(output)}
    # The number of threads, and whether a person was watching, are no part of the model.
    model.set_params(n_jobs=None, verbose=0)
    with alone_with(output, quiet):
        model_file.save(
            model, output, target=target, features=data.features, id_column=id_column, ids=data.training_ids
        )
    console.print_summary(lines)
