"""Box windows for Janossy densities: given or from the data, with Gauss-Legendre nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NODES = {1: 200, 2: 32, 3: 10}  # a side, about 1000 in all: their Cholesky factor costs O(nodes^3)


@dataclass(frozen=True)
class Quadrature:
    """Nodes over a box, and the square roots of their weights."""

    nodes: NDArray
    roots: NDArray


def check_window(window, X: NDArray) -> NDArray:
    """The window as rows (low, high), one a feature; by default the box of the points, widened by a gap all round.

    The gap is the mean spacing between n points in a row: of n points spread evenly over an interval the outermost lie
    that far inside.
    """
    n, d = X.shape
    if d > max(NODES):
        raise ValueError(
            f"Janossy densities integrate over a window, in at most {max(NODES)} dimensions, and the data have {d} "
            'features: give density="product"'
        )
    if window is None:
        low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
        gap = (high - low) / max(n - 1, 1)
        box = np.stack([low - gap, high + gap], axis=1)
    else:
        box = np.asarray(window, dtype=float)
        if box.shape != (d, 2):
            raise ValueError(f"window must be a pair (low, high) for each of {d} features, got shape {box.shape}")
    if not np.isfinite(box).all() or not (box[:, 0] < box[:, 1]).all():
        raise ValueError(f"window must have finite low < high in each feature, got {box.tolist()}")
    return box


def quadrature(box: NDArray, share: float = 1.0) -> Quadrature:
    """A tensor product of Gauss-Legendre rules over the box, with a share of the usual nodes a side."""
    at, weights = np.polynomial.legendre.leggauss(round(share * NODES[len(box)]))
    centre, half = box.mean(axis=1), (box[:, 1] - box[:, 0]) / 2
    nodes = np.stack(np.meshgrid(*[at] * len(box), indexing="ij"), axis=-1).reshape(-1, len(box))
    products = np.prod(np.stack(np.meshgrid(*[weights] * len(box), indexing="ij"), axis=-1), axis=-1).ravel()
    return Quadrature(centre + half * nodes, np.sqrt(products * half.prod()))
