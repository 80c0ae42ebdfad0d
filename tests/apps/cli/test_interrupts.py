"""Ctrl-C ends a command with one line and exit code 130, whatever the command is doing."""

import os
import subprocess
import sys

import pytest

from coxfield.apps.cli.interrupts import INTERRUPTED, SENTENCE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems do not send signals like this")
PRESS = "import os, signal, time\npress = lambda: os.kill(os.getpid(), signal.SIGINT)\n"


def ended(command, tmp_path, start="from coxfield.apps.cli.interrupts import run\nrun(command)\n"):
    """How a program ends that calls a command, a function given as source."""
    code = f"{PRESS}{command}\n{start}"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )


def assert_stopped(done):
    assert done.stderr == f"{SENTENCE}\n"
    assert done.returncode == INTERRUPTED
    assert done.stdout == ""


def test_a_command_is_stopped(tmp_path):
    assert_stopped(ended("def command():\n    press()\n    time.sleep(60)\n    print('not stopped')", tmp_path))


def test_a_command_that_does_not_hear_is_stopped_too(tmp_path):
    deaf = "def command():\n    while True:\n        try:\n            press()\n            time.sleep(60)\n"
    assert_stopped(ended(f"{deaf}        except KeyboardInterrupt:\n            pass", tmp_path))


def test_a_command_that_is_stopped_leaves_no_part_of_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    deaf = (
        "from pathlib import Path\nfrom coxfield.utils.whole_files import whole_file\n"
        "def command():\n    with whole_file(Path('a')) as stream:\n        stream.write(b'new')\n        press()\n"
        "        while True:\n            try:\n                time.sleep(60)\n"
        "            except KeyboardInterrupt:\n                pass"
    )
    assert_stopped(ended(deaf, tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_what_typer_makes_of_it_is_the_same(tmp_path):
    assert_stopped(ended(f"def command():\n    raise SystemExit({INTERRUPTED})", tmp_path))


@pytest.mark.parametrize(("command", "code"), [("print('done')", 0), ("raise SystemExit(3)", 3)])
def test_other_endings_stay_as_they_are(tmp_path, command, code):
    done = ended(f"def command():\n    {command}", tmp_path)
    assert (done.returncode, done.stderr) == (code, "")


def test_it_is_heard_while_modules_are_imported(tmp_path):
    blind = (
        "import sys\nclass Finder:\n    def find_spec(self, name, *_):\n"
        "        if name == 'coxfield.apps.cli.app':\n            press()\n            time.sleep(60)\n"
        "sys.meta_path.insert(0, Finder())"
    )
    assert_stopped(ended(blind, tmp_path, "from coxfield.__main__ import main\nmain()\n"))


def test_it_is_heard_before_the_first_import(tmp_path):
    early = "import coxfield.__main__ as entry\nentry._installed = lambda name: press()"
    done = ended(early, tmp_path, "entry.main()\n")
    assert (done.returncode, done.stderr) == (INTERRUPTED, "Stopped by Ctrl-C\n")


def test_interrupted_destructors_say_nothing(tmp_path):
    command = (
        "class Late:\n    def __del__(self):\n        raise KeyboardInterrupt\n"
        "class Wrong:\n    def __del__(self):\n        raise ValueError('a mistake')\n"
        "def command():\n    Late()\n    {}"
    )
    assert ended(command.format("print('done')"), tmp_path).stderr == ""
    assert "a mistake" in ended(command.format("Wrong()"), tmp_path).stderr
