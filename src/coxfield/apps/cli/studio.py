"""`coxfield studio`: label the rows of a table in the browser, by pressing keys."""

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import console, options

if TYPE_CHECKING:
    from coxfield.io.tables import Table
    from coxfield.studio.session import Session

ENDINGS = (".csv.gz", ".csv", ".parquet")


def studio(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv, .csv.gz or .parquet file.")],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="COLUMN", help="Column of the classes, blank where unknown. Default: a new one."
        ),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="The target is a new column.")] = False,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column that identifies rows. It is not a feature.")
    ] = None,
    feature: options.FeatureOption = None,
    drop: options.DropOption = None,
    image: Annotated[
        str | None, typer.Option("--image", metavar="COLUMN", help="Column of paths of pictures, beside the table.")
    ] = None,
    pixels: Annotated[
        str | None,
        typer.Option("--pixels", metavar="HxW", help="The features are pixels, such as 28x28: height, width."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="COLUMN", help="Column of texts. Default: columns with sentences.")
    ] = None,
    prior: Annotated[
        str | None, typer.Option("--prior", metavar="COLUMN", help="Column of guesses, which can be confirmed.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL", help="A .skops file whose predictions are the guesses.")
    ] = None,
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Compare numbers as they are. Default: each column in units of its spread.")
    ] = False,
    check_every: Annotated[
        int, typer.Option(min=0, help="Each question of this number is a random row, asked blind; 0 for none.")
    ] = 10,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of this machine; 0 for one that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    seed: Annotated[int, typer.Option("--seed", "-s", min=0, help="Seed of the random draws.")] = 0,
    quiet: options.QuietOption = False,
) -> None:
    """Label the rows of a table in the browser: a key for a class, and the model answers at once.

    The page is on this machine alone. It needs no account and no network. Every key press is appended to
    TABLE.labels.csv beside the table and is on the disk before the next card is shown. Opened again, the studio goes on
    where it stopped. The table is never changed. Save, and closing the studio, write TABLE.labelled.csv: the table with
    its target filled in, and columns TARGET_probability and TARGET_source, which is given or found.

    All columns except the target, the id, the pictures and the guesses are features. Numbers count in units of their
    spread, words are categories, and sentences are compared by their words.

    \b
    Examples:
      coxfield studio data.csv --target species
      coxfield studio data.csv --target topic --new --text abstract
      coxfield studio digits.csv --pixels 8x8
      coxfield studio photos.csv -t animal --image path --prior guess
      coxfield studio data.csv -t species --model model.skops --port 8800 --no-browser
    """  # noqa: D301
    options.check_columns({"--target": target, "--id": id_column, "--prior": prior, "--image": image}, feature, drop)
    if prior is not None and model is not None:
        raise typer.BadParameter("--prior and --model both give guesses: give only one of the two")
    try:
        from coxfield.studio import rows as studio_rows
        from coxfield.studio.server import Studio, run
        from coxfield.studio.session import Session
    except ImportError as error:
        raise ValueError(str(error)) from None
    size = _size(pixels)
    name, read, names = _read(table, target, new, id_column, feature, drop, image, prior)
    guesses = studio_rows.labels_of(read, prior) if prior is not None else _predicted(model, read)
    rows = studio_rows.from_table(
        read,
        table,
        target=name,
        features=names,
        image=image,
        pixels=size,
        text=text,
        guesses=guesses,
        standardised=not as_is,
    )
    session = Session(
        rows,
        beside(table, "labels", ".csv"),
        check_every=check_every,
        random_state=seed,
        by=secrets.token_hex(2),
        source=table,
    )
    written: list[str] = []

    def save() -> str:
        written[:] = [save_table(session, read, table)]
        return written[0]

    def announce(address: str) -> None:
        if not quiet:
            typer.echo(f"The studio is at {address}", err=True)
            typer.echo("Close it on the page, or by Ctrl-C. Labels are saved at each key press.", err=True)

    with _own_interrupts():
        run(Studio(session, save, port), browser=browser, announce=announce)
    if written and not quiet:
        typer.echo(written[0], err=True)


