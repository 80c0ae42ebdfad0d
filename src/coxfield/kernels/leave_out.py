"""Leaving points out of tiles: where a point meets itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cross_out(tile: NDArray, leave_out: NDArray, start: int, value) -> None:
    """Write `value`, one number or one per row, where a row meets the column that it must leave out.

    Parameters
    ----------
    tile : array of shape (rows, columns)
    leave_out : integer array of shape (rows,)
        The column that each row must not see, -1 for none, in the same numbering as `start`.
    start : int
        Number of the first column of the tile.
    value : float or array of shape (rows,)

    Examples
    --------
    >>> tile = np.ones((3, 2))
    >>> cross_out(tile, np.array([5, 6, -1]), 5, 0.0)
    >>> tile.tolist()
    [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    rows = np.flatnonzero((leave_out >= start) & (leave_out < start + tile.shape[1]))
    if rows.size:
        tile[rows, leave_out[rows] - start] = value if np.isscalar(value) else value[rows]
