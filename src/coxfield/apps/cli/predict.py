"""`coxfield predict`: predict the classes of the rows of a table with a model file."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coxfield.apps.cli import console, options

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl
    from numpy.typing import NDArray

    from coxfield import LGCPClassifier
    from coxfield.estimators.reasons import Contributions
    from coxfield.io.model_file import SavedModel
    from coxfield.io.tables import Table


# The columns that `coxfield predict` writes: classes, probabilities, sets with a guarantee, and reasons.


ROWS_AT_ONCE = 8192  # per step of the progress bar: few enough that a person sees it move
MOST_REASONS = 100  # each is two columns
BETWEEN = "|"  # classes of a set


@dataclass(frozen=True)
class Wishes:
    """What is asked for beside the predicted classes."""

    proba: bool
    reasons: int | None
    coverage: float | None
    per_class: bool

    def check(self) -> None:
        """Refuse values that make no sense."""
        if self.reasons is not None and not 1 <= self.reasons <= MOST_REASONS:
            raise typer.BadParameter(f"--reasons must be from 1 to {MOST_REASONS}, got {self.reasons}")
        if self.coverage is not None and not 0 < self.coverage < 1:
            raise typer.BadParameter(f"--coverage must be between 0 and 1, such as 0.9; got {self.coverage:g}")
        if self.per_class and self.coverage is None:
            raise typer.BadParameter(
                "--per-class is about sets of classes: give --coverage too, such as --coverage 0.9"
            )


def is_exact(model: "LGCPClassifier") -> bool:
    """Whether the coverage of sets is guaranteed: rows calibrate from which the covariance was not chosen."""
    return model.selection is None or len(model._calibrators()) < len(model.y_fit_)


# Rows that the model was fitted to: what it says of them flatters, because it has seen their classes.


SAME = 0.9  # share of the rows of a table: if so many are training rows, the table is one that the model was fitted to


@dataclass(frozen=True)
class Known:
    """Which training row each row of a table is; -1 for a new row."""

    places: "NDArray"

    @classmethod
    def of(cls, saved: "SavedModel", rows: "Table", X) -> "Known":
        """A row with the cells of a training row is that row if it has its id, or if nearly all rows are so.

        Ids alone do not tell: each of two tables may count its rows. Cells alone do not either: of few levels, new
        rows may have the same.
        """
        import numpy as np
        from scipy import sparse

        points, training, none = saved.model._queries(X), saved.model.X_fit_, np.full(rows.rows.height, -1)
        if sparse.issparse(points) or sparse.issparse(training):
            return cls(none)
        ids = _ids(saved, rows)
        if ids is not None:
            places = np.array([ids[1].get(text, -1) for text in ids[0]], int)
            return cls(np.where((places >= 0) & (points == training[places]).all(axis=1), places, -1))
        found = _same_rows(points, training)
        return cls(found if np.mean(found >= 0) >= SAME else none)


def _ids(saved: "SavedModel", rows: "Table") -> tuple[list[str], dict[str, int]] | None:
    """The ids of a table, and the places of the training rows by theirs; None if one of them has none."""
    from coxfield.io.columns import is_writable

    name = saved.id_column
    if saved.ids is None or name is None or name not in rows.rows.columns:
        return None
    if not is_writable(rows.rows[name].dtype) or rows.rows[name].null_count():
        return None
    return rows.ids(name), {text: place for place, text in enumerate(saved.ids.texts)}


def _same_rows(points: "NDArray", training: "NDArray") -> "NDArray":
    """The training row that has the same cells as each point; of several that are alike, each is taken once."""
    from collections import defaultdict

    import numpy as np

    there: dict[bytes, list[int]] = defaultdict(list)
    for place in range(len(training) - 1, -1, -1):
        there[training[place].tobytes()].append(place)
    found = (there.get(point.tobytes()) for point in points)
    return np.array([places.pop() if places else -1 for places in found], int)


def predictions(
    saved: "SavedModel", rows: "Table", kept: str | None, wishes: Wishes, watched: bool
) -> "tuple[pl.DataFrame, Known]":
    """The predictions as a table: the id, the classes, and what else is asked for; and which rows are known."""
    import polars as pl

    if kept is not None and kept not in rows.rows.columns:
        raise ValueError(f"{rows.name} has no id column {kept!r}: name another column with --id, or give --no-id")
    if wishes.coverage is not None:
        _check_separator(saved.model)
    X = options.features_for(saved.model, rows, saved.features)
    known = Known.of(saved, rows, X)
    found = _predict(saved.model, X, known, wishes, watched)
    columns = [] if kept is None else [rows.rows[kept]]
    columns += _columns(saved, found)
    _check_names([column.name for column in columns], saved.target, kept)
    return pl.DataFrame(columns), known


def _check_names(names: list[str], target: str, kept: str | None) -> None:
    """Refuse two columns of the same name."""
    if len(set(names)) == len(names):
        return
    if kept is not None and names.count(kept) > 1:
        raise ValueError(
            f"The id column {kept!r} has the name of a column of predictions: name another column with --id"
        )
    raise ValueError(
        f"The target {target!r} has the name of a column that is added: fit the model to a target of another name"
    )


def _check_separator(model: "LGCPClassifier") -> None:
    """Refuse classes that could not be told apart in a set."""
    unclear = [label for label in map(console.label_text, model.classes_.tolist()) if BETWEEN in label]
    if unclear:
        raise ValueError(
            f"The class {unclear[0]!r} holds {BETWEEN!r}, which separates the classes of a set: rename the class, and "
            "fit the model again"
        )


def _predict(
    model: "LGCPClassifier", X: "NDArray | pl.DataFrame", known: Known, wishes: Wishes, watched: bool
) -> "dict[str, NDArray]":
    """What is asked for, by name. Rows are taken in parts, so that the progress bar can move."""
    import numpy as np

    from coxfield.progress import progress

    parts = []
    with progress("predicting", len(X), watched) as done:
        for start in range(0, len(X), ROWS_AT_ONCE):
            part = X[start : start + ROWS_AT_ONCE]
            parts.append(_predict_part(model, part, known.places[start : start + ROWS_AT_ONCE], wishes))
            done(len(part))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _predict_part(
    model: "LGCPClassifier", X: "NDArray | pl.DataFrame", places: "NDArray", wishes: Wishes
) -> "dict[str, NDArray]":
    import numpy as np

    found = {}
    if wishes.proba:
        found["classes"], found["probabilities"] = model.predict_with_proba(X)
    else:
        found["classes"] = model.predict(X)
    if wishes.coverage is not None:
        found["sets"] = model.predict_set(X, wishes.coverage, per_class=wishes.per_class)
    if wishes.reasons is not None:
        codes = np.searchsorted(model.classes_, found["classes"])
        found["reasons"], found["shares"], found["rest"] = loudest(model.contributions(X, wishes.reasons), codes)
        seen = np.flatnonzero(places >= 0)
        if len(seen):  # a row is not a reason for its own class
            others = loudest(model.loo_contributions(places[seen], wishes.reasons), codes[seen])
            for name, values in zip(("reasons", "shares", "rest"), others, strict=True):
                found[name][seen] = values
    return found


def _columns(saved: "SavedModel", found: "dict[str, NDArray]") -> "Iterable[pl.Series]":
    """The columns of the table, without the id."""
    import polars as pl

    labels = [console.label_text(label) for label in saved.model.classes_.tolist()]
    yield pl.Series(saved.target, found["classes"])
    if "probabilities" in found:
        for label, column in zip(labels, found["probabilities"].T, strict=True):
            yield pl.Series(f"proba_{label}", column)
    if "sets" in found:
        sets = [[label for label, there in zip(labels, row, strict=True) if there] for row in found["sets"]]
        yield pl.Series("set", [BETWEEN.join(one) if one else None for one in sets], dtype=pl.String)
        yield pl.Series("set_size", [len(one) for one in sets], dtype=pl.Int64)
    if "reasons" in found:
        n = len(saved.model.y_fit_)
        names = pl.Series(range(1, n + 1)) if saved.ids is None else pl.Series(saved.ids.texts, dtype=pl.String)
        yield from witness_columns(found["reasons"], found["shares"], names, "reason")
        yield pl.Series("share_rest", found["rest"])


# Columns of a table that name training rows, and say what each adds to the score of a class.


def loudest(reasons: "Contributions", codes: "NDArray") -> "tuple[NDArray, NDArray, NDArray]":
    """The rows that speak loudest for one class per query, what each adds, and what everything else adds."""
    import numpy as np

    at = np.arange(len(reasons)), codes
    return reasons.rows[at], reasons.shares[at], reasons.rest[at]


def witness_columns(rows: "NDArray", shares: "NDArray", names: "pl.Series", title: str) -> "Iterable[pl.Series]":
    """For each rank a column of names and a column of shares; blank where a class has fewer rows.

    Parameters
    ----------
    rows, shares : arrays of shape (n, top)
        As from `loudest`.
    names : Series
        What each training row is called.
    title : str
        What the columns of names are called; their number is added.
    """
    import polars as pl

    for k in range(rows.shape[1]):
        there = pl.Series(rows[:, k] >= 0)
        found = names.gather(rows[:, k].clip(0)) if len(names) else names
        for name, values in ((f"{title}_{k + 1}", found), (f"share_{k + 1}", pl.Series(shares[:, k]))):
            yield pl.select(pl.when(there).then(values).alias(name)).to_series()


def predict(
    model: options.ModelArgument,
    table: options.TableArgument,
    output: options.TableOutputOption = None,
    proba: Annotated[bool, typer.Option("--proba", "-p", help="Add the probability of each class.")] = False,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column to copy to the predictions. Default: the id column that was given to fit.",
        ),
    ] = None,
    no_id: Annotated[bool, typer.Option("--no-id", help="Copy no id column.")] = False,
    reasons: Annotated[
        int | None,
        typer.Option(
            "--reasons",
            metavar="N",
            help="Name the N training rows that speak loudest for the predicted class.",
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage", metavar="X", help="Add a set of classes that holds the true one with this probability."
        ),
    ] = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Hold the --coverage in each class, not only in all classes together.")
    ] = False,
    read: options.ReadOption = None,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Predict the classes of the rows of a table.

    The features are found by their names, in any order. Other columns are ignored. The result has the id column, if
    there is one, and the predicted class under the name of the target. With --proba it also has a column proba_CLASS
    for each class. If the table has the target, the error rate is printed to standard error. For rows that the model
    was fitted to, it is the rate of predicting each from all others.

    With --coverage 0.9 it has a column set: classes, separated by |, among which the true class is with a probability
    of at least 0.9. set_size is their number. A set may be empty: then the row is unlike all training rows. The
    probability is guaranteed if new rows come from where the training rows came from, and if the model was fitted with
    --selection-part below 1.

    With --reasons 5 it has columns reason_1 to reason_5: the training rows that speak loudest for the predicted class,
    by their ids, or by their numbers in the model, counted from 1, if it has no ids. share_1 to share_5 are what each
    adds to the score of the class, and share_rest is what everything else adds. Their sum is the score: the logarithm
    of the probability, up to a constant that all classes share. A row that the model was fitted to is not among its
    own reasons, and its score is that from all other rows.

    \b
    Examples:
      coxfield predict model.skops new.csv
      coxfield predict model.skops new.csv --proba -o predictions.csv
      coxfield predict model.skops new.parquet --no-id -o predictions.parquet
      coxfield predict model.skops new.csv --reasons 5 -o predictions.csv
      coxfield predict model.skops new.csv --coverage 0.9 --per-class -o predictions.csv
      cat new.csv | coxfield predict model.skops - | head -n 3
    """  # noqa: D301
    if no_id and id_column is not None:
        raise typer.BadParameter("--id and --no-id contradict each other")
    wishes = Wishes(proba, reasons, coverage, per_class)
    wishes.check()
    from coxfield.io import model_file, tables

    if output is not None:
        tables.check_output(output, inputs=[table])
    saved = model_file.load(model)
    saved.model.set_params(n_jobs=jobs)
    remembered = None if no_id else saved.id_column
    kept = remembered if id_column is None else id_column
    # A feature may serve as id. It is then read as numbers.
    verbatim = {saved.target, saved.id_column, kept}.difference(saved.features)
    rows = tables.read(table, verbatim=verbatim, form=tables.Form.of(read))
    if kept is not None and kept in rows.rows.columns:
        tables.check_columns(rows.rows.select(kept), output)
    result, known = predictions(saved, rows, kept, wishes, console.watched(quiet))
    if output is None:
        console.print_table(result)
    else:
        tables.write(result, output)
    if coverage is not None and not is_exact(saved.model):
        console.show_warning(
            "the coverage is not guaranteed exactly, because the covariance was chosen from all rows: for a guarantee, "
            "fit the model with --selection-part 0.5"
        )
    if not quiet:
        if rows.taken:
            options.note(f"read as {rows.described(saved.features)}")
        _print_outcome(saved, rows, result, known, output)


