"""Training and test parts of the supervised data sets, as the paper divides them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import ShuffleSplit

from coxfield.datasets import fetch_bci, load_banana, load_pima, load_stl10, load_synth

if TYPE_CHECKING:
    from numpy.typing import NDArray

Partition = tuple["NDArray", ...]
"""X_train, y_train, X_test, y_test."""

RANDOM = 10  # partitions drawn at random, for data without a standard one
TRAIN_SIZES = {"Banana": 400, "BCI": 200, "rSTL": 500}


def partition(data: str, seed: int = 0) -> Partition:
    """One partition of a data set of table supervisedResults. Synth and Diabetes have only the standard one.

    Examples
    --------
    >>> X_train, y_train, X_test, y_test = partition("Banana", seed=3)
    >>> len(y_train), len(y_test)
    (400, 4900)
    """
    if data == "Synth":
        return load_synth(return_X_y=True)
    if data == "Diabetes":
        return load_pima(return_X_y=True)
    X, y = DRAWN[data](seed)
    train_size = TRAIN_SIZES[data]
    # One generator draws all partitions, so that each seed always means the same one.
    splits = ShuffleSplit(RANDOM, train_size=train_size, test_size=len(y) - train_size, random_state=0)
    train, test = list(splits.split(X))[seed]
    return X[train], y[train], X[test], y[test]


def _banana(seed: int) -> tuple[NDArray, ...]:
    return load_banana(return_X_y=True)


def _bci(seed: int) -> tuple[NDArray, ...]:
    bci = fetch_bci()
    return bci.X, bci.y


def _monkeys_and_trucks(seed: int) -> tuple[NDArray, ...]:
    """rSTL: 500 images of monkeys and 500 of trucks, drawn at random from the labelled images."""
    stl = load_stl10()
    X, y = np.concatenate([stl.X_train, stl.X_test]), np.concatenate([stl.y_train, stl.y_test])
    rng = np.random.default_rng(seed)
    names = stl.target_names.tolist()
    rows = [rng.choice(np.flatnonzero(y == names.index(kind)), 500, replace=False) for kind in ("monkey", "truck")]
    return X[np.concatenate(rows)] / 255.0, np.repeat([0, 1], 500)


DRAWN = {"Banana": _banana, "BCI": _bci, "rSTL": _monkeys_and_trucks}
