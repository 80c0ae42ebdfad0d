"""Files that README and docs name exist, and the map of the paper is true."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
