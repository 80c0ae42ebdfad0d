"""`coxfield fit`: fit a model to a table of known classes, and write it to a file."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import messages, options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield import LGCPClassifier


class Selection(StrEnum):
    """How parameters are chosen: the values of `selection` of `LGCPClassifier`."""

    mixture = "mixture"
    loo_error = "loo_error"
    loo_log_loss = "loo_log_loss"
    pseudo_likelihood = "pseudo_likelihood"


def fit(
    table: options.TableArgument,
    target: Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="Column that holds the classes.")],
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
            help="Column that identifies rows. It is not a feature, and is copied to predictions.",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option("--weight", "-w", metavar="COLUMN", help="Column of weights. A row of weight 2 counts twice."),
    ] = None,
    feature: options.FeatureOption = None,
    drop: options.DropOption = None,
    selection: Annotated[
        Selection,
        typer.Option(
            "--selection",
            "-s",
            help="How the covariance is chosen. mixture: many length scales on the raw, standardised and whitened "
            "features, with weights learned by leave-one-out. loo_error, loo_log_loss: one length scale of the least "
            "leave-one-out loss. pseudo_likelihood: one length scale of the largest pseudo-likelihood.",
        ),
    ] = Selection.mixture,
    length_scale: options.LengthScaleOption = None,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Fit a classifier to rows of known class, and save it.

    All columns except the target, the id and the weight are features. Features must be numbers.

    \b
    Examples:
      coxfield fit train.csv --target species -o model.skops
      coxfield fit train.csv -t species --id plant --drop year -o model.skops
      coxfield fit train.parquet -t species -f length -f width -o model.skops
      coxfield fit train.csv -t species --selection loo_error -o model.skops
      coxfield fit train.csv -t species --length-scale 0.5 -o model.skops
    """  # noqa: D301
    length_scales = options.length_scales(length_scale)
    options.check_columns({"--target": target, "--id": id_column, "--weight": weight}, feature, drop)
    from coxfield import LGCPClassifier
    from coxfield.io import model_file

    model_file.check_output(output)
    rows, names = options.read_features(table, verbatim=[target, id_column], feature=feature, drop=drop, weight=weight)
    X, y = rows.features(names), rows.labels(target)
    sample_weight = None if weight is None else rows.weights(weight)
    model = LGCPClassifier(
        selection=selection.value, length_scales=length_scales, n_jobs=jobs, verbose=int(messages.watched(quiet))
    )
    model.fit(X, y, sample_weight=sample_weight)
    summary = {} if quiet else _summary(model, names, y, output)
    # The number of threads, and whether a person was watching, are no part of the model.
    model.set_params(n_jobs=None, verbose=0)
    model_file.save(model, output, target=target, features=names, id_column=id_column)
    messages.print_summary(summary)


def _summary(model: "LGCPClassifier", features: list[str], y: "NDArray", output: Path) -> dict[str, str]:
    """The lines of the summary of a fitted model."""
    import numpy as np

    classes, counts = np.unique(y, return_counts=True)
    sizes = [f"{messages.label_text(label)}: {n}" for label, n in zip(classes.tolist(), counts.tolist(), strict=True)]
    return {
        "Rows": str(len(y)),
        "Features": messages.counted(features),
        "Classes": messages.counted(sizes),
        **_covariance(model),
        "Leave-one-out error": f"{model.loo_error_:.4g}",
        "Model": str(output),
    }


def _covariance(model: "LGCPClassifier") -> dict[str, str]:
    """The lines of the summary about the covariance: the kernel, or each member with its share of the evidence."""
    if not hasattr(model, "mixture_"):
        return {"Kernel": str(model.kernel_)}
    columns = [model.mixture_[name].tolist() for name in ("share", "representation", "length_scale", "alpha")]
    members = sorted(zip(*columns, strict=True), reverse=True)
    return {
        f"Covariance {number}": f"{share:.1%} {name}, length scale {scale:.3g}, density power {alpha:g}"
        for number, (share, name, scale, alpha) in enumerate(members, start=1)
    }
