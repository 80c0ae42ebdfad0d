"""The digest of code changes with the code that a function runs, and with nothing else."""

import ast
from pathlib import Path

import pytest

import coxfield
from coxfield_paper.report import source_digest
from coxfield_paper.studies import data_sets, supervised

FILES = {
    "__init__.py": '_HOMES = {"Lazy": "toy.lazy"}\n',
    "tasks.py": (
        "from toy import Lazy\nfrom toy.inner import helper\nfrom fellow import met\n\ndef run():\n"
        "    from toy.late import late\n"
    ),
    "lazy.py": "class Lazy:\n    pass\n",
    "inner/__init__.py": "from .deep import helper\nfrom .other import unused\n",
    "inner/deep.py": "import typing\nfrom ..base import BASE\nif typing.TYPE_CHECKING:\n    import toy.types\n",
    "inner/other.py": "unused = 1\n",
    "base.py": "BASE = 1\n",
    "late.py": "import toy.plotting.lines\n\nlate = 2\n",
    "types.py": "Kind = int\n",
    "plotting/lines.py": "WIDTH = 1\n",
    "stranger.py": "x = 1\n",
    "../fellow/__init__.py": "from fellow.study import met\n",
    "../fellow/study.py": "import numpy\nfrom toy.far import FAR\n\nmet = 1\n",
    "far.py": "FAR = 1\n",
}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A small package that imports another one, which imports the first."""
    folder = tmp_path / "toy"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(source_digest, "PACKAGES", {"toy": folder, "fellow": tmp_path / "fellow"})
    monkeypatch.setattr(source_digest, "SHOWING", ("toy.plotting",))
    forget()
    yield folder
    forget()


def forget():
    """Sources are read once in a process; a test changes them."""
    for function in vars(source_digest).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


def digest(folder):
    forget()
    return source_digest._module_digest("toy.tasks", folder / "tasks.py")


def behind(folder):
    return set(source_digest.modules_behind("toy.tasks", folder / "tasks.py"))


def test_imports_are_followed_to_the_modules_that_define_the_names(toy):
    inside = {"toy.tasks", "toy.lazy", "toy.inner.deep", "toy.base", "toy.late"}
    assert behind(toy) == inside | {"fellow.study", "toy.far"}


@pytest.mark.parametrize("name", ["tasks", "lazy", "inner/deep", "base", "late", "../fellow/study", "far"])
def test_other_code_in_any_module_behind_is_another_digest(toy, name):
    before = digest(toy)
    with (toy / f"{name}.py").open("a") as file:
        file.write("more = 1\n")
    assert digest(toy) != before


@pytest.mark.parametrize("name", ["inner/other", "types", "stranger", "plotting/lines"])
def test_code_that_the_function_cannot_reach_or_that_only_shows_does_not_count(toy, name):
    before = digest(toy)
    (toy / f"{name}.py").write_text("everything = 'new'\n")
    assert digest(toy) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = f(1, 2)", "# why\nx = f(\n    1,\n    2,\n)"),
        ("def f():\n    return 1", 'def f():\n    """What it does."""\n    return 1'),
        ("class A:\n    a: int = 1", 'class A:\n    """What it is."""\n\n    a: int = 1\n    """What it means."""'),
        ("raise ValueError('this is a sentence of many words')", "raise ValueError('and these are quite other words')"),
        (
            "raise ValueError(f'the value {x} is not one of those')",
            "raise ValueError(f'give some other {x} instead of this')",
        ),
    ],
)
def test_comments_docstrings_layout_and_the_words_of_sentences_do_not_count(toy, old, new):
    (toy / "base.py").write_text(old)
    before = digest(toy)
    (toy / "base.py").write_text(new)
    assert digest(toy) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = 'loo_error'", "x = 'loo_log_loss'"),
        ("x = 1", "x = 1.0"),
        ("f(f'the value {x} is not one of those')", "f(f'the value {y} is not one of those')"),
        ("if x:\n    y = 1", "if x:\n    y = 2"),
    ],
)
def test_options_numbers_and_values_count(toy, old, new):
    (toy / "base.py").write_text(old)
    before = digest(toy)
    (toy / "base.py").write_text(new)
    assert digest(toy) != before


def test_a_package_that_is_imported_whole_brings_all_that_it_passes_on(toy):
    (toy / "late.py").write_text("import toy\nfrom toy import inner\n")
    assert behind(toy) >= {"toy.lazy", "toy.inner.deep", "toy.inner.other"}


def test_a_classifier_of_the_package_is_behind_the_experiment_that_uses_it():
    found = source_digest.modules_behind(supervised.__name__, Path(supervised.__file__))
    assert data_sets.__name__ in found
    assert coxfield.LGCPClassifier.__module__ in found
    assert coxfield.SLGCPClassifier.__module__ not in found
    assert not any(name.startswith("coxfield.plotting") for name in found)


def test_packages_only_pass_names_on():
    """What `modules_behind` relies on."""
    allowed = ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef
    for path in (path for home in source_digest.PACKAGES.values() for path in home.rglob("__init__.py")):
        for node in ast.parse(path.read_text()).body[1:]:  # after the docstring
            if isinstance(node, ast.Try):  # an import, or a sentence that says what is missing: no result depends on it
                assert all(isinstance(line, ast.Import) for line in node.body), (path, node.lineno)
                assert all(isinstance(line, ast.Raise) for each in node.handlers for line in each.body)
                continue
            assert isinstance(node, allowed), (path, node.lineno)
            if isinstance(node, ast.FunctionDef):
                assert node.name in {"__getattr__", "__dir__"}, (path, node.name)
