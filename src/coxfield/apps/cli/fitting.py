"""What `coxfield fit` and `coxfield check` have in common: their options, and a fit to the rows of a table."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coxfield.apps.cli import options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield import LGCPClassifier
    from coxfield.io.tables import Table


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
