"""A model file that is read, changed and written again: what `coxfield update` and `coxfield forget` share."""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from coxfield.apps.cli import console

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from coxfield import LGCPClassifier
    from coxfield.io.model_file import SavedModel, TrainingIds


# What `coxfield fit` and the commands that change a model say about it when they are done.


MOST_ROWS = 5000  # that are predicted again, to count errors by class
SHOWN = 5  # columns that matter most
ROUNDING = 1e-9  # of an error


def summary(
    model: "LGCPClassifier", features: "Sequence[str]", y: "NDArray | None" = None, *, details: bool = False
) -> dict[str, str]:
    """The lines of the summary of a fitted model. `y` are the classes of its rows, if they are known already.

    With `details`, the covariances that were chosen.
    """
    import numpy as np

    y = model.classes_[model.y_fit_] if y is None else y
    classes, counts = np.unique(y, return_counts=True)
    sizes = [f"{console.label_text(label)}: {n}" for label, n in zip(classes.tolist(), counts.tolist(), strict=True)]
    lines = {"Rows": str(len(y)), "Features": console.counted(features), "Classes": console.counted(sizes)}
    lines |= _covariance(model) if details or not hasattr(model, "mixture_") else {}
    # Rows that came or left have changed the error, and to compute it takes as long as predicting all rows.
    return lines | _errors(model, features) if hasattr(model, "loo_error_") else lines


def _errors(model: "LGCPClassifier", features: "Sequence[str]") -> dict[str, str]:
    """The leave-one-out error beside that of always saying the most common class, by class, and what matters."""
    import numpy as np

    weights = model._training.rows.counts
    of_class = np.bincount(model.y_fit_, weights, minlength=len(model.classes_))
    common, majority = int(of_class.argmax()), float(1 - of_class.max() / of_class.sum())
    always = f"{majority:.4g}, always {console.label_text(model.classes_.tolist()[common])}"
    lines = {"Leave-one-out error": f"{model.loo_error_:.4g}", "Error of the most common class": always}
    if len(model.y_fit_) <= MOST_ROWS:
        lines |= _by_class(model) | _matters(model, features)
    if model.loo_error_ >= majority - ROUNDING:
        lines["Warning"] = "the model is no better than always saying the most common class: the columns do not tell it"
    return lines


def _by_class(model: "LGCPClassifier") -> dict[str, str]:
    """Errors of each class, with what most of them were taken for."""
    import numpy as np

    from coxfield.io.columns import listed

    y, names = model.y_fit_, [console.label_text(label) for label in model.classes_.tolist()]
    found = np.searchsorted(model.classes_, model.loo_predict())
    words, missed = [], int(np.count_nonzero(found != y))
    for code in np.unique(y).tolist():
        mine = found[y == code]
        wrong = np.bincount(mine[mine != code], minlength=len(names))
        taken = f", most for {names[int(wrong.argmax())]}" if wrong.any() and len(names) > 2 else ""
        words.append(f"{names[code]}: {wrong.sum()} of {len(mine)}{taken}")
    # Fewer than the leave-one-out error says, because the weights of the members have seen all rows.
    return {"Errors with the weights in use": f"{missed} of {len(y)} ({listed(words, quoted=False)})"}


def _matters(model: "LGCPClassifier", features: "Sequence[str]") -> dict[str, str]:
    """The columns that are worth most, by their names in the table."""
    worth = model.feature_importance()["importance"].tolist()
    order = sorted(zip(worth, features, strict=True), key=lambda pair: -pair[0])[:SHOWN]
    words = ", ".join(f"{name} {value:.2g}" for value, name in order if value > 0)
    return {"What matters": f"{words} (growth of the log loss)"} if words else {}


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


@contextmanager
def alone_with(path: Path, quiet: bool = False) -> "Iterator[None]":
    """Keep other commands from a model file until the block ends. If one of them has it, say so and wait."""
    from coxfield.utils.whole_files import alone

    def wait() -> None:
        if not quiet:
            typer.echo(f"Waiting for another command that changes {path}", err=True)

    with alone(path, wait):
        yield


@dataclass(frozen=True)
class LiveModel:
    """A model whose rows come and go. The file changes only when it is written."""

    saved: "SavedModel"
    path: Path
    """The file that it comes from."""
    output: Path
    """The file that it goes to."""
    quiet: bool

    @classmethod
    @contextmanager
    def opened(cls, path: Path, output: Path | None, jobs: int | None, quiet: bool) -> "Iterator[LiveModel]":
        """Read a model file, and keep other commands from it until the block ends.

        An output that cannot be written is refused first. A file that is only read is not kept from others.
        """
        from coxfield.io import model_file

        output = path if output is None else output
        model_file.check_output(output)
        with alone_with(output, quiet):
            saved = model_file.load(path)
            saved.model.set_params(n_jobs=jobs, verbose=int(console.watched(quiet)))
            yield cls(saved, path, output, quiet)

    @property
    def ids(self) -> "TrainingIds":
        """The ids of the training rows, or a sentence that says how to get some."""
        if self.saved.ids is None:
            raise ValueError(f"{self.path} has no ids of its training rows: fit the model again with --id COLUMN")
        return self.saved.ids

    def with_rows(
        self, X: "NDArray", y: "NDArray", new: "NDArray", weights: "NDArray | None", ids: "Sequence[str] | None"
    ) -> "LiveModel":
        """The model with more rows. `new` are the classes among theirs that it does not have yet.

        Rows of weight zero are not added. `ids` are those of the others.
        """
        import numpy as np

        from coxfield.progress import progress

        model = self.saved.model
        with progress("adding rows", None, model.verbose):
            model.partial_fit(X, y, classes=new if len(new) else None, sample_weight=weights)
        if len(new):  # a class that leaves with its last row, as the others do: its name may be that of a person
            model._announced = model._announced & ~np.isin(model.classes_, new)
        if ids is None or self.saved.ids is None:
            return self
        return replace(self, saved=replace(self.saved, ids=self.saved.ids.followed_by(ids)))

    def without(self, places: "NDArray", *, reselect: bool) -> "LiveModel":
        """The model without the rows at some places. `reselect` says whether the covariance will be chosen again."""
        import numpy as np

        from coxfield.progress import progress

        model = self.saved.model
        left = np.delete(model.y_fit_, places)
        if reselect and len(np.unique(left)) < 2:
            raise ValueError(
                f"{len(left)} training rows of {len(np.unique(left))} classes would be left, and at least two classes "
                "are needed: delete the whole model, or fit it again to other rows"
            )
        with progress("forgetting rows", None, model.verbose):
            model.forget(places)
        ids = None if self.saved.ids is None else self.saved.ids.without(places)
        return replace(self, saved=replace(self.saved, ids=ids))

    def write(self, counts: dict[str, str]) -> None:
        """Write the file, whole or not at all, and print a summary that begins with some counts."""
        from coxfield.io import model_file

        saved, model = self.saved, self.saved.model
        lines = {} if self.quiet else counts | summary(model, saved.features) | {"Model": str(self.output)}
        # The number of threads, and whether a person was watching, are no part of the model.
        model.set_params(n_jobs=None, verbose=0)
        ids = None if saved.ids is None else saved.ids.texts
        # Programs that know nothing of the lock may have replaced the file, or the file system has no locks.
        digest = saved.digest if self.output.resolve() == self.path.resolve() else None
        names: dict[str, Any] = {"target": saved.target, "features": saved.features, "id_column": saved.id_column}
        model_file.save(model, self.output, **names, ids=ids, digest=digest)
        console.print_summary(lines)
