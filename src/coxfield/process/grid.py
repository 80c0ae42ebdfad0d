"""Regular grids of cells over a window, and intensities that are constant on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.geometry.window import Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

# Cells along the longest side, by dimension; a field then takes about a second.
DEFAULT_RESOLUTION = {1: 1024, 2: 256, 3: 48}
LONGEST = 1e100  # side of a window: volumes, and lags on a torus that is much longer, are still numbers


@dataclass(frozen=True)
class Grid:
    """A window cut into equal cells; fields are evaluated at the centres of the cells.

    Examples
    --------
    >>> grid = Grid.over([(0, 4), (0, 2)], 8)
    >>> grid.shape, grid.cell_volume
    ((8, 4), 0.25)
    >>> grid.centres()[0].tolist()
    [0.25, 0.25]
    """

    window: Window
    shape: tuple[int, ...]

    @classmethod
    def over(cls, window, resolution=None) -> Grid:
        """Cut a window into cells.

        Parameters
        ----------
        window : Window or pairs
            With one, two or three dimensions.
        resolution : int or sequence of int, optional
            Cells along the longest side, with the other sides in proportion; or one number per axis.
        """
        window = Window.of(window)
        if window.dimension not in DEFAULT_RESOLUTION:
            raise ValueError(
                f"fields are drawn in one, two or three dimensions, but the window has {window.dimension}: drop axes"
            )
        if window.lengths.max() > LONGEST:
            raise ValueError(
                f"the window is {window.lengths.max():g} long, and fields are drawn on up to {LONGEST:g}: measure its "
                "sides and the length scale in a larger unit"
            )
        if resolution is None:
            resolution = DEFAULT_RESOLUTION[window.dimension]
        return cls(window, _shape(window, resolution))

    @property
    def spacing(self) -> NDArray:
        """Lengths of the sides of a cell."""
        return self.window.lengths / self.shape

    @property
    def cell_volume(self) -> float:
        """Length, area or volume of a cell."""
        return float(np.prod(self.spacing))

    @property
    def axes(self) -> list[NDArray]:
        """Coordinates of the centres along each axis."""
        along = zip(self.window.low, self.spacing, self.shape, strict=True)
        return [low + step * (np.arange(n) + 0.5) for low, step, n in along]

    def centres(self) -> NDArray:
        """Centres of all cells, shape (n_cells, d); the last axis runs fastest."""
        return np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1).reshape(-1, len(self.shape))

    def cells_of(self, points) -> NDArray:
        """Number of the cell of each point, in the order of `centres`."""
        points = self.window.check_inside(points)
        index = ((points - self.window.low) / self.spacing).astype(int)
        return np.ravel_multi_index(tuple(np.minimum(index, np.array(self.shape) - 1).T), self.shape)


def _shape(window: Window, resolution) -> tuple[int, ...]:
    counts = np.asarray(resolution)
    whole = ((counts == np.rint(counts)) & (counts >= 1)).all()
    if counts.ndim == 0:  # along the longest side; at least one cell along the others
        counts = np.maximum(np.rint(counts * window.lengths / window.lengths.max()), 1)
    if not whole or counts.shape != (window.dimension,):
        raise ValueError(
            f"resolution must be one positive whole number, or one per axis, which is {window.dimension} numbers here; "
            f"got {resolution!r}"
        )
    return tuple(int(n) for n in counts)


@dataclass(frozen=True)
class Intensity:
    """An intensity rho that is constant on the cells of a grid.

    Examples
    --------
    >>> rho = Intensity(Grid.over((0, 2), 2), np.array([1.0, 5.0]))
    >>> rho([[0.3], [1.7]]).tolist(), rho.integral
    ([1.0, 5.0], 6.0)
    """

    grid: Grid
    values: NDArray
    """One value per cell, an array of the grid's shape."""

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=float)
        if values.shape != self.grid.shape:
            raise ValueError(
                f"an intensity on {self.grid.shape} cells needs one value per cell, got values of shape {values.shape}"
            )
        wrong = ~((values >= 0) & (values < np.inf))
        if wrong.any():
            raise ValueError(
                f"an intensity must be finite and not negative anywhere, but it is {values[wrong][0]:g} in a cell: "
                "change its mean or its variance"
            )
        object.__setattr__(self, "values", values)

    def __call__(self, points) -> NDArray:
        """The intensity at points of the window, shape (n,)."""
        return self.values.ravel()[self.grid.cells_of(points)]

    @property
    def integral(self) -> float:
        """eta(A), the expected number of points given this intensity."""
        return float(self.values.sum() * self.grid.cell_volume)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the intensity: a curve on the line, a picture with a colour bar in the plane; returns the axes."""
        from coxfield.plotting.processes import plot_intensity

        return plot_intensity(self, ax)
