"""`coxfield fit`: the model that the library would fit, and what is refused."""

import numpy as np
import polars as pl
import pytest

from command_line import FEATURES, fit, refusal, run, spoil
from coxfield import LGCPClassifier
from coxfield.io import model_file


def test_fit_saves_the_model_that_the_library_would_fit(folder):
    fit(*FEATURES)
    train = pl.read_csv("train.csv")
    expected = LGCPClassifier().fit(train["length", "width"].to_numpy(), train["species"].to_numpy().astype(str))
    saved = model_file.load(folder / "model.skops")
    assert saved.features == ("length", "width")
    # Parameters are chosen where the loss is flat: to about half of the digits.
    np.testing.assert_allclose(saved.model.kernel_.theta, expected.kernel_.theta, rtol=1e-6)
    assert saved.model.get_params() == LGCPClassifier().get_params()


def test_summary_says_what_was_fitted(folder):
    lines = dict(line.split(": ", 1) for line in fit(*FEATURES).stdout.splitlines())
    model = model_file.load(folder / "model.skops").model
    counts = pl.read_csv("train.csv")["species"].value_counts().sort("species")["count"].to_list()
    assert lines == {
        "Rows": "80",
        "Features": "2 (length, width)",
        "Classes": f"2 (cat: {counts[0]}, dog: {counts[1]})",
        "Kernel": str(model.kernel_),
        "Leave-one-out error": f"{model.loo_error_:.4g}",
        "Model": "model.skops",
    }


@pytest.mark.usefixtures("folder")
def test_quiet_is_quiet():
    assert fit(*FEATURES, "--quiet").output == ""
    assert run("predict", "model.skops", "new.csv", "-o", "out.csv", "-q").output == ""


def test_all_columns_but_target_id_weight_and_dropped_are_features(folder):
    fit("--id", "name", "--weight", "weight", "--drop", "notes")
    assert model_file.load(folder / "model.skops").features == ("length", "width")
    assert model_file.load(folder / "model.skops").id_column == "name"


def test_weights_count(folder):
    fit(*FEATURES, "--weight", "weight")
    train = pl.read_csv("train.csv")
    repeated = train.select(pl.exclude("weight").repeat_by("weight").explode(empty_as_null=True, keep_nulls=True))
    expected = LGCPClassifier(model_file.load(folder / "model.skops").model.kernel_, selection=None)
    expected.fit(repeated["length", "width"].to_numpy(), repeated["species"].to_numpy().astype(str))
    model = model_file.load(folder / "model.skops").model
    X = pl.read_csv("new.csv")["length", "width"].to_numpy()
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X))


def test_a_given_length_scale_is_used_and_the_variance_still_chosen(folder):
    fit(*FEATURES, "--length-scale", "0.5")
    kernel = model_file.load(folder / "model.skops").model.kernel_
    assert kernel.k2.length_scale == 0.5
    assert kernel.k1.constant_value != 1


def test_selection_reaches_the_classifier(folder):
    fit(*FEATURES, "--selection", "loo_log_loss")
    assert model_file.load(folder / "model.skops").model.selection == "loo_log_loss"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "Column 'width' of {} is blank in row 3"),
        ("NaN", "Column 'width' of {} holds nan in row 3"),
        ("inf", "Column 'width' of {} holds inf in row 3"),
        ("n/a", "Column 'width' of {} holds text, 'n/a' in row 3"),
    ],
)
def test_unusable_features_are_named_and_nothing_is_written(folder, value, message):
    fit(*FEATURES)
    before = (folder / "model.skops").read_bytes()
    (folder / "out.csv").write_text("old")
    spoil("width", value)
    assert message.format("train.csv") in refusal("fit", "train.csv", "-t", "species", *FEATURES, "-o", "model.skops")
    assert message.format("new.csv") in refusal("predict", "model.skops", "new.csv", "-o", "out.csv")
    assert (folder / "model.skops").read_bytes() == before
    assert (folder / "out.csv").read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.csv", "-t", "species"], "There is no file absent.csv"),
        (["train.txt", "-t", "species"], "The ending of train.txt is none of .csv, .csv.gz, .parquet"),
        (["train.csv", "-t", "genus"], "train.csv has no column 'genus'; it has 'name', 'length'"),
        (["train.csv", "-t", "species", "--id", "nr"], "train.csv has no column 'nr'"),
        (["train.csv", "-t", "species", "-w", "notes", *FEATURES], "Column 'notes' of train.csv holds text"),
        (["train.csv", "-t", "species"], "--drop notes"),
        (["train.csv", "-t", "notes", *FEATURES], "holds one class only, some text"),
        (["train.csv", "-t", "width", "-f", "length"], "which are quantities, not classes"),
    ],
)
def test_fit_refuses_in_one_sentence(folder, arguments, message):
    sentence = refusal("fit", *arguments, "-o", "model.skops")
    assert message in sentence
    assert sentence.startswith("Error: ")
    assert sentence.count("\n") == 1
    assert not (folder / "model.skops").exists()


@pytest.mark.usefixtures("folder")
def test_blank_targets_are_refused_by_fit():
    spoil("species", "")
    assert "Column 'species' of train.csv is blank in 1 of 80 rows, first in row 3" in refusal(
        "fit", "train.csv", "-t", "species", *FEATURES, "-o", "model.skops"
    )
