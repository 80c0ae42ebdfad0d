"""What learning is worth: test log loss and error for each way to choose parameters, beside other classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from coxfield import LGCPClassifier
from coxfield.apps.experiments.bins import pooled, sums
from coxfield.apps.experiments.partitions import RANDOM, partition
from coxfield.apps.report.blocks import MISSING, Figure, Mean, Note, Table
from coxfield.apps.report.item import Item
from coxfield.apps.report.tasks import Task
from coxfield.calibration import compare
from coxfield.datasets.fetch import ArraySpec, Recipe, obtain
from coxfield.plotting import figure, plot_reliability

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coxfield.apps.experiments.partitions import Partition
    from coxfield.apps.report.records import Record

NAME = "table-learning"
RELIABILITY = f"{NAME}/reliability"
PARTITIONS = {"Synth": 1, "Diabetes": 1, "Banana": RANDOM, "BCI": RANDOM, "pendigits": 1, "satimage": 1}
QUICK = {"Synth": 1, "Diabetes": 1, "Banana": 2}
C_GRID, GAMMA_GRID = (1.0, 10.0, 100.0), np.array([0.1, 1.0, 10.0])  # gamma in units of 1 / number of features
LOSSES = (
    "Log loss in nats; probabilities are held above 2e-16, as scikit-learn does. Mean and standard error over random "
    "partitions; the other data sets have one standard partition. Difference: log loss minus that of loo_error, "
    "partition by partition."
)
PEERS = (
    "Gaussian process: scikit-learn's, Laplace's approximation, standardised features. Its time grows like the cube of "
    "the number of training points, so it is left out where there are thousands. Calibrated SVC: C and gamma by cross "
    "validation, and sigmoids fitted to its scores."
)


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
    """scikit-learn's Gaussian process classifier with Laplace's approximation, on standardised features."""
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
PLAIN = "loo_error"
METHODS: dict[str, Callable] = {
    PLAIN: lambda d, classes: LGCPClassifier(),
    "loo_log_loss": lambda d, classes: LGCPClassifier(selection="loo_log_loss"),
    "pseudo_likelihood": lambda d, classes: learned(),
    "pseudo_likelihood, ARD": lambda d, classes: learned(RBF(np.ones(d))),
    "pseudo_likelihood, a kernel per class": lambda d, classes: learned({label: RBF(1.0) for label in classes}),
    "Gaussian process": lambda d, classes: gaussian_process(d),
    "calibrated SVC": lambda d, classes: support_vectors(d),
}


def methods_for(data: str) -> list[str]:
    """The methods that are run on a data set."""
    return [method for method in METHODS if method != "Gaussian process" or data not in RECIPES]


def measure(data: str, method: str, seed: int) -> dict[str, Any]:
    """Fit on one partition of a data set: log loss in nats and error in per cent on its test part."""
    X_train, y_train, X_test, y_test = load(data, seed)
    classifier = METHODS[method](X_train.shape[1], np.unique(y_train).tolist()).fit(X_train, y_train)
    return {
        "train": len(y_train),
        "log_loss": float(log_loss(y_test, classifier.predict_proba(X_test), labels=classifier.classes_)),
        "error": 100 * float(np.mean(classifier.predict(X_test) != y_test)),
    }


def reliabilities(data: str, seed: int) -> dict[str, Any]:
    """The reliability on one partition of a data set, before and after learning."""
    found = compare(*load(data, seed))
    return {"before": sums(found.before), "after": sums(found.after)}


def tasks(quick: bool) -> list[Task]:
    """One task per data set, method and partition, and one for the reliability diagram."""
    measured = [
        Task(name(data, method, seed), measure, {"data": data, "method": method, "seed": seed})
        for data, count in (QUICK if quick else PARTITIONS).items()
        for method in methods_for(data)
        for seed in range(count)
    ]
    return [*measured, Task(RELIABILITY, reliabilities, {"data": "Banana", "seed": 0})]


def name(data: str, method: str, seed: int) -> str:
    """The name of a task."""
    return f"{NAME}/{data}/{method}/{seed}"


def render(found: Mapping[str, Record]) -> Sequence[Table | Figure | Note]:
    """One row per data set and method, the reliability diagram, and what is missing."""
    known = [data for data in PARTITIONS if any(_results(found, data, method) for method in methods_for(data))]
    blocks: list[Table | Figure | Note] = [_table(found, known)] if known else []
    record = found.get(RELIABILITY)
    if record is not None and record.done:
        blocks.append(_diagram(record.result))
    missing = [data for data in PARTITIONS if data not in known]
    if missing:
        blocks.append(Note(f"There are no results for {', '.join(missing)}. Run `coxfield reproduce {NAME}`."))
    return blocks


def _table(found: Mapping[str, Record], known: Sequence[str]) -> Table:
    return Table(
        caption="Test log loss and error of LGCP for each way to choose its parameters, and of other classifiers.",
        headings=("data", "method", "training points", "partitions", "log loss", "difference", "error, %"),
        rows=tuple(_row(found, data, method) for data in known for method in methods_for(data)),
        notes=(LOSSES, PEERS),
    )


def _row(found: Mapping[str, Record], data: str, method: str) -> tuple[str, ...]:
    results, plain = _results(found, data, method), _results(found, data, PLAIN)
    loss, error = (Mean(tuple(result[key] for result in results.values())) for key in ("log_loss", "error"))
    both = [seed for seed in results if seed in plain and method != PLAIN]
    change = Mean(tuple(results[seed]["log_loss"] - plain[seed]["log_loss"] for seed in both))
    train = next((f"{result['train']:,}" for result in results.values()), MISSING)
    count = str(len(results)) if results else MISSING
    return data, method, train, count, loss.text(3), change.text(3).replace("-", "−"), error.text(1)


def _results(found: Mapping[str, Record], data: str, method: str) -> dict[int, dict[str, Any]]:
    """The results of all partitions, by seed."""
    records = {seed: found.get(name(data, method, seed)) for seed in range(PARTITIONS[data])}
    return {seed: record.result for seed, record in records.items() if record is not None and record.done}


def _diagram(result: Mapping[str, Any]) -> Figure:
    drawn = figure(4.6, 5.0)
    judged = {f"{when} learning": pooled([result[when]]) for when in ("before", "after")}
    plot_reliability(judged, drawn.subplots())
    description = "; ".join(
        f"{when}: mean distance of accuracy from probability {one.expected_calibration_error:.3f}"
        for when, one in judged.items()
    )
    caption = (
        "How often the predicted class was right, against its probability: first partition of Banana, before learning "
        "(loo_error) and after (pseudo_likelihood)."
    )
    return Figure(caption, drawn, description, "reliability")


ITEM = Item(NAME, "Beyond the paper: what learning the parameters is worth", tasks, render)
