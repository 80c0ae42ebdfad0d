"""`coxfield studio` as a command: refusals in one sentence, and the files it writes."""

import os
import signal
import socket

import httpx
import numpy as np
import polars as pl
import pytest

from command_line import refusal, run
from coxfield.apps.cli.studio import beside
from lean import run_without
from studio_page import program


@pytest.fixture
def clouds(tmp_path):
    """A table of two clouds with an empty target, and the classes."""
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 2
    frame = pl.DataFrame(
        {
            "name": [f"{k:03d}" for k in range(60)],
            "length": 9.0 * codes + rng.normal(size=60),
            "species": pl.Series([None] * 60, dtype=pl.String),
        }
    )
    path = tmp_path / "data.csv"
    frame.write_csv(path)
    return path, [("cat", "dog")[code] for code in codes]


def say(address, **body):
    return httpx.post(address + "act", json={"tab": "t"} | body, timeout=30)


def test_labels_are_beside_the_table_and_the_table_is_never_changed(clouds):
    path, truth = clouds
    before = path.read_bytes()
    labels, labelled = path.with_name("data.labels.csv"), path.with_name("data.labelled.csv")
    with program(path, "-t", "species", "--id", "name") as (address, process):
        for row in range(6):
            assert say(address, do="label", rows=[row], label=truth[row]).status_code == 200
            assert f",label,{row + 1},{truth[row]}," in labels.read_text()
        process.kill()  # as kill -9 does
        process.wait()
    assert not labelled.exists()
    with program(path, "-t", "species", "--id", "name") as (address, process):
        assert httpx.get(address + "state").json()["labelled"] == 6
        sentence = httpx.post(address + "save", json={}, timeout=60).json()["sentence"]
        assert sentence == f"{labelled} is written: 6 labels given, 54 found"
        say(address, do="label", rows=[6], label=truth[6])
        assert httpx.post(address + "close", json={}, timeout=60).status_code == 200
        assert process.wait(30) == 0
    found = pl.read_csv(labelled, schema_overrides={"name": pl.String})
    assert found.columns == ["name", "length", "species", "species_probability", "species_source"]
    assert found["name"][0] == "000"
    assert found["species"].to_list() == truth
    assert found["species_source"].to_list() == ["given"] * 7 + ["found"] * 53
    assert path.read_bytes() == before


def test_ctrl_c_saves_too(clouds):
    path, truth = clouds
    with program(path, "-t", "species", "--id", "name") as (address, process):
        for row in range(4):
            say(address, do="label", rows=[row], label=truth[row])
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert pl.read_csv(path.with_name("data.labelled.csv"))["species_source"].to_list().count("given") == 4


def test_a_table_that_changes_meanwhile_is_not_mixed_up(clouds):
    path, truth = clouds
    before = path.read_bytes()
    with program(path, "-t", "species", "--id", "name") as (address, _):
        say(address, do="label", rows=[0], label=truth[0])
        path.write_bytes(before + b"060,3,\n")
        answer = httpx.post(address + "save", json={}, timeout=60)
        assert answer.status_code == 400
        assert "has changed since the studio was opened" in answer.json()["error"]
        assert "labels are safe" in answer.json()["error"]
    sentence = refusal("studio", path, "-t", "species", "--id", "name", "--no-browser")
    assert "the labels of another table, or the table has changed" in sentence
    path.write_bytes(before)
    with program(path, "-t", "species", "--id", "name") as (address, _):
        assert httpx.get(address + "state").json()["labelled"] == 1


def test_refusals(clouds, tmp_path):
    path, _ = clouds
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    header = tmp_path / "header.csv"
    header.write_text("a,b\n")
    ids = tmp_path / "ids.csv"
    ids.write_text("key,species\n" + "".join(f"word{k},\n" for k in range(40)))
    cases = [
        ((empty,), "is empty"),
        ((header,), "has a header but no rows"),
        ((ids, "-t", "species"), "ids.csv can be used: 'key' is an id"),
        ((path, "-t", "specis"), "has no column 'specis'; it has 'name', 'length', 'species'; to start a new column"),
        ((path, "-t", "species", "--new"), "has a column 'species' already"),
        ((path, "-t", "species", "--prior", "nothing"), "has no column 'nothing'"),
        ((path, "-t", "species", "-d", "name", "--pixels", "2x2"), "--pixels 2x2 needs 4 columns of numbers"),
        (("-",), "needs a file, not standard input"),
        ((tmp_path / "gone.csv",), "There is no file"),
    ]
    for words, sentence in cases:
        assert sentence in refusal("studio", *words, "--no-browser")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["data.csv", "empty.csv", "header.csv", "ids.csv"]
    assert "must be like 28x28" in run("studio", path, "--pixels", "big", "--no-browser", code=2).output


def test_a_port_in_use(clouds):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} is in use" in refusal("studio", clouds[0], "-t", "species", "--port", port, "--no-browser")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_written_to(clouds):
    clouds[0].parent.chmod(0o500)
    assert "could not be written" in refusal("studio", clouds[0], "-t", "species", "--no-browser")


def test_guesses_of_a_model_file(clouds):
    path, truth = clouds
    train = path.with_name("train.csv")
    pl.read_csv(path).with_columns(species=pl.Series(truth)).write_csv(train)
    model = path.with_name("model.skops")
    run("fit", train, "-t", "species", "--id", "name", "-o", model)
    with program(path, "-t", "species", "--id", "name", "--model", model) as (address, _):
        assert httpx.get(address + "card/3").json()["guess"] == truth[3]
        assert say(address, do="accept", rows=list(range(60))).json()["count"] == 60


def test_names_of_files(tmp_path):
    assert beside(tmp_path / "a.b.csv", "labels", ".csv").name == "a.b.labels.csv"
    assert beside(tmp_path / "a.csv.gz", "labelled").name == "a.labelled.csv.gz"
    assert beside(tmp_path / "a.parquet", "labelled").name == "a.labelled.parquet"


def test_without_its_packages_it_says_what_to_install(clouds):
    code = f"import sys\nsys.argv = ['coxfield', 'studio', {str(clouds[0])!r}]\n"
    code += "from coxfield.__main__ import main\nmain()\n"
    done = run_without(("starlette", "uvicorn"), code)
    assert done.returncode == 1
    assert done.stderr == "Error: the studio needs starlette and uvicorn: pip install 'coxfield[studio]'\n"
