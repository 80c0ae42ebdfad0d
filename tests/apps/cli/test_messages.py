"""What a person at a terminal sees, and what a program gets."""

import os
import pty

import pytest

from command_line import FEATURES, LABEL, QUICK, flowers


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
