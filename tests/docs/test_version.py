"""The version is written in several files, each for another reader."""

import re
import tomllib
from pathlib import Path

import pytest

from coxfield import __version__

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("CITATION.cff", r"^version: (\S+)$"),
        ("CHANGELOG.md", r"^## (\S+),"),
        ("packaging/conda/recipe.yaml", r'^  version: "(\S+)"$'),
        ("paper/pyproject.toml", r'^version = "(\S+)"$'),
        ("paper/pyproject.toml", r'^dependencies = \["coxfield\[cli,cuts,plot\]==([^"]+)"'),
        ("pyproject.toml", r'^report = \["coxfield-paper==(\S+)"\]$'),
    ],
)
def test_every_file_names_the_same_version(file, line):
    found = re.search(line, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{file} names no version"
    assert found[1] == __version__


def test_the_package_is_built_with_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__
