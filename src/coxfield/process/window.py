"""Windows: the boxes A in which point processes are observed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Window:
    """A box, one (low, high) pair an axis: the bounded set A of section 'Model definition'.

    Everything that takes a window also takes the pairs themselves, or two numbers for a window on the line.

    Parameters
    ----------
    sides : sequence of (low, high) pairs

    Examples
    --------
    >>> window = Window([(0, 10), (-1, 1)])
    >>> window.dimension, window.volume
    (2, 20.0)
    >>> window.contains([[5, 0], [5, 2]]).tolist()
    [True, False]
    >>> Window([(0, 10), (1, -1)])
    Traceback (most recent call last):
        ...
    ValueError: the window is inverted along axis 2, from 1 to -1: give the lower end first
    """

    sides: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sides", _checked(self.sides))

    @classmethod
    def of(cls, window) -> Window:
        """A window as it is, or made of pairs."""
        return window if isinstance(window, Window) else cls(window)

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return len(self.sides)

    @property
    def low(self) -> np.ndarray:
        """Lower corner."""
        return np.array([low for low, _ in self.sides])

    @property
    def high(self) -> np.ndarray:
        """Upper corner."""
        return np.array([high for _, high in self.sides])

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of the sides."""
        return self.high - self.low

    @property
    def volume(self) -> float:
        """Length, area or volume."""
        return float(np.prod(self.lengths))

    def contains(self, points) -> np.ndarray:
        """Whether each point lies in the window, its boundary included."""
        points = check_points(points, self.dimension)
        return ((points >= self.low) & (points <= self.high)).all(axis=1)


def _checked(sides) -> tuple[tuple[float, float], ...]:
    pairs = np.asarray(sides, dtype=float)
    if pairs.shape == (2,):  # an interval
        pairs = pairs[None]
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"a window is one (low, high) pair an axis, such as [(0, 10), (0, 10)]; got {sides!r}")
    for axis, (low, high) in enumerate(pairs.tolist(), start=1):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"the window must be finite, got {low:g} to {high:g} along axis {axis}")
        if low == high:
            raise ValueError(f"the window is empty: along axis {axis} it begins and ends at {low:g}")
        if low > high:
            raise ValueError(
                f"the window is inverted along axis {axis}, from {low:g} to {high:g}: give the lower end first"
            )
    return tuple((low, high) for low, high in pairs.tolist())


def check_points(points, dimension: int | None = None) -> np.ndarray:
    """Points as an array of shape (n, d), or refuse them with a sentence; a flat array is points on the line."""
    points = np.asarray(points, dtype=float)
    if points.ndim == 1:
        points = points[:, None] if points.size or dimension is None else points.reshape(0, dimension)
    if points.ndim != 2:
        raise ValueError(f"points must have the shape (n, d), one row a point; got an array of shape {points.shape}")
    if dimension is not None and points.shape[1] != dimension:
        raise ValueError(f"points have {points.shape[1]} coordinates where {dimension} are needed")
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise ValueError(f"points must be finite, but row {row} is {points[row].tolist()}: leave it out or fill it in")
    return points
