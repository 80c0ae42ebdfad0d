"""`coxfield fit`: fit a model to a table of known classes, and write it to a file."""

from pathlib import Path
from typing import Annotated

import typer

from coxfield.apps.cli import messages, options
from coxfield.apps.cli.fitting import Columns, LabelledTable, Selection, SelectionOption, TargetOption, WeightOption
from coxfield.apps.cli.live_model import alone_with
from coxfield.apps.cli.model_summary import summary


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
    data, watched = LabelledTable.read(table, columns), int(messages.watched(quiet))
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
    messages.print_summary(lines)
