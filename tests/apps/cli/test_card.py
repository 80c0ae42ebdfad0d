"""`coxfield card`: its figures are those of the library, and it stays a table whatever the names are."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from command_line import FEATURES, fit, refusal, run
from coxfield.apps.cli import card
from coxfield.io import model_file


@pytest.mark.usefixtures("folder")
def test_figures_are_those_of_leave_one_out():
    fit("--id", "name", *FEATURES)
    run("card", "model.skops", "-o", "card.md", "--most", "2")
    text = Path("card.md").read_text()
    assert text == run("card", "model.skops", "--most", "2").stdout
    quality = model_file.load(Path("model.skops")).model.label_quality()
    wrong = quality["label"] != quality["suggested"]
    assert f"{wrong.mean():.2%} of {len(wrong):,} rows are wrong" in text
    for name in ("cat", "dog"):
        mine = quality["label"] == name
        assert f"| {name} | {mine.sum()} | {wrong[mine].mean():.1%} |" in text
    worst = np.flatnonzero(wrong)[np.argsort(quality["rank"][wrong])][:2]
    ids = pl.read_csv("train.csv", schema_overrides={"name": pl.String})["name"].to_list()
    listed = [line.split(" | ")[0].removeprefix("| ") for line in text.split("## Doubtful rows")[1].splitlines()[6:8]]
    assert listed == [ids[row] for row in worst]
    for title in ("Data", "Columns", "Errors", "Calibration", "Doubtful rows", "Limits"):
        assert f"## {title}\n" in text


def test_bins_of_calibration_hold_every_row_once():
    rng = np.random.default_rng(0)
    sure = np.concatenate([rng.uniform(0.5, 1, 500), [0.5, 1.0]])
    right = rng.uniform(size=502) < sure
    quality = {
        "label": np.zeros(502, int),
        "suggested": np.where(right, 0, 1),
        "suggested_probability": sure,
    }
    lines = list(card._calibration(quality))[-1].splitlines()[2:]
    assert sum(int(line.split(" | ")[1]) for line in lines) == 502


def test_bars_and_breaks_in_names_do_not_break_a_table():
    text = card.table(("a|b", "c"), [("x\ny", 1)])
    assert text.splitlines() == ["| a\\|b | c |", "| --- | --- |", "| x y | 1 |"]


@pytest.mark.usefixtures("folder")
def test_a_card_is_markdown():
    fit(*FEATURES)
    assert "ends in .md" in refusal("card", "model.skops", "-o", "card.txt")
