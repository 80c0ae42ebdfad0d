"""The command line, as a person types it and as a program pipes it."""

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from coxfield import LGCPClassifier, SLGCPClassifier, __version__
from coxfield.apps.cli.app import app
from coxfield.io import model_file

RNG = np.random.default_rng(3)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def _same_numbers_in_every_test():
    RNG.bit_generator.state = START


def flowers(n, target=("cat", "dog")):
    """Rows of two noisy classes, with an id that must not lose its zeros, a text and a weight."""
    codes = RNG.integers(0, 2, n)
    return pl.DataFrame(
        {
            "name": [f"{i:03d}" for i in range(n)],
            "length": codes + RNG.normal(scale=0.6, size=n),
            "width": RNG.normal(size=n) - codes,
            "notes": ["some text"] * n,
            "weight": RNG.integers(1, 3, n),
            "species": [target[code] for code in codes],
        }
    )


FEATURES = ["-f", "length", "-f", "width"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a table to fit and one to predict."""
    monkeypatch.chdir(tmp_path)
    flowers(80).write_csv("train.csv")
    flowers(30).write_csv("new.csv")
    return tmp_path


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refusal(*arguments, code=1):
    """The sentence on standard error of a command that must fail, without a word on standard output."""
    result = run(*arguments, code=code)
    assert result.stdout == ""
    return result.stderr


def fit(*arguments, **options):
    return run("fit", "train.csv", "-t", "species", "-o", "model.skops", *arguments, **options)


def predictions(*arguments, **options):
    result = run("predict", "model.skops", "new.csv", *arguments, **options)
    return pl.read_csv(result.stdout_bytes, schema_overrides={"name": pl.String})


def test_fit_saves_the_model_that_the_library_would_fit(folder):
    fit(*FEATURES)
    train = pl.read_csv("train.csv")
    expected = LGCPClassifier().fit(train["length", "width"].to_numpy(), train["species"].to_numpy().astype(str))
    saved = model_file.load(folder / "model.skops")
    assert saved.features == ("length", "width")
    assert saved.model.kernel_ == expected.kernel_
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
    ("options", "message"),
    [
        (["--length-scale", "0"], "must be positive and finite, got 0"),
        (["--length-scale", "nan"], "must be positive and finite, got nan"),
        (["--id", "species"], "must be different columns"),
        (["--feature", "length", "--drop", "notes"], "leave --drop away"),
        (["--selection", "best"], "'best' is not one of"),
    ],
)
def test_contradictory_options_are_misuse(folder, options, message):
    sentence = refusal("fit", "train.csv", "-t", "species", "-o", "model.skops", *options, code=2)
    assert message in " ".join(sentence.split())
    assert not (folder / "model.skops").exists()


@pytest.mark.usefixtures("folder")
def test_missing_options_and_contradictions_of_predict_are_misuse():
    assert "--target" in refusal("fit", "train.csv", "-o", "model.skops", code=2)
    assert "--output" in refusal("fit", "train.csv", "-t", "species", code=2)
    assert "contradict" in refusal("predict", "model.skops", "new.csv", "--id", "name", "--no-id", code=2)


@pytest.mark.usefixtures("folder")
def test_predictions_are_those_of_the_library():
    fit("--id", "name", *FEATURES)
    result = predictions("--proba")
    new = pl.read_csv("new.csv", schema_overrides={"name": pl.String})
    train = pl.read_csv("train.csv")
    model = LGCPClassifier().fit(train["length", "width"].to_numpy(), train["species"].to_numpy().astype(str))
    X = new["length", "width"].to_numpy()
    assert result.columns == ["name", "species", "proba_cat", "proba_dog"]
    assert result["name"].to_list() == new["name"].to_list()
    assert result["species"].to_list() == model.predict(X).tolist()
    np.testing.assert_array_equal(result["proba_cat", "proba_dog"].to_numpy(), model.predict_proba(X))


@pytest.mark.usefixtures("folder")
def test_many_rows_are_predicted_in_order(monkeypatch):
    fit("--id", "name", *FEATURES)
    whole = predictions("--proba")
    monkeypatch.setattr("coxfield.apps.cli.predict.ROWS_AT_ONCE", 7)
    parts = predictions("--proba")
    assert_frame_equal(parts, whole)


@pytest.mark.usefixtures("folder")
def test_columns_are_found_by_name():
    fit("--id", "name", *FEATURES)
    expected = predictions("--proba")
    new = pl.read_csv("new.csv", schema_overrides={"name": pl.String})
    new.select("width", pl.lit("?").alias("extra"), "name", "length").write_csv("new.csv")
    assert_frame_equal(predictions("--proba"), expected)


@pytest.mark.usefixtures("folder")
def test_id_column_can_be_changed_and_left_away():
    fit("--id", "name", *FEATURES)
    assert predictions("--no-id").columns == ["species"]
    assert predictions("--id", "notes").columns == ["notes", "species"]
    pl.read_csv("new.csv").drop("name").write_csv("new.csv")
    assert "no id column 'name': name another with --id" in refusal("predict", "model.skops", "new.csv")
    assert predictions("--no-id").height == 30


@pytest.mark.usefixtures("folder")
def test_a_feature_can_serve_as_id():
    fit(*FEATURES)
    assert_frame_equal(predictions("--id", "width")["width"].to_frame(), pl.read_csv("new.csv")["width"].to_frame())


@pytest.mark.usefixtures("folder")
def test_id_that_would_be_mistaken_for_a_prediction_is_refused():
    fit(*FEATURES)
    sentence = refusal("predict", "model.skops", "new.csv", "--id", "species")
    assert "'species' has the name of a column of predictions" in sentence


@pytest.mark.parametrize(
    ("labels", "kind", "columns"),
    [
        (("cat", "dog"), pl.String, ["proba_cat", "proba_dog"]),
        ((7, -3), pl.Int64, ["proba_-3", "proba_7"]),
        ((False, True), pl.Boolean, ["proba_false", "proba_true"]),
        (("007", "012"), pl.String, ["proba_007", "proba_012"]),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_labels_come_out_as_they_went_in(tmp_path, monkeypatch, labels, kind, columns, ending):
    monkeypatch.chdir(tmp_path)
    rows = flowers(40, labels)
    rows.write_csv("train.csv")
    rows.write_parquet("train.parquet")
    for table in ("train.csv", "train.parquet"):
        run("fit", table, "-t", "species", *FEATURES, "-o", "model.skops")
        run("predict", "model.skops", table, "--proba", "-o", f"out{ending}")
        if ending == ".parquet":
            out = pl.read_parquet("out.parquet")
            assert out["species"].dtype == kind
        else:
            out = pl.read_csv(f"out{ending}", infer_schema=False)
        assert out.columns == ["species", *columns]
        written = {str(label).lower() if isinstance(label, bool) else str(label) for label in labels}
        assert set(out["species"].cast(pl.String)) == written


@pytest.mark.usefixtures("folder")
def test_csv_and_parquet_make_the_same_predictions():
    for name in ("train", "new"):
        pl.read_csv(f"{name}.csv", schema_overrides={"name": pl.String}).write_parquet(f"{name}.parquet")
    fit("--id", "name", *FEATURES)
    run("predict", "model.skops", "new.csv", "-p", "-o", "from_csv.parquet")
    run("fit", "train.parquet", "-t", "species", "--id", "name", *FEATURES, "-o", "model.skops")
    run("predict", "model.skops", "new.parquet", "-p", "-o", "from_parquet.parquet")
    assert_frame_equal(pl.read_parquet("from_csv.parquet"), pl.read_parquet("from_parquet.parquet"), check_exact=True)


@pytest.mark.usefixtures("folder")
def test_error_rate_of_known_labels_goes_to_standard_error():
    fit(*FEATURES)
    new = pl.read_csv("new.csv")
    wrong = (predictions()["species"] != new["species"]).sum()
    assert 0 < wrong < 30
    result = run("predict", "model.skops", "new.csv")
    assert result.stderr == f"Error rate {wrong / 30:.4g} ({wrong} of 30 rows)\n"
    half = pl.when(pl.int_range(30) < 10).then("species").alias("species")
    new.with_columns(half).write_csv("new.csv")
    wrong = (predictions()["species"] != new["species"]).head(10).sum()
    assert f"({wrong} of 10 rows)" in run("predict", "model.skops", "new.csv").stderr
    new.drop("species").write_csv("new.csv")
    assert run("predict", "model.skops", "new.csv").stderr == ""


@pytest.mark.usefixtures("folder")
def test_integers_where_the_model_knows_strings_are_compared_as_text():
    rows = flowers(40, ("1", "x"))
    rows.write_csv("train.csv")
    fit(*FEATURES)
    rows.filter(pl.col("species") == "1").write_csv("new.csv")
    wrong = (predictions()["species"].cast(pl.String) != "1").sum()
    assert f"({wrong} of " in run("predict", "model.skops", "new.csv").stderr


@pytest.mark.usefixtures("folder")
def test_labels_of_another_kind_have_no_error_rate():
    fit(*FEATURES)
    flowers(10, (0, 1)).write_csv("new.csv")
    sentence = run("predict", "model.skops", "new.csv").stderr
    assert sentence == "No error rate: 'species' of new.csv holds none of the model's classes\n"


def spoil(column, value):
    """Write `value` into the third row of a column of new.csv and train.csv."""
    third = pl.when(pl.int_range(pl.len()) == 2)
    for name in ("train.csv", "new.csv"):
        rows = pl.read_csv(name, infer_schema=False)
        rows.with_columns(third.then(pl.lit(value)).otherwise(column).alias(column)).write_csv(name)


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
        (["train.csv", "-t", "width", "-f", "length"], "which are quantities rather than classes"),
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


def test_outputs_are_checked_before_anything_is_read(folder):
    before = (folder / "new.csv").read_bytes()
    assert "ends in .skops" in refusal("fit", "absent.csv", "-t", "species", "-o", "train.csv")
    assert "There is no folder" in refusal("fit", "absent.csv", "-t", "species", "-o", "x/model.skops")
    assert "is none of" in refusal("predict", "absent.skops", "new.csv", "-o", "out.txt")
    assert "is read from" in refusal("predict", "absent.skops", "new.csv", "-o", "new.csv")
    assert (folder / "new.csv").read_bytes() == before


@pytest.mark.usefixtures("folder")
def test_predict_names_missing_columns_and_files():
    fit(*FEATURES)
    assert "There is no file absent.skops" in refusal("predict", "absent.skops", "new.csv")
    assert "train.csv is not a model" in refusal("predict", "train.csv", "new.csv")
    pl.read_csv("new.csv").drop("length", "width").write_csv("new.csv")
    assert "new.csv has no columns 'length', 'width'" in refusal("predict", "model.skops", "new.csv")


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


@pytest.mark.usefixtures("folder")
def test_standard_input_is_csv():
    fit("--id", "name", *FEATURES)
    piped = run("predict", "model.skops", "-", input=Path("new.csv").read_bytes()).stdout
    assert piped == run("predict", "model.skops", "new.csv").stdout
    assert "standard input is empty" in run("predict", "model.skops", "-", input="", code=1).stderr


def partly_labelled(n=40, target=("cat", "dog"), known=5):
    """Rows in two clouds, of which every `known`-th has its label."""
    codes = np.arange(n) % 2
    labels = [target[code] if i % known == 0 else None for i, code in enumerate(codes)]
    return pl.DataFrame(
        {
            "name": [f"{i:03d}" for i in range(n)],
            "length": 3 * codes + RNG.normal(scale=0.8, size=n),
            "species": labels,
            "width": RNG.normal(size=n) - codes,
            "code": [f"0{i}" for i in range(n)],
        }
    )


def library_labels(rows, **parameters):
    """What the library makes of the same table."""
    y = np.array(rows["species"].to_list(), dtype=object)
    return SLGCPClassifier(missing_label=None, **parameters).fit(rows["length", "width"].to_numpy(), y)


@pytest.fixture
def data(folder):
    """A table to label, in the working folder too."""
    rows = partly_labelled()
    rows.write_csv("data.csv")
    rows.write_parquet("data.parquet")
    return rows


LABEL = ["label", "data.csv", "-t", "species", *FEATURES]
QUICK = ["--length-scale", "0.7"]


def labelled(*arguments, table="data.csv", **options):
    result = run("label", table, "-t", "species", *FEATURES, *arguments, **options)
    return pl.read_csv(result.stdout_bytes, schema_overrides={"name": pl.String, "code": pl.String})


@pytest.mark.usefixtures("folder")
def test_labels_and_proofs_are_those_of_the_library():
    data = partly_labelled(20)
    data.write_csv("data.csv")
    result, model = labelled(), library_labels(data)
    assert 0 < (model.transduction_ == "dog").sum() < 20
    assert result["species"].to_list() == model.transduction_.tolist()
    assert result["certified"].to_list() == model.certified_.tolist()
    assert result["given"].to_list() == data["species"].is_not_null().to_list()


def test_scores_are_what_the_given_labels_say(data):
    result, known = labelled(*QUICK), data["species"].is_not_null()
    X = data["length", "width"].to_numpy()
    alone = LGCPClassifier(library_labels(data, length_scales=[0.7]).kernel_, selection=None)
    alone.fit(X[known], data["species"].filter(known).to_numpy())
    np.testing.assert_array_equal(result["score_cat", "score_dog"].to_numpy(), alone.class_scores(X))


def test_the_table_is_kept_and_columns_are_added_behind(data):
    result = labelled(*QUICK)
    assert result.columns == [*data.columns, "given", "certified", "score_cat", "score_dog"]
    kept = result.with_columns(pl.when("given").then("species").alias("species"))
    assert_frame_equal(kept.select(data.columns), data, check_exact=True)


def test_columns_that_are_no_features_come_out_as_they_were_written(data):
    for choice in (FEATURES, ["--id", "name", "--drop", "code"]):
        run("label", "data.csv", "-t", "species", *choice, *QUICK, "-o", "out.csv")
        out = pl.read_csv("out.csv", infer_schema=False)
        assert out["name", "code"].rows() == data["name", "code"].rows()


def test_labels_not_proven_are_not_certified(data, monkeypatch):
    fitted = SLGCPClassifier.fit

    def fit_and_doubt(self, X, y):
        fitted(self, X, y)
        self.certified_[[1, 2]] = False
        return self

    monkeypatch.setattr(SLGCPClassifier, "fit", fit_and_doubt)
    result = run(*LABEL, *QUICK, "-o", "out.csv", "--plot", "out.svg")
    assert np.flatnonzero(~pl.read_csv("out.csv")["certified"]).tolist() == [1, 2]
    assert "Certified: 30 of the 32 labels found (93.7%)" in result.stderr
    assert "found, not proven: 2" in Path("out.svg").read_text()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("labels", "kind", "columns"),
    [
        ((7, -1), pl.Int64, ["score_-1", "score_7"]),
        ((False, True), pl.Boolean, ["score_false", "score_true"]),
        (("007", "012"), pl.String, ["score_007", "score_012"]),
        ((1.0, 2.0), None, ["score_1.0", "score_2.0"]),
    ],
)
def test_labels_found_are_of_the_kind_of_those_given(labels, kind, columns):
    rows = partly_labelled(target=labels)
    rows.write_csv("data.csv")
    rows.write_parquet("data.parquet")
    expected = library_labels(rows, length_scales=[0.7]).transduction_.tolist()
    for table in ("data.csv", "data.parquet"):
        run("label", table, "-t", "species", *FEATURES, *QUICK, "-o", "out.parquet")
        out = pl.read_parquet("out.parquet")
        assert out.columns[-2:] == columns
        assert out["species"].dtype == (kind or (pl.String if table == "data.csv" else pl.Float64))
        assert out["species"].cast(pl.String).to_list() == pl.Series(expected).cast(pl.String).to_list()


@pytest.mark.usefixtures("folder")
def test_categories_stay_categories():
    kind = pl.Enum(["dog", "bird", "cat"])
    rows = partly_labelled().with_columns(pl.col("species").cast(kind))
    rows.write_parquet("data.parquet")
    run("label", "data.parquet", "-t", "species", *FEATURES, *QUICK, "-o", "out.parquet")
    out = pl.read_parquet("out.parquet")
    assert out["species"].dtype == kind
    assert out["species"].to_list() == library_labels(rows, length_scales=[0.7]).transduction_.tolist()


@pytest.mark.usefixtures("data")
def test_csv_and_parquet_are_labelled_alike():
    run(*LABEL, *QUICK, "-o", "from_csv.parquet")
    run("label", "data.parquet", "-t", "species", *FEATURES, *QUICK, "-o", "from_parquet.parquet")
    same = pl.col("name", "code").cast(pl.String)
    from_csv, from_parquet = (pl.read_parquet(f"from_{name}.parquet") for name in ("csv", "parquet"))
    assert_frame_equal(from_csv.with_columns(same), from_parquet.with_columns(same), check_exact=True)
    run("label", "data.parquet", "-t", "species", *FEATURES, *QUICK, "-o", "out.csv.gz")
    assert_frame_equal(pl.read_csv("out.csv.gz"), pl.read_csv(from_parquet.write_csv().encode()), check_exact=True)


@pytest.mark.usefixtures("data")
def test_blank_strings_are_to_be_labelled_too():
    expected = labelled(*QUICK)
    text = Path("data.csv").read_text().splitlines()
    Path("data.csv").write_text("\n".join(line.replace(",,", ",  ,") for line in text))
    assert_frame_equal(labelled(*QUICK), expected)


@pytest.mark.usefixtures("data")
def test_tables_are_labelled_from_standard_input_to_standard_output():
    piped = run("label", "-", "-t", "species", *FEATURES, *QUICK, input=Path("data.csv").read_bytes())
    assert piped.stdout == run(*LABEL, *QUICK).stdout
    run(*LABEL, *QUICK, "-o", "out.csv")
    assert Path("out.csv").read_text() == piped.stdout


def test_label_sums_up_on_standard_error(data):
    result = run(*LABEL, *QUICK, "-o", "out.csv", "--plot", "out.png")
    model = library_labels(data, length_scales=[0.7])
    lines = dict(line.split(": ", 1) for line in result.stderr.splitlines())
    cats = (model.transduction_ == "cat").sum()
    path = model.selection_path_
    assert result.stdout == ""
    assert lines == {
        "Rows": "40 (8 labelled, 32 blank)",
        "Features": "2 (length, width)",
        "Classes": f"2 (cat: 4 -> {cats}, dog: 4 -> {40 - cats})",
        "Kernel": str(model.kernel_),
        "Cross-validation error": f"{path['cv_error'][path['chosen']].item():.4g}",
        "Energy": f"{model.energy_:.10g}",
        "Relative gap": f"{model.result_.relative_gap:.2g} (up to 1e-09 counts as none)",
        "Certified": "32 of the 32 labels found (100%)",
        "Table": "out.csv",
        "Picture": "out.png",
    }


@pytest.mark.usefixtures("data")
def test_one_class_for_all_is_warned_of_in_a_sentence_even_if_quiet():
    result = run(*LABEL, "--length-scale", "1000", "--quiet")
    found = set(pl.read_csv(result.stdout_bytes).filter(~pl.col("given"))["species"])
    assert len(found) == 1
    assert result.stderr.startswith(f"Warning: the most probable labelling gives all 32 blank rows to {found.pop()}, ")
    assert result.stderr.endswith("try a shorter --length-scale\n")
    assert result.stderr.count("\n") == 1
    assert run(*LABEL, *QUICK, "--quiet").stderr == ""


def test_marginals_come_with_probabilities(data):
    chosen = ["--inference", "marginals", "--seed", "3"]
    result = run(*LABEL, *QUICK, *chosen, "-o", "out.csv", "--plot", "out.svg")
    out = pl.read_csv("out.csv")
    model = library_labels(data, length_scales=[0.7], inference="marginals", random_state=3)
    added = ["given", "score_cat", "score_dog", "probability_cat", "probability_dog"]
    assert out.columns == [*data.columns, *added]
    assert out["species"].to_list() == model.transduction_.tolist()
    np.testing.assert_array_equal(out["probability_cat", "probability_dog"].to_numpy(), model.label_distributions_)
    lines = dict(line.split(": ", 1) for line in result.stderr.splitlines())
    doubt = (1 - model.label_distributions_.max(axis=1)).sum()
    assert lines["Errors to expect"] == f"{doubt:.1f} of the 32 labels found, if the model is right"
    assert "Certified" not in lines
    assert "found, not proven: 32" in Path("out.svg").read_text()
    data.with_columns(probability_dog=pl.lit(1)).write_csv("data.csv")
    assert "has a column 'probability_dog' already" in refusal(*LABEL, *QUICK, *chosen)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_pictures_are_drawn_in_the_format_of_their_ending(ending, start):
    for name in ("one", "two"):
        run(*LABEL, *QUICK, "-o", "out.csv", "--plot", f"{name}.{ending}")
    picture = Path(f"one.{ending}").read_bytes()
    assert picture.startswith(start)
    assert picture == Path(f"two.{ending}").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"species": pl.lit("cat")}, "has no blank cell, so there is nothing to label: .* use coxfield fit"),
        ({"species": pl.lit(None, pl.String)}, "Column 'species' of data.csv is blank in all 40 rows"),
        ({"species": pl.col("species").replace("dog", None)}, "holds one class only, cat"),
        ({"species": pl.col("species").replace("dog", "0.5").replace("cat", "1.5")}, "quantities rather than classes"),
        ({"width": pl.lit("wide")}, "Column 'width' of data.csv holds text, 'wide' in row 1"),
        ({"width": pl.lit(float("nan"))}, "Column 'width' of data.csv holds nan in row 1"),
        ({"width": pl.col("width").shift(1)}, "Column 'width' of data.csv is blank in row 1"),
        ({"width": pl.lit(1.0), "length": pl.lit(1.0)}, "all points are the same"),
        ({"certified": pl.lit(1)}, "data.csv has a column 'certified' already, which coxfield label is to add"),
        ({"score_dog": pl.lit(1)}, "data.csv has a column 'score_dog' already"),
    ],
)
def test_tables_that_cannot_be_labelled_are_refused_in_one_sentence(folder, data, change, message):
    data.with_columns(**change).write_csv("data.csv")
    before = set(folder.iterdir())
    sentence = refusal(*LABEL, "-o", "out.csv", "--plot", "out.png")
    assert re.search(message, sentence)
    assert sentence.startswith("Error: ")
    assert sentence.count("\n") == 1
    assert set(folder.iterdir()) == before


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-t", "genus"], 1, "data.csv has no column 'genus'; it has 'name', 'length'"),
        (["-t", "species", "-f", "height"], 1, "data.csv has no column 'height'"),
        (["-t", "species", "--id", "nr"], 1, "data.csv has no column 'nr'"),
        (["-t", "species", *FEATURES, "--plot", "out.gif"], 1, "out.gif is none of .png, .pdf, .svg"),
        (["-t", "species", *FEATURES, "--plot", "x/out.png"], 1, "There is no folder x to write out.png to"),
        (["-t", "species", *FEATURES, "-o", "out.txt"], 1, "out.txt is none of .csv"),
        (["-t", "species", *FEATURES, "-o", "data.csv"], 1, "is read from and cannot be written to"),
        (["-t", "species", "--id", "species"], 2, "--target and --id must be different columns"),
        (["-t", "species", "-f", "length", "-d", "width"], 2, "leave --drop away"),
        (["-t", "species", "-l", "-1"], 2, "must be positive and finite, got -1"),
        ([], 2, "--target"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_label(arguments, code, message):
    assert message in refusal("label", "data.csv", *arguments, code=code)


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


def test_version():
    assert run("--version").stdout == f"coxfield {__version__}\n"


@pytest.fixture
def shell(folder, monkeypatch):
    """A shell in the working folder that finds a `coxfield` command."""
    script = folder / "bin" / "coxfield"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom coxfield.apps.cli.app import main\n\nmain()\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def shell(command, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 120, **options}
        return subprocess.run(["bash", "-o", "pipefail", "-c", command], check=False, **options)

    return shell


def examples(*command):
    lines = [line.strip() for line in run(*command, "--help", env={"COLUMNS": "80"}).stdout.splitlines()]
    start = lines.index("Examples:") + 1
    return lines[start : lines.index("", start)]


@pytest.mark.parametrize("command", [(), ("fit",), ("predict",), ("label",), ("simulate",)])
def test_examples_of_the_help_work_word_for_word(folder, shell, command):
    for name, n in (("train", 40), ("new", 10)):
        numbers = pl.int_range(n).alias("plant"), pl.lit(1936).alias("year")
        rows = flowers(n).select(*numbers, "length", "width", "species")
        rows.write_csv(f"{name}.csv")
        rows.write_parquet(f"{name}.parquet")
    data = rows.with_columns(pl.when(pl.int_range(pl.len()) < 6).then("species").alias("species"))
    data.write_csv("data.csv")
    data.write_parquet("data.parquet")
    fit("--id", "plant", "--drop", "year")
    assert len(examples(*command)) >= 2
    for example in examples(*command):
        for old in (
            path for name in ("predictions", "labelled", "picture", "pattern") for path in folder.glob(f"{name}.*")
        ):
            old.unlink()
        words = shlex.split(example)
        if "reproduce" in words:  # takes minutes; `make demo` is just that
            continue
        done = shell(example)
        assert done.returncode == 0, (example, done.stderr)
        for option in {"-o", "--plot"}.intersection(words):
            assert (folder / words[words.index(option) + 1]).stat().st_size > 0
        if "-o" not in words:
            first = {"label": "plant,year,length,width,species,given,certified", "simulate": "x1,x2,x3\n"}
            assert done.stdout.startswith(first.get(words[words.index("coxfield") + 1], "plant,species\n"))


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom coxfield.apps.cli.app import app\n"
        "commands = 'fit', 'predict', 'label', 'simulate'\n"
        "for words in (['--help'], *([name, '--help'] for name in commands), ['--version']):\n"
        "    assert CliRunner().invoke(app, words).exit_code == 0\n"
        "heavy = 'numpy', 'scipy', 'sklearn', 'polars', 'skops', 'matplotlib'\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_commands_tell_a_shell_how_they_ended(shell):
    done = shell("coxfield fit absent.csv -t y -o model.skops")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Error: There is no file absent.csv\n")
    assert shell("coxfield fit train.csv").returncode == 2
    assert shell("coxfield frobnicate").returncode == 2


def test_predictions_can_be_piped_and_nobody_is_shown_a_bar(folder, shell):
    done = shell(f"coxfield fit train.csv -t species --id name {' '.join(FEATURES)} -o model.skops | grep Rows")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Rows: 80\n", "")
    (folder / "many.csv").write_text(flowers(20_000).drop("species").write_csv())
    done = shell("set +o pipefail; coxfield predict model.skops many.csv --proba | head -n 1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "name,species,proba_cat,proba_dog\n", "")


def test_a_person_sees_a_bar_and_a_summary(folder, shell):
    terminal, side = pty.openpty()
    command = f"coxfield fit train.csv -t species {' '.join(FEATURES)} -o model.skops"
    seen = _at_terminal(shell, command, terminal, side)
    assert "leave-one-out, 24 length scales" in seen
    assert "100%" in seen
    assert "Leave-one-out error" in seen
    assert "Rows:" not in seen
    assert (folder / "model.skops").exists()


@pytest.mark.usefixtures("data")
def test_a_person_sees_a_bar_while_rows_are_labelled(shell):
    terminal, side = pty.openpty()
    seen = _at_terminal(shell, f"coxfield {' '.join([*LABEL, *QUICK])} -o out.csv", terminal, side)
    assert "cross validation, 1 length scale" in seen
    assert "100%" in seen
    assert "Cross-validation error" in seen
    assert "Rows:" not in seen


def test_a_person_who_wants_quiet_has_it(shell):
    terminal, side = pty.openpty()
    assert (
        _at_terminal(shell, f"coxfield fit train.csv -t species {' '.join(FEATURES)} -o m.skops -q", terminal, side)
        == ""
    )


def _at_terminal(shell, command, terminal, side):
    """Run a command whose output is a terminal, and return what it shows."""
    try:
        done = shell(command, stdout=side, stderr=side)
    finally:
        os.close(side)
    assert done.returncode == 0
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(terminal)
    return shown.decode()
