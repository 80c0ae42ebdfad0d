"""Point patterns, from arrays, frames, files and Poisson processes, and what is done to them: thin and superpose."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.geometry.window import Window, check_points
from coxfield.process.fields import Intensity
from coxfield.utils.numbers import generator, number_from_zero

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Positional = Callable[[NDArray], NDArray]

MOST_POINTS = 5e7  # more would fill the memory
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


def poisson_process(
    intensity: float | Intensity | Positional, window=None, *, bound: float | None = None, random_state=None
) -> PointPattern:
    """Draw a Poisson process (section 'Background').

    Parameters
    ----------
    intensity : float, Intensity, or function of points of shape (n, d)
        A number gives a homogeneous process. For an `Intensity`, points are drawn cell by cell. For a function, a
        homogeneous process of rate `bound` is thinned. Both are exact.
    window : Window or pairs
        One (low, high) pair per axis. Not needed for an `Intensity`, which has its own.
    bound : float
        Needed for a function: a number that it does not exceed anywhere in the window.
    random_state : int, RandomState instance, numpy Generator or None

    Examples
    --------
    >>> pattern = poisson_process(3.0, [(0, 10), (0, 10)], random_state=0)
    >>> len(pattern)  # the expected number is 300
    307
    >>> slope = poisson_process(lambda x: x[:, 0], (0, 20), bound=20, random_state=0)
    >>> slope.count((0, 10)) < slope.count((10, 20))
    True
    """
    rng = generator(random_state)
    if isinstance(intensity, Intensity):
        return draw_from(intensity, rng)
    if window is None:
        raise ValueError("window is missing: give one (low, high) pair per axis, such as [(0, 10), (0, 10)]")
    window = Window.of(window)
    if not callable(intensity):
        return _homogeneous(number_from_zero("intensity", intensity), window, rng)
    if bound is None:
        raise ValueError(
            "an intensity that is a function needs a bound: give a number that it never exceeds in the window"
        )
    bound = number_from_zero("bound", bound)
    pattern = _homogeneous(bound, window, rng)
    rate = _values(intensity, pattern.points, "intensity", bound)
    return PointPattern(pattern.points[rng.random(len(pattern)) * bound < rate], window)


def draw_from(
    intensity: Intensity, rng: np.random.Generator, most_points: float | None = None, window: Window | None = None
) -> PointPattern:
    """Draw a Poisson process whose intensity is constant on cells: for each cell the number of points, then places.

    `window` may be a polygon in the grid, to which the points are clipped.
    """
    grid = intensity.grid
    _refuse_crowds(intensity.integral, most_points)
    counts = rng.poisson(intensity.values.ravel() * grid.cell_volume)
    cells = np.repeat(np.arange(counts.size), counts)
    corner = np.stack(np.unravel_index(cells, grid.shape), axis=1)
    points = grid.window.low + (corner + rng.random(corner.shape)) * grid.spacing
    # Rounding may move a point of the last cell across the edge.
    pattern = PointPattern(np.minimum(points, grid.window.high), grid.window, intensity=intensity)
    return pattern if window is None or window.is_box else pattern.clipped(window)


def thin(pattern: PointPattern, retention: float | Positional, *, random_state=None) -> PointPattern:
    """Keep each point independently with a given probability: tau(X, gamma) of section 'Model definition'.

    Parameters
    ----------
    pattern : PointPattern
    retention : float in [0, 1], or function of points of shape (n, d)
        gamma, the probability that a point stays.
    random_state : int, RandomState instance, numpy Generator or None

    Returns
    -------
    PointPattern
        The points that stayed, with their marks. If the intensity was known and gamma is a number, the result has the
        intensity times gamma.

    Examples
    --------
    >>> crowd = poisson_process(50.0, (0, 10), random_state=0)
    >>> len(crowd), len(thin(crowd, 0.1, random_state=0))
    (509, 49)
    """
    rng = generator(random_state)
    intensity = None
    if callable(retention):
        keep = rng.random(len(pattern)) < _values(retention, pattern.points, "retention", 1.0)
    else:
        gamma = check_gamma(retention)
        keep = rng.random(len(pattern)) < gamma
        if pattern.intensity is not None:
            intensity = Intensity(pattern.intensity.grid, gamma * pattern.intensity.values)
    marks = None if pattern.marks is None else pattern.marks[keep]
    return PointPattern(pattern.points[keep], pattern.window, marks, intensity)


def superpose(patterns: Sequence[PointPattern] | Mapping[object, PointPattern]) -> PointPattern:
    """Join patterns into one, and mark each point by the pattern that it came from: X of section 'Model definition'.

    Parameters
    ----------
    patterns : sequence of PointPattern, or mapping mark -> PointPattern
        All in the same window. The points of a sequence are marked 0, 1, 2, ... by pattern. Earlier marks are lost.

    Returns
    -------
    PointPattern
        Has the total intensity rho_T if all intensities are known on the same grid.

    Examples
    --------
    >>> window = [(0, 2), (0, 2)]
    >>> both = superpose({"cat": PointPattern([[1, 1]], window), "dog": PointPattern([[0, 1], [1, 2]], window)})
    >>> both.marks.tolist()
    ['cat', 'dog', 'dog']
    """
    marked = dict(patterns if isinstance(patterns, Mapping) else enumerate(patterns))
    parts = list(marked.values())
    if not parts:
        raise ValueError("there is nothing to superpose: give at least one pattern")
    for part in parts[1:]:
        if part.window != parts[0].window:
            raise ValueError(
                f"patterns must share one window, got {parts[0].window.sides} and {part.window.sides}: draw them anew"
            )
    marks = np.repeat(np.array(list(marked)), [len(part) for part in parts])
    return PointPattern(np.concatenate([part.points for part in parts]), parts[0].window, marks, _total(parts))


def _total(parts: list[PointPattern]) -> Intensity | None:
    """rho_T, the sum of the intensities, if they are all known on the same grid."""
    known = [part.intensity for part in parts if part.intensity is not None]
    if len(known) < len(parts) or any(rho.grid != known[0].grid for rho in known):
        return None
    return Intensity(known[0].grid, np.sum([rho.values for rho in known], axis=0))


def _homogeneous(rate: float, window: Window, rng: np.random.Generator) -> PointPattern:
    _refuse_crowds(rate * window.volume)
    n = rng.poisson(rate * window.volume)
    return PointPattern(window.sample(n, rng), window)


def check_gamma(gamma) -> float:
    """The thinning probability as a float; refuse what is not between 0 and 1."""
    if not isinstance(gamma, Real) or not 0 <= float(gamma) <= 1:
        raise ValueError(f"gamma, the probability that a point is kept, must lie between 0 and 1; got {gamma!r}")
    return float(gamma)


def _values(function: Positional, points: NDArray, name: str, bound: float) -> NDArray:
    """Values of a function at some points; refuse values that are not between 0 and the bound."""
    values = np.asarray(function(points), dtype=float)
    if values.shape != (len(points),):
        raise ValueError(
            f"{name} gave an array of shape {values.shape} for {len(points)} points: it must give one number per point"
        )
    wrong = np.flatnonzero(~((values >= 0) & (values <= bound)))
    if len(wrong):
        at, value = points[wrong[0]].tolist(), values[wrong[0]]
        raise ValueError(f"{name} must lie between 0 and {bound:g} everywhere, but it is {value:g} at {at}: correct it")
    return values


def _refuse_crowds(expected: float, most: float | None = None) -> None:
    limit = MOST_POINTS if most is None else most
    if expected > limit:
        remedy = "" if most is None else ", or raise most_points (--most-points)"
        raise ValueError(
            f"about {expected:.2g} points are to be expected, more than the {limit:g} that are drawn at most: "
            f"lower the intensity (mean, variance) or take a smaller window{remedy}"
        )
