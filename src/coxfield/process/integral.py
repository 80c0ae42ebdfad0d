"""Integrals of functions of position over a window."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from coxfield.geometry.quadrature import gauss_legendre

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.geometry.window import Window

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
