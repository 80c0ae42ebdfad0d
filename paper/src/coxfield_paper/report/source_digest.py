"""A digest of the code behind a function: its own module, and all modules of both packages that the module imports.

A record carries this digest. If the digest of today's code differs, other code made the record, and its numbers may be
wrong now. Imports are read from the source and followed from module to module, also those inside of functions.

The digest does not change with comments, docstrings, formatting and type hints for the checker alone, nor with the
words of sentences such as captions and error messages: a better wording must not cost an hour of computation. Data
files and other packages are not part of it: downloaded data have checksums, and a record lists versions of packages.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import coxfield
import coxfield_paper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGES = {package.__name__: Path(package.__path__[0]) for package in (coxfield, coxfield_paper)}
# These modules draw, show and keep what a task has returned. They cannot change it.
SHOWING = ("coxfield.plotting", "coxfield.progress", "coxfield_paper.report")
SENTENCE = 6  # words from which on a string is a sentence for people; names and options are shorter


def source_digest(function: Callable) -> str:
    """The digest of the code that a function of a module runs.

    Examples
    --------
    >>> from coxfield_paper.studies.supervised import measure, render
    >>> source_digest(measure) == source_digest(render)  # two functions of one module
    True
    """
    return _module_digest(function.__module__, Path(inspect.getsourcefile(function) or ""))


@cache
def _module_digest(name: str, path: Path) -> str:
    digest = hashlib.sha256()
    for module, source in sorted(modules_behind(name, path).items()):
        digest.update(f"{module}\n{_plain(source)}\n".encode())
    return digest.hexdigest()


def modules_behind(name: str, path: Path) -> dict[str, Path]:
    """A module and the modules of both packages that it imports, directly or through others, with their files.

    The `__init__` of a package does nothing here but pass names on. So a name that is imported from a package counts as
    an import from the module that defines it, and packages on the way to a module do not count.
    """
    found, waiting = {name: path}, [(name, path)]
    while waiting:
        for module in _imports(*waiting.pop()):
            if module not in found and module not in PACKAGES and not _shows(module):
                found[module] = _file(module)
                waiting.append((module, found[module]))
    return found


def _shows(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in SHOWING)


@cache
def _imports(name: str, path: Path) -> frozenset[str]:
    """Names of the modules of both packages that one module imports."""
    found: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found.update(*(_whole(alias.name) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            found.update(*(_taken(_base(node, name, path), alias.name) for alias in node.names))
    return frozenset(found)


def _base(node: ast.ImportFrom, name: str, path: Path) -> str:
    """The module that an import statement of the module `name` takes names from."""
    if not node.level:
        return node.module or ""
    above = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    return ".".join([*above[: len(above) - node.level + 1], *filter(None, [node.module])])


def _whole(module: str) -> Iterator[str]:
    """A module that is imported as a whole, and of a package all that it passes on."""
    if _is_module(module):
        yield module
        for home, name in _homes(module).values():
            yield from _taken(home, name)


def _taken(module: str, name: str) -> Iterator[str]:
    """The module that defines a name which is imported from a module or a package."""
    if _is_module(f"{module}.{name}"):
        yield from _whole(f"{module}.{name}")
    elif not _is_module(module):
        return
    elif name in _homes(module):
        yield from _taken(*_homes(module)[name])
    else:
        yield module


@cache
def _homes(module: str) -> dict[str, tuple[str, str]]:
    """The names that a package passes on, each with the module and the name there; also those in `_HOMES`."""
    path = _file(module)
    homes: dict[str, tuple[str, str]] = {}
    for node in _tree(path).body if path.name == "__init__.py" else ():
        if isinstance(node, ast.ImportFrom):
            homes |= {alias.asname or alias.name: (_base(node, module, path), alias.name) for alias in node.names}
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "_HOMES":
            homes |= {name: (home, name) for name, home in ast.literal_eval(node.value).items()}
    return homes


@cache
def _is_module(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES and _file(name).is_file()


def _file(module: str) -> Path:
    package, *inside = module.split(".")
    place = PACKAGES[package].joinpath(*inside)
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def _tree(path: Path) -> ast.Module:
    return _Essence().visit(ast.parse(path.read_bytes()))


@cache
def _plain(path: Path) -> str:
    return ast.dump(_tree(path))


class _Essence(ast.NodeTransformer):
    """Leaves out what cannot change a number: docstrings, the words of sentences, imports for the type checker."""

    def visit_If(self, node):
        name = getattr(node.test, "id", getattr(node.test, "attr", None))
        if name == "TYPE_CHECKING":
            return [self.visit(other) for other in node.orelse]
        return self.generic_visit(node)

    def visit_Expr(self, node):
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else self.generic_visit(node)

    def visit_Constant(self, node):
        sentence = isinstance(node.value, str) and len(node.value.split()) >= SENTENCE
        return ast.Constant("") if sentence else node

    def visit_JoinedStr(self, node):
        texts = [part for part in node.values if isinstance(part, ast.Constant)]
        if len(" ".join(str(part.value) for part in texts).split()) >= SENTENCE:
            node.values = [part for part in node.values if part not in texts]
        return self.generic_visit(node)
