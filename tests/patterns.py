"""Windows, processes and circles for point patterns, and the comparison of means of simulations with theory."""

import numpy as np

from coxfield.process import LogGaussianCoxProcess, PolygonWindow, Window

SQUARE = Window([(0, 1), (0, 1)])
CORNERS = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
ELL = PolygonWindow(CORNERS, [[(0.2, 0.2), (0.6, 0.2), (0.6, 0.6), (0.2, 0.6)]])


def cox(rate, kernel):
    """A process with this covariance and so many points per unit of volume."""
    return LogGaussianCoxProcess(kernel, np.log(rate) - kernel.diag(np.zeros((1, 2)))[0] / 2)


def circle(n):
    """n points of the unit circle, shape (n, 2)."""
    angles = 2 * np.pi * (np.arange(n) + 0.5) / n
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def assert_mean(samples, truth, allowed=0.0):
    """The mean of independent samples is the truth, to four standard errors and what is allowed beside them."""
    error = np.std(samples, axis=0, ddof=1) / np.sqrt(len(samples))
    gap = np.abs(np.mean(samples, axis=0) - truth)
    assert (gap <= 4 * error + allowed).all(), (gap, error)
