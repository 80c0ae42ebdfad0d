"""`coxfield predict`: the predictions of the library, in the order and with the ids of the table."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from command_line import FEATURES, ONE_KERNEL, fit, flowers, predictions, refusal, run
from coxfield import LGCPClassifier
from model_archives import change_array
from tolerances import assert_same_decisions


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("selection", ["mixture", "loo_error"])
def test_predictions_are_those_of_the_library(selection):
    chosen = [] if selection == LGCPClassifier().selection else ["--selection", selection]
    fit("--id", "name", *FEATURES, *chosen)
    result = predictions("--proba")
    new = pl.read_csv("new.csv", schema_overrides={"name": pl.String})
    train = pl.read_csv("train.csv")
    model = LGCPClassifier(selection=selection)
    model.fit(train["length", "width"].to_numpy(), train["species"].to_numpy().astype(str))
    X = new["length", "width"].to_numpy()
    assert result.columns == ["name", "species", "proba_cat", "proba_dog"]
    assert result["name"].to_list() == new["name"].to_list()
    probabilities = result["proba_cat", "proba_dog"].to_numpy()
    # Signal variance and weights are chosen where the loss is flat: to about half of the digits.
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=1e-6)
    assert_same_decisions(result["species"].to_numpy(), model.predict(X), probabilities, margin=1e-6)


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
    assert "no id column 'name': name another column with --id" in refusal("predict", "model.skops", "new.csv")
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


@pytest.mark.usefixtures("folder")
def test_predict_names_missing_columns_and_files():
    fit(*FEATURES)
    assert "There is no file absent.skops" in refusal("predict", "absent.skops", "new.csv")
    assert "train.csv is not a model" in refusal("predict", "train.csv", "new.csv")
    pl.read_csv("new.csv").drop("length", "width").write_csv("new.csv")
    assert "new.csv has no columns 'length', 'width'" in refusal("predict", "model.skops", "new.csv")


@pytest.mark.usefixtures("folder")
def test_standard_input_is_csv():
    fit("--id", "name", *FEATURES)
    piped = run("predict", "model.skops", "-", input=Path("new.csv").read_bytes()).stdout
    assert piped == run("predict", "model.skops", "new.csv").stdout
    assert "standard input is empty" in run("predict", "model.skops", "-", input="", code=1).stderr


@pytest.mark.usefixtures("folder")
def test_classes_and_probabilities_come_from_one_pass(monkeypatch):
    fit(*FEATURES)
    expected = predictions("--proba")
    for twice in ("predict", "predict_proba"):
        monkeypatch.setattr(LGCPClassifier, twice, None)
    assert_frame_equal(predictions("--proba"), expected)


def test_a_model_that_no_fit_makes_is_refused_and_nothing_is_written(folder):
    fit(*FEATURES)
    change_array(folder / "model.skops", ["mean_"], lambda mean: mean * np.nan)
    sentence = refusal("predict", "model.skops", "new.csv", "-o", "out.csv")
    because = "mean_ holds numbers that are not finite: fit the model again"
    assert sentence == f"Error: model.skops cannot be used as a model, because {because}\n"
    assert not (folder / "out.csv").exists()


@pytest.mark.usefixtures("folder")
def test_ids_and_true_classes_of_odd_types_cause_no_traceback():
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    odd = pl.read_csv("new.csv").with_columns(pl.concat_list("name"), pl.duration(days="weight").alias("species"))
    odd.write_parquet("new.parquet")
    sentence = refusal("predict", "model.skops", "new.parquet", "-o", "out.csv")
    assert sentence.startswith("Error: Column 'name' is of type List(Int64), which CSV cannot hold: ")
    assert run("predict", "model.skops", "new.parquet", "-o", "out.parquet").stderr == "30 predictions in out.parquet\n"
