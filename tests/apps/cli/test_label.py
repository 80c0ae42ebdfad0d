"""`coxfield label`: the labels, probabilities and proofs of the library, beside the columns of the table."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from command_line import FEATURES, LABEL, ONE_KERNEL, QUICK, labelled, library_labels, partly_labelled, refusal, run
from coxfield import LGCPClassifier, SLGCPClassifier
from tolerances import assert_close


def test_labels_and_probabilities_are_those_of_the_library(data):
    result, model = labelled(), library_labels(data)
    assert model.inference_ == "mixture"
    assert result.columns == [*data.columns, "given", "probability_cat", "probability_dog"]
    assert result["species"].to_list() == model.transduction_.tolist()
    assert result["given"].to_list() == data["species"].is_not_null().to_list()
    probabilities = result["probability_cat", "probability_dog"].to_numpy()
    np.testing.assert_array_equal(probabilities, model.label_distributions_)  # the same computation, written in full
    kept = result.with_columns(pl.when("given").then("species").alias("species"))
    assert_frame_equal(kept.select(data.columns), data, check_exact=True)
    assert_frame_equal(labelled("--inference", "mixture"), result, check_exact=True)


def test_the_summary_of_a_mixture_says_who_speaks_and_how_many_errors_to_expect(data):
    result, model = run(*LABEL, "-o", "out.csv"), library_labels(data)
    lines = dict(line.split(": ", 1) for line in result.stderr.splitlines())
    assert list(lines) == ["Read", "Rows", "Features", "Classes", "Covariances", "Voices", "Errors to expect", "Table"]
    *loudest, more = lines["Covariances"].split("; ")
    members, audible = model.members_, model.members_["share"] >= 0.005
    assert audible.sum() > 3  # so that not all of them are named
    for text, name, rank, centred, share in zip(loudest, *(column[:3] for column in members.values()), strict=True):
        mode = ", without mode 0" if centred else ""
        assert text == f"{name}, effective rank {rank:.0f}{mode}: {100 * share:.0f} %"
    assert more == f"{audible.sum() - 3} more: {100 * members['share'][3:].sum():.0f} %"
    voices = [f"{name}: {100 * loud:.0f} %" for name, loud in model.voices_.items() if loud > 0]
    assert lines["Voices"].split("; ") == voices
    expected, rest = lines["Errors to expect"].split(maxsplit=1)
    assert float(expected) == pytest.approx((1 - model.label_distributions_.max(axis=1)).sum(), abs=0.06)  # one decimal
    assert rest == "of the 32 labels found, if the model is right"


@pytest.mark.usefixtures("folder")
def test_one_label_per_class_is_enough():
    rows = partly_labelled()
    first = pl.int_range(pl.len()) < 2
    rows = rows.with_columns(pl.Series("species", ["cat", "dog"] * 20))
    rows.with_columns(pl.when(first).then("species").alias("species")).write_csv("data.csv")
    out = labelled("--quiet")
    assert out["given"].sum() == 2
    assert (out["species"] == rows["species"]).mean() > 0.8
    assert_close(out.select(pl.sum_horizontal(pl.col("^probability_.*$"))).to_numpy(), 1.0, terms=100)


def test_a_mixture_is_drawn_with_its_doubt(data):
    run(*LABEL, "-o", "out.csv", "--plot", "out.svg")
    drawn = Path("out.svg").read_text()
    for text in ("most probable class", "errors to expect", "length", "width", "given: 8", "found: 32"):
        assert text in drawn
    more = data.with_columns(height=pl.col("length") ** 2)
    more.write_csv("data.csv")
    run(*LABEL, "-f", "height", "-o", "out.csv", "--plot", "out.svg")
    assert "component 1 of the loudest graph" in Path("out.svg").read_text()


@pytest.mark.usefixtures("data")
def test_a_length_scale_asks_for_the_label_field():
    assert_frame_equal(labelled(*QUICK), labelled(*QUICK, "--inference", "map"), check_exact=True)
    sentence = refusal(*LABEL, *QUICK, "--inference", "mixture", code=2)
    assert "has no length scale" in " ".join(sentence.replace("│", " ").split())


@pytest.mark.usefixtures("folder")
def test_labels_and_proofs_are_those_of_the_library():
    data = partly_labelled(20)
    data.write_csv("data.csv")
    result, model = labelled("--inference", "map"), library_labels(data, inference="map")
    assert 0 < (model.transduction_ == "dog").sum() < 20
    assert result["species"].to_list() == model.transduction_.tolist()
    assert result["certified"].to_list() == model.certified_.tolist()
    assert result["given"].to_list() == data["species"].is_not_null().to_list()


def test_scores_are_what_the_given_labels_say(data):
    result, known = labelled(*QUICK), data["species"].is_not_null()
    X = data["length", "width"].to_numpy()
    alone = LGCPClassifier(library_labels(data, length_scales=[0.7]).kernel_, selection=None)
    alone.fit(X[known], data["species"].filter(known).to_numpy())
    assert_close(result["score_cat", "score_dog"].to_numpy(), alone.class_scores(X), terms=int(known.sum()))


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
    assert float(lines.pop("Energy")) == pytest.approx(model.energy_, rel=1e-9)
    gap, meaning = lines.pop("Relative gap").split(maxsplit=1)
    assert float(gap) < 1e-9
    assert meaning == "(up to 1e-09 counts as none)"
    assert lines == {
        "Read": "2 numbers",
        "Rows": "40 (8 labelled, 32 blank)",
        "Features": "2 (length, width)",
        "Classes": f"2 (cat: 4 -> {cats}, dog: 4 -> {40 - cats})",
        "Kernel": str(model.kernel_),
        "Cross-validation error": f"{path['cv_error'][path['chosen']].item():.4g}",
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
    probabilities = out["probability_cat", "probability_dog"].to_numpy()
    np.testing.assert_array_equal(probabilities, model.label_distributions_)  # the same draws, counted
    lines = dict(line.split(": ", 1) for line in result.stderr.splitlines())
    doubt = (1 - model.label_distributions_.max(axis=1)).sum()
    expected, rest = lines["Errors to expect"].split(maxsplit=1)
    assert float(expected) == pytest.approx(doubt, abs=0.06)  # one decimal
    assert rest == "of the 32 labels found, if the model is right"
    assert "Certified" not in lines
    assert "found, not proven: 32" in Path("out.svg").read_text()
    data.with_columns(probability_dog=pl.lit(1)).write_csv("data.csv")
    assert "already has a column 'probability_dog'" in refusal(*LABEL, *QUICK, *chosen)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"species": pl.lit("cat")}, "has no blank cell, so there is nothing to label: .* use coxfield fit"),
        ({"species": pl.lit(None, pl.String)}, "Column 'species' of data.csv is blank in all 40 rows"),
        ({"species": pl.col("species").replace("dog", None)}, "holds one class only, cat"),
        ({"species": pl.col("species").replace("dog", "0.5").replace("cat", "1.5")}, "quantities, not classes"),
        ({"width": pl.lit(float("inf"))}, "Column 'width' of data.csv holds inf in row 1"),
        ({"width": pl.lit(1.0), "length": pl.lit(1.0)}, "data.csv has the same features in all rows, .*: add features"),
        ({"certified": pl.lit(1)}, "data.csv already has a column 'certified', which coxfield label adds"),
        ({"score_dog": pl.lit(1)}, "data.csv already has a column 'score_dog'"),
    ],
)
def test_tables_that_cannot_be_labelled_are_refused_in_one_sentence(folder, data, change, message):
    data.with_columns(**change).write_csv("data.csv")
    before = set(folder.iterdir())
    sentence = refusal(*LABEL, "--inference", "map", "-o", "out.csv", "--plot", "out.png")
    assert re.search(message, sentence)
    assert sentence.startswith("Error: ")
    assert sentence.count("\n") == 1
    assert set(folder.iterdir()) == before


MARKED = pl.col("species").fill_null("NA")


@pytest.mark.parametrize("table", ["data.csv", "data.parquet"])
def test_values_that_stand_for_a_blank_cell_are_labelled(data, table):
    expected = labelled(*QUICK, "--quiet")
    some = pl.when(pl.int_range(pl.len()) % 2 == 1).then(pl.lit(" ? "))
    rows = data.with_columns(species=some.when(pl.col("species").is_null()).then(pl.lit("NA")).otherwise("species"))
    rows = rows.with_columns(species=pl.when(data["species"].is_null()).then("species").otherwise(data["species"]))
    assert rows["species"].n_unique() == 4
    rows.write_csv("data.csv")
    rows.write_parquet("data.parquet")
    found = labelled(*QUICK, "--missing", "NA", "--missing", "?", table=table)
    assert_frame_equal(found, expected, check_exact=True)


def test_classes_beside_a_mark_are_of_their_own_kind(data):
    numbers = data.with_columns(species=pl.col("species").replace_strict({"cat": 7, "dog": 10}, return_dtype=pl.Int64))
    numbers.with_columns(species=pl.col("species").fill_null(-1)).write_csv("data.csv")
    run(*LABEL, *QUICK, "--missing", "-1", "-o", "out.parquet")
    out = pl.read_parquet("out.parquet")
    assert out["species"].dtype == pl.Int64
    assert set(out["species"].to_list()) == {7, 10}
    numbers.with_columns(species=pl.col("species").cast(pl.String).fill_null("NA")).write_csv("data.csv")
    run(*LABEL, *QUICK, "--missing", "NA", "-o", "again.parquet")
    assert_frame_equal(pl.read_parquet("again.parquet"), out, check_exact=True)


def test_a_forgotten_mark_gets_a_hint_with_the_error(data):
    data.with_columns(species=MARKED).write_csv("data.csv")
    sentence = refusal(*LABEL)
    assert sentence.startswith("Error: Column 'species' of data.csv has no blank cell, so there is nothing to label: ")
    hint = '; the column holds 32 cells "NA": give --missing NA if they stand for unknown'
    assert sentence.endswith(f"{hint}\n")
    assert refusal(*LABEL, "--missing", "N/A").endswith(f"{hint}\n")
    data.with_columns(species=pl.when(pl.int_range(pl.len()) < 4).then(pl.lit("?"))).write_csv("data.csv")
    assert 'holds one class only, ?: a classifier needs at least two; the column holds 4 cells "?": give' in refusal(
        *LABEL
    )


def test_a_class_may_be_named_as_a_mark(data):
    named = data.with_columns(species=pl.col("species").replace("dog", "NA"))
    named.write_csv("data.csv")
    result = run(*LABEL, *QUICK, "--quiet")
    hint = 'the column holds 4 cells "NA": give --missing NA if they stand for unknown; without it they are a class'
    assert result.stderr == f"Note: {hint}\n"
    assert set(pl.read_csv(result.stdout_bytes)["species"].to_list()) == {"cat", "NA"}


def test_a_table_that_is_refused_gets_one_sentence_and_no_note(data):
    named = data.with_columns(species=pl.col("species").replace("dog", "NA"))
    feature = next(name for name in data.columns if name != "species" and data[name].dtype.is_numeric())
    there = pl.int_range(pl.len()) > 0
    named.with_columns(pl.when(there).then(feature).otherwise(float("inf")).alias(feature)).write_csv("data.csv")
    assert refusal(*LABEL).startswith(f"Error: Column {feature!r} of data.csv holds inf in row 1")


def test_without_marks_there_is_no_note(data):
    assert data["species"].null_count() == 32
    assert run(*LABEL, *QUICK, "--quiet").stderr == ""
    assert "holds one class only, cat: a classifier needs at least two\n" in refusal(*LABEL, "--missing", "dog")


def test_tables_that_a_mixture_cannot_label_are_refused(data):
    data.with_columns(probability_dog=pl.lit(1)).write_csv("data.csv")
    assert "already has a column 'probability_dog', which coxfield label adds" in refusal(*LABEL)
    data.with_columns(width=pl.lit(1.0), length=pl.lit(1.0)).write_csv("data.csv")
    assert "has the same features in all rows" in refusal(*LABEL)
    data.with_columns(score_dog=pl.lit(1), certified=pl.lit(1)).write_csv("data.csv")
    assert {"score_dog", "certified"} < set(labelled().columns)  # only other inferences add these


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
        (["-t", "species", *FEATURES, "-o", "data.csv"], 1, "is the input and cannot be the output too"),
        (["-t", "species", "--id", "species"], 2, "--target and --id must be different columns"),
        (["-t", "species", "-f", "length", "-d", "width"], 2, "give only one of the two"),
        (["-t", "species", "-l", "-1"], 2, "must be positive and finite, got -1"),
        ([], 2, "--target"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_label(arguments, code, message):
    assert message in refusal("label", "data.csv", *arguments, code=code)


@pytest.mark.usefixtures("folder")
def test_unsigned_labels_are_found_as_fit_finds_them():
    rows = partly_labelled(target=(2**64 - 1, 3)).with_columns(pl.col("species").cast(pl.UInt64))
    rows.write_parquet("data.parquet")
    run("label", "data.parquet", "-t", "species", *FEATURES, "-o", "out.parquet")
    found = pl.read_parquet("out.parquet")["species"]
    assert found.dtype == pl.UInt64
    assert set(found) == {2**64 - 1, 3}
    given = rows["species"].is_not_null()
    assert found.filter(given).to_list() == rows["species"].filter(given).to_list()
    pl.read_parquet("out.parquet").write_parquet("train.parquet")
    run("fit", "train.parquet", "-t", "species", *FEATURES, *ONE_KERNEL, "-o", "model.skops")


@pytest.mark.usefixtures("folder")
def test_columns_that_csv_cannot_hold_are_refused_before_the_work(monkeypatch):
    partly_labelled().with_columns(name=pl.concat_list("name")).write_parquet("data.parquet")
    monkeypatch.setattr(SLGCPClassifier, "fit", None)
    for output in (["-o", "out.csv"], []):
        sentence = refusal("label", "data.parquet", "-t", "species", *FEATURES, *output)
        assert sentence.startswith("Error: Column 'name' is of type List(String), which CSV cannot hold: ")


# What `coxfield label` has written, given to a command again.


BY_NAME = ["-t", "species", "--id", "name", "--drop", "code"]
WHICH = "set given to true in rows that you have checked, or give --found to take all of them"


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("options", [["-t", "species", *FEATURES], [*BY_NAME], [*BY_NAME, *QUICK]], ids=len)
def test_labels_that_were_found_are_not_given_the_next_time(options, ending):
    run("label", "data.csv", *options, "-o", f"out.{ending}")
    result = run("label", f"out.{ending}", *options, "-o", f"again.{ending}")
    assert Path(f"again.{ending}").read_bytes() == Path(f"out.{ending}").read_bytes()
    note = f"Note: 32 of 40 labels in out.{ending} were found by coxfield, not given, so they count as blank: {WHICH}"
    assert result.stderr.splitlines()[0] == note
    assert "Rows: 40 (8 labelled, 32 blank)" in result.stderr
    assert run("label", f"out.{ending}", *options, "--quiet", "-o", "other.csv").stderr == ""


def test_a_label_that_was_checked_counts(data):
    run("label", "data.csv", *BY_NAME, "-o", "out.csv")
    out = pl.read_csv("out.csv", schema_overrides={"name": pl.String, "code": pl.String})
    checked = pl.int_range(pl.len()).is_in([1, 2])
    out.with_columns(given=pl.col("given") | checked).write_csv("out.csv")
    again = labelled("--quiet", table="out.csv")
    assert np.flatnonzero(again["given"]).tolist() == sorted([1, 2, *range(0, 40, 5)])
    label = pl.when(checked).then(out["species"]).otherwise("species")
    data.with_columns(species=label).write_csv("data.csv")
    assert_frame_equal(labelled("--quiet"), again, check_exact=True)


def test_labels_that_were_found_are_taken_if_asked_for(data):
    run("label", "data.csv", *BY_NAME, "-o", "out.csv")
    refused = refusal("label", "out.csv", *BY_NAME, "--found")
    assert "has no blank cell, so there is nothing to label" in refused
    more = data[:2].with_columns(name=pl.lit("new"), species=pl.lit(None, pl.String))
    out = pl.read_csv("out.csv", schema_overrides={"name": pl.String, "code": pl.String})
    pl.concat([out, more], how="diagonal").write_csv("longer.csv")
    again = labelled("--found", "--quiet", table="longer.csv")
    assert again["given"].to_list() == [True] * 40 + [False] * 2


@pytest.mark.usefixtures("data")
def test_other_commands_learn_from_given_labels_alone():
    run("label", "data.csv", *BY_NAME, "-o", "out.csv")
    kept = ["-o", "model.skops", "--selection", "loo_error"]
    result = run("fit", "out.csv", *BY_NAME, *kept)
    assert "32 of 40 labels in out.csv were found by coxfield" in result.stderr
    alone = run("fit", "data.csv", *BY_NAME, *kept)
    assert result.stdout == alone.stdout
    assert "Features: 2 (length, width)" in result.stdout
    assert "Rows: 8" in result.stdout
    assert "Rows: 40" in run("fit", "out.csv", *BY_NAME, *kept, "--found").stdout
    asked = ["--quiet", "-n", "3", "-o"]
    run("suggest", "out.csv", *BY_NAME, *asked, "ask.csv")
    run("suggest", "data.csv", *BY_NAME, *asked, "ask_alone.csv")
    assert Path("ask.csv").read_text() == Path("ask_alone.csv").read_text()
    run("check", "out.csv", *BY_NAME, "--all", "--quiet", "-o", "doubt.csv")
    assert pl.read_csv("doubt.csv").height == 8


def test_what_the_studio_has_written_says_what_was_found(data):
    source = pl.when(pl.col("species").is_null()).then(pl.lit("found")).otherwise(pl.lit("given"))
    filled = pl.col("species").fill_null("dog")
    out = data.with_columns(filled, species_probability=pl.lit(0.9), species_source=source)
    out.write_csv("data.labelled.csv")
    result = run("label", "data.labelled.csv", *BY_NAME, "-o", "out.csv")
    assert "set species_source to given in rows that you have checked" in result.stderr
    run("label", "data.csv", *BY_NAME, "-o", "alone.csv")
    assert Path("out.csv").read_text() == Path("alone.csv").read_text()


@pytest.mark.parametrize("given", ["yes", "0.5"])
def test_a_column_named_given_of_another_meaning_is_a_column(data, given):
    data.with_columns(pl.col("species").fill_null("dog"), given=pl.lit(given), score_dog=pl.lit(1)).write_csv("d.csv")
    result = run("fit", "d.csv", *BY_NAME, "-o", "model.skops", "--keep", "given", "--keep", "score_dog")
    assert "Features: 4 (length, width, given, score_dog)" in result.stdout
    assert "found by coxfield" not in result.stderr
