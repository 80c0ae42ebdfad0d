"""The appendix in numbers: the permanental classifier beside LGCP, in errors, accuracy and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.metrics import log_loss

from coxfield import LGCPClassifier, PermanentalClassifier
from coxfield.apps.experiments import permanental_accuracy, permanental_cost
from coxfield.apps.experiments.partitions import partition
from coxfield.apps.report.blocks import MISSING, Note, Table, mean_of, seconds
from coxfield.apps.report.item import Item
from coxfield.apps.report.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coxfield.apps.report.blocks import Claim, Figure
    from coxfield.apps.report.records import Record

PARTITIONS = {"Synth": 1, "Diabetes": 1, "Banana": 10}  # 1: the standard one
QUICK = {"Synth": 1, "Diabetes": 1, "Banana": 2}
METHODS = {
    "LGCP": LGCPClassifier,
    "two cycles": lambda: PermanentalClassifier(cycles=2),
    "three cycles": lambda: PermanentalClassifier(cycles=3),
    "four cycles": lambda: PermanentalClassifier(cycles=4),
}

NOTE = (
    "Mean and standard error over random partitions; Synth and Diabetes have one standard partition. Length scales by "
    "leave-one-out 0-1 loss. LGCP's signal variance is chosen too, by leave-one-out log loss; alpha of the permanental "
    "classifier is 1."
)


def errors(data: str, method: str, seed: int) -> dict[str, Any]:
    """Fit on one partition of a data set: test error in per cent, and log loss in nats."""
    X_train, y_train, X_test, y_test = partition(data, seed)
    classifier = METHODS[method]().fit(X_train, y_train)
    return {
        "error": 100 * (1 - float(classifier.score(X_test, y_test))),
        "log_loss": float(log_loss(y_test, classifier.predict_proba(X_test))),
    }


def tasks(quick: bool) -> list[Task]:
    """Errors for each data set, method and partition, then accuracy, then cost."""
    on_data = [
        Task(name(data, method, seed), errors, {"data": data, "method": method, "seed": seed})
        for data, count in (QUICK if quick else PARTITIONS).items()
        for method in METHODS
        for seed in range(count)
    ]
    return on_data + permanental_accuracy.tasks(quick) + permanental_cost.tasks(quick)


def name(data: str, method: str, seed: int) -> str:
    """The name of a task."""
    return f"appendix/errors/{data}/{method}/{seed}"


def render(found: Mapping[str, Record]) -> Sequence[Table | Figure | Note]:
    """Errors, cost and accuracy; the paper prints none of these numbers."""
    return [
        Note("The paper compares both processes in words and prints no numbers: what follows is ours alone."),
        _error_table(found),
        *permanental_cost.figure(found),
        permanental_accuracy.table(found),
    ]


def _error_table(found: Mapping[str, Record]) -> Table:
    return Table(
        caption="Test error, %, and log loss, nats: LGCP, and the permanental classifier with ever longer cycles.",
        headings=("data", "classifier", "partitions", "error", "log loss", "seconds each"),
        rows=tuple(_row(data, method, _records(found, data, method)) for data in PARTITIONS for method in METHODS),
        notes=(NOTE,),
    )


def _row(data: str, method: str, records: list[Record]) -> tuple[str, ...]:
    error, loss = mean_of(records, "error"), mean_of(records, "log_loss")
    count = str(len(error.values)) if error.values else MISSING
    return data, method, count, str(error), f"{loss.value:.3f}" if loss.values else MISSING, seconds(records)


def _records(found: Mapping[str, Record], data: str, method: str) -> list[Record]:
    names = [name(data, method, seed) for seed in range(PARTITIONS[data])]
    return [found[task] for task in names if task in found]


def claims(found: Mapping[str, Record]) -> Sequence[Claim]:
    """The appendix's one statement that can be measured."""
    return [permanental_cost.claim(found)]


ITEM = Item("appendix", "Appendix: the permanental classifier beside LGCP", tasks, render, claims)
