"""The times that the paper states, beside our times for the same work, on one core as in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, threads
from coxfield.datasets import fetch_mnist
from coxfield_paper.report.blocks import MISSING, Note, Table
from coxfield_paper.report.item import Item, Task
from coxfield_paper.studies.paper_methods import paper_slgcp
from coxfield_paper.studies.semi_supervised import partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coxfield_paper.report.records import Record

CORES = 1  # as many as the paper used
REPEATS = 3
PAPER_MACHINE = "Paper: one core of an Intel i3 of 2.53 GHz, 4 GB, MATLAB; minimum cuts by compiled code."
STAND_IN = "Simulated points and the double helix stand in for MNIST: as many points, but not the work of the paper."
LENGTH_SCALE = 0.75  # for pixels in [0, 1]: near the length scale that leave-one-out chooses for MNIST


def stopwatch(work: Callable[[], Any]) -> dict[str, Any]:
    """Seconds of each of several runs of the same work on one core, after one run that is not counted."""
    times = []
    with threads.use(CORES), threads.limit(CORES, "blas"):
        for _ in range(REPEATS + 1):
            start = perf_counter()
            work()
            times.append(perf_counter() - start)
    return {"seconds": times[1:], "cores": CORES}


def leave_one_out(data: str, whole_path: bool) -> dict[str, Any]:
    """Leave-one-out over 1,000 points of 784 dimensions, at one length scale or at all that are tried by default."""
    X, y = POINTS[data]()
    scales = None if whole_path else [LENGTH_SCALE]
    return stopwatch(lambda: LGCPClassifier(selection="loo_error", length_scales=scales, n_jobs=CORES).fit(X, y))


def _some_mnist() -> tuple[np.ndarray, np.ndarray]:
    data = fetch_mnist()
    rows = np.random.default_rng(0).choice(len(data.y_train), 1000, replace=False)
    return data.X_train[rows] / 255.0, data.y_train[rows]


def _simulated() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return 0.1 * rng.random((1000, 784)), rng.integers(10, size=1000)


POINTS = {"MNIST": _some_mnist, "simulated": _simulated}


def prediction() -> dict[str, Any]:
    """Predict the 10,000 test points of MNIST from all 60,000 training points."""
    data = fetch_mnist()
    X, Z = (part.astype(np.float32) / np.float32(255) for part in (data.X_train, data.X_test))
    classifier = LGCPClassifier(RBF(LENGTH_SCALE), selection=None, n_jobs=CORES).fit(X, data.y_train)
    return stopwatch(lambda: classifier.predict(Z))


def cross_validation(data: str) -> dict[str, Any]:
    """Ten folds of cross validation of SLGCP, 10 labels, at the length scale that it chooses, and the labelling."""
    X, _, y = partition(data, 10, seed=0)
    path = paper_slgcp().fit(X, y).selection_path_
    length_scale = path["length_scale"][path["chosen"]].item()
    taken = stopwatch(lambda: paper_slgcp(length_scales=[length_scale], n_jobs=CORES).fit(X, y))
    return {**taken, "length_scale": length_scale}


@dataclass(frozen=True)
class Statement:
    """Work that is timed, and the seconds that the paper states for it."""

    what: str
    paper: float | None
    task: Task
    quick: bool
    """Whether it belongs to the quick run, in place of other work."""


def _statement(what: str, paper: float | None, end: str, function, quick: bool = False, **arguments) -> Statement:
    return Statement(what, paper, Task(f"timings/{end}", function, arguments, alone=True), quick)


ONE, PATH = "leave-one-out, one length scale", "leave-one-out, all 30 length scales"
FOLDS, HELIX = "ten folds of SLGCP and the labelling, 10 labels", "double helix"


def _leave_one_outs(data: str, points: str, end: str, quick: bool) -> tuple[Statement, Statement]:
    return (
        _statement(f"{ONE}, {points}", 17, f"one{end}", leave_one_out, quick, data=data, whole_path=False),
        _statement(f"{PATH}, {points}", None, f"path{end}", leave_one_out, quick, data=data, whole_path=True),
    )


STATEMENTS = (
    *_leave_one_outs("MNIST", "1,000 points of MNIST", "", quick=False),
    _statement("prediction, 10,000 points of MNIST from 60,000", 130, "prediction", prediction),
    _statement(f"{FOLDS}, 1,000 points of rMNIST", 85, "folds", cross_validation, data="rMNIST"),
    *_leave_one_outs("simulated", "1,000 simulated points", "-simulated", quick=True),
    _statement(f"{FOLDS}, 1,000 points of the {HELIX}", 85, "folds-helix", cross_validation, data=HELIX, quick=True),
)


def tasks(quick: bool) -> list[Task]:
    """The work of the paper; in the quick run, work on simulated points in its place."""
    return [statement.task for statement in STATEMENTS if statement.quick == quick]


def render(found: Mapping[str, Record]) -> Sequence[Table | Note]:
    """The seconds of the paper beside ours. Work that was not timed is named."""
    done = {name: record for name, record in found.items() if record.done}
    timed = [(statement, done[statement.task.name]) for statement in STATEMENTS if statement.task.name in done]
    blocks: list[Table | Note] = [_table(timed)] if timed else []
    left = [statement.what for statement in STATEMENTS if not statement.quick and statement.task.name not in done]
    if left:
        blocks.append(Note(f"Not timed here: {'; '.join(left)}. Run `coxfield reproduce timings`, which needs MNIST."))
    return blocks


def _table(timed: Sequence[tuple[Statement, Record]]) -> Table:
    processors = dict.fromkeys(record.machine.get("processor", "unknown") for _, record in timed)
    notes = [
        PAPER_MACHINE,
        f"Ours: {', '.join(processors)}; the least of {REPEATS} runs, after one run that is not counted.",
    ]
    if any(statement.quick for statement, _ in timed):
        notes.append(STAND_IN)
    return Table(
        caption="Seconds for the work whose times the paper states.",
        headings=("work", "paper", "ours", "paper / ours", "cores"),
        rows=tuple(_row(statement, record) for statement, record in timed),
        notes=tuple(notes),
    )


def _row(statement: Statement, record: Record) -> tuple[str, ...]:
    ours, paper = min(record.result["seconds"]), statement.paper
    theirs, ratio = (MISSING, MISSING) if paper is None else (f"{paper:g}", _two_digits(paper / ours))
    return statement.what, theirs, _two_digits(ours), ratio, str(record.result["cores"])


def _two_digits(number: float) -> str:
    return f"{number:.2g}" if number < 100 else f"{number:.0f}"


ITEM = Item("timings", "Times that the paper states", tasks, render)
