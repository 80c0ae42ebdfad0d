"""The semi-supervised curves: test error against the number of labels, ten random partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import fetch_mnist, load_oil, make_double_helix

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Draw = tuple["NDArray", "NDArray"]


@dataclass(frozen=True)
class Record:
    """Errors on the unlabelled points of one data set with some number of labels, one a partition."""

    data: str
    labels: int
    supervised: tuple[float, ...]
    semi_supervised: tuple[float, ...]
    length_scales: tuple[float, ...]
    certified: tuple[float, ...]
    """Share of labels that are proven."""


def double_helix(rng: np.random.Generator) -> Draw:
    """A double helix of 500 points a strand."""
    return make_double_helix(random_state=rng)


def reduced_mnist(rng: np.random.Generator) -> Draw:
    """Digits 0 and 4 of the MNIST training set, 500 of each, pixels in [0, 1]."""
    data = fetch_mnist()
    X, y = _of_each(data.X_train, data.y_train, (0, 4), rng)
    return X / 255.0, y


def oil(rng: np.random.Generator) -> Draw:
    """Homogeneous and annular flow, 500 of each, of all three parts of the data."""
    data = load_oil()
    X, y = (np.concatenate([data[f"{kind}_{part}"] for part in ("train", "valid", "test")]) for kind in "Xy")
    return _of_each(X, y, (0, 1), rng)


DATA: dict[str, Callable[[np.random.Generator], Draw]] = {
    "double helix": double_helix,
    "rMNIST": reduced_mnist,
    "oil": oil,
}


def _of_each(X, y, classes, rng, count: int = 500) -> Draw:
    rows = [rng.choice(np.flatnonzero(y == label), count, replace=False) for label in classes]
    return X[np.concatenate(rows)], np.repeat(np.arange(len(classes)), count)


def partition(name: str, labels: int, seed: int) -> tuple[NDArray, NDArray, NDArray]:
    """Points, their classes, and the classes with all but `labels` of them replaced by -1.

    Labels are drawn until both classes have one.
    """
    rng = np.random.default_rng(seed)
    X, truth = DATA[name](rng)
    while True:
        known = rng.choice(len(truth), labels, replace=False)
        if len(np.unique(truth[known])) == 2:
            break
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    return X, truth, y


def run(name: str, labels: int = 10, partitions: int = 10, done=None) -> Record:
    """Compare the semi-supervised with the supervised classifier on random partitions of one data set."""
    errors: list[tuple[float, ...]] = []
    for seed in range(partitions):
        X, truth, y = partition(name, labels, seed)
        known = y >= 0
        supervised = LGCPClassifier().fit(X[known], y[known])
        semi = SLGCPClassifier().fit(X, y)
        path = semi.selection_path_
        errors.append(
            (
                float(np.mean(supervised.predict(X[~known]) != truth[~known])),
                float(np.mean(semi.transduction_[~known] != truth[~known])),
                path["length_scale"][path["chosen"]].item(),
                float(semi.certified_.mean()),
            )
        )
        if done is not None:
            done(1)
    return Record(name, labels, *zip(*errors, strict=True))
