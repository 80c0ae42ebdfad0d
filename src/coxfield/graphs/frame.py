"""The frame in which points are compared, so that squares of distances lose no digits and do not overflow.

Sparse rows are compared by their angle: they are scaled to length 1. Dense points stay as they are, unless they lie far
from the origin beside their spread, or their size is extreme. Then they are moved and scaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from coxfield.utils.powers_of_two import units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

SINGLE = np.dtype(np.float32)
FAR = 1e3  # times the spread: beyond it, products of features lose too many digits of the distances
EXTREME = {np.dtype(np.float64): 2.0**300, np.dtype(np.float32): 2.0**30}  # sizes whose squares may overflow


@dataclass(frozen=True)
class Frame:
    """How points are moved and scaled."""

    origin: NDArray | None = None
    """None if points stay where they are."""
    unit: float = 1.0
    """A power of two, so that no digit changes."""
    precision: np.dtype = SINGLE
    """Of the given points. New points of single precision may meet points that only double precision can hold."""

    @classmethod
    def of(cls, X) -> Frame:
        """The frame of given points."""
        return cls() if sparse.issparse(X) else cls.between(X.min(axis=0), X.max(axis=0))

    @classmethod
    def between(cls, least: NDArray, largest: NDArray) -> Frame:
        """The frame of dense points whose features have these bounds."""
        low, high = least / 2, largest / 2
        middle, spread = low + high, float((high - low).max())
        unit = float(2.0 ** np.round(np.log2(spread))) if spread > 0 else 1.0
        extreme = EXTREME[low.dtype]
        unit = unit if unit > extreme or unit * extreme < 1 else 1.0
        moves = unit != 1 or float(np.abs(middle).max()) > FAR * spread
        return cls(middle if moves else None, unit, low.dtype)

    def place(self, X):
        """Points in this frame."""
        if sparse.issparse(X):
            return normalize(_rows_in_units(X))
        X = X.astype(np.result_type(X.dtype, self.precision), copy=False)
        if self.origin is None:
            return _within_reach(X)
        # Halves, because the difference of two numbers may be too large for a number.
        with np.errstate(over="ignore"):
            return _within_reach((X / 2 - (self.origin / 2).astype(X.dtype)) / X.dtype.type(self.unit / 2))


def _rows_in_units(X):
    """Sparse rows, those of extreme size divided by a power of two: their angles stay."""
    units = units_of(abs(X).max(axis=1).toarray().ravel().astype(float), X.dtype)
    if (units == 1).all():
        return X
    X = sparse.csr_array(X, copy=True)
    X.data = (X.data.astype(float) / np.repeat(units, np.diff(X.indptr))).astype(X.dtype)
    return X


def _within_reach(X: NDArray) -> NDArray:
    """Points so far away that squares of their features would overflow are brought nearer, in the same direction."""
    limit = X.dtype.type(EXTREME[X.dtype])
    if max(X.max(initial=0), -X.min(initial=0)) <= limit:
        return X
    largest = np.finfo(X.dtype).max
    X = np.clip(X, -largest, largest)
    sizes = np.abs(X).max(axis=1, keepdims=True)
    return X * np.minimum(1, limit / np.maximum(sizes, limit))
