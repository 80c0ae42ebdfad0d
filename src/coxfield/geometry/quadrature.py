"""Gauss-Legendre quadrature over a window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.geometry.window import Window


@dataclass(frozen=True)
class Quadrature:
    """Nodes and weights: the integral of f over the window is about the sum of weight times f(node)."""

    nodes: NDArray
    """Shape (n, d)."""
    weights: NDArray
    """Shape (n,), all positive."""

    @property
    def roots(self) -> NDArray:
        """Square roots of the weights, which keep a matrix of covariances between nodes symmetric."""
        return np.sqrt(self.weights)


def gauss_legendre(window: Window, order: int, panels: int = 1) -> Quadrature:
    """A tensor product of Gauss-Legendre rules, exact for polynomials of degree 2 order - 1 along each axis.

    Parameters
    ----------
    window : Window
    order : int
        Nodes per panel and axis.
    panels : int, default=1
        Equal panels per axis; each has its own nodes.

    Returns
    -------
    Quadrature
        Of (order x panels)^d nodes, the last axis running fastest.

    Examples
    --------
    >>> from coxfield.geometry.window import Window
    >>> rule = gauss_legendre(Window([(0, 1), (0, 2)]), order=3)
    >>> round(float(rule.weights @ rule.nodes[:, 0] ** 4), 12)  # 2 / 5
    0.4
    """
    nodes, weights = np.polynomial.legendre.leggauss(order)
    panel_centres = (2 * np.arange(panels) + 1) / panels - 1  # in [-1, 1]
    along = (panel_centres[:, None] + nodes / panels).ravel()
    axes = [along] * window.dimension
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, window.dimension)
    products = reduce(np.multiply.outer, [np.tile(weights / panels, panels)] * window.dimension).ravel()
    centre, half = (window.low + window.high) / 2, window.lengths / 2
    return Quadrature(centre + half * grid, products * half.prod())
