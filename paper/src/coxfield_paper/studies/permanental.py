"""The appendix in numbers: the permanental classifier beside LGCP, in errors, cost and accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss

from coxfield import LGCPClassifier, PermanentalClassifier
from coxfield_paper.report.blocks import MISSING, Claim, Figure, Note, Table, Verdict, mean_of, seconds
from coxfield_paper.report.item import Item
from coxfield_paper.report.tasks import Task
from coxfield_paper.studies import permanental_accuracy
from coxfield_paper.studies.growth import Growth, Promise, picture, prediction_cost
from coxfield_paper.studies.partitions import partition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coxfield_paper.report.records import Record

PARTITIONS = {"Synth": 1, "Diabetes": 1, "Banana": 10}  # 1: the standard one
QUICK = {"Synth": 1, "Diabetes": 1, "Banana": 2}
METHODS = {
    "LGCP": lambda: LGCPClassifier(selection="loo_error"),
    "two cycles": lambda: PermanentalClassifier(cycles=2),
    "three cycles": lambda: PermanentalClassifier(cycles=3),
    "four cycles": lambda: PermanentalClassifier(cycles=4),
}
ERRORS_NOTE = (
    "Mean and standard error over random partitions; Synth and Diabetes have one standard partition. Length scales by "
    "leave-one-out 0-1 loss. LGCP also chooses its signal variance, by leave-one-out log loss. The permanental "
    "classifier has alpha = 1."
)

KERNEL = RBF(0.2)
LINEAR, CUBIC = "LGCP", "permanental, 4 cycles"
TIMED = {
    LINEAR: lambda: LGCPClassifier(KERNEL, selection=None, n_jobs=1),
    CUBIC: lambda: PermanentalClassifier(KERNEL, selection=None, method="cyclic", cycles=4),
}
SIZES = {
    LINEAR: (4000, 16_000, 64_000, 256_000, 1_024_000, 4_096_000),
    CUBIC: (250, 500, 1000, 2000, 4000),
}
QUICK_LARGEST = {LINEAR: 4_096_000, CUBIC: 1000}
# Below these N the fixed cost of a call of LGCP, and the part of order N² of the approximation, still count.
PROMISES = {LINEAR: Promise(1, start=256_000), CUBIC: Promise(3, start=1000)}


def errors(data: str, method: str, seed: int) -> dict[str, Any]:
    """Fit on one partition of a data set: test error in per cent, and log loss in nats."""
    X_train, y_train, X_test, y_test = partition(data, seed)
    classifier = METHODS[method]().fit(X_train, y_train)
    return {
        "error": 100 * (1 - float(classifier.score(X_test, y_test))),
        "log_loss": float(log_loss(y_test, classifier.predict_proba(X_test))),
    }


def cost(classifier: str, n: int) -> dict[str, Any]:
    """What it costs to predict one point from n with a known length scale, set-up included."""
    return prediction_cost(TIMED[classifier](), n)


def tasks(quick: bool) -> list[Task]:
    """Errors per data set, method and partition; then accuracy; then cost, alone because its time is what counts."""
    on_data = [
        Task(name(data, method, seed), errors, {"data": data, "method": method, "seed": seed})
        for data, count in (QUICK if quick else PARTITIONS).items()
        for method in METHODS
        for seed in range(count)
    ]
    costs = [
        Task(cost_name(classifier, n), cost, {"classifier": classifier, "n": n}, alone=True)
        for classifier, sizes in SIZES.items()
        for n in sizes
        if not quick or n <= QUICK_LARGEST[classifier]
    ]
    return on_data + permanental_accuracy.tasks(quick) + costs


def name(data: str, method: str, seed: int) -> str:
    """The name of a task that counts errors."""
    return f"appendix/errors/{data}/{method}/{seed}"


def cost_name(classifier: str, n: int) -> str:
    """The name of a task that measures time."""
    return f"appendix/cost/{classifier}/{n}"


def render(found: Mapping[str, Record]) -> Sequence[Table | Figure | Note]:
    """Errors, cost and accuracy; the paper prints none of these numbers."""
    return [
        Note("The paper compares both processes in words and prints no numbers: what follows is ours alone."),
        _error_table(found),
        *_cost_figure(found),
        permanental_accuracy.table(found),
    ]


def _error_table(found: Mapping[str, Record]) -> Table:
    return Table(
        caption="Test error, %, and log loss, nats: LGCP, and the permanental classifier by its longest cycle.",
        headings=("data", "classifier", "partitions", "error", "log loss", "seconds each"),
        rows=tuple(_row(data, method, _records(found, data, method)) for data in PARTITIONS for method in METHODS),
        notes=(ERRORS_NOTE,),
    )


def _row(data: str, method: str, records: list[Record]) -> tuple[str, ...]:
    error, loss = mean_of(records, "error"), mean_of(records, "log_loss")
    count = str(len(error.values)) if error.values else MISSING
    return data, method, count, str(error), f"{loss.value:.3f}" if loss.values else MISSING, seconds(records)


def _records(found: Mapping[str, Record], data: str, method: str) -> list[Record]:
    names = [name(data, method, seed) for seed in range(PARTITIONS[data])]
    return [found[task] for task in names if task in found]


def growths(found: Mapping[str, Record]) -> dict[str, Growth]:
    """The growth of each classifier that has been timed, by its name."""
    timed = {}
    for classifier, sizes in SIZES.items():
        records = {n: found[cost_name(classifier, n)] for n in sizes if cost_name(classifier, n) in found}
        taken = {n: record.result["seconds"] for n, record in records.items() if record.done}
        if taken:
            timed[classifier] = Growth(classifier, tuple(taken), tuple(taken.values()))
    return timed


def _cost_figure(found: Mapping[str, Record]) -> list[Figure]:
    timed = growths(found)
    if not timed:
        return []
    return [
        Figure(
            caption="Processor time to predict one point with a known length scale, set-up included, on one thread. "
            "Dotted: the paper's O(N) and O(N³). Exponents are fitted where N is large enough to see them.",
            figure=picture(list(timed.values()), PROMISES),
            description="On logarithmic axes the time of LGCP rises along the line of slope one. The time of the "
            "four-cycle permanental classifier rises far more steeply.",
            name="permanental_cost",
        )
    ]


def claims(found: Mapping[str, Record]) -> Sequence[Claim]:
    """The one statement of the appendix that can be measured: the times grow like N and like its cube."""
    statement = "Prediction takes O(N³) for the four-cycle approximation, as compared to O(N) for LGCP"
    timed = growths(found)
    if set(timed) != set(PROMISES):
        return [Claim(statement, "not computed", Verdict.NOT_TESTED)]
    verdicts = [timed[classifier].verdict(promise) for classifier, promise in PROMISES.items()]
    finding = "; ".join(timed[classifier].finding(promise) for classifier, promise in PROMISES.items())
    return [Claim(statement, finding, Verdict.weakest(verdicts))]


ITEM = Item("appendix", "Appendix: the permanental classifier beside LGCP", tasks, render, claims)
