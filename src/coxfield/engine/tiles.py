"""Work cut into blocks: how large a block may be, and threads that share the blocks out.

Each block is a small matrix product followed by cheap passes that stay in cache. One thread a block with
single-threaded BLAS inside beats multi-threaded BLAS around single-threaded NumPy (see `benchmarks/`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

import joblib
from sklearn import get_config
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, COLUMNS = 512, 2048  # a tile of a million numbers: measured best on 60,000 x 784, flat around


@cache
def _controller(user_api: str) -> ThreadpoolController:
    """Looking for loaded libraries takes milliseconds, so once is enough: at first use, when they are loaded."""
    return ThreadpoolController().select(user_api=user_api)


def limit_threads(threads: int, user_api: str = "blas"):
    """A context in which a library, "blas" or "openmp", takes at most so many threads."""
    return _controller(user_api).limit(limits=threads)


def n_threads(n_jobs: int | None) -> int:
    """Threads to use; None means as many as the BLAS would take for a matrix product of its own."""
    if n_jobs is None:
        return max([library["num_threads"] for library in _controller("blas").info()] or [1])
    return joblib.effective_n_jobs(n_jobs)


def tile_shape(n_rows: int, n_columns: int, itemsize: int, threads: int) -> tuple[int, int]:
    """Rows and columns of a tile, so that all threads' tiles together fit scikit-learn's `working_memory`."""
    budget = max(1, int(get_config()["working_memory"] * 2**20) // (itemsize * threads))
    columns = max(1, min(COLUMNS, n_columns, budget))
    rows = max(1, min(ROWS, -(-n_rows // threads), budget // columns))
    return rows, columns


def whole_rows(n_rows: int, n_columns: int, itemsize: int, threads: int, copies: int = 2) -> int:
    """How many whole rows of `n_columns` numbers a block may hold, with `copies` of them alive at a time."""
    budget = int(get_config()["working_memory"] * 2**20) // (itemsize * threads * copies)
    cap = max(1, 16 * ROWS * COLUMNS // max(1, n_columns))
    return max(1, min(ROWS, cap, -(-n_rows // threads), budget // max(1, n_columns)))


def over_rows(work: Callable[[slice], None], n_rows: int, step: int, threads: int, done=None) -> None:
    """Call `work` on slices of rows, shared out over threads; `done(rows)` is told after each slice."""
    slices = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    def run(part: slice) -> None:
        work(part)
        if done is not None:
            done(part.stop - part.start)

    if len(slices) <= 1:
        for part in slices:
            run(part)
        return
    with limit_threads(1), ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(run, slices):
            pass
