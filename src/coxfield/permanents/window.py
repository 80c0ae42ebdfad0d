"""Box windows for Janossy densities: given or from the data, with Gauss-Legendre nodes, and whether those suffice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.permanents.kernels import LocalKernel, ProductKernel, localise

if TYPE_CHECKING:
    from numpy.typing import NDArray

NODES = {1: 200, 2: 32, 3: 10}  # a side, about 1000 in all: their Cholesky factor costs O(nodes^3)
COARSER = 0.75  # the share of nodes a side whose C-tilde is compared
TOLERANCE = 0.01  # the largest difference allowed between the two, relative to C-hat(x, x)
LOOKED_AT = 100  # points at which they are compared


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


def local_kernel(whole: ProductKernel, box: NDArray, X: NDArray) -> LocalKernel | None:
    """C-tilde over the box, or None when the nodes are too few for a covariance so short.

    They are too few when three quarters as many a side give another C-tilde, at some of the points X or at some of the
    coarser nodes: a covariance that reaches from no node to a point shows up at the nodes.
    """
    local, coarse = localise(whole, quadrature(box)), localise(whole, quadrature(box, COARSER))
    some = np.concatenate([_some(X), _some(coarse.quadrature.nodes)])
    difference = np.abs(local.matrix(some) - coarse.matrix(some)).max()
    return local if difference <= TOLERANCE * whole.diagonal(some).max() else None


def _some(points: NDArray) -> NDArray:
    return points[:: -(-len(points) // LOOKED_AT)]
