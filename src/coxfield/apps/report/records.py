"""Records: what each task of an experiment found, one JSON file each, believed only when whole and asked for."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import scipy
import sklearn

import coxfield
from coxfield.io.whole_files import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping

DONE, UNAVAILABLE, FAILED = "done", "unavailable", "failed"


@dataclass(frozen=True)
class Record:
    """The outcome of one task, with all that is needed to judge and repeat it."""

    task: str
    """Name of the task, and of its file."""
    arguments: dict[str, Any]
    """What the task was called with, seeds included."""
    status: str
    """"done", "unavailable" (data that are not there) or "failed"."""
    result: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    """Why there is no result."""
    seconds: float = 0.0
    version: str = coxfield.__version__
    made: str = ""
    machine: dict[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.status == DONE

    def answers(self, arguments: Mapping[str, Any]) -> bool:
        """Whether this version of the package made it, with these arguments."""
        return self.version == coxfield.__version__ and self.arguments == _plain(dict(arguments))


def new_record(task: str, arguments: Mapping[str, Any], status: str, **fields) -> Record:
    """A record of something that ended just now, on this machine."""
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return Record(task, _plain(dict(arguments)), status, made=made, machine=machine(), **fields)


@cache
def machine() -> dict[str, Any]:
    """Processor, cores and versions: without them a time says nothing."""
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
    """The processor's name where the system tells it, its architecture elsewhere."""
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
        """The file of a task: its name, with a folder for each part before a slash."""
        return self.folder / f"{task}.json"

    def save(self, record: Record) -> None:
        """Write a record, whole or not at all, with a digest of what it says."""
        path = self.path(record.task)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = asdict(record)
        content["digest"] = _digest(content)
        with whole_file(path) as stream:
            stream.write(json.dumps(content, indent=1, allow_nan=False).encode())

    def load(self, task: str) -> Record | None:
        """The record of a task, or None when there is none, or none that can be believed."""
        try:
            content = json.loads(self.path(task).read_bytes())
            digest = content.pop("digest")
            record = Record(**content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return record if digest == _digest(content) and record.task == task else None

    def find(self, task: str, arguments: Mapping[str, Any]) -> Record | None:
        """The result of a task, if it is there and answers what is asked now."""
        record = self.load(task)
        return record if record is not None and record.done and record.answers(arguments) else None


def _digest(content: dict) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(content: dict) -> dict:
    """The content as it will be read back: tuples as lists, keys as strings."""
    return json.loads(json.dumps(content))
