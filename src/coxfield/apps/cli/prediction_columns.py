"""The columns that `coxfield predict` writes: classes, probabilities, sets with a guarantee, and reasons."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from coxfield.apps.cli import messages
from coxfield.apps.cli.witness_columns import loudest, witness_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl
    from numpy.typing import NDArray

    from coxfield import LGCPClassifier
    from coxfield.io.model_file import SavedModel
    from coxfield.io.tables import Table

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


def predictions(saved: "SavedModel", rows: "Table", kept: str | None, wishes: Wishes, watched: bool) -> "pl.DataFrame":
    """The predictions as a table: the id, the classes, and what else is asked for."""
    import polars as pl

    if kept is not None and kept not in rows.rows.columns:
        raise ValueError(f"{rows.name} has no id column {kept!r}: name another column with --id, or give --no-id")
    if wishes.coverage is not None:
        _check_separator(saved.model)
    found = _predict(saved.model, rows.features(saved.features), wishes, watched)
    columns = [] if kept is None else [rows.rows[kept]]
    columns += _columns(saved, found)
    _check_names([column.name for column in columns], saved.target, kept)
    return pl.DataFrame(columns)


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
    unclear = [label for label in map(messages.label_text, model.classes_.tolist()) if BETWEEN in label]
    if unclear:
        raise ValueError(
            f"The class {unclear[0]!r} holds {BETWEEN!r}, which separates the classes of a set: rename the class, and "
            "fit the model again"
        )


def _predict(model: "LGCPClassifier", X: "NDArray", wishes: Wishes, watched: bool) -> "dict[str, NDArray]":
    """What is asked for, by name. Rows are taken in parts, so that the progress bar can move."""
    import numpy as np

    from coxfield.progress import progress

    parts = []
    with progress("predicting", len(X), watched) as done:
        for start in range(0, len(X), ROWS_AT_ONCE):
            part = X[start : start + ROWS_AT_ONCE]
            parts.append(_predict_part(model, part, wishes))
            done(len(part))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _predict_part(model: "LGCPClassifier", X: "NDArray", wishes: Wishes) -> "dict[str, NDArray]":
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
    return found


def _columns(saved: "SavedModel", found: "dict[str, NDArray]") -> "Iterable[pl.Series]":
    """The columns of the table, without the id."""
    import polars as pl

    labels = [messages.label_text(label) for label in saved.model.classes_.tolist()]
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
