"""The small data sets inside the package, as compressed CSV files.

The files ``data/*.md``, which are also the ``DESCR`` of each set, say where the numbers come from and how they were
changed. ``tools/embed_datasets.py`` rebuilds the files.
"""

from __future__ import annotations

import gzip
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import Bunch

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DATA = resources.files("coxfield.datasets") / "data"


def _read_table(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64], list[str]]:
    """Read features, labels (the last column) and feature names from an embedded file."""
    with (_DATA / f"{name}.csv.gz").open("rb") as packed, gzip.open(packed, "rt", encoding="ascii") as text:
        *feature_names, _ = text.readline().strip().split(",")
        table = np.loadtxt(text, delimiter=",")
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64), feature_names


def _describe(name: str) -> str:
    return (_DATA / f"{name}.md").read_text(encoding="utf-8")


def _load_split(name: str, target_names: list[str], return_X_y: bool) -> Bunch | tuple[NDArray, ...]:
    """Load a data set that is published as a training and a test set."""
    X_train, y_train, feature_names = _read_table(f"{name}_train")
    X_test, y_test, _ = _read_table(f"{name}_test")
    if return_X_y:
        return X_train, y_train, X_test, y_test
    return Bunch(
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        feature_names=feature_names,
        target_names=np.array(target_names),
        DESCR=_describe(name),
    )


def load_synth(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, ...]:
    """Load Ripley's synthetic two-class mixture with its standard training and test sets.

    Each class is an equal mixture of two Gaussians in the plane. So the best possible error is known; it is about 8 %.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(X_train, y_train, X_test, y_test)`` instead of a Bunch.

    Returns
    -------
    synth : :class:`~sklearn.utils.Bunch`
        ``X_train`` (250, 2) and ``X_test`` (1000, 2) of float64, ``y_train`` and ``y_test`` of int64 in {0,
        1}, ``feature_names``, ``target_names`` and ``DESCR``, which says where the data come from.

    Examples
    --------
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from coxfield.datasets import load_synth
    >>> X_train, y_train, X_test, y_test = load_synth(return_X_y=True)
    >>> lda = LinearDiscriminantAnalysis().fit(X_train, y_train)
    >>> round(100 * (1 - lda.score(X_test, y_test)), 1)
    10.8
    """
    return _load_split("synth", ["0", "1"], return_X_y)


def load_pima(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, ...]:
    """Load the Pima diabetes data with Ripley's training and test sets: the paper's 'Diabetes'.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(X_train, y_train, X_test, y_test)`` instead of a Bunch.

    Returns
    -------
    pima : :class:`~sklearn.utils.Bunch`
        ``X_train`` (200, 7) and ``X_test`` (332, 7) of float64 in the units of the source, ``y_train`` and
        ``y_test`` of int64 (0 is No, 1 is Yes), ``feature_names``, ``target_names`` and ``DESCR``, which
        states the provenance.

    Examples
    --------
    >>> from coxfield.datasets import load_pima
    >>> pima = load_pima()
    >>> pima.feature_names
    ['npreg', 'glu', 'bp', 'skin', 'bmi', 'ped', 'age']
    >>> pima.X_train.shape, pima.X_test.shape
    ((200, 7), (332, 7))
    """
    return _load_split("pima", ["No", "Yes"], return_X_y)


def load_banana(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, ...]:
    """Load all points of Rätsch's banana data. There is no standard split; the paper draws 400 points to train on.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(X, y)`` instead of a Bunch.

    Returns
    -------
    banana : :class:`~sklearn.utils.Bunch`
        ``X`` (5300, 2) of float64 with three significant digits, ``y`` of int64 (0 for the source's -1, 1
        for its +1), ``feature_names``, ``target_names`` and ``DESCR``, which says where the data come from.

    Examples
    --------
    >>> from sklearn.model_selection import train_test_split
    >>> from coxfield.datasets import load_banana
    >>> banana = load_banana()
    >>> X_train, X_test, y_train, y_test = train_test_split(
    ...     banana.X, banana.y, train_size=400, random_state=0)
    >>> X_test.shape
    (4900, 2)
    """
    X, y, feature_names = _read_table("banana")
    if return_X_y:
        return X, y
    return Bunch(
        X=X,
        y=y,
        feature_names=feature_names,
        target_names=np.array(["-1", "+1"]),
        DESCR=_describe("banana"),
    )
