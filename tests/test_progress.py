"""Progress: silence, a line or a bar, as asked for and as the terminal allows."""

import re

import pytest

from coxfield.progress import progress
from lean import run_without


def test_nobody_who_does_not_ask_is_told(capsys):
    with progress("working", 3, verbose=False) as done:
        assert done is None
    assert capsys.readouterr() == ("", "")


def test_a_file_gets_one_line_when_the_work_is_done(capsys):
    with progress("working", 3, verbose=True) as done:
        done(2)
        assert capsys.readouterr().err == ""
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"working: \d+\.\d s\n", err)


def test_work_that_fails_is_not_called_done(capsys):
    with pytest.raises(ZeroDivisionError), progress("working", 3, verbose=True):
        raise ZeroDivisionError
    assert "working" not in capsys.readouterr().err


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("working", 4, verbose=True) as done:
        done(4)
    err = capsys.readouterr().err
    assert "working" in err
    assert "100%" in err
    assert " s\n" not in err


def test_work_of_one_step_ends_with_a_full_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress("working", 1, verbose=True):
        pass
    assert "100%" in capsys.readouterr().err


def test_a_terminal_without_rich_gets_one_line():
    done = run_without(
        ("rich",),
        "import sys\nsys.stderr.isatty = lambda: True\n"
        "from coxfield.progress import progress\n"
        "with progress('working', 4, True) as done:\n    done(4)\n",
    )
    assert done.returncode == 0
    assert re.fullmatch(r"working: \d+\.\d s\n", done.stderr)
