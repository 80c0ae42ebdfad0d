"""What learning is worth: test log loss and error for each way to choose parameters, beside other classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss

from coxfield import LGCPClassifier
from coxfield.calibration import compare
from coxfield.plotting import figure, plot_reliability
from coxfield_paper.report.blocks import MISSING, Figure, Mean, Note, Table
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies.data_sets import RANDOM, RECIPES, load
from coxfield_paper.studies.peers import gaussian_process, support_vectors
from coxfield_paper.studies.reliability import in_double, pooled, sums
from coxfield_paper.studies.study import Study, crossed, mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coxfield_paper.report.records import Record

NAME = "table-learning"
RELIABILITY = f"{NAME}/reliability"
PARTITIONS = {"Synth": 1, "Diabetes": 1, "Banana": RANDOM, "BCI": RANDOM, "pendigits": 1, "satimage": 1}
QUICK = {"Synth": 1, "Diabetes": 1, "Banana": 2}
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


def learned(kernel=None) -> LGCPClassifier:
    """LGCP with learned parameters."""
    return LGCPClassifier(kernel, selection="pseudo_likelihood")


# Each from the number of features and the classes.
PLAIN = "loo_error"
METHODS: dict[str, Callable] = {
    PLAIN: lambda d, classes: LGCPClassifier(selection=PLAIN),
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
        "log_loss": float(log_loss(y_test, in_double(classifier.predict_proba(X_test)), labels=classifier.classes_)),
        "error": 100 * float(np.mean(classifier.predict(X_test) != y_test)),
    }


def reliabilities(data: str, seed: int) -> dict[str, Any]:
    """The reliability on one partition of a data set, before and after learning."""
    found = compare(*load(data, seed))
    return {"before": sums(found.before), "after": sums(found.after)}


STUDY = Study(NAME, measure, ("data", "method"), crossed(PARTITIONS, methods_for), crossed(QUICK, methods_for))


def tasks(quick: bool) -> list[Task]:
    """Those of the study, and one for the reliability diagram."""
    return [*STUDY.tasks(quick), Task(RELIABILITY, reliabilities, {"data": "Banana", "seed": 0})]


def render(found: Mapping[str, Record]) -> Sequence[Table | Figure | Note]:
    """One row per data set and method, the reliability diagram, and what is missing."""
    known = STUDY.known(found)
    record = found.get(RELIABILITY)
    diagram = [_diagram(record.result)] if record is not None and record.done else []
    return [*([_table(found, known)] if known else []), *diagram, *STUDY.absent(found)]


def _table(found: Mapping[str, Record], known: Sequence[str]) -> Table:
    return Table(
        caption="Test log loss and error of LGCP for each way to choose its parameters, and of other classifiers.",
        headings=("data", "method", "training points", "partitions", "log loss", "difference", "error, %"),
        rows=tuple(_row(found, data, method) for data in known for method in methods_for(data)),
        notes=(LOSSES, PEERS),
    )


def _row(found: Mapping[str, Record], data: str, method: str) -> tuple[str, ...]:
    results, plain = STUDY.results(found, data, method), STUDY.results(found, data, PLAIN)
    loss, error = mean(results, "log_loss"), mean(results, "error")
    both = [seed for seed in results if seed in plain and method != PLAIN]
    change = Mean(tuple(results[seed]["log_loss"] - plain[seed]["log_loss"] for seed in both))
    train = next((f"{result['train']:,}" for result in results.values()), MISSING)
    count = str(len(results)) if results else MISSING
    return data, method, train, count, loss.text(3), change.text(3).replace("-", "−"), error.text(1)


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


ITEM = Item(NAME, "What learning the parameters is worth", tasks, render, beyond=True)
