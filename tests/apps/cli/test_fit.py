"""`coxfield fit`: the model that the library would fit, and what is refused."""

import numpy as np
import polars as pl
import pytest

from command_line import FEATURES, ONE_KERNEL, fit, refusal, run, spoil, summary
from coxfield import LGCPClassifier
from coxfield.apps.cli.fit import Selection
from coxfield.estimators.supervised import SELECTIONS
from coxfield.io import model_file


def test_fit_saves_the_model_that_the_library_would_fit(folder):
    fit(*FEATURES)
    train = pl.read_csv("train.csv")
    expected = LGCPClassifier().fit(train["length", "width"].to_numpy(), train["species"].to_numpy().astype(str))
    saved = model_file.load(folder / "model.skops")
    assert saved.features == ("length", "width")
    assert saved.model.get_params() == LGCPClassifier().get_params()
    np.testing.assert_equal(saved.model.mixture_, expected.mixture_)
    np.testing.assert_array_equal(saved.model.loo_predict_proba(), expected.loo_predict_proba())


def test_one_kernel_is_the_one_that_the_library_would_choose(folder):
    fit(*FEATURES, *ONE_KERNEL)
    train = pl.read_csv("train.csv")
    expected = LGCPClassifier(selection="loo_error")
    expected.fit(train["length", "width"].to_numpy(), train["species"].to_numpy().astype(str))
    saved = model_file.load(folder / "model.skops")
    # Parameters are chosen where the loss is flat: to about half of the digits.
    np.testing.assert_allclose(saved.model.kernel_.theta, expected.kernel_.theta, rtol=1e-6)


def test_summary_says_what_was_fitted(folder):
    lines = summary(*FEATURES)
    model = model_file.load(folder / "model.skops").model
    counts = pl.read_csv("train.csv")["species"].value_counts().sort("species")["count"].to_list()
    found, worth = model.loo_predict(), model.feature_importance()["importance"]
    wrong = [sum(found[model.y_fit_ == code] != label) for code, label in enumerate(["cat", "dog"])]
    ordered = sorted(zip(worth, ["length", "width"], strict=True), reverse=True)
    assert lines == {
        "Read": "2 numbers",
        "Rows": "80",
        "Features": "2 (length, width)",
        "Classes": f"2 (cat: {counts[0]}, dog: {counts[1]})",
        "Leave-one-out error": f"{model.loo_error_:.4g}",
        "Error of the most common class": f"{min(counts) / 80:.4g}, always {'cat' if counts[0] > counts[1] else 'dog'}",
        "Errors with the weights in use": (
            f"{sum(wrong)} of 80 (cat: {wrong[0]} of {counts[0]}, dog: {wrong[1]} of {counts[1]})"
        ),
        "What matters": ", ".join(f"{name} {value:.2g}" for value, name in ordered) + " (growth of the log loss)",
        "Model": "model.skops",
    }


def test_summary_has_a_line_per_member_of_the_mixture_by_its_share(folder):
    lines = summary(*FEATURES, "--details")
    mixture = model_file.load(folder / "model.skops").model.mixture_
    for number, k in enumerate(np.argsort(-mixture["share"]), start=1):
        share, name, scale, alpha = (mixture[key][k] for key in ("share", "representation", "length_scale", "alpha"))
        assert lines[f"Covariance {number}"] == (
            f"{100 * share:.1f}% {name}, length scale {scale:.3g}, density power {alpha:g}"
        )


def test_summary_of_one_kernel_says_which(folder):
    lines = summary(*FEATURES, *ONE_KERNEL)
    model = model_file.load(folder / "model.skops").model
    counts = pl.read_csv("train.csv")["species"].value_counts().sort("species")["count"].to_list()
    expected = {
        "Rows": "80",
        "Features": "2 (length, width)",
        "Classes": f"2 (cat: {counts[0]}, dog: {counts[1]})",
        "Kernel": str(model.kernel_),
        "Leave-one-out error": f"{model.loo_error_:.4g}",
        "Model": "model.skops",
    }
    assert expected.items() <= lines.items()


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
    model = model_file.load(folder / "model.skops").model
    expected = LGCPClassifier(model.kernel_, mean=dict(zip(model.classes_, model.mean_, strict=True)), selection=None)
    expected.fit(repeated["length", "width"].to_numpy(), repeated["species"].to_numpy().astype(str))
    X = pl.read_csv("new.csv")["length", "width"].to_numpy()
    # Squared distances are below a million squared length scales, so kernel values keep nine digits.
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), rtol=1e-7)


