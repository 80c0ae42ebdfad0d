"""`coxfield suggest`: which rows of a table to label next."""

from typing import Annotated

import typer

from coxfield.apps.cli import console, options


def suggest(
    table: options.TableArgument,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="Column of the classes, blank where they are unknown. Default: no label is known yet.",
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, metavar="N", help="How many rows.")] = 10,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUE", help="Value of the target that stands for a blank cell. Repeat the option for more."
        ),
    ] = None,
    found: options.FoundOption = False,
    output: options.TableOutputOption = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column that identifies rows. It is not a feature.")
    ] = None,
    feature: options.FeatureOption = None,
    drop: options.DropOption = None,
    seed: Annotated[int, typer.Option("--seed", "-s", min=0, help="Seed of the sample that rows are taken from.")] = 0,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Say which rows to label next: those whose labels would teach most about the others.

    It needs no label to start with. Without any, the rows spread over the shape of the data. Fill in the labels, and
    ask again: a few at a time is best. The result has the rows in the order of asking, with a column row in front,
    their number in the table, counted from 0.

    \b
    Examples:
      coxfield suggest data.csv -n 10
      coxfield suggest data.csv --target species --id plant -d year -n 5 -o ask.csv
    """  # noqa: D301
    options.check_columns({"--target": target, "--id": id_column}, feature, drop)
    import numpy as np
    import polars as pl

    from coxfield import SLGCPClassifier

    console.check(output, None, inputs=[table])
    marks = {} if target is None else {target: missing or []}
    rows, names = options.read_features(
        table, verbatim=[target, id_column], feature=feature, drop=drop, missing=marks, found=found, quiet=quiet
    )
    if "row" in rows.rows.columns:
        raise ValueError(f"{rows.name} already has a column 'row', which coxfield suggest adds: rename or remove it")
    y = np.full(rows.rows.height, None, dtype=object)
    if target is not None:
        given = ~rows.missing_labels(target)
        y[given] = [str(label) for label in rows.rows[target].filter(given).to_list()]
    model = SLGCPClassifier(classes=[], missing_label=None, random_state=seed, n_jobs=jobs)
    model.set_params(verbose=int(console.watched(quiet)))
    asked = model.fit(rows.features(names), y).suggest(count)
    console.write(rows.rows[asked.tolist()].insert_column(0, pl.Series("row", asked)), output, None, None)
