"""Working folders with tables, and a shell that finds the command."""

import os
import subprocess
import sys

import pytest

from command_line import RNG, START, flowers, partly_labelled


@pytest.fixture(autouse=True)
def _same_numbers_in_every_test():
    RNG.bit_generator.state = START


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a table to fit and one to predict."""
    monkeypatch.chdir(tmp_path)
    flowers(80).write_csv("train.csv")
    flowers(30).write_csv("new.csv")
    return tmp_path


@pytest.fixture
def data(folder):
    """A table to label, in the working folder too."""
    rows = partly_labelled()
    rows.write_csv("data.csv")
    rows.write_parquet("data.parquet")
    return rows


@pytest.fixture
def shell(folder, monkeypatch):
    """A shell in the working folder that finds a `coxfield` command."""
    script = folder / "bin" / "coxfield"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom coxfield.__main__ import main\n\nmain()\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def shell(command, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 120, **options}
        return subprocess.run(["bash", "-o", "pipefail", "-c", command], check=False, **options)

    return shell
