"""`coxfield check`: doubtful labels, the most doubtful first, and the rows that disagree."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from command_line import FEATURES, ONE_KERNEL, flowers, refusal, run
from coxfield import LGCPClassifier

TEXT = {"schema_overrides": {"name": pl.String, "witness_1": pl.String}}


def check(*arguments, **options):
    result = run("check", "train.csv", "-t", "species", *FEATURES, *arguments, **options)
    return pl.read_csv(result.stdout_bytes, **TEXT)


def fitted(**parameters):
    train = pl.read_csv("train.csv")
    model = LGCPClassifier(**parameters)
    return model.fit(train["length", "width"].to_numpy(), train["species"].to_numpy().astype(str))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("selection", ["mixture", "loo_error"])
def test_doubtful_rows_are_those_of_the_library(selection):
    model = fitted(selection=selection)
    quality = pl.DataFrame(model.label_quality()).sort("rank")
    expected = quality.filter(pl.col("label") != pl.col("suggested"))
    found = check("-s", selection)
    columns = ["label", "probability", "suggested", "suggested_probability"]
    assert found.columns == ["row", *columns, *(f"{kind}_{k}" for k in (1, 2, 3) for kind in ("witness", "share"))]
    assert 3 < found.height < 40
    # Parameters are chosen where the loss is flat: to about half of the digits.
    assert_frame_equal(found.select(columns), expected.select(columns), rel_tol=1e-6)
    assert found["row"].to_list() == (expected["row"] + 1).to_list()


@pytest.mark.usefixtures("folder")
def test_witnesses_are_of_the_suggested_class_and_speak_loudest():
    train, model = pl.read_csv("train.csv", **TEXT), fitted(selection="loo_error")
    found = check(*ONE_KERNEL, "--id", "name")
    classes, names = dict(zip(train["name"], train["species"], strict=True)), train["name"].to_list()
    for row in found.iter_rows(named=True):
        place = names.index(row["name"])
        values = model.kernel_(model.X_fit_[[place]], model.X_fit_)[0]
        others = [k for k in range(80) if k != place and train["species"][k] == row["suggested"]]
        loudest = sorted(others, key=lambda k: -values[k])[:3]
        assert [f"{int(row[f'witness_{k}']):03d}" for k in (1, 2, 3)] == [names[k] for k in loudest]
        np.testing.assert_allclose([row[f"share_{k}"] for k in (1, 2, 3)], values[loudest], rtol=1e-6)
        assert row["witness_1"] != row["name"]
        assert classes[row["name"]] == row["label"] != row["suggested"] == classes[row["witness_1"]]


@pytest.mark.usefixtures("folder")
def test_all_rows_or_at_most_some():
    some = check(*ONE_KERNEL)
    every = check(*ONE_KERNEL, "--all")
    assert sorted(every["row"]) == list(range(1, 81))
    assert_frame_equal(every.head(some.height), some)
    assert (every["label"] == every["suggested"]).sum() == 80 - some.height
    assert_frame_equal(check(*ONE_KERNEL, "--most", "2"), some.head(2))
    assert_frame_equal(check(*ONE_KERNEL, "--most", "1000"), some)


@pytest.mark.usefixtures("folder")
def test_rows_of_weight_zero_are_not_listed_and_numbers_are_those_of_the_table():
    pl.read_csv("train.csv").with_columns(weight=pl.int_range(80) % 2).write_csv("train.csv")
    found = check(*ONE_KERNEL, "--all", "-w", "weight")
    assert sorted(found["row"]) == list(range(2, 81, 2))
    assert all(int(number) % 2 == 0 for k in (1, 2, 3) for number in found[f"witness_{k}"])


@pytest.mark.usefixtures("folder")
def test_rows_are_taken_in_parts(monkeypatch):
    whole = check(*ONE_KERNEL, "--all")
    monkeypatch.setattr("coxfield.apps.cli.check.ROWS_AT_ONCE", 7)
    assert_frame_equal(check(*ONE_KERNEL, "--all"), whole)


@pytest.mark.usefixtures("folder")
def test_labels_without_doubt_make_an_empty_table():
    codes = np.arange(20) % 2
    pl.DataFrame({"length": 9.0 * codes, "width": 9.0 * codes, "species": codes}).write_csv("train.csv")
    result = run("check", "train.csv", "-t", "species", *ONE_KERNEL)
    assert result.stdout.startswith("row,label,probability,suggested,")
    assert result.stdout.count("\n") == 1
    assert "Doubtful: 0 of 20 rows" in result.stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("labels", [(7, -3), (False, True)])
def test_labels_come_out_as_they_went_in(labels):
    rows = flowers(40, labels)
    rows.write_parquet("train.parquet")
    run("check", "train.parquet", "-t", "species", "--id", "name", *FEATURES, *ONE_KERNEL, "-o", "out.parquet")
    found = pl.read_parquet("out.parquet")
    assert found["label"].dtype == found["suggested"].dtype == rows["species"].dtype
    assert found["name"].dtype == found["witness_1"].dtype == pl.String


def test_the_summary_goes_to_standard_error_and_files_are_named(folder):
    arguments = ["check", "train.csv", "-t", "species", *FEATURES, *ONE_KERNEL, "-o", "out.csv", "--plot", "out.png"]
    result = run(*arguments)
    assert result.stdout == ""
    lines = dict(line.split(": ", 1) for line in result.stderr.splitlines())
    found = pl.read_csv("out.csv")
    assert (lines["Rows"], lines["Doubtful"]) == ("80", f"{found.height} of 80 rows")
    assert (lines["Table"], lines["Picture"]) == ("out.csv", "out.png")
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")
    assert run(*arguments, "-q").output == ""


@pytest.mark.usefixtures("folder")
def test_pictures_of_pixels_are_drawn():
    rng = np.random.default_rng(0)
    pixels = {f"p{k}": rng.normal(size=12) for k in range(64)}
    pl.DataFrame({**pixels, "species": ["cat", "dog"] * 6}).write_csv("train.csv")
    run("check", "train.csv", "-t", "species", "-l", "8", *ONE_KERNEL, "-o", "out.csv", "--plot", "out.svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--id", "label", *FEATURES], "has no column 'label'|has the name of a column that coxfield check adds"),
        (["-f", "length", "--plot", "out.png"], "--plot needs two features, or square pictures of at least 64 pixels"),
        ([*FEATURES, "--plot", "out.txt"], "out.txt"),
        ([*FEATURES, "-o", "out.json"], "The ending of out.json is none of"),
    ],
)
def test_check_refuses_in_one_sentence(folder, arguments, message):
    before = sorted(folder.iterdir())
    sentence = refusal("check", "train.csv", "-t", "species", *arguments)
    assert any(part in sentence for part in message.split("|"))
    assert sentence.startswith("Error: ")
    assert sentence.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.usefixtures("folder")
def test_numbers_of_rows_that_make_no_sense_are_refused():
    assert "--most" in refusal("check", "train.csv", "-t", "species", "--most", "0", code=2)
