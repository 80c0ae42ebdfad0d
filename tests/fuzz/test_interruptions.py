"""Commands stopped at a few moments, always the same: outputs are old or whole, and the next run works."""

import os
import random
import signal

import pytest

from fuzz import interruptions
from fuzz.interruptions import Ending, Experiment, Tally, faults_of_ending, row
from fuzz.stoppable import OLD, Stoppable, same_bytes, whole_records, whole_report

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of other systems cannot be sent like this")
QUICK = Stoppable(
    "simulate", ("simulate", "--window", "0", "9", "--seed", "1", "-o", "out.csv"), {"out.csv": same_bytes}
)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    return Experiment(QUICK, tmp_path_factory.mktemp("home"), warm_up=False)


@pytest.mark.parametrize("which", ["SIGINT", "SIGKILL"])
def test_a_stopped_command_leaves_old_or_whole_files(experiment, which):
    rng, tally = random.Random(5), Tally()
    for share, again in ((rng.uniform(0.2, 0.5), False), (rng.uniform(0.5, 0.9), True)):
        experiment.interrupt(share * experiment.duration, which, tally, again)
    # A machine that is busy may take longer than a person would wait.
    assert [fault for fault in tally.faults if "seconds" not in fault] == []
    assert tally.old + tally.whole == tally.moments == 2


def test_a_next_run_that_makes_something_else_is_seen(experiment, monkeypatch):
    monkeypatch.setattr(interruptions, "undisturbed", lambda *_: 0.1)
    assert experiment.faults_of_next_run(experiment.fresh(), Tally()) == ["the next run made something else"]
    assert experiment.faults_of_next_run(experiment.made, Tally()) == []


def faults(code, errors, seconds=0.1, which="SIGINT"):
    return list(faults_of_ending(Ending(code, errors, seconds), which, Tally()))


def test_endings_that_a_person_would_not_like_are_seen():
    assert faults(130, "Stopped\n") == faults(130, "Warning: this is slow\nStopped\n") == []
    assert faults(0, "") == []
    assert faults(1, "Stopped\n") == ["exit code 1"]
    assert "not one line" in faults(130, "Traceback\n in coxfield\n")[0]
    assert "not one line" in faults(130, "")[0]
    assert faults(130, "Stopped\n", seconds=2.0) == ["took 2.0 seconds"]
    assert faults(-signal.SIGKILL, "", which="SIGKILL") == []
    assert list(faults_of_ending(Ending(0, "", 0.1, left=True), "SIGINT", Tally())) == ["processes are left"]


def test_a_signal_before_the_package_runs_is_counted_apart():
    tally = Tally()
    assert list(faults_of_ending(Ending(1, "Traceback\n site.py\n", 0.1), "SIGINT", tally)) == []
    assert tally.before_start == 1


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("out.csv", OLD, None),
        ("out.csv", b"x1\n0.", "out.csv is neither old nor whole"),
        (".out.csv.1.part", b"x1\n", "left ['.out.csv.1.part']"),
        ("visible", b"x1\n", "left ['visible']"),
    ],
)
def test_files_that_are_left_are_seen(experiment, name, content, fault):
    folder = experiment.fresh()
    before = {path.name for path in folder.iterdir()}
    (folder / name).write_bytes(content)
    found = list(experiment.faults_of_files(folder, before, "SIGINT", Tally()))
    assert found == ([fault] if fault else [])


def test_cut_pages_and_records_are_seen(tmp_path):
    assert whole_records(tmp_path)
    (tmp_path / "index.html").write_text("<html></html>\n")
    assert whole_report(tmp_path, None)
    (tmp_path / "a.json").write_text('{"a": ')
    assert not whole_records(tmp_path)
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "index.html").write_text("<html>")
    assert not whole_records(tmp_path)


def test_a_command_is_added_in_one_entry(tmp_path):
    (tmp_path / "model.skops").write_bytes(b"a model")
    (tmp_path / "fitted.skops").write_bytes(b"a model")
    update = Stoppable(
        "update",
        ("update", "model.skops", "train.csv"),
        {"model.skops": same_bytes},
        before=lambda folder: (folder / "fitted.skops").read_bytes(),
    )
    assert update.is_old(tmp_path, "model.skops")
    assert row("update", "SIGINT", Tally()).split()[:3] == ["update", "SIGINT", "0"]
