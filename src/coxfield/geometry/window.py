"""Windows: the boxes A in which point processes are observed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Window:
    """A box, given by one (low, high) pair per axis: the bounded set A of section 'Model definition'.

    Everything that takes a window also takes the pairs themselves, or two numbers for a window on the line.

    Parameters
    ----------
    sides : sequence of (low, high) pairs
        One pair per axis.

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
        """A window as it is, or a window made of pairs."""
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
        """Whether each point lies in the window or on its boundary."""
        points = check_points(points, self.dimension)
        return ((points >= self.low) & (points <= self.high)).all(axis=1)

    def check_inside(self, points) -> np.ndarray:
        """Points as an array of shape (n, d); refuse points outside of the window."""
        points = check_points(points, self.dimension)
        outside = points[~self.contains(points)]
        if len(outside):
            raise ValueError(f"the point {outside[0].tolist()} lies outside of the window {self.sides}: leave it out")
        return points


def _checked(sides) -> tuple[tuple[float, float], ...]:
    pairs = np.asarray(sides, dtype=float)
    if pairs.shape == (2,):  # an interval
        pairs = pairs[None]
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"a window is one (low, high) pair per axis, such as [(0, 10), (0, 10)]; got {sides!r}")
    for axis, (low, high) in enumerate(pairs.tolist(), start=1):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"the window must be finite, got {low:g} to {high:g} along axis {axis}: give finite ends")
        if low == high:
            raise ValueError(
                f"the window is empty: along axis {axis} it begins and ends at {low:g}; give an end above the beginning"
            )
        if low > high:
            raise ValueError(
                f"the window is inverted along axis {axis}, from {low:g} to {high:g}: give the lower end first"
            )
        if not math.isfinite(high - low):
            raise ValueError(
                f"the window is longer than any number along axis {axis}, from {low:g} to {high:g}: give nearer ends"
            )
    return tuple((low, high) for low, high in pairs.tolist())


def check_points(points, dimension: int | None = None) -> np.ndarray:
    """Points as an array of shape (n, d), where a flat array means points on the line; refuse anything else."""
    points = np.asarray(points, dtype=float)
    if points.ndim == 1:
        points = points[:, None] if points.size or dimension is None else points.reshape(0, dimension)
    if points.ndim != 2:
        raise ValueError(
            f"points must have the shape (n, d), with one row per point, but the shape is {points.shape}: reshape them"
        )
    if dimension is not None and points.shape[1] != dimension:
        raise ValueError(
            f"points have {points.shape[1]} coordinates, but the window has {dimension} axes: make them agree"
        )
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise ValueError(f"points must be finite, but row {row} is {points[row].tolist()}: leave it out or fill it in")
    return points