def _print_outcome(
    saved: "SavedModel", rows: "Table", result: "pl.DataFrame", seen: Known, output: Path | None
) -> None:
    """Print where the predictions are and, if the table has the true classes, the error rate, to standard error."""
    if output is not None:
        typer.echo(f"{result.height} predictions in {output}", err=True)
    from coxfield.io.columns import is_writable, pl

    if saved.target not in rows.rows.columns or not is_writable(rows.rows[saved.target].dtype):
        return
    known = ~rows.missing_labels(saved.target)
    # Compared as text: a table may hold integers only, where the table of the fit also had strings.
    truth = rows.rows[saved.target].cast(pl.String).str.strip_chars().filter(known)
    wrong = (truth != result[saved.target].cast(pl.String).filter(known)).to_numpy()
    if truth.is_in([console.label_text(label) for label in saved.model.classes_.tolist()]).any():
        _print_errors(saved.model, truth, wrong, seen.places[known])
    elif len(truth):
        typer.echo(f"No error rate: {saved.target!r} of {rows.name} holds none of the model's classes", err=True)


def _print_errors(model: "LGCPClassifier", truth: "pl.Series", wrong: "NDArray", places: "NDArray") -> None:
    """Print the error rate of new rows, and that of rows that the model was fitted to, each without itself."""
    import numpy as np

    new, old = places < 0, np.flatnonzero(places >= 0)
    if new.any():
        what = "Error rate" if new.all() else "Error rate of the new rows"
        typer.echo(f"{what} {wrong[new].mean():.4g} ({wrong[new].sum()} of {new.sum()} rows)", err=True)
    if len(old):
        labels = [console.label_text(label) for label in model.loo_predict()[places[old]].tolist()]
        missed = (truth.gather(old) != labels).to_numpy()
        honest = getattr(model, "loo_error_", 0.0)  # of a mixture: by weights that were chosen without the row
        fair = f"; {honest:.4g} if weights were chosen without the row too" if honest > missed.mean() else ""
        typer.echo(
            f"Error rate {missed.mean():.4g} ({missed.sum()} of {len(old)} rows) of rows that the model was fitted to, "
            f"each predicted from all others{fair}",
            err=True,
        )
