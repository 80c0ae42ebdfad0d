"""Windows: the bounded sets A in which points are observed, boxes and polygons, and integrals over them.

A window knows what edge corrections ask: which points lie in it, how far they are from its boundary, and the volume of
its overlap with a copy of itself that was moved (the set covariance).
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.interpolate import RegularGridInterpolator

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

DIRECTIONS = 256  # over which set covariances are averaged; the average of a polygon's is then good to 1e-4
EXACT = 1024  # lags of a polygon whose overlaps are computed one by one; of more lags they are interpolated
NODES = 49  # per axis of half the plane of lags, for that interpolation
NO_SHAPELY = "windows that are polygons need shapely: pip install 'coxfield[spatial]'"


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
        """A window as it is, or a window made of pairs, of a polygon of shapely, or of GeoPandas geometries."""
        if isinstance(window, Window):
            return window
        if hasattr(window, "union_all"):  # GeoPandas: a frame or a series of polygons
            window = window.union_all()
        return PolygonWindow(window) if hasattr(window, "geom_type") else Window(window)

    @classmethod
    def around(cls, points) -> Window:
        """The box of some points, wider on each side by the mean spacing of n points in a row.

        If n points are spread evenly over an interval, the outermost of them lie that far inside.

        Examples
        --------
        >>> Window.around([[0.0, 0.0], [1.0, 4.0], [2.0, 1.0]]).sides
        ((-1.0, 3.0), (-2.0, 6.0))
        """
        points = check_points(points)
        if len(points) < 2 or (np.ptp(points, axis=0) == 0).any():
            raise ValueError(
                f"{len(points)} points that lie on one line parallel to an axis do not show their window: give a window"
            )
        low, high = points.min(axis=0), points.max(axis=0)
        gap = (high - low) / (len(points) - 1)
        return Window(tuple(zip((low - gap).tolist(), (high + gap).tolist(), strict=True)))

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

    @property
    def box(self) -> Window:
        """The box around the window."""
        return Window(self.sides)

    @property
    def is_box(self) -> bool:
        """Whether the window is all of the box `sides`."""
        return True

    def contains(self, points) -> np.ndarray:
        """Whether each point lies in the window or on its boundary."""
        points = check_points(points, self.dimension)
        return ((points >= self.low) & (points <= self.high)).all(axis=1)

    def check_inside(self, points) -> np.ndarray:
        """Points as an array of shape (n, d); refuse points outside of the window."""
        points = check_points(points, self.dimension)
        outside = points[~self.contains(points)]
        if len(outside):
            more = "" if len(outside) == 1 else f" and {len(outside) - 1} more of {len(points)} points"
            lies = "lies" if len(outside) == 1 else "lie"
            raise ValueError(
                f"the point {outside[0].tolist()}{more} {lies} outside of the window {self._name()}: leave "
                f"{'it' if len(outside) == 1 else 'them'} out"
            )
        return points

    def boundary_distance(self, points) -> np.ndarray:
        """Distance of each point of the window to its boundary."""
        points = check_points(points, self.dimension)
        return np.minimum(points - self.low, self.high - points).min(axis=1)

    def set_covariance(self, lags) -> np.ndarray:
        """Volume of the overlap of the window A with itself moved by each lag h, shape (n,).

        Examples
        --------
        >>> Window([(0, 2), (0, 1)]).set_covariance([[0, 0], [0.5, 0.5], [2, 0]]).tolist()
        [2.0, 0.75, 0.0]
        """
        return np.maximum(self.lengths - np.abs(check_points(lags, self.dimension)), 0).prod(axis=1)

    def mean_set_covariance(self, distances) -> np.ndarray:
        """The set covariance at each distance, averaged over directions, shape (n,)."""
        distances = np.asarray(distances, dtype=float)
        around = directions(self.dimension)
        lags = (distances[:, None, None] * around).reshape(-1, self.dimension)
        return self.set_covariance(lags).reshape(len(distances), -1).mean(axis=1)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Points drawn uniformly from the window, shape (n, d)."""
        return rng.uniform(self.low, self.high, size=(n, self.dimension))

    def cell_volumes(self, shape: tuple[int, ...], box: Window | None = None) -> np.ndarray:
        """How much of each cell lies in the window, if a box is cut into a grid of equal cells; its own by default."""
        if box is None or box.sides == self.sides:
            return np.full(shape, float(np.prod(self.lengths / shape)))
        volumes = np.ones(())
        for (low, high), side, n in zip(self.sides, box.sides, shape, strict=True):
            ends = np.clip(np.linspace(*side, n + 1), low, high)
            volumes = np.multiply.outer(volumes, np.diff(ends))
        return volumes

    def _name(self) -> str:
        return str(self.sides)


