"""`coxfield check`: find the rows of a table whose labels are doubtful."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import console, options
from coxfield.apps.cli.fit import Columns, LabelledTable, Selection, SelectionOption, TargetOption, WeightOption
from coxfield.apps.cli.live_model import summary
from coxfield.apps.cli.predict import loudest, witness_columns

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from coxfield import LGCPClassifier

ROWS_AT_ONCE = 1024  # per step of the progress bar
WITNESSES = 3  # rows that are named for each doubtful one
ADDED = ("label", "probability", "suggested", "suggested_probability")
PICTURED = 12  # doubtful labels in a picture, unless --most says how many


def check(
    table: options.TableArgument,
    target: TargetOption,
    output: options.TableOutputOption = None,
    everything: Annotated[bool, typer.Option("--all", help="List all rows, not only those of another class.")] = False,
    most: Annotated[int | None, typer.Option("--most", metavar="N", min=1, help="List at most so many rows.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw the most doubtful rows to a .png, .pdf or .svg file. For two features, and for square pictures.",
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column that identifies rows. It is not a feature."),
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
    details: options.DetailsOption = False,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Find the rows whose labels deserve a second look.

    A classifier is fitted as by coxfield fit. Each row is then predicted from all the others. A row is listed if they
    suggest another label; the most doubtful row comes first. All columns except the target, the id and the weight are
    features, as for coxfield fit.

    The result has the id, or the number of the row in the table, counted from 1; label, the given one, and its
    probability; suggested, the label that the other rows suggest, and suggested_probability. Then it names three
    witnesses: the rows of the suggested class that speak loudest for it. witness_1 is the loudest, and share_1 is what
    it adds to the score of the class. A score is the logarithm of a probability, up to a constant.

    \b
    Examples:
      coxfield check train.csv --target species -o doubtful.csv
      coxfield check train.csv -t species --id plant --drop year --most 20 -o doubtful.csv
      coxfield check train.csv -t species -f length -f width --all -o doubtful.parquet --plot doubtful.png
    """  # noqa: D301
    length_scales = options.length_scales(length_scale)
    columns = Columns(target, id_column, weight, feature, drop, keep, missing, read, found)
    columns.check()
    _check_name(id_column)
    console.check(output, plot, inputs=[table])
    data, watched = LabelledTable.read(table, columns, quiet), console.watched(quiet)
    if plot is not None:
        _check_picture(data)
    model = data.fit(selection=selection.value, length_scales=length_scales, n_jobs=jobs, verbose=int(watched))
    quality = _quality(model, watched)
    doubtful = int((quality["label"] != quality["suggested"]).sum())
    listed = _listed(quality, everything)[:most]
    result = _table(model, data, quality, listed, id_column, watched)
    shown = max(1, min(len(listed), most or PICTURED))
    picture = None if plot is None else _picture(model, data.features, shown, plot, watched)
    console.write(result, output, picture, plot)
    if not quiet:
        lines = {"Read": data.rows.described(data.features)} | summary(model, data.features, data.y, details=details)
        lines |= {"Doubtful": f"{doubtful} of {len(quality['row'])} rows"}
        files = {name: str(path) for name, path in (("Table", output), ("Picture", plot)) if path is not None}
        console.print_summary(lines | files, err=True)


def _check_name(id_column: str | None) -> None:
    """Refuse an id column that has the name of a column that is added."""
    added = [*ADDED, *(f"{kind}_{k + 1}" for kind in ("witness", "share") for k in range(WITNESSES))]
    if id_column in added:
        raise ValueError(f"The id column {id_column!r} has the name of a column that coxfield check adds: rename it")


def _check_picture(data: LabelledTable) -> None:
    """Refuse to draw rows that are neither points in the plane nor pictures. Called before the work is done."""
    from coxfield.plotting.guaranteed_sets import PIXELS, is_drawable

    if not is_drawable(len(data.features)):
        raise ValueError(
            f"--plot needs two features, or square pictures of at least {PIXELS} pixels, and {data.rows.name} has "
            f"{len(data.features)} features: leave out --plot, or choose two features"
        )


def _quality(model: "LGCPClassifier", watched: bool) -> "dict[str, NDArray]":
    from coxfield.progress import progress

    with progress("leave-one-out", None, watched):
        return model.label_quality()


def _listed(quality: "dict[str, NDArray]", everything: bool) -> "NDArray":
    """Training rows, the most doubtful one first: those with another suggested label, or all of them."""
    import numpy as np

    order = np.argsort(quality["rank"])
    return order if everything else order[(quality["label"] != quality["suggested"])[order]]


def _table(
    model: "LGCPClassifier",
    data: LabelledTable,
    quality: "dict[str, NDArray]",
    listed: "NDArray",
    id_column: str | None,
    watched: bool,
) -> "pl.DataFrame":
    """One row per training row that is listed, with its witnesses."""
    import polars as pl

    ids = data.training_ids
    names = pl.Series("row", data.places + 1) if ids is None else pl.Series(id_column, ids, dtype=pl.String)
    columns = [names.gather(listed), *(pl.Series(name, quality[name][listed]) for name in ADDED)]
    rows, shares = _witnesses(model, quality["suggested"], listed, watched)
    return pl.DataFrame([*columns, *witness_columns(rows, shares, names, "witness")])


def _witnesses(
    model: "LGCPClassifier", suggested: "NDArray", listed: "NDArray", watched: bool
) -> "tuple[NDArray, NDArray]":
    """The loudest rows of the suggested class, and what each adds to its score."""
    import numpy as np

    from coxfield.progress import progress

    rows, shares = np.empty((len(listed), WITNESSES), int), np.empty((len(listed), WITNESSES))
    codes = np.searchsorted(model.classes_, suggested[listed])
    with progress("witnesses", len(listed), watched) as done:
        for start in range(0, len(listed), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            reasons = model.loo_contributions(listed[part], WITNESSES)
            rows[part], shares[part], _ = loudest(reasons, codes[part])
            done(len(reasons))
    return rows, shares


def _picture(model: "LGCPClassifier", features: list[str], shown: int, plot: Path, watched: bool) -> bytes:
    """The bytes of the picture of so many doubtful rows. If drawing fails, nothing has been written yet."""
    from coxfield import plotting
    from coxfield.plotting.guaranteed_sets import plot_label_quality
    from coxfield.progress import progress

    with progress("picture", None, watched):
        figure = plotting.figure()
        names = [console.label_text(label) for label in model.classes_.tolist()]
        ax = plot_label_quality(model, shown, ax=figure.subplots(), names=names)
        if len(features) == 2:
            ax.set(xlabel=features[0], ylabel=features[1])
        return plotting.encode(figure, plot)
