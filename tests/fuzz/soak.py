"""Work for a long time in one process: `PYTHONPATH=tests python -m fuzz.soak --output report/memory.png`.

After a warm-up memory must not grow, and no thread or open file may be left.
"""

import argparse
import gc
import resource
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, SLGCPClassifier

MEGABYTES = 5.0  # that memory may grow over the last two thirds of the calls: allocators keep some pages
SAMPLES = 60  # times that memory is looked at
ESTIMATORS = (LGCPClassifier, SLGCPClassifier)


@dataclass
class Record:
    """Resident memory after so many calls, in megabytes."""

    name: str
    calls: list = field(default_factory=list)
    memory: list = field(default_factory=list)
    seconds: float = 0.0

    def growth(self):
        """Megabytes gained over the last two thirds of the calls, by a line through the samples."""
        start = len(self.calls) // 3
        x, y = np.array(self.calls[start:], float), np.array(self.memory[start:])
        return float(np.polyfit(x, y, 1)[0] * (x[-1] - x[0]))


def resident():
    """Resident memory of this process in megabytes; where the system does not tell, the most there ever was."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def handles():
    """Number of open files of this process, or 0 where the system does not tell."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def few_labels(y):
    """Labels of which one in five is known."""
    return np.where(np.arange(len(y)) % 5 == 0, y, -1)


def data(n=80):
    """Points of two classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 3)) + 2 * y[:, None], y


def fit(number):
    """Fit the estimators in turn."""
    X, y = data()
    kind = ESTIMATORS[number % len(ESTIMATORS)]
    return kind().fit(X, few_labels(y) if kind is SLGCPClassifier else y)


def comings_and_goings():
    """A function that adds rows to models and removes as many: a mixture and one kernel in turn."""
    X, y = data()
    models = [LGCPClassifier().fit(X, y), LGCPClassifier(RBF(1.0), selection=None).fit(X, y)]
    rng = np.random.default_rng(1)

    def call(number):
        model = models[number % len(models)]
        new = rng.integers(0, 2, 5)
        model.partial_fit(rng.normal(size=(5, 3)) + 2 * new[:, None], new, classes=[0, 1])
        model.forget(rng.choice(np.arange(40, len(model.y_fit_)), 5, replace=False))
        model.predict_proba(X[:5])

    return call


def predictions():
    """A function that predicts with fitted models in turn."""
    X, _ = data()
    models = [fit(number) for number in range(len(ESTIMATORS))]
    return lambda number: models[number % len(models)].predict_proba(X[number % 60 :][:20])


def watched(name, call, count):
    """Call a function so many times, and look at the memory now and then."""
    record, start = Record(name), time.perf_counter()
    for number in range(count):
        call(number)
        if (number + 1) % max(count // SAMPLES, 1) == 0:
            gc.collect()
            record.calls.append(number + 1)
            record.memory.append(resident())
    record.seconds = time.perf_counter() - start
    return record


def faults(records, before, after):
    """Sentences about what has grown."""
    found = [
        f"{record.name}: memory grew by {record.growth():.1f} MB over the last two thirds of the calls"
        for record in records
        if record.growth() > MEGABYTES
    ]
    names = ("threads", "open files")
    return found + [f"{b} {name} before, {a} after" for name, b, a in zip(names, before, after, strict=True) if a > b]


def counted():
    """Threads and open files of this process."""
    return threading.active_count(), handles()


def draw(records, path):
    """Draw memory against calls, one panel for each kind of call."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for ax, record in zip(figure.subplots(1, len(records), squeeze=False)[0], records, strict=True):
        ax.plot(record.calls, record.memory, ".-")
        ax.set(title=f"{record.name}: {record.growth():+.2f} MB", xlabel="calls", ylabel="resident memory in MB")
        # A line that is flat to within what is tolerated should look flat.
        ax.set_ylim(min(record.memory) - MEGABYTES, max(record.memory) + MEGABYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main(arguments=None):
    """Do the work, print a table, and return the number of faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=int, default=10000)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=1000, help="calls of partial_fit, each followed by forget")
    parser.add_argument("--output", type=Path, help="file for a picture of memory against calls")
    asked = parser.parse_args(arguments)
    predict = predictions()
    predict(0), predict(1)
    before = counted()
    records = [
        watched("predictions", predict, asked.predictions),
        watched("add and forget", comings_and_goings(), asked.pairs),
        watched("fits", fit, asked.fits),
    ]
    found = faults(records, before, counted())
    print(f"{'calls':14}{'number':>8}{'first MB':>10}{'last MB':>10}{'growth MB':>11}{'seconds':>9}")
    for record in records:
        ends = f"{record.memory[0]:10.1f}{record.memory[-1]:10.1f}{record.growth():11.2f}{record.seconds:9.0f}"
        print(f"{record.name:14}{record.calls[-1]:8}{ends}")
    print("threads, open files:", before, "before,", counted(), "after")
    if asked.output is not None:
        draw(records, asked.output)
    print(*found, f"{len(found)} faults", sep="\n")
    return len(found)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
