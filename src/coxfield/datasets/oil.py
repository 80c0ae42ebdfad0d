"""Three-phase oil flow (Bishop and James 1993), read from the user's copy because no package has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import Bunch

from coxfield.datasets.errors import DatasetUnavailableError
from coxfield.datasets.folder import own_copy

if TYPE_CHECKING:
    import os
    from pathlib import Path

PARTS = {"train": "Trn", "valid": "Vdn", "test": "Tst"}
CONFIGURATIONS = ("homogeneous", "annular", "laminar")


def load_oil(path: str | os.PathLike[str] | None = None) -> Bunch:
    """Read the oil flow data: 12 gamma-ray attenuations of 3 x 1000 pipes, and the configuration of the flow.

    Parameters
    ----------
    path : path-like, default=None
        A folder with the official text files (`DataTrn.txt`, `DataTrnLbls.txt`, and the same with `Vdn` and `Tst`), or
        an npz file with arrays `X_train`, `y_train`, `X_valid`, and so on. None means `oil.npz`, or those files, in the
        folder that the environment variable ``COXFIELD_DATA`` names.

    Returns
    -------
    Bunch
        `X_train`, `y_train`, `X_valid`, `y_valid`, `X_test`, `y_test`, `target_names`; classes 0 homogeneous,
        1 annular, 2 laminar.
    """
    place = _place(path)
    read = _from_npz if place.is_file() else _from_text
    try:
        arrays = read(place)
    except (OSError, KeyError, ValueError) as error:
        raise DatasetUnavailableError(
            f"The oil flow data set cannot be read from {place} ({error}); pass the folder with DataTrn.txt, "
            "DataTrnLbls.txt and their Vdn and Tst counterparts."
        ) from error
    return Bunch(**arrays, target_names=list(CONFIGURATIONS))


def _place(path: str | os.PathLike[str] | None) -> Path:
    place = own_copy(path, "The oil flow data set", "pass the path of your copy")
    npz = place / "oil.npz"
    return npz if path is None and npz.is_file() else place


def _from_npz(path: Path) -> dict:
    with np.load(path, allow_pickle=False) as archive:
        return {
            f"{kind}_{part}": archive[f"{kind}_{part}"].astype(np.float64 if kind == "X" else np.int64)
            for part in PARTS
            for kind in "Xy"
        }


def _from_text(folder: Path) -> dict:
    arrays = {}
    for part, short in PARTS.items():
        arrays[f"X_{part}"] = np.loadtxt(folder / f"Data{short}.txt")
        # One column per configuration: 1 in the column of the actual configuration, 0 elsewhere.
        arrays[f"y_{part}"] = np.loadtxt(folder / f"Data{short}Lbls.txt").argmax(axis=1)
    return arrays
