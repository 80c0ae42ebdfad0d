"""Log Gaussian Cox processes: Poisson processes whose intensity is the exponential of a Gaussian process."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from coxfield.geometry.quadrature import integrate
from coxfield.geometry.window import Window, check_points
from coxfield.kernels.sklearn_tree import values_of
from coxfield.process.densities import (
    check_in_dimension,
    check_kernel,
    check_mean,
    log_product_density,
    mean_at,
    variance,
)
from coxfield.process.fields import AT_ONCE, Grid, Intensity, embed
from coxfield.process.poisson import draw_from
from coxfield.progress import progress
from coxfield.utils.numbers import generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

    from coxfield.process.densities import Mean
    from coxfield.process.fitted import FittedCoxProcess, FittedTypes
    from coxfield.process.pattern import Pattern

COARSE = 0.5  # if neighbouring cells are less correlated than this, the grid is too coarse for the field


class CoarseGridWarning(UserWarning):
    """The cells of the grid are so large that the intensity jumps from cell to cell."""


@dataclass(frozen=True)
class LogGaussianCoxProcess:
    """A log Gaussian Cox process: f ~ GP(mu, C), and the points are a Poisson process of intensity rho = exp(f).

    Parameters
    ----------
    kernel : scikit-learn kernel
        C, stationary and continuous: `RBF`, `Matern`, `RationalQuadratic`, their sums and products.
    mean : float or function of points of shape (n, d) that returns n numbers
        mu. In the paper it is constant.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> process = LogGaussianCoxProcess(RBF(1.0), mean=0.0)
    >>> round(process.expected_count([(0, 10), (0, 10)]), 1)  # 100 exp(1/2)
    164.9
    >>> pattern = process.sample([(0, 10), (0, 10)], random_state=8)
    >>> len(pattern), round(pattern.intensity.integral, 1)
    (98, 89.5)
    """

    kernel: Kernel
    mean: Mean = 0.0

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        check_mean(self.mean)

    @classmethod
    def fit(cls, pattern: Pattern, kernel: Kernel | None = None, method: str = "contrast", **how) -> FittedCoxProcess:
        """Fit the covariance and the mean to a pattern.

        Two numbers of the covariance are fitted: its variance and a factor of its length scales. Parameters with bounds
        "fixed" stay. The mean is log(rate) - C(0)/2, or a trend.

        Parameters
        ----------
        pattern : PointPattern
        kernel : scikit-learn kernel, optional
            The form of C: stationary, with one length scale. Default: exponential, `Matern(nu=0.5)`.
        method : {"contrast", "palm", "composite"}
            Minimum contrast; Palm likelihood; second-order composite likelihood.
        statistic : {"pcf", "K"}
            For "contrast", what is compared with its theory.
        q, p : float
            The contrast is the integral of |estimate^q - theory^q|^p. Default: 1/4 and 2, as in spatstat.
        r_min, r_max : float, optional
            Distances that count. Default: up to a quarter of the shortest side, or up to where a ball has 1,000
            points; for "contrast" from a thousandth of that on.
        correction : {"isotropic", "translation", "none"}, optional
            For "contrast", the edge correction; default: isotropic for boxes in the plane, otherwise translation.
        trend : str or sequence of str
            Covariates of a log-linear intensity, fitted first by Poisson likelihood; "x" and "y" are coordinates.
        covariates : Covariates, or mapping name -> function of points

        Returns
        -------
        FittedCoxProcess

        Warns
        -----
        FitWarning
            If there is no clustering, or if a parameter is at its bound.

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import Matern
        >>> truth = LogGaussianCoxProcess(1.5 * Matern(0.06, nu=1.5), mean=5.5)
        >>> pattern = truth.sample([(0, 1), (0, 1)], random_state=1)
        >>> fit = LogGaussianCoxProcess.fit(pattern, kernel=Matern(nu=1.5))
        >>> round(fit.variance_, 1), round(fit.kernel_.k2.length_scale, 2), round(fit.mean_, 1)
        (1.7, 0.07, 5.7)
        """
        from coxfield.process.fitting import fit_process

        return fit_process(pattern, kernel, method, **how)

    @classmethod
    def fit_types(cls, pattern: Pattern, kernel: Kernel | None = None, method: str = "contrast", **how) -> FittedTypes:
        """Fit one process to each type of a marked pattern. Parameters are those of `fit`; returns a `FittedTypes`."""
        from coxfield.process.fitted import fit_types

        return fit_types(pattern, kernel, method, **how)

    @overload
    def sample(self, window, *, resolution=..., size: None = ..., most_points=..., random_state=...) -> Pattern: ...
    @overload
    def sample(self, window, *, resolution=..., size: int, most_points=..., random_state=...) -> list[Pattern]: ...
    def sample(self, window, *, resolution=None, size=None, most_points=None, random_state=None):
        """Draw the intensity and then the points.

        The Gaussian field is exact at the centres of a regular grid of cells, and constant on each cell. Given that
        intensity, the points are an exact Poisson process.

        Parameters
        ----------
        window : Window or pairs
            One (low, high) pair per axis, for one, two or three axes; or a polygon.
        resolution : int or sequence of int, optional
            Cells along the longest side, or one number per axis. Default: 1024 on the line, 256 in the plane, 48 in
            space.
        size : int, optional
            Number of independent patterns, which share the cost of the embedding.
        most_points : float, optional
            Number of points to expect, given the intensity, above which none are drawn. Default: 5e7.
        random_state : int, RandomState instance, numpy Generator or None

        Returns
        -------
        Pattern, or list of `size` patterns
            Each has the `intensity` that it was drawn from, if the window is a box.
        """
        window, rng, n = Window.of(window), generator(random_state), 1 if size is None else size
        grid = Grid.over(Window(window.sides), resolution)  # for a polygon, that of its box
        patterns = []
        with progress(f"{n} patterns", n, None, "a coarser resolution takes less time") as done:
            for rho in self.draw_intensities(grid, n, rng):
                pattern = draw_from(rho, rng, most_points)
                patterns.append(pattern if window.is_box else pattern.clipped(window))
                done(1)
        return patterns[0] if size is None else patterns

    def draw_intensities(self, grid: Grid, n: int, rng: np.random.Generator) -> Iterator[Intensity]:
        """Draw independent intensities rho = exp(f) on a grid."""
        embedding = embed(self.kernel, grid)
        self._warn_of_coarse(grid)
        level = mean_at(self.mean, grid.centres()).reshape(grid.shape)
        batch = 2 * max(1, AT_ONCE // level.size)  # fields are drawn in batches, so that few are in memory
        fields = (f for start in range(0, n, batch) for f in embedding.draw(min(batch, n - start), rng))
        return (Intensity(grid, _exp(level + f)) for f in fields)

    def intensity(self, points) -> NDArray:
        """The mean intensity exp(mu(x) + C(0)/2) at each point: the first product density, shape (n,)."""
        points = self._points(points)
        return np.exp(mean_at(self.mean, points) + variance(self.kernel, points.shape[1]) / 2)

    def expected_count(self, window) -> float:
        """Expected number of points in a window: the integral of `intensity`, numerical for a mean function."""
        window = Window.of(window)
        if callable(self.mean) and not window.is_box:
            grid = Grid.over(Window(window.sides))
            return float(self.intensity(grid.centres()) @ window.cell_volumes(grid.shape).ravel())
        if callable(self.mean):
            return integrate(self.intensity, window)
        return float(self.intensity(window.low[None])[0] * window.volume)

    def log_product_density(self, points) -> float:
        """Logarithm of the product density at points of shape (K, d) (eq. LGCPproductDensity)."""
        return log_product_density(points, self.kernel, self.mean)

    def pair_correlation(self, lags) -> NDArray:
        """Pair correlation m(x, x + h) / (m(x) m(x + h)) = exp(C(h)), which is 1 for a Poisson process.

        Parameters
        ----------
        lags : array of shape (n, d) or (n,)
            Displacements h. A flat array means displacements on the line. For a kernel with one length scale it means
            distances in any dimension.

        Returns
        -------
        array of shape (n,)
        """
        lags = self._points(lags)
        return np.exp(values_of(self.kernel, np.zeros((1, lags.shape[1])), lags)[0])

    def _points(self, points) -> NDArray:
        points = check_points(points)
        check_in_dimension(self.kernel, points.shape[1])
        return points

    def _warn_of_coarse(self, grid: Grid) -> None:
        steps = np.diag(grid.spacing)
        correlation = values_of(self.kernel, np.zeros((1, len(steps))), steps)[0] / variance(self.kernel, len(steps))
        if correlation.min() < COARSE:
            warnings.warn(
                f"neighbouring cells of the grid {grid.shape} have a correlation of only {correlation.min():.2g}, so "
                "the intensity jumps from cell to cell: raise the resolution",
                CoarseGridWarning,
                stacklevel=4,
            )


def _exp(f: NDArray) -> NDArray:
    """Exponential of a field; what overflows becomes infinite, which `Intensity` refuses."""
    with np.errstate(over="ignore"):
        return np.exp(f)
