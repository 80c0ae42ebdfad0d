"""Sets with a guarantee and reasons, as columns of the predictions."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from command_line import FEATURES, ONE_KERNEL, fit, flowers, predictions, refusal, run
from coxfield import LGCPClassifier
from coxfield.apps.cli.predict import is_exact
from coxfield.io import model_file

TEXT = {"name": pl.String, "reason_1": pl.String, "reason_2": pl.String}
PART = ["--selection-part", "0.5"]


def load():
    return model_file.load(Path("model.skops"))


def predicted(*arguments):
    result = run("predict", "model.skops", "new.csv", *arguments)
    return pl.read_csv(result.stdout_bytes, schema_overrides=TEXT), result.stderr


def new_rows():
    return pl.read_csv("new.csv")["length", "width"].to_numpy()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("per_class", [False, True])
def test_sets_are_those_of_the_library(per_class):
    fit("--id", "name", *FEATURES, *PART)
    found, said = predicted("--coverage", "0.8", *(["--per-class"] if per_class else []))
    model = load().model
    sets = model.predict_set(new_rows(), 0.8, per_class=per_class)
    expected = ["|".join(model.classes_[row]) or None for row in sets]
    assert found.columns == ["name", "species", "set", "set_size"]
    assert found["set"].to_list() == expected
    assert found["set_size"].to_list() == sets.sum(axis=1).tolist()
    assert "Warning" not in said


@pytest.mark.usefixtures("folder")
def test_sets_of_none_and_of_several_classes():
    fit("--id", "name", *FEATURES, *PART)
    few, _ = predicted("--coverage", "0.05")
    assert few["set"].null_count() > 0
    assert (few["set"].is_null() == (few["set_size"] == 0)).all()
    many, _ = predicted("--coverage", "0.99")
    assert "cat|dog" in many["set"]


@pytest.mark.usefixtures("folder")
def test_a_guarantee_that_is_not_exact_is_said_to_be_so():
    fit("--id", "name", *FEATURES)
    _, said = predicted("--coverage", "0.9")
    assert said.splitlines()[0].startswith(
        "Warning: the coverage is not guaranteed exactly, because the covariance was"
    )
    assert "--selection-part 0.5" in said
    _, said = predicted("--proba")
    assert "Warning" not in said


def test_exact_is_what_calibrates_by_other_rows():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    assert is_exact(LGCPClassifier(selection=None).fit(X, y))
    assert is_exact(LGCPClassifier(selection="loo_error", selection_part=0.5, random_state=0).fit(X, y))
    assert not is_exact(LGCPClassifier(selection="loo_error").fit(X, y))
    assert not is_exact(LGCPClassifier(selection="loo_error").fit(X[:10], y[:10]).partial_fit(X[10:], y[10:]))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("options", [[], ONE_KERNEL])
def test_reasons_are_those_of_the_library_and_add_up(options):
    fit("--id", "name", *FEATURES, *options)
    found, _ = predicted("--reasons", "2", "--proba")
    saved = load()
    model, X = saved.model, new_rows()
    names = ["reason_1", "share_1", "reason_2", "share_2", "share_rest"]
    assert found.columns == ["name", "species", "proba_cat", "proba_dog", *names]
    reasons, codes = model.contributions(X, 2), np.searchsorted(model.classes_, found["species"].to_numpy())
    rows = reasons.rows[np.arange(30), codes]
    ids = np.array(saved.ids.texts)
    assert [found["reason_1"].to_list(), found["reason_2"].to_list()] == ids[rows.T].tolist()
    total = found.select(pl.sum_horizontal("share_1", "share_2", "share_rest")).to_series().to_numpy()
    scores = model.class_scores(X)
    np.testing.assert_allclose(total, scores[np.arange(30), codes], rtol=1e-10, atol=1e-10 * np.abs(scores).max())


@pytest.mark.usefixtures("folder")
def test_reasons_of_a_model_without_ids_are_row_numbers_from_1():
    fit(*FEATURES, *ONE_KERNEL)
    train = pl.read_csv("train.csv")
    train.head(5).write_csv("new.csv")
    found, _ = predicted("--reasons", "1")
    model = load().model
    for number, row in enumerate(found.iter_rows(named=True), start=1):
        witness = int(row["reason_1"])
        assert train["species"][witness - 1] == row["species"]
        if row["species"] == train["species"][number - 1]:
            assert witness != number  # a row is not a reason for its own class
    assert len(model.y_fit_) == 80


@pytest.mark.usefixtures("folder")
def test_classes_with_few_rows_leave_reasons_blank():
    pl.DataFrame({"x": [0.0, 1.0, 5.0], "species": ["a", "a", "b"]}).write_csv("train.csv")
    pl.DataFrame({"x": [5.1]}).write_csv("new.csv")
    fit("-s", "loo_error", "-l", "1")
    found, _ = predicted("--reasons", "3")
    assert found["species"].to_list() == ["b"]
    assert found["reason_1"].to_list() == ["3"]
    assert found.select("reason_2", "share_2", "reason_3", "share_3").row(0) == (None, None, None, None)


@pytest.mark.usefixtures("folder")
def test_many_rows_are_taken_in_order(monkeypatch):
    fit("--id", "name", *FEATURES, *PART)
    words = ["--reasons", "2", "--coverage", "0.9", "--proba"]
    whole, _ = predicted(*words)
    monkeypatch.setattr("coxfield.apps.cli.predict.ROWS_AT_ONCE", 7)
    parts, _ = predicted(*words)
    assert_frame_equal(parts, whole)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("labels", [(7, -3), (False, True), ("007", "012")])
def test_labels_of_all_kinds_are_in_sets(labels):
    flowers(40, labels).write_csv("train.csv")
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    run("predict", "model.skops", "train.csv", "--coverage", "0.99", "-o", "out.parquet")
    texts = {str(label).lower() if isinstance(label, bool) else str(label) for label in labels}
    parts = {part for text in pl.read_parquet("out.parquet")["set"].drop_nulls() for part in text.split("|")}
    assert parts == texts


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--coverage", "1.5"], "--coverage must be between 0 and 1, such as 0.9; got 1.5"),
        (["--coverage", "0"], "--coverage must be between 0 and 1"),
        (["--coverage", "nan"], "--coverage must be between 0 and 1, such as 0.9; got nan"),
        (["--per-class"], "--per-class is about sets of classes: give --coverage too"),
        (["--reasons", "0"], "--reasons must be from 1 to 100, got 0"),
        (["--reasons", "101"], "--reasons must be from 1 to 100, got 101"),
        (["--reasons", "many"], "--reasons"),
    ],
)
def test_values_that_make_no_sense_are_refused(words, message):
    sentence = " ".join(refusal("predict", "model.skops", "new.csv", *words, code=2).split())
    assert message in sentence


@pytest.mark.usefixtures("folder")
def test_names_that_would_be_taken_twice_are_refused():
    train = pl.read_csv("train.csv").rename({"species": "set", "name": "share_1"})
    train.write_csv("train.csv")
    train.write_csv("new.csv")
    run("fit", "train.csv", "-t", "set", "--id", "share_1", *FEATURES, *ONE_KERNEL, "-o", "model.skops")
    assert "The target 'set' has the name of a column that is added" in refusal(
        "predict", "model.skops", "new.csv", "--coverage", "0.9"
    )
    assert "The id column 'share_1' has the name of a column of predictions" in refusal(
        "predict", "model.skops", "new.csv", "--reasons", "1"
    )


@pytest.mark.usefixtures("folder")
def test_classes_that_could_not_be_told_apart_in_a_set_are_refused():
    flowers(40, ("a|b", "c")).write_csv("train.csv")
    fit(*FEATURES, *ONE_KERNEL)
    sentence = refusal("predict", "model.skops", "train.csv", "--coverage", "0.9")
    assert "The class 'a|b' holds '|', which separates the classes of a set" in sentence
    assert predictions("--reasons", "1").height == 30
