"""`coxfield suggest`: rows to label next; and knowledge beside labels for `coxfield label`."""

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import make_blobs

from command_line import refusal, run

X, TRUTH = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
NAMES = np.array(["cat", "dog", "eel"])


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pl.DataFrame({"x": X[:, 0], "y": X[:, 1], "name": [f"r{k}" for k in range(90)]})
    rows.write_csv("plain.csv")
    some = [NAMES[k] if i < 9 and k < 2 else None for i, k in enumerate(TRUTH)]
    labelled = rows.with_columns(pl.Series("species", some, dtype=pl.String))
    labelled.write_csv("data.csv")
    full = [NAMES[k] if i < 12 else None for i, k in enumerate(TRUTH)]
    guesses = [pl.Series(f"old_{name}", 0.25 + 0.5 * (k == TRUTH)) for k, name in enumerate(NAMES)]
    rows.with_columns(pl.Series("species", full, dtype=pl.String), *guesses).write_csv("guess.csv")


def table(text):
    return pl.read_csv(io.StringIO(text))


def test_before_any_label_the_questions_spread():
    found = table(run("suggest", "plain.csv", "--id", "name", "-n", "3").stdout)
    assert found.columns == ["row", "x", "y", "name"]
    assert sorted(TRUTH[found["row"].to_list()]) == [0, 1, 2]
    assert found["name"].to_list() == [f"r{k}" for k in found["row"]]


def test_with_labels_the_question_is_where_there_is_none():
    run("suggest", "data.csv", "-t", "species", "--id", "name", "-n", "1", "-o", "ask.csv")
    asked = pl.read_csv("ask.csv")["row"].to_list()
    assert TRUTH[asked].tolist() == [2]


def test_more_rows_than_there_are_blank_ones():
    assert "n=90 labels are asked for, but only" in refusal(
        "suggest", "data.csv", "-t", "species", "--id", "name", "-n", "90"
    )


def test_known_shares_and_guesses_are_those_of_the_library():
    run("label", "guess.csv", "-t", "species", "-f", "x", "-f", "y", "-o", "plain_out.csv")
    run("label", "guess.csv", "-t", "species", "--id", "name", "--prior-columns", "old_", "-o", "out.csv")
    run(
        *("label", "guess.csv", "-t", "species", "-f", "x", "-f", "y"),
        *("--shares", "cat=0.5,dog=0.25,eel=0.25", "-o", "shares.csv"),
    )
    plain, guessed, shared = (pl.read_csv(name) for name in ("plain_out.csv", "out.csv", "shares.csv"))
    assert (guessed["species"] == pl.Series(NAMES[TRUTH])).all()
    own = pl.Series(TRUTH == 1)
    assert guessed.filter(own)["probability_dog"].mean() > plain.filter(own)["probability_dog"].mean()
    assert shared["probability_cat"].mean() > plain["probability_cat"].mean()
    assert Path("shares.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--shares", "cat"], "--shares needs CLASS=SHARE with commas between, got 'cat'"),
        (["--shares", "cat=1,dog=1"], "class_prior has no share for class 'eel'"),
        (["--prior-columns", "new_"], "guess.csv has no column 'new_cat' with a guess"),
    ],
)
def test_knowledge_that_cannot_be(arguments, sentence):
    assert sentence in refusal("label", "guess.csv", "-t", "species", "--id", "name", *arguments)
