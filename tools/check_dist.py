"""Build wheels and source archives twice, compare them bit by bit, and test the wheels in an empty environment.

Run ``python tools/check_dist.py`` with a Python that has the package `build`. The files are in dist/ if all is well.
There are two distributions: coxfield, and coxfield-paper in paper/. The tests are those of the source archive of
coxfield. They run against the installed wheels: the source is taken away first.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Tests that use the package as users do: its import, classifiers, processes, files and commands.
TESTS = (
    "tests/test_lean_core.py",
    "tests/estimators/test_classical.py",
    "tests/process",
    "tests/datasets",
    "tests/io",
    "paper/tests/report",
    "paper/tests/test_reproduce.py",
)
PROJECTS = (ROOT, ROOT / "paper")
UNDATED = "1577836800"  # the first day of 2020, for a source without history


def run(*command: object, cwd: Path = ROOT, **environment: str) -> None:
    """Run a command, and end the program if it fails."""
    subprocess.run([str(part) for part in command], cwd=cwd, check=True, env={**os.environ, **environment})


def last_change() -> str:
    """Time of the last commit, which every file in the archives gets."""
    found = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or UNDATED


def build(output: Path, epoch: str) -> dict[str, str]:
    """Build each source archive, and the wheel from it; their names and checksums."""
    for project in PROJECTS:
        run(sys.executable, "-m", "build", "--outdir", output, project, SOURCE_DATE_EPOCH=epoch)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(output.iterdir())}


def check_installed(dist: Path, folder: Path, tests: list[str]) -> None:
    """Install the wheels into an empty environment, and run tests of the source archive against them."""
    names = ("coxfield-*.whl", "coxfield_paper-*.whl", "coxfield-*.tar.gz")
    (wheel,), (paper,), (archive,) = (list(dist.glob(name)) for name in names)
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    source = folder / archive.name.removesuffix(".tar.gz")
    for project in (source, source / "paper"):
        shutil.rmtree(project / "src")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    quiet = ("--quiet", "--disable-pip-version-check", "-c", "constraints.txt")
    run(python, "-m", "pip", "install", *quiet, f"{wheel}[test]", paper)
    for name in ("coxfield", "coxfield_paper"):
        where = f"import {name} as it, sys; print(it.__file__); sys.exit(sys.prefix not in it.__file__)"
        run(python, "-c", where, cwd=source)
    run(python, "-m", "pip", "check")
    run(python, "-m", "pytest", "-q", *tests, cwd=source, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def main() -> int:
    """Build, compare, install and test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", nargs="+", default=list(TESTS), help="tests to run against the wheel")
    tests, dist, epoch = parser.parse_args().tests, ROOT / "dist", last_change()
    shutil.rmtree(dist, ignore_errors=True)
    first = build(dist, epoch)
    with tempfile.TemporaryDirectory() as folder:
        second = build(Path(folder) / "again", epoch)
        if first != second:
            print(f"The files differ between two builds: {first} and {second}", file=sys.stderr)
            return 1
        check_installed(dist, Path(folder), tests)
    print(*(f"{checksum}  {name}" for name, checksum in first.items()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
