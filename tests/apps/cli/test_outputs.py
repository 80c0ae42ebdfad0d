"""Tables and pictures: checked before the work, and written all or none."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from command_line import FEATURES, LABEL, QUICK, fit, refusal, run
from coxfield import SLGCPClassifier
from full_disk import SENTENCE, fill


def test_outputs_are_checked_before_anything_is_read(folder):
    before = (folder / "new.csv").read_bytes()
    assert "ends in .skops" in refusal("fit", "absent.csv", "-t", "species", "-o", "train.csv")
    assert "There is no folder" in refusal("fit", "absent.csv", "-t", "species", "-o", "x/model.skops")
    assert "is none of" in refusal("predict", "absent.skops", "new.csv", "-o", "out.txt")
    assert "is the input" in refusal("predict", "absent.skops", "new.csv", "-o", "new.csv")
    assert (folder / "new.csv").read_bytes() == before


def test_failing_write_leaves_the_old_predictions(folder, monkeypatch):
    fit(*FEATURES)
    (folder / "out.csv").write_text("old")

    def write_half(rows, stream):
        stream.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", write_half)
    before = set(folder.iterdir())
    assert "No space left on device" in refusal("predict", "model.skops", "new.csv", "-o", "out.csv")
    assert (folder / "out.csv").read_text() == "old"
    assert set(folder.iterdir()) == before


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_pictures_are_drawn_in_the_format_of_their_ending(ending, start):
    for name in ("one", "two"):
        run(*LABEL, *QUICK, "-o", "out.csv", "--plot", f"{name}.{ending}")
    picture = Path(f"one.{ending}").read_bytes()
    assert picture.startswith(start)
    assert picture == Path(f"two.{ending}").read_bytes()


def test_without_matplotlib_nothing_is_fitted_but_a_sentence_said(folder, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(SLGCPClassifier, "fit", None)
    before = set(folder.iterdir())
    sentence = refusal(*LABEL, "-o", "out.csv", "--plot", "out.png")
    assert sentence == "Error: --plot: pictures need matplotlib: pip install coxfield[plot]\n"
    assert set(folder.iterdir()) == before


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("broken", ["polars.DataFrame.write_csv", "matplotlib.figure.Figure.savefig"])
def test_if_the_table_or_the_picture_fails_both_stay_as_they_were(folder, monkeypatch, broken):
    for name in ("out.csv", "out.png"):
        (folder / name).write_text("old")
    before = set(folder.iterdir())

    def write_half(self, stream, **options):
        stream.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(broken, write_half)
    assert "No space left on device" in refusal(*LABEL, *QUICK, "-o", "out.csv", "--plot", "out.png")
    assert (folder / "out.csv").read_text() == (folder / "out.png").read_text() == "old"
    assert set(folder.iterdir()) == before


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("room", "failed", "command"),
    [
        (10, "model.skops", ["fit", "train.csv", "-t", "species", *FEATURES, "-o", "model.skops"]),
        (10, "out.csv", [*LABEL, *QUICK, "-o", "out.csv"]),
        (10, "out.parquet", [*LABEL, *QUICK, "-o", "out.parquet"]),
        (10, "out.png", [*LABEL, *QUICK, "-o", "out.csv", "--plot", "out.png"]),
        (30, "out.csv", [*LABEL, *QUICK, "-o", "out.csv", "--plot", "out.svg"]),
    ],
    ids=["model", "csv", "parquet", "picture", "table beside a picture"],
)
def test_on_a_full_disk_every_file_stays_as_it_was(folder, monkeypatch, room, failed, command):
    (folder / failed).write_text("old")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr("coxfield.plotting.encode", lambda figure, path: b"picture")
    fill(monkeypatch, room if failed != "out.png" else 3)
    assert refusal(*command) == f"Error: {failed} {SENTENCE}\n"
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_table_on_standard_output_that_is_full_is_a_sentence(folder):
    fit(*FEATURES)
    command = [sys.executable, "-m", "coxfield", "predict", "model.skops", "new.csv", "-q"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=folder, check=False)
    assert done.returncode == 1
    assert done.stderr == f"Error: standard output {SENTENCE}\n"
