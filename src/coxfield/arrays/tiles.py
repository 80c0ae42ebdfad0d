"""Work in tiles on a device: how large they are, and leaving points out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.arrays.library import Library

ON_CPU = 1024, 2048  # rows and columns of a tile; all threads share one, and sizes nearby are as good
ELSEWHERE = 4096, 8192  # a GPU needs much work at a time
COPIES = 6  # of a tile that may be alive at a time


def tile_shape(library: Library, n_columns: int, itemsize: int) -> tuple[int, int]:
    """Rows and columns of a tile, within scikit-learn's `working_memory`."""
    rows, columns = ON_CPU if str(library.device).lower().startswith("cpu") else ELSEWHERE
    held = numbers_held(itemsize)
    columns = max(1, min(columns, n_columns, held))
    return max(1, min(rows, held // columns)), columns


def whole_rows(library: Library, n_columns: int, itemsize: int) -> int:
    """How many whole rows of `n_columns` numbers may be held."""
    rows, _ = tile_shape(library, n_columns, itemsize)
    return max(1, min(rows, numbers_held(itemsize) // max(1, n_columns)))


def numbers_held(itemsize: int) -> int:
    """How many numbers a tile may have."""
    return max(1, int(get_config()["working_memory"] * 2**20) // (itemsize * COPIES))


def slices(n: int, step: int) -> Iterator[slice]:
    """The numbers below n, `step` at a time."""
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def crossed_out(tile, leave_out: NDArray | None, start: int, value: float, library: Library) -> Any:
    """A tile with `value` where a row meets the column that it must leave out; see `kernels.leave_out.cross_out`."""
    width = tile.shape[1]
    if leave_out is None:
        return tile
    inside = (leave_out >= start) & (leave_out < start + width)
    if not inside.any():
        return tile
    xp, columns = library.xp, library.array(np.where(inside, leave_out - start, -1))
    return xp.where(columns[:, None] == library.array(np.arange(width))[None, :], value, tile)
