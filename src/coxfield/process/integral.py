"""Integrals of functions of position over a window."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.process.window import Window

ORDER = 8  # Gauss-Legendre nodes a panel and axis: exact for polynomials of degree 15
TOLERANCE = 1e-8  # relative change at which halving the panels stops
MOST_NODES = 2**21


class IntegrationWarning(UserWarning):
    """A numerical integral has not settled."""


def integrate(function: Callable[[NDArray], NDArray], window: Window) -> float:
    """Integrate a function of points of shape (n, d) over a window, by Gauss-Legendre panels halved until it settles.

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
            f"the integral over {window.sides} is {value:.6g} give or take {change:.1g}: the mean function changes "
            "too fast for more; integrate smaller windows and add them up",
            IntegrationWarning,
            stacklevel=3,
        )
    return value


def _rule(function, window: Window, panels: int) -> float:
    """The rule on `panels` equal panels an axis."""
    nodes, weights = np.polynomial.legendre.leggauss(ORDER)
    along = (np.arange(panels)[:, None] + (nodes + 1) / 2).ravel() / panels  # in [0, 1]
    weight = np.tile(weights / 2, panels) / panels
    axes = [low + length * along for low, length in zip(window.low, window.lengths, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, window.dimension)
    total = function(points).reshape((len(along),) * window.dimension)
    for _ in range(window.dimension):
        total = total @ weight
    return float(total * window.volume)
