"""Integrals over a window: the Gauss-Legendre rule, and a rule that refines itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

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


ORDER = 8  # Gauss-Legendre nodes per panel and axis: exact for polynomials of degree 15
TOLERANCE = 1e-8  # halving the panels stops when the value changes by less than this, relative to the value
MOST_NODES = 2**21


class IntegrationWarning(UserWarning):
    """A numerical integral has not settled."""


def integrate(function: Callable[[NDArray], NDArray], window: Window) -> float:
    """Integrate a function of points of shape (n, d) over a window.

    Uses Gauss-Legendre panels, which are halved until the value settles.

    Examples
    --------
    >>> from coxfield.process import Window
    >>> round(integrate(lambda x: np.exp(x[:, 0] - x[:, 1]), Window([(0, 1), (0, 1)])), 6)  # (e - 1)(1 - 1/e)
    1.086161
    """
    panels, value, last = 1, _rule(function, window, 1), np.inf
    while abs(value - last) > TOLERANCE * abs(value) and (2 * panels * ORDER) ** window.dimension <= MOST_NODES:
        panels *= 2
        last, value = value, _rule(function, window, panels)
    change = abs(value - last)
    if change > TOLERANCE * abs(value):
        warnings.warn(
            f"the integral over {window.sides} is {value:.6g}, with an error of about {change:.1g}, because the mean "
            "function changes too fast: integrate smaller windows and add them up",
            IntegrationWarning,
            stacklevel=3,
        )
    return value


def _rule(function, window: Window, panels: int) -> float:
    rule = gauss_legendre(window, ORDER, panels)
    return float(rule.weights @ function(rule.nodes))
