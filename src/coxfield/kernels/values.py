"""Covariances of all pairs of points, plain and precise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Bound, Covariance


def values(rows: Bound, columns: Bound) -> NDArray:
    """C between all pairs: a tile in units of 1 and without its floor, computed with care where rounding spoils it.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.kernels.recognise import recognise
    >>> points = recognise(2.0 * RBF(1.0), 1).bind(np.array([[0.0], [1.0]]))
    >>> values(points, points).round(4).tolist()
    [[2.0, 1.2131], [1.2131, 2.0]]
    """
    tile = rows.tile(columns)
    if rows.floor:
        tile -= tile.dtype.type(rows.floor)
    if rows.unit != 1:
        if rows.unit > float(np.finfo(tile.dtype).max):  # no number in single precision
            tile = tile.astype(float)
        tile *= rows.unit
    again = np.flatnonzero(rows.imprecise(columns))
    if again.size:
        tile[again] = np.exp(rows[again].log_tile(columns))
    return tile


def bind_precisely(covariance: Covariance, X) -> Bound:
    """Bind all rows of X, in double precision if single precision is too coarse for this covariance."""
    for data in (X, X.astype(np.float64, copy=False)):
        bound = covariance.bind(data)
        if not bound.imprecise(bound).any():
            break
    return bound
