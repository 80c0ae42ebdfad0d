"""Shared by all benchmarks: timing, peak memory, data, and a table."""

import time
import tracemalloc
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from coxfield.datasets import DatasetUnavailableError, fetch_mnist

console = Console()


@dataclass(frozen=True)
class Row:
    """One measurement: what was measured, the value, and what was promised."""

    what: str
    value: str
    promise: str = ""


def seconds(work, repeats=2, clock=time.perf_counter):
    """Least time of several runs: the least disturbed one. With `time.process_time` as clock, of the processors."""
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def peak_megabytes(work):
    """The most memory that Python and NumPy took during `work`, in addition to what they held before."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def images(n_train, n_test, dtype):
    """MNIST scaled to [0, 1], or random numbers of the same shape if it is not available."""
    try:
        data = fetch_mnist()
    except DatasetUnavailableError as error:
        console.print(f"MNIST is not available, so random numbers take its place: {error}")
        rng = np.random.default_rng(0)
        y = rng.integers(10, size=n_train)
        return 0.4 * rng.random((n_train, 784)).astype(dtype), y, 0.4 * rng.random((n_test, 784)).astype(dtype)
    scale = dtype(255)
    return (
        data.X_train[:n_train].astype(dtype) / scale,
        data.y_train[:n_train],
        data.X_test[:n_test].astype(dtype) / scale,
    )


def show(title, rows):
    """Print measurements beside promises."""
    table = Table(title=title, title_justify="left")
    for heading in ("what", "measured", "promised"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for row in rows:
        table.add_row(row.what, row.value, row.promise)
    console.print(table)
