"""Tasks: the units of work of an experiment, done once, side by side, and kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed, parallel_config

from coxfield.apps.report.records import DONE, FAILED, UNAVAILABLE, Record, new_record
from coxfield.datasets import DatasetUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from coxfield.apps.report.records import Records


@dataclass(frozen=True)
class Task:
    """A function of a module, what to call it with, and the name its record will have."""

    name: str
    """Parts separated by slashes, such as `table-1/Banana/SVM/3`."""
    function: Callable[..., dict[str, Any]]
    """Returns what JSON can hold. Its arguments are all it depends on."""
    arguments: dict[str, Any] = field(default_factory=dict)
    alone: bool = False
    """Whether nothing else may run beside it: its time is of interest, or it uses all processors itself."""


def perform(tasks: Sequence[Task], records: Records, *, n_jobs: int = 1) -> Iterator[Record]:
    """Do tasks, keep each record as soon as it is there, and yield it.

    Parameters
    ----------
    tasks : sequence of Task
    records : Records
        Where records are kept.
    n_jobs : int
        Processes, -1 for as many as there are processors. Tasks that want to be alone come first, one by one, in this
        process.
    """
    for record in chain(
        map(attempt, (t for t in tasks if t.alone)), _together([t for t in tasks if not t.alone], n_jobs)
    ):
        records.save(record)
        yield record


def _together(tasks: Sequence[Task], n_jobs: int) -> Iterator[Record]:
    if n_jobs == 1 or len(tasks) < 2:
        yield from map(attempt, tasks)
        return
    # Tasks differ in length by a factor of thousands: batches of them would leave processors idle.
    with parallel_config(backend="loky", n_jobs=n_jobs, inner_max_num_threads=1):
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(attempt)(task) for task in tasks)


def attempt(task: Task) -> Record:
    """Do a task; data that are not there, or a failure, make a record that says so and spoils nothing else."""
    start = perf_counter()
    try:
        result = task.function(**task.arguments)
    except DatasetUnavailableError as error:
        return new_record(task.name, task.arguments, UNAVAILABLE, reason=_sentence(error))
    except Exception as error:
        return new_record(task.name, task.arguments, FAILED, reason=f"{type(error).__name__}: {_sentence(error)}")
    return new_record(task.name, task.arguments, DONE, result=result, seconds=perf_counter() - start)


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())
