"""Grids of cells over a window, intensities on them, and Gaussian fields that are exact by circulant embedding.

The covariance matrix of a stationary field on a grid is a block of a larger circulant matrix: the covariance matrix of
a torus that is at least twice as long along each axis. A circulant matrix is diagonal in Fourier space. If none of its
eigenvalues is negative, drawing a field costs one fast Fourier transform. A Cholesky factor would cost the cube of the
number of cells (Wood and Chan, 1994; Dietrich and Newsam, 1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import fft
from scipy.special import erfc

from coxfield.geometry.window import Window, places
from coxfield.process.densities import check_in_dimension, check_kernel, covariances, variance
from coxfield.progress import progress
from coxfield.utils.numbers import generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

# Cells along the longest side, by dimension; a field then takes about a second.
DEFAULT_RESOLUTION = {1: 1024, 2: 256, 3: 48}
LONGEST = 1e100  # side of a window: volumes, and lags on a torus that is much longer, are still numbers
TOLERANCE = 1e-9  # largest error of a covariance, relative to C(0), from setting negative eigenvalues to 0
LARGEST = 2**24  # cells of a torus; the transform and the noise then take 1.2 GB
STEEP = 4.5  # steepness of the taper, which jumps by erfc(4.5) / 2 = 1e-10 at its ends
AT_ONCE = 2**20  # cells per transform: enough for speed, little memory


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
        return cls(window, shape_over(window, resolution))

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
        return places(self.axes)

    def cells_of(self, points) -> NDArray:
        """Number of the cell of each point, in the order of `centres`."""
        return self.cells_in_box(self.window.check_inside(points))

    def counts(self, points: NDArray) -> NDArray:
        """Number of points of the box in each cell, an array of the grid's shape."""
        return np.bincount(self.cells_in_box(points), minlength=int(np.prod(self.shape))).reshape(self.shape)

    def cells_in_box(self, points: NDArray) -> NDArray:
        """Number of the cell of each point of the box, which is not checked."""
        index = ((points - self.window.low) / self.spacing).astype(int)
        return np.ravel_multi_index(tuple(np.minimum(index, np.array(self.shape) - 1).T), self.shape)


def shape_over(window: Window, resolution) -> tuple[int, ...]:
    """Number of cells along each axis; see `Grid.over`."""
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


