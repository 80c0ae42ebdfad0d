"""Every module with logic has a test file of its name in the mirrored folder."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "coxfield"
FEW = 10  # lines of code: a module with no more is tested with what uses it
#: Modules with more lines and without a test file of their name, and why.
EXCEPTIONS = {
    "__init__.py": "names only; tests/test_lean_core.py imports them",
    "__main__.py": "tests/test_lean_core.py runs it with and without what it needs",
    "datasets/__init__.py": "names only",
    "field/__init__.py": "names only",
    "plotting/__init__.py": "names only",
    "process/__init__.py": "names only",
}


def lines_of_code(source):
    """Lines that begin something, other than imports and docstrings."""
    tree = ast.parse(source)
    left_out = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) or is_text(node)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    return len({node.lineno for node in ast.walk(tree) if hasattr(node, "lineno")} - left_out)


def is_text(node):
    """Whether a statement is a string and nothing else: a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def modules():
    """Paths below the package of all modules with logic."""
    paths = (path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py")))
    return [path for path in paths if lines_of_code((SOURCE / path).read_text(encoding="utf-8")) > FEW]


def mirror(path):
    """The test file of a module."""
    return TESTS / path.parent / f"test_{path.name}"


@pytest.mark.parametrize("path", modules(), ids=str)
def test_a_module_with_logic_has_a_test_file_of_its_name(path):
    if path.as_posix() in EXCEPTIONS:
        assert not mirror(path).exists(), f"{path} has tests now: take it off the list of exceptions"
        return
    assert mirror(path).exists(), f"write {mirror(path).relative_to(TESTS.parent)}, or name a reason in EXCEPTIONS"
    assert "def test_" in mirror(path).read_text(encoding="utf-8")


def test_every_exception_is_a_module_with_logic():
    assert set(EXCEPTIONS) <= {path.as_posix() for path in modules()}


def test_imports_docstrings_and_comments_are_no_code():
    source = ['"""Text."""', "import os", "from sys import (", "    argv,", ")", "# A comment.", "def f(x):"]
    source += ['    """Text."""', "    return x"]
    assert lines_of_code("\n".join(source)) == 2
