"""Doing tasks: several at a time, and the record of each is kept as soon as it is made."""

from __future__ import annotations

import warnings
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING

from joblib import Parallel, delayed, parallel_config

from coxfield.apps.report.records import DONE, FAILED, UNAVAILABLE, Record, new_record
from coxfield.datasets import DatasetUnavailableError
from coxfield.progress import SlowWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coxfield.apps.report.records import Records
    from coxfield.apps.report.tasks import Task


def perform(tasks: Sequence[Task], records: Records, *, n_jobs: int = 1) -> Iterator[Record]:
    """Do tasks. Each record is kept as soon as it is made, and yielded.

    Parameters
    ----------
    tasks : sequence of Task
    records : Records
        Where records are kept.
    n_jobs : int
        Number of processes; -1 for one per processor. Tasks that must be alone come first, one after the other, in
        this process.
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
    # Some tasks take a thousand times longer than others: batches would leave processors idle.
    with parallel_config(backend="loky", n_jobs=n_jobs, inner_max_num_threads=1):
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(attempt)(task) for task in tasks)


def attempt(task: Task) -> Record:
    """Do a task. If its data are missing, or if it fails, the record says so, and other tasks go on."""
    start = perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SlowWarning)  # tasks take long, and their number is shown
            result = task.function(**task.arguments)
    except DatasetUnavailableError as error:
        return new_record(task, UNAVAILABLE, reason=_sentence(error))
    except Exception as error:
        return new_record(task, FAILED, reason=f"{type(error).__name__}: {_sentence(error)}")
    return new_record(task, DONE, result=result, seconds=perf_counter() - start)


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())
