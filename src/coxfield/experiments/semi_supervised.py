"""The semi-supervised curves: test error against the number of labels, ten random partitions."""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import fetch_mnist, load_oil, make_double_helix
from coxfield.semi_supervised import TrivialLabellingWarning

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
        with warnings.catch_warnings():  # a trivial labelling counts as the error that it is
            warnings.simplefilter("ignore", TrivialLabellingWarning)
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


def line(record: Record) -> str:
    """One line of the result: mean errors in per cent with standard errors."""
    shown = [
        f"{100 * np.mean(e):5.2f} ± {_standard_error(e):4.2f}" for e in (record.supervised, record.semi_supervised)
    ]
    return (
        f"{record.data:12} {record.labels:4d} labels: supervised {shown[0]} %, semi-supervised {shown[1]} %, "
        f"length scale {np.median(record.length_scales):.3g}, certified {np.mean(record.certified):.0%}"
    )


def _standard_error(errors) -> float:
    return 100 * float(np.std(errors, ddof=1) / np.sqrt(len(errors)))


def main() -> None:
    """Print the curves: `python -m coxfield.experiments.semi_supervised [data] [labels ...]`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", choices=[*DATA], help="one data set (default: all)")
    parser.add_argument("labels", nargs="*", type=int, default=[10], help="numbers of labels (default: 10)")
    parser.add_argument("--partitions", type=int, default=10, help="random partitions (default: 10)")
    options = parser.parse_args()
    for name in [options.data] if options.data else DATA:
        for labels in options.labels:
            print(line(run(name, labels, options.partitions)), flush=True)


if __name__ == "__main__":
    main()
