"""Sets that are read from the user's copy, because no package has them: oil flow and STL-10.

Three-phase oil flow is by Bishop and James (1993), and STL-10 by Coates, Ng and Lee (2011).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import Bunch

from coxfield.datasets.fetch import DatasetUnavailableError, own_copy

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from numpy.typing import NDArray


OIL_PARTS = {"train": "Trn", "valid": "Vdn", "test": "Tst"}
OIL_CONFIGURATIONS = ("homogeneous", "annular", "laminar")
STL10_FOLDER = "stl10_binary"  # what the official archive unpacks to
SIDE, COLOURS, N_CLASSES = 96, 3, 10
STL10_ADVICE = (
    "unpack the official stl10_binary.tar.gz of https://cs.stanford.edu/~acoates/stl10 and pass the folder "
    "stl10_binary, with train_X.bin, train_y.bin, test_X.bin, test_y.bin and class_names.txt"
)


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
    place = _oil_place(path)
    read = _oil_from_npz if place.is_file() else _oil_from_text
    try:
        arrays = read(place)
    except (OSError, KeyError, ValueError) as error:
        raise DatasetUnavailableError(
            f"The oil flow data set cannot be read from {place} ({error}); pass the folder with DataTrn.txt, "
            "DataTrnLbls.txt and their Vdn and Tst counterparts."
        ) from error
    return Bunch(**arrays, target_names=list(OIL_CONFIGURATIONS))


def _oil_place(path: str | os.PathLike[str] | None) -> Path:
    place = own_copy(path, "The oil flow data set", "pass the path of your copy")
    npz = place / "oil.npz"
    return npz if path is None and npz.is_file() else place


def _oil_from_npz(path: Path) -> dict:
    with np.load(path, allow_pickle=False) as archive:
        return {
            f"{kind}_{part}": archive[f"{kind}_{part}"].astype(np.float64 if kind == "X" else np.int64)
            for part in OIL_PARTS
            for kind in "Xy"
        }


def _oil_from_text(folder: Path) -> dict:
    arrays = {}
    for part, short in OIL_PARTS.items():
        arrays[f"X_{part}"] = np.loadtxt(folder / f"Data{short}.txt")
        # One column per configuration: 1 in the column of the actual configuration, 0 elsewhere.
        arrays[f"y_{part}"] = np.loadtxt(folder / f"Data{short}Lbls.txt").argmax(axis=1)
    return arrays


def load_stl10(path: str | os.PathLike[str] | None = None) -> Bunch:
    """Read the labelled part of STL-10: 5,000 training and 8,000 test photographs of ten classes, 96 x 96 pixels.

    Parameters
    ----------
    path : path-like, default=None
        The folder `stl10_binary` of the official archive, or the folder that holds it. None means the folder that the
        environment variable ``COXFIELD_DATA`` names.

    Returns
    -------
    Bunch
        `X_train` (5000, 27648) and `X_test` (8000, 27648) of uint8, whose rows reshape to pictures of (96, 96, 3): row,
        column, colour; `y_train` and `y_test` of int64, counting classes from 0; `target_names`.

    Raises
    ------
    DatasetUnavailableError
        Files are missing or damaged; the message says what to do.

    Examples
    --------
    >>> from coxfield.datasets import load_stl10
    >>> stl = load_stl10("data/stl10_binary")          # doctest: +SKIP
    >>> stl.X_train.shape                              # doctest: +SKIP
    (5000, 27648)
    """
    folder = _stl10_folder(path)
    try:
        names = (folder / "class_names.txt").read_text(encoding="ascii").split()
        if len(names) != N_CLASSES:
            raise ValueError(f"class_names.txt names {len(names)} classes instead of {N_CLASSES}")
        arrays = {**_stl10_part(folder, "train"), **_stl10_part(folder, "test")}
    except (OSError, ValueError) as error:
        raise DatasetUnavailableError(f"STL-10 cannot be read from {folder} ({error}); {STL10_ADVICE}.") from error
    return Bunch(**arrays, target_names=np.array(names))


def _stl10_folder(path: str | os.PathLike[str] | None) -> Path:
    place = own_copy(path, "STL-10", STL10_ADVICE)
    inside = place / STL10_FOLDER
    return inside if inside.is_dir() else place


def _stl10_part(folder: Path, part: str) -> dict[str, NDArray]:
    """Pictures and labels of one part of the data."""
    X, y = _stl10_pictures(folder / f"{part}_X.bin"), np.fromfile(folder / f"{part}_y.bin", dtype=np.uint8)
    if len(X) != len(y):
        raise ValueError(f"{part}_X.bin holds {len(X)} pictures, but {part}_y.bin {len(y)} labels")
    if y.size and not (y.min() >= 1 and y.max() <= N_CLASSES):
        raise ValueError(f"{part}_y.bin holds labels from {y.min()} to {y.max()} instead of 1 to {N_CLASSES}")
    return {f"X_{part}": X, f"y_{part}": y.astype(np.int64) - 1}


def _stl10_pictures(path: Path) -> NDArray[np.uint8]:
    """Pictures as rows, pixel by pixel; the file stores them colour by colour and column by column."""
    values = np.fromfile(path, dtype=np.uint8)
    size = COLOURS * SIDE * SIDE
    if values.size % size:
        raise ValueError(f"{path.name} holds {values.size} bytes, which is no multiple of {size}")
    return values.reshape(-1, COLOURS, SIDE, SIDE).transpose(0, 3, 2, 1).reshape(-1, size)
