"""`coxfield forget`: the rows are in no byte of the file, and what is left is as it was."""

import io
import itertools
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from command_line import FEATURES, ONE_KERNEL, fit, flowers, load, refusal_that_changes_nothing, run
from coxfield import LGCPClassifier
from coxfield.io.model_file import IDS
from model_archives import put_together, taken_apart

TEXT = {"schema_overrides": {"name": pl.String}}


def forget(*arguments, table="gone.csv"):
    lines = run("forget", "model.skops", table, *arguments).stdout.splitlines()
    return dict(line.split(": ", 1) for line in lines)


def refused(*arguments, table="gone.csv", code=1):
    return refusal_that_changes_nothing("forget", "model.skops", table, *arguments, code=code)


def everything_in(content):
    """The bytes of a file, and those of all archives and members in it, unpacked."""
    yield content
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield from everything_in(archive.read(name))


def traces(file, rows):
    """What a file holds of some rows: ids, numbers as bytes of both precisions, and numbers as text."""
    content = list(everything_in(Path(file).read_bytes()))
    for row in rows.iter_rows(named=True):
        numbers = [row["length"], row["width"]]
        whole = np.array(numbers)
        signs = {row["name"]: row["name"].encode(), "row": whole.tobytes(), "single": whole.astype("f4").tobytes()}
        signs |= {f"{number} as bytes": np.array(number).tobytes() for number in numbers}
        signs |= {f"{number} as text": repr(number).encode() for number in numbers}
        yield from (name for name, sign in signs.items() if any(sign in part for part in content))


@pytest.fixture
def train(folder):
    """Rows whose ids are nothing else in a file, and a list of ten of them."""
    rows = flowers(81).with_columns(name=pl.format("person-{}", pl.int_range(100, 181)))
    rows.write_csv("train.csv")
    rows.write_parquet("train.parquet")
    rows[::9].head(9).select("name").write_csv("gone.csv")
    return rows


def left_of(rows):
    gone = pl.read_csv("gone.csv")["name"].to_list()
    return rows.filter(~pl.col("name").is_in(gone))


@pytest.mark.parametrize("options", [[], ONE_KERNEL, ["--selection-part", "0.5"], ["-s", "pseudo_likelihood"]])
@pytest.mark.parametrize("again", [[], ["--reselect"]])
def test_no_trace_of_a_forgotten_row_is_left(train, options, again):
    fit("--id", "name", *FEATURES, *options)
    gone = pl.read_csv("gone.csv").join(train, on="name", how="left")
    assert len(list(traces("model.skops", gone))) >= 3 * len(gone)  # the test sees rows that are there
    lines = forget(*again)
    assert lines["Forgotten"] == "9 rows of 9 ids"
    assert list(traces("model.skops", gone)) == []
    kept = list(traces("model.skops", left_of(train)))
    assert kept.count("row") == 72


def test_the_result_is_that_of_a_fit_to_the_rows_that_are_left(train):
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    kernel = load().model.kernel_
    lines = forget()
    left = left_of(train)
    expected = LGCPClassifier(kernel, selection=None).fit(
        left["length", "width"].to_numpy(), left["species"].to_numpy().astype(str)
    )
    np.testing.assert_array_equal(load().model.loo_predict_proba(), expected.loo_predict_proba())
    assert load().ids.texts == tuple(left["name"])
    assert (lines["Rows"], lines["Kernel"], lines["Model"]) == ("72", str(kernel), "model.skops")
    assert "Leave-one-out error" not in lines


@pytest.mark.usefixtures("train")
def test_rows_that_came_by_update_are_forgotten_too():
    fit("--id", "name", *FEATURES, "-l", "0.7")
    more = flowers(20).with_columns(name=pl.format("later-{}", pl.int_range(20, 40)))
    more.write_csv("more.csv")
    run("update", "model.skops", "more.csv")
    more.head(7).write_parquet("gone.parquet")
    assert len(list(traces("model.skops", more.head(7)))) >= 14
    forget(table="gone.parquet")
    assert list(traces("model.skops", more.head(7))) == []
    assert load().ids.texts[-13:] == tuple(more["name"][7:])


