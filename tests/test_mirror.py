"""Every folder of a package with logic has a folder of tests of its name; files inside are cut as they read best."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Package -> its tests.
PACKAGES = {
    ROOT / "src" / "coxfield": ROOT / "tests",
    ROOT / "paper" / "src" / "coxfield_paper": ROOT / "paper" / "tests",
}


def has_logic(path):
    """Whether a module defines a function or a class."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return any(isinstance(node, kinds) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def folders(package):
    """Folders of a package with a module that has logic, relative to it; its `__init__` only passes names on."""
    modules = (path for path in package.rglob("*.py") if path.name != "__init__.py" and has_logic(path))
    return sorted({path.parent.relative_to(package) for path in modules})


PAIRS = [(package, tests, folder) for package, tests in PACKAGES.items() for folder in folders(package)]


@pytest.mark.parametrize(("package", "tests", "folder"), PAIRS, ids=[f"{pair[0].name}/{pair[2]}" for pair in PAIRS])
def test_a_folder_with_logic_has_a_folder_of_tests(package, tests, folder):
    files = (tests / folder).glob("test_*.py")
    assert any("def test_" in path.read_text(encoding="utf-8") for path in files), f"write tests in {tests / folder}"


def test_folders_are_found():
    names = {f"{package.name}/{folder}" for package, _, folder in PAIRS}
    assert {"coxfield/.", "coxfield/kernels", "coxfield/selection/mixture", "coxfield_paper/studies"} <= names


def test_names_alone_are_not_logic(tmp_path):
    for text, expected in (("x = 1\n", False), ('"""Text."""\nfrom a import b\n', False), ("def f(): ...\n", True)):
        (tmp_path / "module.py").write_text(text)
        assert has_logic(tmp_path / "module.py") == expected
