"""The program as a whole: its help, its version, and how it ends."""

import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from command_line import fit, flowers, refusal, run
from coxfield import __version__

COMMANDS = ("fit", "predict", "update", "forget", "check", "label", "simulate", "pattern")
WRITTEN = ("predictions", "labelled", "picture", "pattern", "doubtful", "newer")


def test_version():
    assert run("--version").stdout == f"coxfield {__version__}\n"


def examples(*command):
    lines = [line.strip() for line in run(*command, "--help", env={"COLUMNS": "80"}).stdout.splitlines()]
    start = lines.index("Examples:") + 1
    return lines[start : lines.index("", start)]


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_examples_of_the_help_work_word_for_word(folder, shell, command):
    for first, name, n in ((0, "train", 40), (90, "more", 10), (5, "corrected", 5), (0, "new", 10)):
        numbers = pl.int_range(first, first + n).alias("plant"), pl.lit(1936).alias("year")
        rows = flowers(n).select(*numbers, "length", "width", "species")
        rows.write_csv(f"{name}.csv")
        rows.write_parquet(f"{name}.parquet")
    data = rows.with_columns(pl.when(pl.int_range(pl.len()) < 6).then("species").alias("species"))
    data.write_csv("data.csv")
    data.write_parquet("data.parquet")
    rows.select("plant").write_csv("gone.csv")
    rows.select(member=pl.col("plant") + 33).write_parquet("members.parquet")  # some of them are in no model
    fit("--id", "plant", *([] if command == () else ["--drop", "year"]))
    model = (folder / "model.skops").read_bytes()
    assert len(examples(*command)) >= 2
    for example in examples(*command):
        for old in (path for name in WRITTEN for path in folder.glob(f"{name}.*")):
            old.unlink()
        if command:
            (folder / "model.skops").write_bytes(model)
        words = shlex.split(example)
        if "reproduce" in words:  # takes minutes; `make demo` is just that
            continue
        if {"serve", "studio"}.intersection(words):  # runs until it is stopped; these have tests of their own
            continue
        if "pattern" in words:  # takes a minute; test_pattern.py gives the same options with fewer simulations
            continue
        # A pipe needs a shell; other lines are run here, which saves the time to import everything again.
        if "|" in words:
            done = shell(example)
            assert done.returncode == 0, (example, done.stderr)
        else:
            done = run(*words[1:])
        for option in {"-o", "--plot"}.intersection(words):
            assert (folder / words[words.index(option) + 1]).stat().st_size > 0
        if "-o" not in words and not {"update", "forget"}.intersection(words):
            first = {"label": "plant,year,length,width,species,given,probability_", "simulate": "x1,x2,x3\n"}
            assert done.stdout.startswith(first.get(words[words.index("coxfield") + 1], "plant,species\n"))


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom coxfield.apps.cli.app import app\n"
        f"commands = {COMMANDS}\n"
        "for words in (['--help'], *([name, '--help'] for name in commands), ['--version']):\n"
        "    assert CliRunner().invoke(app, words).exit_code == 0\n"
        "heavy = 'numpy', 'scipy', 'sklearn', 'polars', 'matplotlib'\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_commands_tell_a_shell_how_they_ended(shell):
    done = shell("coxfield fit absent.csv -t y -o model.skops")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Error: There is no file absent.csv\n")
    assert shell("coxfield fit train.csv").returncode == 2
    assert shell("coxfield frobnicate").returncode == 2


@pytest.mark.usefixtures("folder")
def test_too_little_memory_is_one_sentence(monkeypatch):
    def fit(*_, **__):
        raise MemoryError

    monkeypatch.setattr("coxfield.LGCPClassifier.fit", fit)
    sentence = refusal("fit", "train.csv", "-t", "species", "-f", "length", "-o", "model.skops")
    assert sentence.startswith("Error: there is not enough memory for this")
    assert sentence.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", ["--help", "--version", "fit --help"])
def test_help_that_cannot_be_written_is_one_sentence(shell, words):
    done = shell(f"coxfield {words} > /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1
