"""`coxfield update`: the model of all rows under the covariance of the first, and what is refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from command_line import FEATURES, ONE_KERNEL, fit, flowers, load, refusal_that_changes_nothing, renamed, run
from coxfield import LGCPClassifier

TEXT = {"schema_overrides": {"name": pl.String}}


@pytest.fixture
def more(folder):
    """A model with ids, and a table of more rows."""
    rows = renamed(flowers(20))
    rows.write_csv("more.csv")
    rows.write_parquet("more.parquet")
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    return rows


def update(*arguments, table="more.csv"):
    lines = run("update", "model.skops", table, *arguments).stdout.splitlines()
    return dict(line.split(": ", 1) for line in lines)


def refused(*arguments, table="more.csv", code=1):
    return refusal_that_changes_nothing("update", "model.skops", table, *arguments, code=code)


@pytest.mark.usefixtures("more")
@pytest.mark.parametrize("table", ["more.csv", "more.parquet"])
def test_the_result_is_that_of_a_fit_to_all_rows_with_the_same_covariance(table):
    kernel = load().model.kernel_
    lines = update(table=table)
    saved = load()
    both = pl.concat([pl.read_csv("train.csv", **TEXT), pl.read_csv("more.csv", **TEXT)])
    expected = LGCPClassifier(kernel, selection=None).fit(
        both["length", "width"].to_numpy(), both["species"].to_numpy().astype(str)
    )
    np.testing.assert_array_equal(saved.model.loo_predict_proba(), expected.loo_predict_proba())
    assert saved.ids.texts == tuple(both["name"])
    counts = both["species"].value_counts().sort("species")["count"].to_list()
    assert lines == {
        "Added": "20 rows",
        "Rows": "100",
        "Features": "2 (length, width)",
        "Classes": f"2 (cat: {counts[0]}, dog: {counts[1]})",
        "Kernel": str(kernel),
        "Model": "model.skops",
    }


@pytest.mark.usefixtures("more")
def test_another_file_may_take_the_new_model():
    before = Path("model.skops").read_bytes()
    assert update("-o", "newer.skops")["Model"] == "newer.skops"
    assert Path("model.skops").read_bytes() == before
    assert len(load("newer.skops").ids) == 100
    assert "ends in .skops" in refused("-o", "newer.txt")


def test_columns_are_found_by_name_and_others_are_ignored(more):
    update("-o", "one.skops")
    more.select("species", "width", "name", "length", pl.lit("?").alias("extra")).write_csv("more.csv")
    update("-o", "other.skops")
    np.testing.assert_array_equal(load("one.skops").model.X_fit_, load("other.skops").model.X_fit_)


def test_weights_count_and_rows_of_weight_zero_are_not_added(more):
    more.with_columns(weight=pl.int_range(20) % 3).write_csv("more.csv")
    assert update("-w", "weight")["Added"] == "13 rows"
    saved = load()
    assert saved.model._weights.tolist() == [1.0] * 80 + [float(row % 3) for row in range(20) if row % 3]
    assert saved.ids.texts[80:] == tuple(name for row, name in enumerate(more["name"]) if row % 3)
    assert "--weight must be a column of its own" in refused("-w", "length", code=2)
    more.with_columns(weight=pl.lit(0)).write_csv("more.csv")
    assert "sample_weight is zero everywhere" in refused("-w", "weight", "--replace")


def test_known_ids_are_refused_replaced_or_kept(more):
    old = pl.read_csv("train.csv", **TEXT)
    both = pl.concat([more.head(3), old.slice(10, 2).with_columns(length=pl.lit(7.5))])
    both.write_csv("more.csv")
    sentence = refused()
    assert "more.csv has ids that the model has already, '010', '011': give --replace" in sentence
    lines = update("--replace", "-o", "replaced.skops")
    assert (lines["Added"], lines["Replaced"], lines["Rows"]) == ("5 rows", "2 rows of 2 ids", "83")
    saved = load("replaced.skops")
    assert saved.ids.texts == (*(name for name in old["name"] if name not in ("010", "011")), *both["name"])
    assert saved.model.X_fit_[-2:, 0].tolist() == [7.5, 7.5]
    lines = update("--add", "-o", "added.skops")
    assert (lines["Added"], lines["Rows"]) == ("5 rows", "85")
    assert load("added.skops").ids.texts.count("010") == 2
    assert "contradict each other" in refused("--add", "--replace", code=2)


def test_the_whole_table_can_be_replaced(more):
    old = pl.read_csv("train.csv", **TEXT)
    old.with_columns(pl.col("length") + 1).write_csv("more.csv")
    assert update("--replace")["Replaced"] == "80 rows of 80 ids"
    assert load().ids.texts == tuple(old["name"])


@pytest.mark.parametrize("again", [[], ["--reselect"]])
def test_the_whole_table_of_a_mixture_can_be_replaced(more, again):
    fit("--id", "name", *FEATURES, "-l", "0.7")
    pl.read_csv("train.csv", **TEXT).with_columns(pl.col("length") + 1).write_csv("more.csv")
    assert update("--replace", *again)["Rows"] == "80"


def test_new_classes_are_refused_unless_they_are_announced(more):
    changed = pl.when(pl.int_range(20) < 4).then(pl.lit("cow")).otherwise("species").alias("species")
    more.with_columns(changed).write_csv("more.csv")
    sentence = refused()
    assert "holds the class cow in row 1, which is new to the model" in sentence
    assert "known are cat, dog" in sentence
    assert "cow: 4" in update("--new-classes")["Classes"]
    model = load().model
    assert model.classes_.tolist() == ["cat", "cow", "dog"]
    more.head(4).select("name").write_csv("gone.csv")
    run("forget", "model.skops", "gone.csv")
    assert load().model.classes_.tolist() == ["cat", "dog"]  # its name may be personal


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("labels", [(7, -3), (False, True), ("007", "012")])
@pytest.mark.parametrize("table", ["more.csv", "more.parquet"])
def test_labels_of_all_kinds(labels, table):
    flowers(40, labels).write_csv("train.csv")
    rows = renamed(flowers(10, labels))
    rows.write_csv("more.csv")
    rows.write_parquet("more.parquet")
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    update(table=table)
    model = load().model
    assert model.classes_.tolist() == sorted(labels)
    assert model.classes_[model.y_fit_[40:]].tolist() == rows["species"].to_list()


@pytest.mark.usefixtures("folder")
def test_integer_ids_are_found_in_csv_and_parquet():
    flowers(40).with_columns(name=pl.int_range(40)).write_csv("train.csv")
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    flowers(2).with_columns(name=pl.Series([3, 99])).write_parquet("more.parquet")
    assert "has ids that the model has already, '3':" in refused(table="more.parquet")
    assert update("--replace", table="more.parquet")["Rows"] == "41"
    assert load().ids.texts[-2:] == ("3", "99")


def test_the_covariance_can_be_chosen_again(more):
    lines = update("--reselect")
    both = pl.concat([pl.read_csv("train.csv", **TEXT), more])
    model = LGCPClassifier(selection="loo_error")
    model.fit(both["length", "width"].to_numpy(), both["species"].to_numpy().astype(str))
    assert lines["Leave-one-out error"] == f"{model.loo_error_:.4g}"
    # Parameters are chosen where the loss is flat: to about half of the digits.
    np.testing.assert_allclose(load().model.kernel_.theta, model.kernel_.theta, rtol=1e-6)
    assert load().model.get_params() == LGCPClassifier(selection="loo_error").get_params()


@pytest.mark.usefixtures("more")
def test_a_model_without_ids_needs_none():
    fit(*FEATURES, *ONE_KERNEL)
    pl.read_csv("more.csv").drop("name").write_csv("more.csv")
    assert update()["Rows"] == update("-o", "newer.skops")["Rows"].replace("120", "100")
    assert load().ids is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows.drop("width"), "more.csv has no column 'width'"),
        (lambda rows: rows.drop("species"), "more.csv has no column 'species'"),
        (lambda rows: rows.drop("name"), "more.csv has no column 'name'"),
        (lambda rows: rows.with_columns(width=pl.lit("x")), "Column 'width' of more.csv holds text, 'x' in row 1"),
        (lambda rows: rows.with_columns(name=pl.lit(None)), "Column 'name' of more.csv is blank in 20 of 20 rows"),
        (lambda rows: rows.with_columns(species=pl.lit("")), "Column 'species' of more.csv is blank in 20 of 20 rows"),
        (lambda rows: rows.head(0), "more.csv has a header but no rows"),
    ],
)
def test_tables_that_do_not_fit_are_refused_and_change_nothing(more, change, sentence):
    change(more).write_csv("more.csv")
    assert sentence in refused()


def test_rows_that_are_far_from_all_others_do_no_harm(more):
    fit("--id", "name", *FEATURES)
    more.with_columns(pl.col("length", "width") * 1e12).write_csv("more.csv")
    assert update()["Rows"] == "100"
    assert update("--add", "--reselect")["Rows"] == "120"


@pytest.mark.usefixtures("more")
def test_a_full_disk_changes_nothing(monkeypatch):
    from full_disk import SENTENCE, fill

    fill(monkeypatch)
    assert refused() == f"Error: model.skops {SENTENCE}\n"


@pytest.mark.usefixtures("more")
def test_quiet_is_quiet():
    assert run("update", "model.skops", "more.csv", "-q").output == ""
