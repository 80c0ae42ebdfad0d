"""Records: the results of tasks, one JSON file per task. They are made here, several at a time, and kept at once.

A record is used again only if its file is whole, and if it answers the task of today: the same arguments, and the same
code behind it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed, parallel_config

import coxfield
from coxfield.datasets import DatasetUnavailableError
from coxfield.progress import SlowWarning
from coxfield.utils.whole_files import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coxfield_paper.report.item import Task

DONE, UNAVAILABLE, FAILED = "done", "unavailable", "failed"


@dataclass(frozen=True)
class Record:
    """The outcome of one task, with all that is needed to judge it and to repeat it."""

    task: str
    """Name of the task, and of its file."""
    arguments: dict[str, Any]
    """The arguments of the task, seeds included."""
    status: str
    """"done", "unavailable" (data that are not there) or "failed"."""
    result: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    """Why there is no result."""
    seconds: float = 0.0
    code: str = ""
    """Digest of the source code that made it; see `source_digest`."""
    version: str = coxfield.__version__
    """For people: what is believed is `code`."""
    made: str = ""
    """When it was made, in UTC."""
    machine: dict[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.status == DONE

    def answers(self, task: Task) -> bool:
        """Whether it is the outcome of this task with its arguments of today, and of the code of today."""
        return (self.task, self.arguments, self.code) == (task.name, _plain(task.arguments), task.code)


def new_record(task: Task, status: str, **fields) -> Record:
    """A record of a task that ended just now, on this machine."""
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return Record(task.name, _plain(task.arguments), status, code=task.code, made=made, machine=machine(), **fields)


@cache
def machine() -> dict[str, Any]:
    """Processor, cores and versions: without them a time means nothing."""
    return {
        "processor": _processor(),
        "cores": joblib.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _processor() -> str:
    """The name of the processor if the system tells it, otherwise its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@dataclass(frozen=True)
class Records:
    """A folder of records."""

    folder: Path

    def path(self, task: str) -> Path:
        """The file of a task. Each part of its name before a slash is a folder."""
        return self.folder / f"{task}.json"

    def save(self, record: Record) -> None:
        """Write a record whole or not at all, with a digest of its content."""
        path = self.path(record.task)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = asdict(record)
        content["digest"] = _digest(content)
        with whole_file(path) as stream:
            stream.write(json.dumps(content, indent=1, allow_nan=False).encode())

    def load(self, task: str) -> Record | None:
        """The record of a task, or None if there is none or its file is damaged."""
        try:
            content = json.loads(self.path(task).read_bytes())
            digest = content.pop("digest")
            record = Record(**content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return record if digest == _digest(content) and record.task == task else None

    def current(self, task: Task) -> Record | None:
        """The record of a task if it answers the task of today, whatever its status."""
        record = self.load(task.name)
        return record if record is not None and record.answers(task) else None


def _digest(content: dict) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(content: dict) -> dict:
    """The content as it will be read again: tuples as lists, keys as strings."""
    return json.loads(json.dumps(content))


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