@dataclass(frozen=True)
class Embedding:
    """A torus on which the field of a grid is exact. It can be drawn from many times.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> embedding = embed(RBF(0.2), Grid.over([(0, 1), (0, 1)], 32))
    >>> embedding.error < 1e-9
    True
    >>> embedding.draw(3, np.random.default_rng(0)).shape
    (3, 32, 32)
    """

    grid: Grid
    eigenvalues: NDArray
    """Eigenvalues of the circulant covariance matrix, an array of the torus's shape; none is negative."""
    error: float
    """Bound on the error of the covariance at any lag, relative to C(0); it comes from setting eigenvalues to 0."""

    def draw(self, n_fields: int, rng: np.random.Generator) -> NDArray:
        """Draw independent fields of mean zero at the centres of the cells, shape (n_fields, *grid.shape)."""
        fields = np.empty((n_fields, *self.grid.shape))
        amplitude = np.sqrt(self.eigenvalues / self.eigenvalues.size)
        inside = (slice(None), *(slice(n) for n in self.grid.shape))
        step = 2 * max(1, AT_ONCE // amplitude.size)
        with progress(f"{n_fields} fields", n_fields, None, "a coarser resolution takes less time") as done:
            for start in range(0, n_fields, step):
                pairs = (min(step, n_fields - start) + 1) // 2
                noise = rng.standard_normal((2, pairs, *amplitude.shape))
                torus = fft.fftn((noise[0] + 1j * noise[1]) * amplitude, axes=range(1, amplitude.ndim + 1))[inside]
                # Real and imaginary part are independent fields: one transform of complex noise gives two.
                part = np.concatenate([torus.real, torus.imag])
                fields[start : start + step] = part[: n_fields - start]
                done(min(step, n_fields - start))
        return fields


def sample_gaussian_field(
    kernel: Kernel, window, *, resolution=None, size: int | None = None, random_state=None
) -> NDArray:
    """Draw a stationary Gaussian field of mean zero at the centres of a regular grid of cells.

    The covariance of the values differs from the kernel by at most 1e-9 C(0) at every lag.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Stationary.
    window : Window or pairs
        One (low, high) pair per axis, for one, two or three axes.
    resolution : int or sequence of int, optional
        Cells along the longest side, or one number per axis. Default: 1024 on the line, 256 in the plane, 48 in space.
    size : int, optional
        Number of independent fields, which share the cost of the embedding.
    random_state : int, RandomState instance, numpy Generator or None

    Returns
    -------
    array of the grid's shape, with `size` in front if it is given

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> fields = sample_gaussian_field(2.0 * Matern(0.3, nu=1.5), (0, 4), resolution=100, size=4000, random_state=0)
    >>> fields.shape, round(float(fields.var()), 1)
    ((4000, 100), 2.0)
    """
    check_kernel(kernel)
    embedding = embed(kernel, Grid.over(window, resolution))
    fields = embedding.draw(1 if size is None else size, generator(random_state))
    return fields[0] if size is None else fields


def embed(kernel: Kernel, grid: Grid) -> Embedding:
    """Find a torus whose circulant covariance is non-negative definite, or say why there is none.

    The smallest torus is tried first. Then its sides grow along the axes where the covariance has not died out half-way
    round. Lags that are longer than the grid may have any covariance. So on each torus C is tried as it is, which suits
    kernels that die out fast, and then led smoothly to zero, which suits kernels with long tails.
    """
    check_in_dimension(kernel, len(grid.shape))
    # With 2n - 1 cells no lag of the grid is half-way round, where +h and -h meet.
    torus = tuple(fft.next_fast_len(2 * n - 1) for n in grid.shape)
    last: tuple[int, ...] = ()
    while torus != last and np.prod(torus) <= LARGEST:
        covariance = covariance_on(kernel, grid, torus)
        for attempt in (lambda c: c, partial(_tapered, grid=grid)):
            # The real part: half-way round, the torus joins two lags whose C may differ, so the transform is complex.
            eigenvalues = fft.fftn(attempt(covariance)).real
            # Setting negative eigenvalues to 0 changes the covariance at any lag by at most their mean.
            error = float(np.maximum(-eigenvalues, 0).sum() / (eigenvalues.size * covariance.flat[0]))
            if error <= TOLERANCE:
                return Embedding(grid, np.maximum(eigenvalues, 0), error)
        last, torus = torus, _grown(kernel, grid, torus)
    raise ValueError(_why_not(kernel, grid, last or torus))


def _tapered(covariance: NDArray, grid: Grid) -> NDArray:
    """The covariance on a torus, led to zero between the longest lag of the grid and half-way round.

    The taper is an error function along each axis. Its Fourier transform dies out as fast as a Gaussian, so that it
    hardly changes the eigenvalues.
    """
    for axis, (n, around) in enumerate(zip(grid.shape, covariance.shape, strict=True)):
        lag = np.minimum(np.arange(around), around - np.arange(around))
        first, last = n - 1, around / 2
        taper = erfc(STEEP * (2 * lag - first - last) / (last - first)) / 2
        taper[lag <= first] = 1
        covariance = covariance * np.expand_dims(taper, [k for k in range(covariance.ndim) if k != axis])
    return covariance


def covariance_on(kernel: Kernel, grid: Grid, torus: Sequence[int]) -> NDArray:
    """C(h) for all lags of the torus, each measured the short way round; in blocks, because tori are large."""
    steps = [step * n * fft.fftfreq(n) for step, n in zip(grid.spacing, torus, strict=True)]
    covariance = np.empty(torus)
    rows = max(1, AT_ONCE // (covariance.size // torus[0]))
    for start in range(0, torus[0], rows):
        block = covariances(kernel, places([steps[0][start : start + rows], *steps[1:]]))
        covariance[start : start + rows] = block.reshape(-1, *torus[1:])
    return covariance


def _half_way(kernel: Kernel, grid: Grid, torus: tuple[int, ...]) -> NDArray:
    """|C| half-way round the torus, along each axis."""
    return np.abs(covariances(kernel, np.diag(grid.spacing * np.array(torus) / 2)))


def _grown(kernel: Kernel, grid: Grid, torus: tuple[int, ...]) -> tuple[int, ...]:
    """A torus of up to twice as many cells, longer along the axes where |C| half-way round is largest."""
    left = _half_way(kernel, grid, torus)
    felt = left >= left.max() / 2
    room = 0.9 * LARGEST / np.prod(torus)  # because a fast length may be up to a tenth longer
    factor = min(2.0, room) ** (1 / felt.sum())
    longer = [fft.next_fast_len(int(factor * n) + 1) for n in torus]
    return tuple(np.where(felt & (factor > 1), longer, torus).tolist())


def _why_not(kernel: Kernel, grid: Grid, torus: tuple[int, ...]) -> str:
    """A message: why no torus up to the last one tried gives a covariance, and what to do."""
    left = _half_way(kernel, grid, torus).max() / variance(kernel, len(torus))
    what = f"{kernel!r} on {' x '.join(map(str, grid.shape))} cells has no valid circulant embedding"
    if left > TOLERANCE**2:
        return (
            f"{what}: on the largest torus tried, of {' x '.join(map(str, torus))} cells, {left:.1g} of the variance "
            "is left half-way round; choose a coarser resolution or a shorter length scale, and leave out kernels that "
            "do not go to 0"
        )
    return (
        f"{what}: it goes to 0, but some of its Fourier coefficients are negative, so it is not a covariance function "
        f"for points of {len(torus)} coordinates; use RBF, Matern or RationalQuadratic"
    )
