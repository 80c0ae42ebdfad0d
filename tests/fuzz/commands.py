"""One command with its files, run in this process: it succeeds, or says why in one line and changes no file."""

import re
import shlex
import tempfile
import time
import traceback
import warnings
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from typer.testing import CliRunner

from command_line import flowers
from coxfield.apps.cli.app import app
from fuzz.chance import happens, mostly
from fuzz.files import Table, tables
from fuzz.invariants import ANNOUNCED, SECONDS, Outcome
from fuzz.refusals import INTERNAL, place

OLD = b"what was there before"
ON_MODELS = ("predict", "update", "forget")
SCALES = ["1", "0.5", "1e-300", "1e300", "0", "-1", "nan", "inf", "x"]


@dataclass(frozen=True)
class Command:
    """Words of a command line, and the tables that it finds."""

    words: tuple[str, ...]
    tables: tuple[tuple[str, Table], ...] = ()
    outputs: tuple[str, ...] = ()
    """Names of files that the command may write."""

    @property
    def source(self):
        """The command as one types it, and the tables as they are."""
        shown = [f"# {name}: {table.content()[:600]!r}" for name, table in self.tables]
        return "\n".join(["coxfield " + shlex.join(self.words), *shown])

    @property
    def size(self):
        """How long the source is."""
        return len(self.source)

    @property
    def estimator(self):
        """The name of the command, for the report."""
        return self.words[0]


def examine_command(case):
    """Run a command in a new folder, and compare its outcome with the invariants."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, table in case.tables:
            Path(name).write_bytes(table.content())
        named = any("name" in table.names for _, table in case.tables)
        Path("model.skops").write_bytes(a_model(named) if case.words[0] in ON_MODELS else OLD)
        Path("out.csv").write_bytes(OLD)
        before, start = _files(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.simplefilter("error", RuntimeWarning)  # commands show other warnings in a line of their own
            result = CliRunner().invoke(app, list(case.words))
        return _judged(case, result, before, time.process_time() - start)


def _judged(case, result, before, seconds):
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        where = place(traceback.extract_tb(error.__traceback__))
        return Outcome("FAILED", f"{case.words[0]} ended with {type(error).__name__} at {where}", str(error)[:300])
    after = _files()
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    faults = [
        *_faults_of_text(result),
        f"exit code {result.exit_code}" if result.exit_code not in (0, 1, 2) else "",
        f"changed {sorted(changed)} but failed" if changed and result.exit_code else "",
        f"changed {sorted(changed)}" if changed - set(case.outputs) else "",
        f"took {seconds:.0f} seconds" if seconds > (ANNOUNCED if " to go" in result.stderr else SECONDS) else "",
    ]
    found = next((fault for fault in faults if fault), None)
    if found:
        return Outcome("FAILED", f"{case.words[0]}: {found}", result.output[:300])
    if result.exit_code == 0:
        return Outcome("fitted")
    return Outcome("refused by ours", result.stderr.splitlines()[-1])


def _faults_of_text(result):
    """What is wrong with the output of a command; empty strings if nothing is."""
    if "Traceback" in result.output:
        yield "a traceback is shown"
    if result.exit_code == 1:
        errors = [line for line in result.stderr.splitlines() if not line.startswith(("Warning: ", "Note: "))]
        if len(errors) != 1 or not re.fullmatch(r"Error: .{5,}", errors[0]):
            yield f"the error is not one line but {len(errors)}"
        yield from (f"the message speaks of internals: {word!r}" for word in INTERNAL if word in errors[-1])
    if result.exit_code == 2 and "Error: " not in result.stderr:
        yield "a usage error without a sentence"


def _files():
    """All files of the folder, hidden ones too, with their bytes."""
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


@cache
def a_model(named=False):
    """The bytes of a model of two features, length and width; its rows may have ids in a column `name`."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        ids = ["--id", "name"] if named else []
        flowers(20).select(*ids[1:], "length", "width", "species").write_csv("train.csv")
        result = CliRunner().invoke(app, ["fit", "train.csv", "-t", "species", *ids, "-o", "model.skops", "-q"])
        assert result.exit_code == 0, result.output
        return Path("model.skops").read_bytes()


def _add(draw, words, percent, *choices):
    """Add one of some groups of words in so many of a hundred cases."""
    if happens(draw, percent):
        words += draw(st.sampled_from(choices))


@st.composite
def on_tables(draw, name):
    """A command that reads a table."""
    table = draw(tables(blank=name == "label"))
    if name in ("update", "forget") and "name" not in table.names and happens(draw, 80):
        first = draw(st.integers(0, 25))  # the model has 000 to 019
        ids = tuple(f"{first + row:03d}" for row in range(len(table.columns[0][1])))
        table = Table((*table.columns, ("name", ids)), table.ending, table.fault)
    file = f"table{table.ending}"
    words = [name, "model.skops", file] if name in ON_MODELS else [name, file, "-t", "species"]
    if "weight" in table.names and name in ("fit", "check", "update"):
        _add(draw, words, 80, ["-w", "weight"])
    if "name" in table.names and name != "update":
        _add(draw, words, 80, ["--id", "name"])
    _add(draw, words, 8, ["--id", "absent"], ["-f", "length", "-f", "width"], ["--drop", "width"], ["--bogus"], ["-q"])
    outputs = OPTIONS[name](draw, words)
    return Command(tuple(words), ((file, table),), outputs)


