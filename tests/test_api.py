"""What users rely on: the reference lists every public name and no other, and every file names the same version."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from coxfield import __version__

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "api"
# Page of the reference -> package; `others.md` has names from several modules.
STEMS = {page.stem for page in PAGES.glob("*.md")} - {"index", "others"}
PACKAGES = {stem: "coxfield" if stem == "coxfield" else f"coxfield.{stem}" for stem in sorted(STEMS)}
BLOCK = re.compile(r"\.\. currentmodule:: (\S+)\n\n\.\. autosummary::\n   :toctree: generated\n\n((?:   \w+\n)+)")


def listed(page):
    """Module -> names that a page of the reference lists."""
    found = {}
    for module, names in BLOCK.findall((PAGES / f"{page}.md").read_text(encoding="utf-8")):
        found.setdefault(module, []).extend(names.split())
    return found


def public_packages():
    """Packages and modules directly below coxfield that say which names are public."""
    home = ROOT / "src" / "coxfield"
    paths = [home / "__init__.py", *home.glob("*/__init__.py"), *home.glob("[!_]*.py")]
    public = [path for path in paths if "__all__ = " in path.read_text(encoding="utf-8")]
    return {path.parent.name if path.stem == "__init__" else path.stem for path in public}


@pytest.mark.parametrize("page", PACKAGES)
def test_a_page_lists_what_its_package_makes_public(page):
    public = set(importlib.import_module(PACKAGES[page]).__all__) - {"__version__"}
    names = listed(page)[PACKAGES[page]]
    assert sorted(names) == sorted(set(names))
    assert set(names) == public


def test_every_public_package_has_a_page():
    assert set(PACKAGES) == public_packages()


def test_names_on_the_other_page_exist():
    assert listed("others")
    for module, names in listed("others").items():
        assert [name for name in names if not hasattr(importlib.import_module(module), name)] == []


def test_the_index_names_every_page():
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    hidden = text.split("```{toctree}\n:hidden:\n\n")[1].split("```")[0].split()
    assert set(hidden) == {*PACKAGES, "others"}
    assert [page for page in hidden if f"({page}.md)" not in text] == []


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