def test_a_given_length_scale_is_used_in_all_representations(folder):
    fit(*FEATURES, "--length-scale", "0.5")
    mixture = model_file.load(folder / "model.skops").model.mixture_
    assert set(mixture["length_scale"]) == {0.5}


def test_a_given_length_scale_is_used_and_the_variance_still_chosen(folder):
    fit(*FEATURES, *ONE_KERNEL, "--length-scale", "0.5")
    kernel = model_file.load(folder / "model.skops").model.kernel_
    assert kernel.k2.length_scale == 0.5
    assert kernel.k1.constant_value != 1


@pytest.mark.parametrize("selection", [option for option in SELECTIONS if option is not None])
def test_selection_reaches_the_classifier(folder, selection):
    fit(*FEATURES, "--selection", selection)
    assert model_file.load(folder / "model.skops").model.selection == selection


def test_the_first_selection_is_the_default_of_the_library():
    assert next(iter(Selection)) == LGCPClassifier().selection


@pytest.mark.usefixtures("folder")
def test_help_explains_every_selection():
    text = " ".join(run("fit", "--help").stdout.split())
    for selection in Selection:
        assert f"{selection}:" in text or f"{selection}, " in text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("inf", "Column 'width' of {} holds inf in row 3"),
        ("-Infinity", "Column 'width' of {} holds -inf in row 3"),
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
        (["train.xls", "-t", "species"], "The ending of train.xls is none of .csv, .tsv, .txt, .csv.gz"),
        (["train.csv", "-t", "genus"], "train.csv has no column 'genus'; it has 'name', 'length'"),
        (["train.csv", "-t", "species", "--id", "nr"], "train.csv has no column 'nr'"),
        (["train.csv", "-t", "species", "-w", "notes", *FEATURES], "Column 'notes' of train.csv holds text"),
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
def test_targets_that_are_all_blank_are_refused():
    pl.read_csv("train.csv").with_columns(species=pl.lit("")).write_csv("train.csv")
    assert "Column 'species' of train.csv is blank in 80 of 80 rows, first in row 1" in refusal(
        "fit", "train.csv", "-t", "species", *FEATURES, "-o", "model.skops"
    )


def test_ids_of_the_rows_that_count_are_kept_as_text(folder):
    train = pl.read_csv("train.csv", schema_overrides={"name": pl.String})
    train.with_columns(weight=pl.int_range(80) % 3).write_csv("train.csv")
    fit("--id", "name", *FEATURES)
    assert model_file.load(folder / "model.skops").ids.texts == tuple(train["name"])
    fit("--id", "name", "-w", "weight", *FEATURES)
    saved = model_file.load(folder / "model.skops")
    assert saved.ids.texts == tuple(name for row, name in enumerate(train["name"]) if row % 3)
    assert len(saved.model.y_fit_) == len(saved.ids)
    fit(*FEATURES)
    assert model_file.load(folder / "model.skops").ids is None


def test_rows_may_share_an_id_but_each_needs_one(folder):
    train = pl.read_csv("train.csv")
    train.with_columns(name=pl.int_range(80) // 2).write_csv("train.csv")
    fit("--id", "name", *FEATURES)
    assert model_file.load(folder / "model.skops").ids.texts[:4] == ("0", "0", "1", "1")
    spoil("name", None)
    sentence = refusal("fit", "train.csv", "-t", "species", "--id", "name", *FEATURES, "-o", "model.skops")
    assert "Column 'name' of train.csv is blank in 1 of 80 rows, first in row 3" in sentence


def test_the_covariance_can_be_chosen_from_a_part_of_the_rows(folder):
    masks = {}
    for seed in ("0", "0", "1"):
        fit(*FEATURES, "--selection-part", "0.5", "--seed", seed)
        model = model_file.load(folder / "model.skops").model
        assert (model.selection_part, model.random_state) == (0.5, int(seed))
        chosen = model._training.rows.chosen_from
        assert (chosen.sum(), len(chosen)) == (40, 80)
        assert masks.setdefault(seed, chosen.tolist()) == chosen.tolist()
    assert masks["0"] != masks["1"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("part", ["0", "1.5", "-1", "nan"])
def test_a_part_that_makes_no_sense_is_refused(part):
    sentence = refusal("fit", "train.csv", "-t", "species", "-o", "model.skops", "--selection-part", part, code=2)
    assert f"--selection-part must be above 0 and at most 1, got {part}" in sentence


@pytest.mark.usefixtures("folder")
def test_a_part_without_some_class_is_refused_in_one_sentence():
    words = ["fit", "train.csv", "-t", "species", *FEATURES, "-o", "model.skops"]
    assert "has drawn 1 of 80 rows and none of the class" in refusal(*words, "--selection-part", "0.01")
