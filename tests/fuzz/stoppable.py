"""Commands that may be stopped at any moment, with their inputs and outputs. A new command is one entry of the list."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from coxfield.io import model_file

OLD = b"what was there before"


def prepare(folder):
    """Write the inputs of all commands: tables, and a model."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 1500)
    features = {f"f{axis}": truth + rng.normal(size=len(truth)) for axis in range(4)}
    rows = pl.DataFrame(features | {"species": [("cat", "dog", "cow")[code] for code in truth]})
    rows.write_csv(folder / "train.csv")
    known = pl.int_range(pl.len()) % 15 == 0
    rows.with_columns(pl.when(known).then("species").alias("species")).write_csv(folder / "data.csv")
    _a_model(rows[:200], folder / "fitted.skops")
    named = rows.with_columns(name=pl.int_range(pl.len()))
    _a_model(named[:600], folder / "named.skops")
    named[580:1200].write_csv(folder / "more.csv")  # some of these rows are in the model already
    named[:600:5].select("name").write_csv(folder / "gone.csv")


def _a_model(rows, path):
    """Fit a model to a table, with the ids in its column `name` if there is one."""
    from coxfield import LGCPClassifier

    names = [name for name in rows.columns if name not in ("species", "name")]
    model = LGCPClassifier().fit(rows[names].to_numpy(), rows["species"].to_numpy().astype(str))
    ids = {"id_column": "name", "ids": rows["name"].cast(str).to_list()} if "name" in rows.columns else {}
    model_file.save(model, path, target="species", features=names, **ids)


def a_named_model(folder):
    """The bytes of the model file that a command replaces."""
    return (folder / "named.skops").read_bytes()


def same_bytes(path, made):
    """Whether a file is equal to that of an undisturbed run."""
    return path.read_bytes() == made.read_bytes()


def same_model(path, made):
    """Whether a model file loads and predicts as that of an undisturbed run. The files themselves hold times."""
    X = np.zeros((1, 4))
    try:
        found, wanted = (model_file.load(one) for one in (path, made))
    except ValueError:
        return False
    same = np.array_equal(found.model.predict_proba(X), wanted.model.predict_proba(X))
    return same and found.ids == wanted.ids


def whole_report(path, _):
    """Whether a report has its page, and whole records. Times are different in each run."""
    return (path / "index.html").exists() and whole_records(path)


def whole_records(path):
    """Whether all records that there are can be read, and the page, if there is one, has its end."""
    page = path / "index.html"
    if page.exists() and not page.read_text(encoding="utf-8").rstrip().endswith("</html>"):
        return False
    records = (record for record in path.rglob("*.json") if not record.name.startswith("."))
    return all(_is_json(record.read_text(encoding="utf-8")) for record in records)


def _is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Stoppable:
    """A command that writes files or a folder."""

    name: str
    words: tuple[str, ...]
    outputs: dict[str, Callable]
    """What the command writes, and a check: called with its path, and with the path that an undisturbed run made."""
    before: Callable | None = lambda _: OLD
    """What files hold before: bytes, by the folder with the inputs. None for folders, which do not exist before."""

    def is_old(self, folder, name):
        """Whether an output is as it was. A folder may hold some of its files, if these are whole."""
        path = folder / name
        if self.before is not None:
            return path.read_bytes() == self.before(folder)
        return not path.exists() or whole_records(path)


COMMANDS = [
    Stoppable("fit", ("fit", "train.csv", "-t", "species", "-o", "model.skops"), {"model.skops": same_model}),
    Stoppable("predict", ("predict", "fitted.skops", "train.csv", "--proba", "-o", "out.csv"), {"out.csv": same_bytes}),
    Stoppable(
        "update",
        ("update", "model.skops", "more.csv", "--replace"),  # a second run makes the same as the first
        {"model.skops": same_model},
        before=a_named_model,
    ),
    Stoppable(
        "forget",
        ("forget", "model.skops", "gone.csv", "--ignore-missing"),
        {"model.skops": same_model},
        before=a_named_model,
    ),
    Stoppable(
        "check",
        ("check", "train.csv", "-t", "species", "-s", "loo_error", "-o", "out.csv"),
        {"out.csv": same_bytes},
    ),
    Stoppable(
        "label",
        ("label", "data.csv", "-t", "species", "-o", "out.csv", "--plot", "out.png"),
        {"out.csv": same_bytes, "out.png": same_bytes},
    ),
    Stoppable(
        "simulate",
        (
            "simulate",
            "--window",
            "0",
            "9",
            "0",
            "9",
            "--seed",
            "1",
            "--mean",
            "6",
            "-o",
            "out.csv",
            "--plot",
            "out.png",
        ),
        {"out.csv": same_bytes, "out.png": same_bytes},
    ),
    Stoppable(
        "reproduce",
        ("reproduce", "figure-circles", "--quick", "-o", "report", "-j", "2"),
        {"report": whole_report},
        before=None,
    ),
]