def test_all_rows_of_an_id_are_forgotten(train):
    train.with_columns(name=pl.int_range(81) // 3).write_csv("train.csv")
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    pl.DataFrame({"name": [4, 7, 4]}).write_csv("gone.csv")
    assert forget()["Forgotten"] == "6 rows of 2 ids"
    assert not {"4", "7"}.intersection(load().ids.texts)


@pytest.mark.usefixtures("train")
def test_ids_that_are_not_there_are_named():
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    before = Path("model.skops").read_bytes()
    ids = ["person-100", *(f"x{k}" for k in range(7))]
    pl.DataFrame({"name": ids}).write_csv("gone.csv")
    sentence = refused()
    assert "gone.csv has 7 ids that the model does not have, 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more" in sentence
    assert forget("--ignore-missing", "-o", "newer.skops")["Forgotten"] == "1 rows of 1 ids"
    assert len(load("newer.skops").ids) == 80
    assert Path("model.skops").read_bytes() == before
    pl.DataFrame({"name": ["x"]}).write_csv("gone.csv")
    assert "has an id that the model does not have, 'x':" in refused()
    assert forget("--ignore-missing")["Rows"] == "81"


@pytest.mark.usefixtures("train")
def test_the_column_of_ids_must_be_named():
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    pl.DataFrame({"person": ["person-100"], "when": [3]}).write_csv("gone.csv")
    assert "gone.csv has no column 'name' of ids: write that name into its first line" in refused()
    Path("gone.csv").write_text("person-101\nperson-102\n")  # the first id must not be taken for a name
    assert "gone.csv has no column 'name' of ids" in refused()
    pl.DataFrame({"person": ["person-100"], "when": [3]}).write_csv("gone.csv")
    assert forget("--id", "person")["Rows"] == "80"
    Path("gone.csv").write_text("name\nperson-101\n\nperson-102\n")
    assert "is blank in 1 of 3 rows, first in row 2" in refused()


@pytest.mark.usefixtures("train")
def test_standard_input_is_csv():
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    assert "Rows: 80" in run("forget", "model.skops", "-", input="name\nperson-104\n").stdout
    assert "standard input has an id that" in run("forget", "model.skops", "-", input="name\nx\n", code=1).stderr


@pytest.mark.parametrize("again", [[], ["--reselect"]])
@pytest.mark.parametrize("options", [ONE_KERNEL, ["-l", "0.7"]])
def test_two_classes_must_be_left(train, options, again):
    fit("--id", "name", *FEATURES, *options)
    train.filter(pl.col("species") == "cat").write_csv("gone.csv")
    sentence = refused(*again)
    assert "training rows of 1 classes would be left, and at least two classes are needed" in sentence
    train.write_csv("gone.csv")
    assert "0 training rows of 0 classes would be left" in refused(*again)


@pytest.mark.usefixtures("train")
@pytest.mark.parametrize("again", [[], ["--reselect"]])
def test_all_rows_of_the_selection_can_leave(again):
    fit("--id", "name", *FEATURES, "--selection-part", "0.5", "-l", "0.7")
    saved = load()
    chosen = saved.model._training.rows.chosen_from
    pl.DataFrame({"name": list(itertools.compress(saved.ids.texts, chosen))}).write_csv("gone.csv")
    assert int(forget(*again)["Rows"]) == (~chosen).sum()
    assert load().ids.texts == tuple(itertools.compress(saved.ids.texts, ~chosen))


@pytest.mark.usefixtures("train")
def test_a_model_without_ids_says_what_to_do():
    fit(*FEATURES, *ONE_KERNEL)
    assert "model.skops has no ids of its training rows: fit the model again with --id COLUMN" in refused()
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    members = {name: content for name, content in taken_apart("model.skops").items() if name != IDS}
    put_together(members, Path("model.skops"))
    assert "model.skops has no ids of its training rows: fit the model again with --id COLUMN" in refused()


@pytest.mark.usefixtures("train")
def test_a_full_disk_changes_nothing(monkeypatch):
    from full_disk import SENTENCE, fill

    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    fill(monkeypatch)
    assert refused() == f"Error: model.skops {SENTENCE}\n"


@pytest.mark.usefixtures("train")
def test_quiet_is_quiet():
    fit("--id", "name", *FEATURES, *ONE_KERNEL)
    assert run("forget", "model.skops", "gone.csv", "-q").output == ""
