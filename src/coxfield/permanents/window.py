"""The window of Janossy densities, given or taken from the data, and its quadrature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.geometry.quadrature import Quadrature, gauss_legendre
from coxfield.geometry.window import Window

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

LARGEST = 1e80  # of a side of the window, or its inverse: the product of three is still a number
NODES = {1: 200, 2: 32, 3: 10}  # per axis; about 1000 in all, because their Cholesky factor costs O(nodes^3)


def check_window(window, X: NDArray) -> NDArray:
    """The window as one row (low, high) per feature; None stands for the box of the points, widened on each side.

    It is widened by the mean spacing of n points in a row: if n points are spread evenly over an interval, the
    outermost lie that far inside.
    """
    n, d = X.shape
    if d > max(NODES):
        raise ValueError(
            f"Janossy densities integrate over a window in at most {max(NODES)} dimensions, but the data have {d} "
            'features: give density="product"'
        )
    if window is None:
        low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
        _refuse_extreme(low, high)
        gap = (high - low) / max(n - 1, 1)
        window = np.stack([low - gap, high + gap], axis=1)
    elif np.shape(window) != (d, 2):
        raise ValueError(f"window must be a pair (low, high) for each of {d} features, got shape {np.shape(window)}")
    return np.array(Window(window).sides)


def _refuse_extreme(low: NDArray, high: NDArray) -> None:
    """Refuse features whose window has a volume that is no number."""
    size = np.maximum(np.abs(low), np.abs(high))
    wide = np.maximum(high / 2 - low / 2, size * np.finfo(float).eps)
    for k in np.flatnonzero((size > LARGEST) | ((wide < 1 / LARGEST) & (size > 0))):
        raise ValueError(
            f"feature {k} has values from {low[k]:.3g} to {high[k]:.3g}, so that the volume of the window is beyond "
            "what numbers can say: multiply it by a power of ten, or give a window"
        )


def quadrature(window: Window | ArrayLike, share: float = 1.0) -> Quadrature:
    """Gauss-Legendre nodes over the window, with a share of the usual number per axis."""
    window = Window.of(window)
    return gauss_legendre(window, round(share * NODES[window.dimension]))