@dataclass(frozen=True, init=False)
class PolygonWindow(Window):
    """A polygon in the plane, which may have holes and several parts.

    Parameters
    ----------
    geometry : Polygon or MultiPolygon of shapely, or sequence of (x, y) corners
    holes : sequence of sequences of (x, y) corners

    Examples
    --------
    >>> ell = PolygonWindow([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    >>> ell.volume, ell.contains([[0.5, 1.5], [1.5, 1.5]]).tolist()
    (3.0, [True, False])
    """

    geometry: Any
    """The polygon, of shapely."""

    def __init__(self, geometry, holes=()) -> None:
        shapely = _shapely()
        if not hasattr(geometry, "geom_type"):
            geometry = shapely.Polygon(geometry, holes)
        if geometry.geom_type not in ("Polygon", "MultiPolygon"):
            raise ValueError(f"a window must be a polygon or several, got a {geometry.geom_type}: give polygons")
        if not geometry.is_valid:
            raise ValueError(
                f"the polygon of the window is not valid ({shapely.is_valid_reason(geometry)}): correct it, for "
                "instance with shapely.make_valid"
            )
        if geometry.area == 0:
            raise ValueError("the polygon of the window has no area: give one that encloses something")
        left, bottom, right, top = geometry.bounds
        shapely.prepare(geometry)
        for name, value in (("sides", ((left, right), (bottom, top))), ("geometry", geometry)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_geojson(cls, path) -> PolygonWindow:
        """Read all polygons of a GeoJSON file, joined."""
        shapely = _shapely()
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            found = [part for part in _parts(shapely.from_geojson(json.dumps(content))) if part.area > 0]
        except FileNotFoundError:
            raise ValueError(f"There is no file {path}") from None
        except (ValueError, shapely.errors.GEOSException) as error:
            raise ValueError(f"{path} cannot be read as GeoJSON: {str(error).splitlines()[0]}") from None
        if not found:
            raise ValueError(f"{path} has no polygon: draw the window as a Polygon or a MultiPolygon")
        return cls(shapely.union_all(found))

    @property
    def is_box(self) -> bool:
        """Never: a polygon is not treated as a box, even if it is one."""
        return False

    @property
    def volume(self) -> float:
        """Area."""
        return float(self.geometry.area)

    def contains(self, points) -> np.ndarray:
        """Whether each point lies in the window or on its boundary."""
        points = check_points(points, self.dimension)
        return _shapely().intersects_xy(self.geometry, points[:, 0], points[:, 1])

    def boundary_distance(self, points) -> np.ndarray:
        """Distance of each point of the window to its boundary."""
        shapely = _shapely()
        return shapely.distance(self.geometry.boundary, shapely.points(check_points(points, self.dimension)))

    def set_covariance(self, lags) -> np.ndarray:
        """Area of the overlap with the window moved by each lag; of many lags it is interpolated on a grid of lags."""
        lags = check_points(lags, self.dimension)
        if len(lags) <= EXACT:
            return self._overlaps(lags)
        lags = np.where(lags[:, :1] < 0, -lags, lags)  # the set covariance is even
        return np.maximum(self._table(_ceiling(float(np.abs(lags).max())))(lags), 0)

    def _overlaps(self, lags: np.ndarray) -> np.ndarray:
        """Exact overlaps, one polygon clipped at a time."""
        shapely = _shapely()
        moved = np.array([shapely.transform(self.geometry, lambda at, h=h: at + h) for h in lags], dtype=object)
        return shapely.area(shapely.intersection(moved, self.geometry)) if len(lags) else np.zeros(0)

    def _table(self, reach: float) -> RegularGridInterpolator:
        """Overlaps on a grid of lags up to `reach`, with a node at 0, where the set covariance has its tip."""
        if reach not in self._tables:
            right, along = np.linspace(0, reach, NODES), np.linspace(-reach, reach, 2 * NODES - 1)
            values = self._overlaps(places([right, along])).reshape(len(right), len(along))
            self._tables[reach] = RegularGridInterpolator((right, along), values)
        return self._tables[reach]

    @cached_property
    def _tables(self) -> dict[float, RegularGridInterpolator]:
        return {}

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Points drawn uniformly from the polygon, by rejection from its box."""
        found = np.empty((0, 2))
        while len(found) < n:
            more = rng.uniform(self.low, self.high, size=(2 * (n - len(found)) + 8, 2))
            found = np.concatenate([found, more[self.contains(more)]])
        return found[:n]

    def cell_volumes(self, shape: tuple[int, ...], box: Window | None = None) -> np.ndarray:
        """How much of each cell of a grid over a box lies in the polygon; over its own box by default."""
        shapely = _shapely()
        sides = (self if box is None else box).sides
        x, y = (np.linspace(*side, n + 1) for side, n in zip(sides, shape, strict=True))
        cells = shapely.box(*np.broadcast_arrays(x[:-1, None], y[None, :-1], x[1:, None], y[None, 1:]))
        return shapely.area(shapely.intersection(cells, self.geometry))

    def _name(self) -> str:
        (left, right), (bottom, top) = self.sides
        return f"of area {self.volume:.4g} within [{left:g}, {right:g}] x [{bottom:g}, {top:g}]"


def _shapely() -> Any:
    try:
        import shapely
    except ImportError:
        raise ImportError(NO_SHAPELY) from None
    return shapely


def _parts(geometry) -> list:
    """The geometries of a collection, or of collections in it."""
    return [each for part in geometry.geoms for each in _parts(part)] if hasattr(geometry, "geoms") else [geometry]


def _ceiling(reach: float) -> float:
    """The next power of 5/4: lags that are nearly as long share a table."""
    return 1.25 ** math.ceil(math.log(reach, 1.25))


def directions(dimension: int) -> np.ndarray:
    """Directions spread evenly over half of the sphere: both, on the line; angles in the plane; a spiral in space."""
    steps = (np.arange(DIRECTIONS) + 0.5) / DIRECTIONS
    if dimension == 1:
        return np.ones((1, 1))
    if dimension == 2:
        return np.stack([np.cos(np.pi * steps), np.sin(np.pi * steps)], axis=1)
    if dimension == 3:
        radius, turn = np.sqrt(1 - steps**2), np.pi * (3 - np.sqrt(5)) * np.arange(DIRECTIONS)
        return np.stack([radius * np.cos(turn), radius * np.sin(turn), steps], axis=1)
    raise ValueError(f"distances are averaged in one, two or three dimensions, not in {dimension}: drop axes")


def places(axes) -> np.ndarray:
    """All points with one coordinate from each axis, shape (n, d); the last axis runs fastest."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


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


# Integrals over a window: the Gauss-Legendre rule, and a rule that refines itself.


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
    products = reduce(np.multiply.outer, [np.tile(weights / panels, panels)] * window.dimension).ravel()
    centre, half = (window.low + window.high) / 2, window.lengths / 2
    return Quadrature(centre + half * places([along] * window.dimension), products * half.prod())


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
