"""Commands that README and docs name exist."""

import re
from pathlib import Path

import pytest

from coxfield_paper.studies.items import ITEMS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
REPRODUCED = re.compile(r"coxfield\s+reproduce((?:\s+[a-z]+(?:-[a-z0-9]+)+|\s+timings|\s+appendix)+)")
MODULE = re.compile(r"python\s+-m\s+([\w.]+)")
TARGET = re.compile(r"`make\s+([a-z-]+)`")

every_page = pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])


@every_page
def test_items_to_reproduce_are_listed(page):
    names = " ".join(REPRODUCED.findall(page.read_text(encoding="utf-8"))).split()
    assert [name for name in names if name not in ITEMS] == []


def runs(name):
    """Whether `python -m name` runs: a module with a main part, or a package with a main module."""
    home = ROOT / ("benchmarks" if name.startswith("benchmarks") else "src/coxfield")
    below = home.joinpath(*name.split(".")[1:])
    module = below.with_suffix(".py")
    return (below / "__main__.py").is_file() or (module.is_file() and "__main__" in module.read_text(encoding="utf-8"))


@every_page
def test_modules_to_run_exist(page):
    names = MODULE.findall(page.read_text(encoding="utf-8"))
    own = [name for name in names if name.split(".")[0] in ("coxfield", "benchmarks")]
    assert [name for name in own if not runs(name)] == []


@every_page
def test_make_targets_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(TARGET.findall(page.read_text(encoding="utf-8"))) <= targets


def test_commands_are_found_in_prose():
    text = "`coxfield reproduce table-1 table-2` (seeds), `coxfield reproduce\ntimings`, `coxfield reproduce --quick`"
    assert " ".join(REPRODUCED.findall(text)).split() == ["table-1", "table-2", "timings"]
    assert MODULE.findall("`python -m benchmarks.samplers`") == ["benchmarks.samplers"]
    assert TARGET.findall("run `make test-portable`") == ["test-portable"]
    assert runs("coxfield")
    assert runs("benchmarks.samplers")
    assert not runs("coxfield.apps.nowhere")