def beside(table: Path, what: str, ending: str | None = None) -> Path:
    """The file of a name like that of the table: data.csv, data.labels.csv."""
    own = next((one for one in ENDINGS if table.name.lower().endswith(one)), table.suffix)
    return table.with_name(f"{table.name[: len(table.name) - len(own)]}.{what}{ending or own}")


def save_table(session: "Session", read: "Table", table: Path) -> str:
    """Write the table with its labels, whole or not at all."""
    import polars as pl

    from coxfield.io import tables

    session.check_source()
    found = session.labelled()
    target = session.rows.target
    labels = pl.Series(target, found["label"].tolist(), dtype=pl.String)
    kind = read.rows[target].dtype if target in read.rows.columns else pl.String
    if kind not in (pl.String, pl.Null):
        typed = labels.cast(kind, strict=False)
        labels = typed if typed.null_count() == labels.null_count() else labels
    result = read.rows.with_columns(
        labels,
        pl.Series(f"{target}_probability", found["probability"], nan_to_null=True).round(6),
        pl.Series(f"{target}_source", found["source"].tolist(), dtype=pl.String),
    )
    path = beside(table, "labelled")
    tables.write(result, path)
    given = int((found["source"] == "given").sum())
    return f"{path} is written: {given} labels given, {int((found['source'] == 'found').sum())} found"


def _read(
    table: Path,
    target: str | None,
    new: bool,
    id_column: str | None,
    feature: list[str] | None,
    drop: list[str] | None,
    image: str | None,
    prior: str | None,
) -> "tuple[str, Table, list[str]]":
    """The name of the target, the table, and its features."""
    from coxfield.io import tables
    from coxfield.io.columns import TableError

    if table == tables.STANDARD_INPUT:
        raise TableError("the studio writes labels beside the table, so it needs a file, not standard input")
    name = target if target is not None else "label"
    rows = tables.read(table, verbatim=[name, id_column, image, prior, *(drop or ())])
    present = name in rows.rows.columns
    if not present and target is not None and not new:
        from coxfield.io.columns import listed

        raise TableError(
            f"{rows.name} has no column {target!r}; it has {listed(rows.rows.columns)}; to start a new column of "
            "labels, give --new"
        )
    if present and new:
        raise TableError(f"{rows.name} has a column {name!r} already: leave out --new, or name another target")
    for added in (f"{name}_probability", f"{name}_source"):
        if added in rows.rows.columns:
            raise TableError(f"{rows.name} already has a column {added!r}, which the studio adds: rename or remove it")
    apart = [name if present else None, id_column, prior]
    return name, rows, rows.feature_names(apart=apart, only=feature or (), drop=drop or ())


def _size(pixels: str | None) -> tuple[int, int] | None:
    if pixels is None:
        return None
    parts = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,3})", pixels)
    if parts is None:
        raise typer.BadParameter(f"--pixels must be like 28x28, height and width, got {pixels!r}")
    return int(parts[1]), int(parts[2])


def _predicted(model: Path | None, read: "Table") -> "list[str | None] | None":
    """What a model file says about the rows."""
    if model is None:
        return None
    from coxfield.io import model_file

    loaded = model_file.load(model)
    return [console.label_text(label) for label in loaded.model.predict(read.features(loaded.features)).tolist()]


class _own_interrupts:  # noqa: N801  # used like a function
    """The studio saves at Ctrl-C, so the process may take longer to end than other commands do."""

    def __enter__(self) -> None:
        import signal
        import threading

        self.number = -1
        if threading.current_thread() is threading.main_thread():
            self.number = signal.set_wakeup_fd(-1)

    def __exit__(self, *error) -> None:
        import signal

        if self.number != -1:
            signal.set_wakeup_fd(self.number)
