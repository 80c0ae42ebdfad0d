"""The appendix in numbers: the permanental classifier beside LGCP, in errors, cost and accuracy."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss

from coxfield import LGCPClassifier, PermanentalClassifier
from coxfield.permanents import importance_permanent, insertion_matrix, log_permanent_ratio_cyclic
from coxfield_paper.report.blocks import MISSING, Claim, Figure, Note, Table, Verdict, mean_of, seconds
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies.data_sets import partition
from coxfield_paper.studies.growth import Growth, Promise, picture, prediction_cost
from coxfield_paper.studies.study import Study, crossed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from coxfield_paper.report.records import Record

CYCLES = (2, 3, 4)
SAMPLES = (100, 1000, 10_000)
SIDE = 2.0  # of the square in which points are drawn
QUERIES = 10  # new points per pattern
PATTERNS = 10
POINTS, QUICK_POINTS = (6, 10, 14), (6, 10)
ALPHAS, LENGTH_SCALES = (0.5, 1.0, 2.0), (0.2, 0.5, 1.0)

ACCURACY_NOTE = (
    f"{PATTERNS} patterns of points uniform in a square of side {SIDE:g}, {QUERIES} new points each, squared "
    "exponential kernel."
)


def accuracy(n: int, alpha: float, length_scale: float, patterns: int, seed: int) -> dict[str, Any]:
    """Root mean square errors of log ratios over random patterns, for each approximation."""
    rng = np.random.default_rng(seed)
    errors = [_errors(n, alpha, length_scale, rng) for _ in range(patterns)]
    return {key: float(np.sqrt(np.mean([np.square(each[key]) for each in errors]))) for key in errors[0]}


def _errors(n: int, alpha: float, length_scale: float, rng: np.random.Generator) -> dict[str, NDArray]:
    """Approximate minus exact log ratios of the new points of one pattern, for each approximation."""
    K = 2 * RBF(length_scale)(rng.uniform(0, SIDE, size=(n + QUERIES, 2)))
    old, rows, variances = K[:n, :n], K[n:, :n], np.diagonal(K)[n:]

    def log_ratios(Q: NDArray) -> NDArray:
        return np.log(alpha * variances + np.einsum("ij,ij->i", rows @ Q, rows))

    found = {cycle(m): log_permanent_ratio_cyclic(old, rows, variances, alpha, cycles=m) for m in CYCLES}
    for size in SAMPLES:
        seed = int(rng.integers(2**31))
        estimate = importance_permanent(old, alpha, n_samples=size, random_state=seed)
        found[drawn(size)] = log_ratios(estimate.insertion)
    exact = log_ratios(insertion_matrix(old, alpha))
    return {key: values - exact for key, values in found.items()}


def cycle(longest: int) -> str:
    """Name of the cyclic approximation in the table."""
    return f"{longest} cycles"


def drawn(size: int) -> str:
    """Name of importance sampling in the table."""
    return f"{size:,} drawn"


def accuracy_tasks(quick: bool) -> list[Task]:
    """One task per number of points, alpha and length scale; a quick run leaves out the largest number."""
    combinations = product(QUICK_POINTS if quick else POINTS, ALPHAS, LENGTH_SCALES)
    return [
        Task(accuracy_name(n, alpha, scale), accuracy, _arguments(n, alpha, scale)) for n, alpha, scale in combinations
    ]


def accuracy_name(n: int, alpha: float, length_scale: float) -> str:
    """The name of a task."""
    return f"appendix/accuracy/{n}/{alpha:g}/{length_scale:g}"


def _arguments(n: int, alpha: float, length_scale: float) -> dict[str, Any]:
    return {"n": n, "alpha": alpha, "length_scale": length_scale, "patterns": PATTERNS, "seed": 0}


def accuracy_table(found: Mapping[str, Record]) -> Table:
    """One row per number of points, alpha and length scale that has been computed."""
    combinations = list(product(POINTS, ALPHAS, LENGTH_SCALES))
    records = {each: found[accuracy_name(*each)] for each in combinations if accuracy_name(*each) in found}
    columns = [*map(cycle, CYCLES), *map(drawn, SAMPLES)]
    return Table(
        caption="Root mean square error of the log ratio of alpha-permanents. Columns: the longest cycle of the cyclic "
        "approximation, or the number of permutations drawn for importance sampling.",
        headings=("points", "alpha", "length scale", *columns),
        rows=tuple(
            (*(f"{value:g}" for value in each), *(f"{record.result[column]:.4f}" for column in columns))
            for each, record in records.items()
            if record.done
        ),
        notes=(ACCURACY_NOTE,),
    )


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


STUDY = Study(
    "appendix/errors",
    errors,
    ("data", "method"),
    cells=crossed(PARTITIONS, lambda data: tuple(METHODS)),
    quick=crossed(QUICK, lambda data: tuple(METHODS)),
)


def tasks(quick: bool) -> list[Task]:
    """Errors per data set, method and partition; then accuracy; then cost, alone because its time is what counts."""
    costs = [
        Task(cost_name(classifier, n), cost, {"classifier": classifier, "n": n}, alone=True)
        for classifier, sizes in SIZES.items()
        for n in sizes
        if not quick or n <= QUICK_LARGEST[classifier]
    ]
    return STUDY.tasks(quick) + accuracy_tasks(quick) + costs


def cost_name(classifier: str, n: int) -> str:
    """The name of a task that measures time."""
    return f"appendix/cost/{classifier}/{n}"


def render(found: Mapping[str, Record]) -> Sequence[Table | Figure | Note]:
    """Errors, cost and accuracy; the paper prints none of these numbers."""
    return [
        Note("The paper compares both processes in words and prints no numbers: what follows is ours alone."),
        _error_table(found),
        *_cost_figure(found),
        accuracy_table(found),
    ]


def _error_table(found: Mapping[str, Record]) -> Table:
    return Table(
        caption="Test error, %, and log loss, nats: LGCP, and the permanental classifier by its longest cycle.",
        headings=("data", "classifier", "partitions", "error", "log loss", "seconds each"),
        rows=tuple(_row(data, method, [*STUDY.records(found, data, method).values()]) for data, method in STUDY.cells),
        notes=(ERRORS_NOTE,),
    )


def _row(data: str, method: str, records: list[Record]) -> tuple[str, ...]:
    error, loss = mean_of(records, "error"), mean_of(records, "log_loss")
    count = str(len(error.values)) if error.values else MISSING
    return data, method, count, str(error), f"{loss.value:.3f}" if loss.values else MISSING, seconds(records)


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
