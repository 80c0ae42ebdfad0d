"""The user's own data folder: the one that the environment variable ``COXFIELD_DATA`` names."""

from __future__ import annotations

import os
from pathlib import Path

from coxfield.datasets.errors import DatasetUnavailableError

VARIABLE = "COXFIELD_DATA"


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
