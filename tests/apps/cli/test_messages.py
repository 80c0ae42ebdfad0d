"""What a person at a terminal sees, and what a program gets."""

import os
import pty
import warnings
from contextlib import suppress
from threading import Thread

import pytest

from command_line import FEATURES, LABEL, QUICK, fit, flowers, run
from coxfield import progress
from coxfield.apps.cli import console
from coxfield.estimators import reasons


def _at_terminal(shell, command, terminal, side):
    """Run a command whose output is a terminal, and return what it shows."""
    shown: list[bytes] = []

    def read():
        with suppress(OSError):  # how Linux says that the other side is closed
            while chunk := os.read(terminal, 65536):
                shown.append(chunk)

    # While the command runs: a terminal takes only some kilobytes until somebody reads them.
    reader = Thread(target=read)
    reader.start()
    try:
        done = shell(command, stdout=side, stderr=side)
    finally:
        os.close(side)
        reader.join()
        os.close(terminal)
    assert done.returncode == 0
    return b"".join(shown).decode()


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
    assert "leave-one-out sums of " in seen
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


@pytest.mark.usefixtures("data")
def test_a_person_sees_each_step_of_a_mixture(shell):
    terminal, side = pty.openpty()
    seen = _at_terminal(shell, f"coxfield {' '.join(LABEL)} -o out.csv --plot out.png", terminal, side)
    for step in ("nearest neighbours of 40 points", "modes of the graph of 5 neighbours", "weights of the members"):
        assert step in seen
    assert "picture" in seen
    assert "100%" in seen
    assert "Errors to expect" in seen
    done = shell(f"coxfield {' '.join(LABEL)} -o out.csv | cat")
    assert "nearest neighbours" not in done.stderr


def test_a_person_who_wants_quiet_has_it(shell):
    terminal, side = pty.openpty()
    assert (
        _at_terminal(shell, f"coxfield fit train.csv -t species {' '.join(FEATURES)} -o m.skops -q", terminal, side)
        == ""
    )


@pytest.fixture
def impatient(monkeypatch):
    """No patience, and warnings as a user has them."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield


@pytest.mark.usefixtures("folder", "impatient")
def test_slow_work_that_nobody_watches_is_one_plain_line_per_piece(monkeypatch):
    monkeypatch.setattr(reasons, "TOGETHER", 1)  # all columns of so few rows are one step, and tell of nothing
    lines = fit(*FEATURES).stderr.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("Warning: leave-one-out sums of ")
    assert lines[0].endswith(" to go")
    assert lines[1].startswith("Warning: weights of ")
    assert lines[2].startswith("Warning: importance: ")


@pytest.mark.usefixtures("data", "impatient")
@pytest.mark.parametrize("command", [[*LABEL], [*LABEL, *QUICK], ["simulate", "--window", "0", "1", "--seed", "1"]])
def test_those_who_want_quiet_are_not_told_of_slow_work(command):
    assert run(*command, "--quiet").stderr == ""


@pytest.mark.usefixtures("data", "impatient")
def test_slow_work_is_told_of_before_what_is_gathered(capsys):
    with console.gathered() as caught:
        warnings.warn("a thing\n to know", stacklevel=1)
        warnings.warn(progress.SlowWarning("half done", "write other Python"), stacklevel=1)
        assert capsys.readouterr().err == "Warning: half done\n"
    assert [str(warning.message) for warning in caught] == ["a thing\n to know"]
    console.show_warning(caught[0].message)
    assert capsys.readouterr().err == "Warning: a thing to know\n"
    assert run(*LABEL).stderr.startswith("Warning: 4 graphs of 40 points: ")


@pytest.mark.usefixtures("folder")
def test_any_other_warning_is_one_plain_line(monkeypatch):
    def summary(*_, **__):
        warnings.warn("take care", stacklevel=2)
        return {}

    monkeypatch.setattr("coxfield.apps.cli.fit.summary", summary)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert fit(*FEATURES).stderr == "Warning: take care\n"
