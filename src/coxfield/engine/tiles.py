"""Work in tiles: how large a tile may be, and how threads share the rows.

Each tile is a small matrix product followed by cheap passes that stay in cache. One thread per block of rows, with
single-threaded BLAS inside, is faster than multi-threaded BLAS and single-threaded NumPy (see `benchmarks/`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from sklearn import get_config

from coxfield import threads

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, COLUMNS = 512, 2048  # a tile of a million numbers was fastest on 60,000 x 784; sizes nearby are as good
SMALL = 2**19  # numbers in total, up to which starting threads costs as much time as it saves


def _budget(itemsize: int) -> int:
    """Numbers that each thread may hold, so that all threads together stay within scikit-learn's `working_memory`."""
    return max(1, int(get_config()["working_memory"] * 2**20) // (itemsize * threads.count()))


def tile_shape(n_rows: int, n_columns: int, itemsize: int) -> tuple[int, int]:
    """Rows and columns of a tile."""
    columns = max(1, min(COLUMNS, n_columns, _budget(itemsize)))
    share = n_rows if n_rows * n_columns <= SMALL else -(-n_rows // threads.count())
    return max(1, min(ROWS, share, _budget(itemsize) // columns)), columns


def whole_rows(n_rows: int, n_columns: int, itemsize: int, copies: int = 2) -> int:
    """How many whole rows of `n_columns` numbers a block may hold, with `copies` of them alive at a time."""
    cap = max(1, 16 * ROWS * COLUMNS // max(1, n_columns))
    fitting = _budget(itemsize * copies) // max(1, n_columns)
    return max(1, min(ROWS, cap, -(-n_rows // threads.count()), fitting))


def over_rows(work: Callable[[slice], None], n_rows: int, step: int, done=None) -> None:
    """Call `work` on slices of rows, in several threads; after each slice call `done` with its number of rows."""
    slices = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    def run(part: slice) -> None:
        work(part)
        if done is not None:
            done(part.stop - part.start)

    workers = threads.count()  # before the limit on the BLAS, which may be what it goes by
    if len(slices) <= 1 or workers == 1:
        for part in slices:
            run(part)
        return
    with threads.limit(1), ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(run, slices):
            pass
