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

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAR = 1e3  # times the spread: beyond it, products of features lose too many digits of the distances
EXTREME = {np.dtype(np.float64): 2.0**300, np.dtype(np.float32): 2.0**30}  # sizes whose squares may overflow


@dataclass(frozen=True)
class Frame:
    """How points are moved and scaled."""

    origin: NDArray | None = None
    """None if points stay where they are."""
    unit: float = 1.0
    """A power of two, so that no digit changes."""

    @classmethod
    def of(cls, X) -> Frame:
        """The frame of given points."""
        if sparse.issparse(X):
            return cls()
        low, high = X.min(axis=0) / 2, X.max(axis=0) / 2
        middle, spread = low + high, float((high - low).max())
        unit = float(2.0 ** np.round(np.log2(spread))) if spread > 0 else 1.0
        extreme = EXTREME[X.dtype]
        unit = unit if unit > extreme or unit * extreme < 1 else 1.0
        return cls(middle if unit != 1 or float(np.abs(middle).max()) > FAR * spread else None, unit)

    def place(self, X):
        """Points in this frame."""
        if sparse.issparse(X):
            return normalize(X)
        return X if self.origin is None else (X - self.origin.astype(X.dtype)) / X.dtype.type(self.unit)
