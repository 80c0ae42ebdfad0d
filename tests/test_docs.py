"""What README and docs say is true: files, commands, those of 'Start here', and the map of the paper."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from coxfield_paper.studies.items import ITEMS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "coxfield"
PAPER = ROOT / "paper" / "src" / "coxfield_paper"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# A path in backticks: it has a slash, or ends like source or a page. What commands write is not in the repository.
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]*)+|[\w-]+\.(?:py|md|toml))`")
LINK = re.compile(r"\]\(([\w./-]+)\)")
WRITTEN = ("report/index.html", "report/figures", "path/to/", "some/")
# A row of the map: what the paper calls it, its symbol, names in the code, files.
ROWS = re.compile(r"^\| (?P<paper>.*?) \|.*?\| (?P<names>[^|]*) \| (?P<files>[^|]*) \|$", re.MULTILINE)


def exists(name, page):
    """Whether a name is a file or folder below the repository, a package, the docs or the page's own folder."""
    return any((folder / name).exists() for folder in (ROOT, PACKAGE, PAPER, PAPER.parent, ROOT / "docs", page.parent))


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_path_of_a_page_exists(page):
    text = page.read_text(encoding="utf-8")
    named = [name for name in PATH.findall(text) if not name.startswith(WRITTEN)] + LINK.findall(text)
    assert [name for name in named if not exists(name, page)] == []


def test_paths_are_found_and_told_from_code():
    text = "`selection/loo.py` and `docs/design.md`, `tests/field`, not `a + b`, `LGCPClassifier` or `rtol=1e-3/n`"
    assert PATH.findall(text) == ["selection/loo.py", "docs/design.md", "tests/field"]
    assert LINK.findall("![A picture](images/a.png) and [a page](beyond_map.md)") == ["images/a.png", "beyond_map.md"]
    assert not exists("selection/nowhere.py", ROOT / "README.md")


def map_rows():
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    return [row for row in ROWS.finditer(text) if row["paper"] not in ("paper", "---")]


def test_the_map_has_all_its_rows():
    lines = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8").splitlines()
    assert len(map_rows()) == sum(line.startswith("|") for line in lines) - 2 > 50


@pytest.mark.parametrize("row", map_rows(), ids=lambda row: row["paper"])
def test_the_files_of_a_row_hold_its_names(row):
    files = re.findall(r"`([^`]+)`", row["files"])
    homes = [next(home for home in (PACKAGE, PAPER, ROOT) if (home / name).is_file()) / name for name in files]
    texts = [home.read_text(encoding="utf-8") for home in homes]
    identifiers = [name for name in re.findall(r"`([^`]+)`", row["names"]) if name.isidentifier()]
    missing = [name for name in identifiers if not any(re.search(rf"\b{name}\b", text) for text in texts)]
    assert files
    assert missing == []


ALL_PAGES = [*PAGES, ROOT / "CHANGELOG.md"]
REPRODUCED = re.compile(r"coxfield\s+reproduce((?:\s+[a-z]+(?:-[a-z0-9]+)+|\s+timings|\s+appendix)+)")
MODULE = re.compile(r"python\s+-m\s+([\w.]+)")
TARGET = re.compile(r"`make\s+([a-z-]+)`")

every_page = pytest.mark.parametrize("page", ALL_PAGES, ids=[page.name for page in ALL_PAGES])


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


START = (Path(__file__).resolve().parents[1] / "docs" / "start.md").read_text(encoding="utf-8")
ON_THE_COMMAND_LINE = START.split("## On the command line")[1]


def test_the_tables_and_commands_of_the_page(tmp_path):
    program = re.search(r"```python\n(.*?)```", ON_THE_COMMAND_LINE, re.DOTALL)[1]
    commands = [line[2:] for line in ON_THE_COMMAND_LINE.splitlines() if line.startswith("$ ")]
    assert commands[0] == "python make_tables.py"
    (tmp_path / "make_tables.py").write_text(program, encoding="utf-8")
    for command in commands:
        name, *rest = command.split()
        start = [sys.executable] if name == "python" else [sys.executable, "-m", "coxfield"]
        subprocess.run([*start, *rest], cwd=tmp_path, check=True, capture_output=True)
    made = re.findall(r"(?:-o|--plot) (\S+)", ON_THE_COMMAND_LINE)
    assert len(made) == 4
    assert [name for name in made if not (tmp_path / name).stat().st_size] == []
