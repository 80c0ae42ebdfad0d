"""Doing tasks: several at a time, and the record of each is kept as soon as it is made."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING

from joblib import Parallel, delayed, parallel_config

from coxfield.datasets import DatasetUnavailableError
from coxfield.progress import SlowWarning
from coxfield_paper.report.records import DONE, FAILED, UNAVAILABLE, Record, new_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coxfield_paper.report.records import Records
    from coxfield_paper.report.tasks import Task

PATIENCE = 10  # seconds to wait for a scheduler


def perform(
    tasks: Sequence[Task], records: Records, *, n_jobs: int = 1, cluster: str | None = None
) -> Iterator[Record]:
    """Do tasks. Each record is kept as soon as it is made, and yielded.

    Parameters
    ----------
    tasks : sequence of Task
    records : Records
        Where records are kept.
    n_jobs : int
        Number of processes; -1 for one per processor. Tasks that must be alone come first, one after the other, in
        this process.
    cluster : str, optional
        Address of the scheduler of a Dask cluster, whose workers do the other tasks instead of processes here.
    """
    alone, others = [t for t in tasks if t.alone], [t for t in tasks if not t.alone]
    together = _together(others, n_jobs) if cluster is None else _on_cluster(others, cluster)
    for record in chain(map(attempt, alone), together):
        records.save(record)
        yield record


def _on_cluster(tasks: Sequence[Task], address: str) -> Iterator[Record]:
    """Do tasks on a Dask cluster."""
    with connected(address), parallel_config(backend="dask"):
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(attempt)(task) for task in tasks)


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A context in which jobs of joblib may go to the cluster at an address."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("a cluster needs dask and distributed: pip install 'coxfield[dask]'") from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=True)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"there is no Dask scheduler at {address} ({type(error).__name__}): start one by `dask scheduler`, "
            "and give the address that it prints, such as tcp://127.0.0.1:8786"
        ) from None
    with client:
        yield


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
