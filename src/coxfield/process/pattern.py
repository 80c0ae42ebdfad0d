"""Point patterns: what a point process leaves behind in a window, from arrays, frames and files."""

from __future__ import annotations

import csv
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.geometry.window import Window, check_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from coxfield.process.fields import Intensity

DEGREES = {"lon", "long", "longitude", "lng", "lat", "latitude"}  # names of columns that hold degrees
REMEDY = "project them to metres first, for instance with to_crs of GeoPandas"


class PatternWarning(UserWarning):
    """Something about a pattern that changes what its summaries mean: duplicated points, or coordinates in degrees."""


@dataclass(frozen=True, eq=False)
class PointPattern:
    """Points in a window.

    Each point may have a mark, such as its type. The pattern may also hold the intensity that the points were drawn
    from. `from_frame`, `from_geopandas` and `from_csv` read patterns, and say in a sentence what is odd about them.

    Examples
    --------
    >>> pattern = PointPattern([[1.0, 2.0], [3.0, 0.5]], [(0, 4), (0, 4)], marks=["cat", "dog"])
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
    unit: str = ""
    """Name of the unit of length, for pictures; "" if it is unknown."""

    def __post_init__(self) -> None:
        window = Window.of(self.window)
        points = window.check_inside(self.points)
        marks = None if self.marks is None else np.asarray(self.marks)
        if marks is not None and marks.shape != (len(points),):
            raise ValueError(f"{len(points)} points need one mark each, got marks of shape {marks.shape}")
        for name, value in (("window", window), ("points", points), ("marks", marks)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_points(cls, points, window=None, marks=None, *, outside: str = "raise", unit: str = "") -> PointPattern:
        """Read a pattern from an array, and warn of what is odd about it.

        Parameters
        ----------
        points : array of shape (n, d)
        window : Window, pairs, polygon of shapely, or None
            None for the box of the points, widened by the mean spacing of n points in a row.
        marks : array of shape (n,), optional
        outside : {"raise", "drop"}
            What to do with points outside of the window.
        unit : str
            Name of the unit of length.

        Returns
        -------
        PointPattern
        """
        if outside not in ("raise", "drop"):
            raise ValueError(f"outside must be 'raise' or 'drop', got {outside!r}")
        points = check_points(points)
        window = Window.around(points) if window is None else Window.of(window)
        marks = None if marks is None else np.asarray(marks)
        if outside == "drop":
            inside = window.contains(points)
            points, marks = points[inside], None if marks is None else marks[inside]
        pattern = cls(points, window, marks, unit=unit)
        pattern._warn_of_duplicates()
        return pattern

    @classmethod
    def from_frame(cls, frame, x: str = "x", y: str | None = "y", *, type: str | None = None, **how) -> PointPattern:  # noqa: A002
        """Read a pattern from two columns of a data frame (pandas, polars, or a mapping of columns).

        Parameters
        ----------
        frame : data frame
        x, y : str
            Columns of the coordinates. None for y means points on the line.
        type : str, optional
            Column of the marks.
        **how
            `window`, `outside` and `unit`, as for `from_points`.

        Returns
        -------
        PointPattern

        Examples
        --------
        >>> PointPattern.from_frame({"x": [1.0, 2.0], "y": [0.5, 1.5]}, window=[(0, 4), (0, 2)]).points.shape
        (2, 2)
        """
        wanted = [name for name in (x, y) if name is not None]
        columns = list(frame) if isinstance(frame, dict) else list(frame.columns)
        missing = [name for name in (*wanted, type) if name is not None and name not in columns]
        if missing:
            raise ValueError(f"the frame has no column {missing[0]!r}: name its columns of coordinates by x and y")
        if DEGREES & {name.lower() for name in wanted}:
            warnings.warn(_degrees(f"columns {' and '.join(wanted)}"), PatternWarning, stacklevel=2)
        marks = None if type is None else np.asarray(frame[type])
        return cls.from_points(np.stack([_numbers(frame[name], name) for name in wanted], axis=1), marks=marks, **how)

    @classmethod
    def from_geopandas(cls, frame, *, type: str | None = None, **how) -> PointPattern:  # noqa: A002
        """Read a pattern from a GeoPandas frame or series of points. GeoPandas itself is not imported.

        `window` may be a frame of polygons. The other options are those of `from_points`.
        """
        places, crs = frame.geometry, getattr(frame, "crs", None)
        odd = set(places.geom_type) - {"Point"}
        if odd:
            raise ValueError(f"a pattern is made of points, but the frame has a {min(odd, key=str)}: take centroids")
        window: Any = how.get("window")
        if crs is not None and getattr(window, "crs", crs) != crs:
            raise ValueError(f"points are in {crs.name}, but the window is in {window.crs.name}: use to_crs on one")
        if crs is not None and crs.is_geographic:
            warnings.warn(_degrees(f"coordinates in {crs.name}"), PatternWarning, stacklevel=2)
        if crs is not None and not how.get("unit"):
            how["unit"] = crs.axis_info[0].unit_name
        marks = None if type is None else np.asarray(frame[type])
        return cls.from_points(np.stack([places.x, places.y], axis=1), marks=marks, **how)

    @classmethod
    def from_csv(cls, path, x: str = "x", y: str | None = "y", *, type: str | None = None, **how) -> PointPattern:  # noqa: A002
        """Read a pattern from columns of a CSV file with a header. The options are those of `from_frame`."""
        with Path(path).open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        if not rows:
            raise ValueError(f"{path} has no rows below its header: give at least one point")
        return cls.from_frame({name: [row[name] for row in rows] for name in rows[0]}, x, y, type=type, **how)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def rate(self) -> float:
        """Points per unit of volume."""
        return len(self) / self.window.volume

    @property
    def n_duplicates(self) -> int:
        """How many points have the place of an earlier point."""
        return len(self) - len(np.unique(self.points, axis=0))

    def _warn_of_duplicates(self) -> None:
        if self.n_duplicates:
            warnings.warn(
                f"{self.n_duplicates} of {len(self)} points have the same place as an earlier point, which a process "
                "with an intensity does not produce: remove them, or spread them over the precision of the places",
                PatternWarning,
                stacklevel=4,
            )

    def count(self, window=None) -> int:
        """n(A): the number of points in the window, or in a part of it."""
        return len(self) if window is None else int(Window.of(window).contains(self.points).sum())

    def marked(self, mark) -> PointPattern:
        """The points of one mark, x^(i) of the paper."""
        if self.marks is None:
            raise ValueError(f"the points have no marks, so none has the mark {mark!r}: give marks, or use superpose")
        return PointPattern(self.points[self.marks == mark], self.window, unit=self.unit)

    def types(self) -> dict[object, PointPattern]:
        """One pattern per mark, in the order of the marks."""
        if self.marks is None:
            raise ValueError("the points have no marks, so there are no types: give marks, or use superpose")
        return {mark: self.marked(mark) for mark in np.unique(self.marks).tolist()}

    def clipped(self, window) -> PointPattern:
        """The points in a part of the window, such as a polygon."""
        window = Window.of(window)
        kept = window.contains(self.points)
        return PointPattern(self.points[kept], window, None if self.marks is None else self.marks[kept], unit=self.unit)

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


Pattern = PointPattern


def _numbers(column, name: str) -> NDArray:
    """A column as numbers; refuse text with the row where it is found."""
    values = np.asarray(column)
    try:
        return values.astype(float)
    except (TypeError, ValueError):
        for row, value in enumerate(values.tolist(), start=1):
            try:
                float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"column {name!r} holds {value!r} in row {row}, where a coordinate is needed: correct the row"
                ) from None
        raise


def _degrees(what: str) -> str:
    return f"{what} are degrees, in which distances mean little, as a degree has not one length: {REMEDY}"
