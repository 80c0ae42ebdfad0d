"""The program that mypy checks strictly uses every public class."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOMS = (
    "",
    ".baselines",
    ".calibration",
    ".dask",
    ".datasets",
    ".field",
    ".kernels",
    ".permanents",
    ".plotting",
    ".process",
)
PROGRAM = (Path(__file__).parent / "user_program.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_class_is_used(room):
    module = importlib.import_module(f"coxfield{room}")
    classes = [name for name in module.__all__ if inspect.isclass(getattr(module, name))]
    missing = [name for name in classes if not re.search(rf"\b{name}\b", PROGRAM.partition("def ")[2])]
    assert not missing, f"tests/typing/user_program.py does not use {', '.join(missing)}"
