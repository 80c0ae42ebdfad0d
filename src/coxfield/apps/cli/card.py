"""`coxfield card`: what a model file holds, how good it is, and what it is not for, as a page of Markdown."""

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coxfield.apps.cli import console, options
from coxfield.apps.cli.live_model import summary
from coxfield.apps.cli.predict import is_exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from coxfield.io.model_file import SavedModel

BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)  # of the probability of the predicted class
CLASSES = 30  # in a table of classes; the most common ones
COLUMNS = 200  # in the list of columns


def card(
    model: options.ModelArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="A .md file to write. Default: standard output."),
    ] = None,
    most: Annotated[int, typer.Option("--most", metavar="N", min=0, help="List so many doubtful rows.")] = 10,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Write a model card: data, columns, errors of each class, calibration, doubtful rows and limits.

    All figures come from the model file. Each training row is predicted from all the others, which takes as long as
    predicting all rows. The card names training rows by their ids, or by their numbers, but shows no values of them.

    \b
    Examples:
      coxfield card model.skops -o card.md
      coxfield card model.skops --most 20
    """  # noqa: D301
    if output is not None and output.suffix.lower() != ".md":
        raise ValueError(f"A card goes into a file that ends in .md, and {output} does not: give it that ending")
    from coxfield.io import model_file
    from coxfield.progress import progress
    from coxfield.utils.whole_files import whole_file

    saved = model_file.load(model)
    saved.model.set_params(n_jobs=jobs)
    with progress("leave-one-out", None, console.watched(quiet)):
        quality = saved.model.label_quality()
    text = page(saved, model.name, quality, most)
    if output is None:
        typer.echo(text, nl=False)
        return
    with whole_file(output) as stream:
        stream.write(text.encode())


def page(saved: "SavedModel", name: str, quality: "dict[str, NDArray]", most: int) -> str:
    """The card as Markdown; `quality` is that of `label_quality`."""
    parts = [
        f"# Model card: {name}",
        *_about(saved),
        *_columns(saved),
        *_errors(quality, getattr(saved.model, "loo_error_", None)),
        *_calibration(quality),
        *_doubtful(saved, quality, most),
        *_limits(saved),
    ]
    return "\n\n".join(parts) + "\n"


def _about(saved: "SavedModel") -> "Iterable[str]":
    lines = summary(saved.model, saved.features)
    lines.pop("Leave-one-out error", None)  # it is below, for each class
    yield (
        f"Predicts `{saved.target}`: its class, a probability for each class, the training rows behind a prediction, "
        "and sets of classes with a guarantee. It is a classifier by log Gaussian Cox processes "
        f"(`{type(saved.model).__name__}` of coxfield), written by version {saved.version}."
    )
    yield "## Data"
    yield table(("", ""), [(key, value) for key, value in lines.items() if key != "Features"])


def _columns(saved: "SavedModel") -> "Iterable[str]":
    columns = getattr(saved.model, "columns_", None)
    kinds = {} if columns is None else {column.name: column for column in columns.columns}
    rows = [(f"`{name}`", _kind(kinds.get(name))) for name in saved.features[:COLUMNS]]
    yield "## Columns"
    yield table(("column", "what it is"), rows)
    if len(saved.features) > COLUMNS:
        yield f"And {len(saved.features) - COLUMNS} more."


def _kind(column: Any) -> str:
    if column is None:
        return "number"
    levels = f": {', '.join(column.levels[:8])}{' and more' if len(column.levels) > 8 else ''}" if column.levels else ""
    return f"{column.kind}{levels}{'; some were blank' if column.blanks else ''}"


def _errors(quality: "dict[str, NDArray]", honest: float | None) -> "Iterable[str]":
    """Errors of each class by leave-one-out; `honest` is the error with a covariance that knows no label of the row."""
    import numpy as np

    label, suggested = quality["label"], quality["suggested"]
    classes, counts = np.unique(label, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:CLASSES]
    rows = []
    for k in order:
        mine, called = label == classes[k], suggested == classes[k]
        found = int((mine & called).sum())
        others, times = np.unique(suggested[mine & ~called], return_counts=True)
        mistaken = f"{console.label_text(others[times.argmax()].item())} ({times.max()})" if len(others) else ""
        right = f"{found / called.sum():.1%}" if called.any() else "never predicted"
        rows.append((console.label_text(classes[k].item()), counts[k], f"{1 - found / counts[k]:.1%}", right, mistaken))
    yield "## Errors"
    yield (
        f"Each training row, predicted from all the others: {np.mean(label != suggested):.2%} of {len(label):,} rows "
        f"are wrong. The log loss is {-np.log(np.maximum(quality['probability'], 1e-300)).mean():.3f} nats."
        + ("" if honest is None else f" The model itself states an error of {honest:.2%} (`loo_error_`).")
    )
    yield table(("class", "rows", "missed", "right when predicted", "most often taken for"), rows)


def _calibration(quality: "dict[str, NDArray]") -> "Iterable[str]":
    """Predicted probabilities beside how often they came true."""
    import numpy as np

    sure, right = quality["suggested_probability"], quality["suggested"] == quality["label"]
    rows, gap = [], 0.0
    for low, high in pairwise(BINS):
        some = (sure > low) & (sure <= high)
        if n := int(some.sum()):
            said, came = sure[some].mean(), right[some].mean()
            gap += n / len(sure) * abs(said - came)
            error = np.sqrt(said * (1 - said) / n)
            rows.append((f"{low:g} to {high:g}", n, f"{said:.3f}", f"{came:.3f}", f"{error:.3f}"))
    yield "## Calibration"
    yield (
        "How often the predicted class is right, beside the probability that the model gives it (each row predicted "
        f"from all the others). The mean distance of the two is {gap:.3f}. The last column is the standard error that "
        "chance alone would give."
    )
    yield table(("probability", "rows", "mean", "right", "by chance ±"), rows)


def _doubtful(saved: "SavedModel", quality: "dict[str, NDArray]", most: int) -> "Iterable[str]":
    """The rows whose labels deserve a second look."""
    import numpy as np

    order = np.argsort(quality["rank"])
    listed = order[(quality["label"] != quality["suggested"])[order]]
    yield "## Doubtful rows"
    yield f"The others suggest another label for {len(listed):,} rows." + (
        f" The {min(most, len(listed))} most doubtful:" if most and len(listed) else ""
    )
    rows = [
        (
            k + 1 if saved.ids is None else saved.ids.texts[k],
            *(console.label_text(quality[name][k].item()) for name in ("label", "suggested")),
            f"{quality['suggested_probability'][k]:.3f}",
        )
        for k in listed[:most].tolist()
    ]
    if rows:
        yield table(
            ("row" if saved.ids is None else saved.id_column or "id", "label", "suggested", "probability"), rows
        )


def _limits(saved: "SavedModel") -> "Iterable[str]":
    import numpy as np

    model = saved.model
    counts = np.bincount(model.y_fit_, minlength=len(model.classes_))
    rare = [console.label_text(label) for label, n in zip(model.classes_.tolist(), counts, strict=True) if n < 20]
    sets = "guaranteed" if is_exact(model) else "close to what is asked for, but not guaranteed (--selection-part)"
    far = (
        "Probabilities hold for rows that come from where the training rows came from. Far from all of them they go "
        "back to what the classes have in common, and say little."
    )
    chosen = (
        "The labels of all training rows had a say in the covariance, so errors of new rows are a little larger than "
        "in the table of classes. A table that was held back says how much."
    )
    lines = [
        far,
        chosen,
        f"The coverage of sets of classes is {sets}.",
        "The file holds the training rows themselves: who has the file has the data.",
        "Nothing here says whether the data are fair, or why a column matters in the world.",
    ]
    if rare:
        lines.insert(2, f"Fewer than 20 rows: {', '.join(rare[:CLASSES])}. What is said of these classes is uncertain.")
    yield "## Limits"
    yield "\n".join(f"- {line}" for line in lines)


def table(header: "Sequence[str]", rows: "Iterable[Sequence[Any]]") -> str:
    """A table of Markdown. Bars and line breaks inside cells are harmless."""

    def cell(value: Any) -> str:
        return " ".join(str(value).split()).replace("\\", "\\\\").replace("|", "\\|")

    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)
