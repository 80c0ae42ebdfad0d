"""Supervised data sets in training and test parts: the paper's, two with standard parts, and those of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from coxfield.datasets import fetch_bci, fetch_mnist, load_banana, load_pima, load_stl10, load_synth
from coxfield.datasets.fetch import ArraySpec, Recipe, obtain

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


def _recipe(name: str, train: tuple[int, int], test: int, *checksums: str) -> Recipe:
    shapes = {"X_train": train, "y_train": train[:1], "X_test": (test, train[1]), "y_test": (test,)}
    specs = {key: ArraySpec("|u1", shapes[key], sha) for key, sha in zip(shapes, checksums, strict=True)}
    return Recipe(name, f"{name}.npz", specs, ())


RECIPES = {
    "pendigits": _recipe(
        "pendigits",
        (7494, 16),
        3498,
        "b1b74a43e5713e29d0abe07fbeffaf211dfa59569f5dab64d90f864da95aff4b",
        "04fec9f35e996127f160b28edf713280e107a7a64a9dcb31046fecab50689a9c",
        "ed909774500017e86d791ba04cfe487991678af305825e45f03296eb20412fe0",
        "29cd402e4b0e259fe90ad01f25df9409967fe3166a77e02d9a7d5e253a50ce4b",
    ),
    "satimage": _recipe(
        "satimage",
        (4435, 36),
        2000,
        "0d64abda579147fcbd6cbd4e9d60e7ead8d79fc0b8cb4e1f245548be5d53d0ce",
        "1929e0e5548522e6599309d3767eacb6ccbc40e39c096d9d1e17ecaab6321ffb",
        "6234822049f1ebba18f3cfdbed4e36fb5ca874c0e3ee92d94ea15180eff167ae",
        "c8c875525e456fe2cbb2e52339528ff9470881ab82e44a5bc6d146b81458b5e2",
    ),
}
HALVED = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
"""Sets of scikit-learn. Each is divided at random into two halves, with equal shares of the classes."""
MNIST = "MNIST"


def load(data: str, seed: int = 0) -> Partition:
    """One partition of a data set. The seed counts only where partitions are drawn at random.

    Examples
    --------
    >>> X_train, y_train, X_test, y_test = load("wine", seed=3)
    >>> X_train.shape, len(y_test)
    ((89, 13), 89)
    """
    if data in RECIPES:
        return _standard(RECIPES[data])
    if data in HALVED:
        return _half(data, seed)
    return _images() if data == MNIST else partition(data, seed)


def _standard(recipe: Recipe) -> Partition:
    """The partition that everybody uses."""
    arrays = obtain(recipe, download=False)
    X_train, X_test = (arrays[name].astype(np.float32) for name in ("X_train", "X_test"))
    return X_train, arrays["y_train"], X_test, arrays["y_test"]


def _half(data: str, seed: int) -> Partition:
    """One of ten random halves for training; the other half is the test part."""
    X, y = HALVED[data](return_X_y=True)
    # One generator draws all partitions, so that each seed always means the same one.
    splits = StratifiedShuffleSplit(RANDOM, train_size=0.5, random_state=0)
    train, test = list(splits.split(X, y))[seed]
    return X[train], y[train], X[test], y[test]


def _images() -> Partition:
    """All of MNIST, with pixels in [0, 1]."""
    data = fetch_mnist()
    X_train, X_test = (X.astype(np.float32) / np.float32(255) for X in (data.X_train, data.X_test))
    return X_train, data.y_train, X_test, data.y_test
