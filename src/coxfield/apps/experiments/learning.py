"""What learning is worth: test log loss and error of each way to choose parameters, beside other classifiers.

`python -m coxfield.apps.experiments.learning` prints the table.
Synth, Diabetes and Banana travel with the package, BCI is
fetched; pendigits and satimage are read from the folder named in COXFIELD_DATA. A set that is not there costs its rows.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.calibration import CalibratedClassifierCV
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from coxfield import LGCPClassifier
from coxfield.apps.experiments.partitions import RANDOM, partition
from coxfield.datasets import DatasetUnavailableError
from coxfield.datasets.fetch import ArraySpec, Recipe, obtain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from coxfield.apps.experiments.partitions import Partition

PARTITIONS = {"Synth": 1, "Diabetes": 1, "Banana": RANDOM, "BCI": RANDOM, "pendigits": 1, "satimage": 1}
GPC_MOST = 1000  # training points: scikit-learn's Gaussian process classifier takes the cube of them
C_GRID, GAMMA_GRID = (1.0, 10.0, 100.0), np.array([0.1, 1.0, 10.0])  # gamma in units of 1 / number of features


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


def load(data: str, seed: int = 0) -> Partition:
    """One partition of a data set."""
    if data not in RECIPES:
        return partition(data, seed)
    arrays = obtain(RECIPES[data], download=False)
    X_train, X_test = (arrays[name].astype(np.float32) for name in ("X_train", "X_test"))
    return X_train, arrays["y_train"], X_test, arrays["y_test"]


def gaussian_process(n_features: int):
    """scikit-learn's Gaussian process classifier, Laplace's approximation, on standardised features."""
    return make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * RBF(np.sqrt(n_features)), random_state=0))


def support_vectors(n_features: int):
    """A support vector machine with C and gamma by cross validation, and sigmoids fitted to its scores."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    grid = {"svc__C": C_GRID, "svc__gamma": GAMMA_GRID / n_features}
    best = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=folds)
    return CalibratedClassifierCV(best, cv=folds, ensemble=False)


def learned(kernel=None) -> LGCPClassifier:
    """LGCP with learned parameters."""
    return LGCPClassifier(kernel, selection="pseudo_likelihood")


# Each from the number of features and the classes.
METHODS: dict[str, Callable] = {
    "loo_error": lambda d, classes: LGCPClassifier(),
    "loo_log_loss": lambda d, classes: LGCPClassifier(selection="loo_log_loss"),
    "pseudo_likelihood": lambda d, classes: learned(),
    "pseudo_likelihood, ARD": lambda d, classes: learned(RBF(np.ones(d))),
    "pseudo_likelihood, a kernel a class": lambda d, classes: learned({label: RBF(1.0) for label in classes}),
    "Gaussian process": lambda d, classes: gaussian_process(d),
    "calibrated SVC": lambda d, classes: support_vectors(d),
}
LEARNED = [name for name in METHODS if name.startswith("pseudo_likelihood")]


@dataclass(frozen=True)
class Record:
    """Test results of one method on one data set, an entry a partition."""

    data: str
    train: int
    method: str
    log_loss: tuple[float, ...]
    """Nats, with probabilities held above 2e-16, as scikit-learn does."""
    error: tuple[float, ...]
    """Per cent."""


def run(data: str, partitions: int | None = None, methods=None) -> Iterator[Record]:
    """Fit and test some methods, or all, on the partitions of one data set."""
    count = min(PARTITIONS[data], partitions or PARTITIONS[data])
    parts = [load(data, seed) for seed in range(count)]
    train, d = parts[0][0].shape
    for method in METHODS if methods is None else methods:
        if method == "Gaussian process" and train > GPC_MOST:
            continue
        results = [_test(METHODS[method](d, np.unique(part[1]).tolist()), *part) for part in parts]
        yield Record(data, train, method, *zip(*results, strict=True))


def _test(classifier, X_train, y_train, X_test, y_test) -> tuple[float, float]:
    classifier.fit(X_train, y_train)
    loss = log_loss(y_test, classifier.predict_proba(X_test), labels=classifier.classes_)
    return float(loss), 100 * float(np.mean(classifier.predict(X_test) != y_test))


def render(records: list[Record]) -> Table:
    """A row for each data set and method; learned ones say how they stand to `loo_error`."""
    table = Table(title="Test log loss and error, mean over partitions ± standard error")
    for heading in ("data", "training points", "method", "log loss / nats", "error / %", "against loo_error"):
        table.add_column(heading, justify="left" if heading in ("data", "method", "against loo_error") else "right")
    plain = {record.data: record for record in records if record.method == "loo_error"}
    for record in records:
        verdict = against(record, plain[record.data]) if record.method in LEARNED and record.data in plain else ""
        numbers = _number(record.log_loss, 3), _number(record.error, 1)
        table.add_row(record.data, f"{record.train:,}", record.method, *numbers, verdict)
    return table


def against(record: Record, plain: Record) -> str:
    """Whether log loss and error are lower than those of another record."""
    words = []
    for name, digits in (("log_loss", 3), ("error", 1)):
        ours, theirs = (round(float(np.mean(getattr(of, name))), digits) for of in (record, plain))
        words.append(f"{name.replace('_', ' ')} {'lower' if ours < theirs else 'higher' if ours > theirs else 'same'}")
    return ", ".join(words)


def _number(values: tuple[float, ...], digits: int) -> str:
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f}"


def draw(path: Path) -> None:
    """Reliability diagram of the first Banana partition, before and after learning."""
    from coxfield.evaluation.calibration import compare
    from coxfield.plotting import encode, figure

    drawn = figure(4.6, 5.0)
    compare(*load("Banana")).plot(drawn.subplots())
    path.write_bytes(encode(drawn, path))


def main(arguments: list[str] | None = None) -> None:
    """Print the table, or draw the reliability diagram."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", choices=[*PARTITIONS, []], help="data sets (default: all)")
    parser.add_argument("--partitions", type=int, help="partitions at most (default: 10 where they are random)")
    parser.add_argument("--plot", type=Path, help="draw the reliability diagram of Banana into this file instead")
    options = parser.parse_args(arguments)
    if options.plot is not None:
        draw(options.plot)
        return
    console = Console(width=130)
    records: list[Record] = []
    for data in options.data or PARTITIONS:
        try:
            for record in run(data, options.partitions):
                records.append(record)
                print(f"{data}, {record.method}: {_number(record.log_loss, 3)}", file=sys.stderr, flush=True)
        except DatasetUnavailableError as error:
            console.print(f"{data} is left out: {error}")
    console.print(render(records))


if __name__ == "__main__":
    main()