def _of_fit(draw, words):
    """Add options of `fit`. Return the files that it may write. So do the functions below."""
    words += mostly(draw, [["-o", "model.skops"]], [["-o", "no/model.skops"], ["-o", "model.txt"], []])
    _of_selection(draw, words)
    _add(draw, words, 20, *(["--selection-part", part] for part in ("0.5", "0.9", "1", "0", "2", "nan", "1e-9")))
    _add(draw, words, 10, ["--seed", "3"], ["--seed", "-1"])
    return ("model.skops",)


def _of_selection(draw, words):
    _add(draw, words, 60, *(["-s", one] for one in ("loo_error", "loo_log_loss", "pseudo_likelihood", "wrong")))
    _add(draw, words, 15, *(["-l", scale] for scale in SCALES))


def _to_a_table(draw, words):
    words += mostly(draw, [[], ["-o", "out.csv"]], [["-o", "out.json"], ["-o", words[-1]], ["-o", "no/out.csv"]])


def _of_predict(draw, words):
    _to_a_table(draw, words)
    _add(draw, words, 50, ["--proba"], ["--no-id"])
    _add(draw, words, 30, *(["--reasons", number] for number in ("1", "5", "100", "0", "-1", "1000000", "x")))
    _add(draw, words, 30, *(["--coverage", share] for share in ("0.9", "0.5", "0.001", "0.9999", "0", "1.5", "nan")))
    _add(draw, words, 15, ["--per-class"])
    return ("out.csv",)


def _of_update(draw, words):
    _to_a_model(draw, words)
    _add(draw, words, 60, ["--replace"], ["--add"], ["--replace", "--add"])
    _add(draw, words, 60, ["--new-classes"])
    _add(draw, words, 15, ["--reselect"])
    _add(draw, words, 5, ["-w", "length"], ["-w", "absent"])
    return "model.skops", "newer.skops"


def _of_forget(draw, words):
    _to_a_model(draw, words)
    _add(draw, words, 70, ["--ignore-missing"])
    _add(draw, words, 15, ["--reselect"])
    return "model.skops", "newer.skops"


def _to_a_model(draw, words):
    words += mostly(draw, [[], ["-o", "newer.skops"]], [["-o", "newer.txt"], ["-o", "no/newer.skops"]])


def _of_check(draw, words):
    _to_a_table(draw, words)
    _of_selection(draw, words)
    _add(draw, words, 30, ["--all"])
    _add(draw, words, 30, *(["--most", number] for number in ("1", "1000", "0", "x")))
    _add(draw, words, 5, ["--plot", "out.png"], ["--plot", "out.txt"])
    return "out.csv", "out.png"


def _of_label(draw, words):
    _to_a_table(draw, words)
    _add(draw, words, 50, *(["--inference", one] for one in ("map", "mixture", "perturb_and_map", "wrong")))
    _add(draw, words, 15, *(["-l", scale] for scale in SCALES))
    _add(draw, words, 5, ["--plot", "out.png"], ["--plot", "out.txt"])
    return "out.csv", "out.png"


OPTIONS = {
    "fit": _of_fit,
    "label": _of_label,
    "predict": _of_predict,
    "update": _of_update,
    "forget": _of_forget,
    "check": _of_check,
}


@st.composite
def simulations(draw):
    """The command simulate on windows and scales of all magnitudes."""
    axes = draw(st.integers(1, 3))
    low, high = mostly(
        draw,
        [("0", "1"), ("-2", "3")],
        [
            ("0", "1e-300"),
            ("0", "1e300"),
            ("-1.7e308", "1.7e308"),
            ("1", "0"),
            ("nan", "1"),
            ("1e16", "1.0000000000000002e16"),
        ],
        percent=30,
    )
    words = ["simulate", "--window", *[low, high] * axes]
    if happens(draw, 5):
        words = ["simulate", "--window", draw(st.sampled_from(["0", "0 1 2", "x y", ""]))]
    words += ["--seed", "1", "--resolution", mostly(draw, ["8", "5"], ["1", "0", "1000000", "x"])]
    _add(draw, words, 40, *(["-l", scale] for scale in SCALES))
    _add(draw, words, 30, *(["--variance", scale] for scale in (*SCALES, "700", "1e-5")))
    _add(draw, words, 30, *(["--mean", scale] for scale in ("1", "-5", "-1e300", "1e300", "nan", "60")))
    _add(draw, words, 40, *(["-k", one] for one in ("exponential", "matern32", "matern52", "wrong")))
    words += mostly(draw, [[], ["-o", "out.csv"]], [["-o", "out.json"], ["-o", "no/out.csv"], ["--plot", "out.png"]])
    return Command(tuple(words), (), ("out.csv", "out.png"))


def commands():
    """A command with its files."""
    return st.one_of(simulations(), *(on_tables(name) for name in OPTIONS))


def simpler_command(case):
    """Commands that are simpler in one respect: without a word or two, or with half of the rows of a table."""
    for start in range(1, len(case.words)):
        for width in (2, 1):
            yield Command(case.words[:start] + case.words[start + width :], case.tables, case.outputs)
    for name, table in case.tables:
        n = len(table.columns[0][1])
        for rows in (np.arange(n // 2), np.arange(n // 2, n), *(np.delete(np.arange(n), row) for row in range(n))):
            columns = tuple((column, tuple(cells[row] for row in rows)) for column, cells in table.columns)
            if len(rows):
                yield Command(case.words, ((name, Table(columns, table.ending, table.fault)),), case.outputs)
