"""Point patterns: what a point process leaves behind in a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.geometry.window import Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from coxfield.process.fields import Intensity


@dataclass(frozen=True, eq=False)
class Pattern:
    """Points in a window.

    Each point may have a mark. The pattern may also hold the intensity that the points were drawn from.

    Examples
    --------
    >>> pattern = Pattern([[1.0, 2.0], [3.0, 0.5]], [(0, 4), (0, 4)], marks=["cat", "dog"])
    >>> len(pattern), pattern.count([(0, 2), (0, 4)])
    (2, 1)
    >>> pattern.marked("dog").points.tolist()
    [[3.0, 0.5]]
    """

    points: NDArray
    """Shape (n, d)."""
    window: Window
    marks: NDArray | None = None
    """One mark per point, or None."""
    intensity: Intensity | None = None

    def __post_init__(self) -> None:
        window = Window.of(self.window)
        points = window.check_inside(self.points)
        marks = None if self.marks is None else np.asarray(self.marks)
        if marks is not None and marks.shape != (len(points),):
            raise ValueError(f"{len(points)} points need one mark each, got marks of shape {marks.shape}")
        for name, value in (("window", window), ("points", points), ("marks", marks)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.points)

    def count(self, window=None) -> int:
        """n(A): the number of points in the window, or in a part of it."""
        return len(self) if window is None else int(Window.of(window).contains(self.points).sum())

    def marked(self, mark) -> Pattern:
        """The points of one mark, x^(i) of the paper."""
        if self.marks is None:
            raise ValueError(f"the points have no marks, so none has the mark {mark!r}: give marks, or use superpose")
        return Pattern(self.points[self.marks == mark], self.window)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the points in their window, with one colour and one marker per mark.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            With a 3d projection for points in space.

        Returns
        -------
        matplotlib Axes
        """
        from coxfield.plotting.processes import plot_pattern

        return plot_pattern(self, ax)
