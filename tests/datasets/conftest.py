"""Stand-ins: small copies of the large sets, and executables that play the package clients."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from coxfield.datasets import fetched
from coxfield.datasets.fetch import ArraySpec, sha256


@pytest.fixture(autouse=True)
def no_data_at_hand(tmp_path, monkeypatch):
    """Hide the data and the cache of whoever runs the tests."""
    monkeypatch.delenv("COXFIELD_DATA", raising=False)
    monkeypatch.setenv("COXFIELD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def shrink(monkeypatch):
    """Return a function that makes the recipe of a name expect the small arrays it is given."""

    def shrink(name, arrays):
        recipe, specs = getattr(fetched, name), {}
        for key, spec in recipe.arrays.items():
            exact = np.ascontiguousarray(arrays[key], dtype=spec.dtype)
            specs[key] = ArraySpec(spec.dtype, exact.shape, sha256(exact))
        monkeypatch.setattr(fetched, name, dataclasses.replace(recipe, arrays=specs))

    return shrink


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Return a function that writes a Python script and returns an executable that runs it."""

    def stand_in(name, body):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        path = Path(folder / name)
        path.write_text(f"#!{sys.executable}\nimport pathlib, shutil, sys, time\n{body}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        return path

    return stand_in
