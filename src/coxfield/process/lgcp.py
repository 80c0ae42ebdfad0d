"""Log Gaussian Cox processes: Poisson processes whose intensity is the exponential of a Gaussian process.

`LogGaussianCoxProcess` is the process, `FittedCoxProcess` one that was fitted to a pattern with everything that can be
asked of it, and `FittedTypes` one process per type of points.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, overload

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process.kernels import Kernel, Matern

from coxfield.geometry.window import Window, check_points, integrate
from coxfield.process.densities import (
    check_in_dimension,
    check_kernel,
    check_mean,
    covariances,
    log_product_density,
    mean_at,
    variance,
)
from coxfield.process.fields import AT_ONCE, Grid, Intensity, embed
from coxfield.process.fitting import (
    Bootstrap,
    FitWarning,
    Settings,
    correlation_length,
    estimate,
    invert_tests,
    of_difference,
)
from coxfield.process.goodness import Envelope, Residuals, envelope, residuals
from coxfield.process.pattern import draw_from
from coxfield.process.posterior import Posterior, latent_posterior
from coxfield.progress import progress
from coxfield.utils.numbers import generator, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.estimators.supervised import LGCPClassifier
    from coxfield.process.densities import Mean
    from coxfield.process.pattern import Pattern, PointPattern
    from coxfield.process.trend import Trend

COARSE = 0.5  # if neighbouring cells are less correlated than this, the grid is too coarse for the field
CELLS_PER_LENGTH = 5  # of a simulation: the correlation of neighbouring cells is then above 0.8
CELLS_PER_SPACING = 10  # at most, of a simulation for a test; spacing is that of points on a lattice
RESOLUTIONS = {1: (256, 4096), 2: (64, 512), 3: (16, 64)}  # fewest and most cells along the longest side


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
            The contrast is the integral of ``abs(estimate^q - theory^q)^p``. Default: 1/4 and 2, as in spatstat.
        r_min, r_max : float, optional
            Distances that count. Default: up to a quarter of the shortest side, or up to where a ball has 1,000
            points; half of that for "palm", whose sum over pairs is noisy beyond; for "contrast" from a thousandth on.
        correction : {"isotropic", "translation", "none"}, optional
            For "contrast", the edge correction; default: isotropic for boxes in the plane, otherwise translation.
        trend : str or sequence of str
            Covariates of a log-linear intensity, fitted first by Poisson likelihood; "x" and "y" are coordinates.
        covariates : Covariates, or mapping name -> function of points

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
        trend = how.pop("trend", ())
        names = (trend,) if isinstance(trend, str) else tuple(trend)
        settings = Settings(Matern(1.0, nu=0.5) if kernel is None else kernel, method, trend=names, **how)
        return FittedCoxProcess.of(pattern, settings)

    @classmethod
    def fit_types(cls, pattern: Pattern, kernel: Kernel | None = None, method: str = "contrast", **how) -> FittedTypes:
        """Fit one process to each type of a marked pattern. Parameters are those of `fit`; returns a `FittedTypes`."""
        parts = pattern.types()
        if len(parts) < 2:
            raise ValueError(f"the points have one type only, {next(iter(parts), None)!r}: use fit for a single type")
        return FittedTypes(pattern, {mark: cls.fit(part, kernel, method, **how) for mark, part in parts.items()})

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
        grid = Grid.over(window.box, resolution)  # for a polygon, that of its box
        patterns = []
        with progress(f"{n} patterns", n, None, "a coarser resolution takes less time") as done:
            for rho in self.draw_intensities(grid, n, rng):
                patterns.append(draw_from(rho, rng, most_points, window))
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
            grid = Grid.over(window.box)
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
        return np.exp(covariances(self.kernel, self._points(lags)))

    def _points(self, points) -> NDArray:
        points = check_points(points)
        check_in_dimension(self.kernel, points.shape[1])
        return points

    def _warn_of_coarse(self, grid: Grid) -> None:
        correlation = covariances(self.kernel, np.diag(grid.spacing)) / variance(self.kernel, len(grid.shape))
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


@dataclass(frozen=True, eq=False)
class FittedCoxProcess:
    """A log Gaussian Cox process that was fitted to a pattern. Results end with an underscore, as in scikit-learn."""

    pattern: PointPattern
    kernel_: Kernel
    """C, the kernel that was given with the fitted variance and length scale."""
    mean_: Mean
    """mu, a number; with a trend, a function of points."""
    settings: Settings
    """How it was fitted."""
    trend_: Trend | None
    length_factor_: float
    """The factor by which the length scales of the given kernel were multiplied."""
    reach_: float
    """The longest distance that counted."""

    @classmethod
    def of(cls, pattern: PointPattern, settings: Settings) -> FittedCoxProcess:
        """Fit a pattern."""
        trend, v, factor = estimate(pattern, settings)
        process = settings.process(pattern, trend, v, factor)
        return cls(pattern, *process, settings, trend, factor, settings.reach(pattern))

    @property
    def process_(self) -> LogGaussianCoxProcess:
        """The fitted process, which can be drawn from in any window."""
        return LogGaussianCoxProcess(self.kernel_, self.mean_)

    @property
    def variance_(self) -> float:
        """C(0), the variance of the log intensity."""
        return variance(self.kernel_, self.pattern.window.dimension)

    @property
    def correlation_length_(self) -> float:
        """The distance at which the correlation of the log intensity has fallen to 1/e."""
        return correlation_length(self.kernel_)

    @property
    def estimates_(self) -> dict[str, float]:
        """The fitted numbers by name: variance, correlation length, and the mean or the coefficients of the trend."""
        found = {"variance": self.variance_, "correlation_length": self.correlation_length_}
        if self.trend_ is None:
            return found | {"mean": float(self.mean_)}  # type: ignore[arg-type]
        names = ("intercept", *self.trend_.names)
        return found | dict(zip(names, self.trend_.coefficients.tolist(), strict=True))

    def intensity(self, grid: Grid | None = None) -> Intensity:
        """The fitted mean intensity exp(mu + C(0)/2) on a grid; `posterior` says where points really were."""
        grid = self.grid() if grid is None else grid
        return Intensity(grid, self.process_.intensity(grid.centres()).reshape(grid.shape))

    def grid(self, resolution: int | None = None) -> Grid:
        """A grid over the window; by default, so fine that the field hardly changes from cell to cell."""
        window = self.pattern.window
        if resolution is None:
            low, high = RESOLUTIONS[window.dimension]
            wanted = CELLS_PER_LENGTH * window.lengths.max() / self.correlation_length_
            resolution = int(np.clip(np.ceil(wanted), low, high))
        return Grid.over(window.box, resolution)

    def simulate(self, size: int | None = None, *, resolution=None, random_state=None):
        """Draw patterns of the fitted process in the window of the pattern; one, or a list of `size`."""
        grid = self.grid(resolution)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoarseGridWarning)  # the finest grid may still be coarse for a short length
            return self.process_.sample(
                self.pattern.window, resolution=grid.shape, size=size, random_state=random_state
            )

    def refit(self, pattern: PointPattern) -> FittedCoxProcess:
        """Fit another pattern in the same way."""
        return FittedCoxProcess.of(pattern, self.settings)

    def bootstrap(self, n: int = 99, *, random_state=None) -> Bootstrap:
        """Draw n patterns of the fitted process and fit each: how far the estimates are from what was put in."""
        n, rng = whole_number("n", n, least=2), generator(random_state)
        estimates: list[list[float]] = []
        with progress(f"{n} fits", n, None, "fewer patterns take less time") as done:
            while len(estimates) < n:
                for pattern in self.simulate(size=n - len(estimates), random_state=rng):
                    if len(pattern) < 3:  # nothing to fit
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", FitWarning)
                        try:
                            estimates.append(list(self.refit(pattern).estimates_.values()))
                        except ValueError:  # no two points are close
                            continue
                    done(1)
        return Bootstrap(tuple(self.estimates_), np.array(list(self.estimates_.values())), np.array(estimates))

    def intervals(self, level: float = 0.9, n: int = 39, *, random_state=None) -> dict[str, tuple[float, float]]:
        """Intervals of the parameters by inverted tests: slower than `bootstrap`, and wider with few points.

        Values of variance and length that n simulated patterns each do not contradict are in the intervals. If the
        pattern does not bound a parameter, its interval ends at 0 or infinity. The interval of the mean,
        log(rate) - C(0)/2, joins those of both terms. Coefficients of a trend have the intervals of `bootstrap`.

        Parameters
        ----------
        level : float
            Probability with which an interval holds the truth.
        n : int
            Patterns for each of up to 30 values.
        random_state : int, RandomState instance, numpy Generator or None

        Returns
        -------
        dict name -> (low, high)
        """
        n, rng = whole_number("n", n, least=19), generator(random_state)
        # Pairs much closer than the mean spacing are few, so that finer cells would change little.
        spacing = self.pattern.rate ** (-1 / self.pattern.window.dimension)
        finest = int(np.ceil(CELLS_PER_SPACING * self.pattern.window.lengths.max() / spacing))

        def draw(v: float, factor: float, size: int) -> list[PointPattern]:
            process = self._changed(v, factor)
            return process.simulate(size, resolution=min(max(process.grid().shape), finest), random_state=rng)

        found, error = invert_tests(self.pattern, self.settings, draw, level, n)
        if self.trend_ is not None:
            more = self.bootstrap(n, random_state=rng).intervals(level)
            return {name: found.get(name, more[name]) for name in self.estimates_}
        v = self.variance_
        low, high = found.setdefault("variance", (v, v))
        found.setdefault("correlation_length", (self.correlation_length_, self.correlation_length_))
        rate, half = np.log(self.pattern.rate), norm.ppf((1 + level) / 2) * error
        found["mean"] = of_difference((rate, rate - half, rate + half), (v / 2, min(low, v) / 2, max(high, v) / 2))
        return found

    def _changed(self, v: float, factor: float) -> FittedCoxProcess:
        """The same rate or trend with another variance and another factor of the length scales."""
        kernel, mean = self.settings.process(self.pattern, self.trend_, v, factor)
        return replace(self, kernel_=kernel, mean_=mean)

    def envelope(self, statistic="pcf", n: int = 199, *, level: float = 0.95, r=None, random_state=None) -> Envelope:
        """Compare a summary of the pattern with those of n patterns of the fitted process; see `envelope`."""
        return envelope(self, statistic, n, level=level, r=r, random_state=random_state)

    def residuals(self, bandwidth: float | None = None, grid: Grid | None = None) -> Residuals:
        """Smoothed counts minus what the fitted intensity expects, on a grid; see `residuals`."""
        return residuals(self, bandwidth, grid)

    def posterior(self, grid: Grid | None = None, **how) -> Posterior:
        """The latent intensity given the pattern; see `latent_posterior`."""
        return latent_posterior(self.process_, self.pattern, grid, **how)


@dataclass(frozen=True, eq=False)
class FittedTypes:
    """One fitted process per type of points: the generative model of the paper, with its classifier."""

    pattern: PointPattern
    fits: dict[object, FittedCoxProcess]

    def __getitem__(self, mark) -> FittedCoxProcess:
        return self.fits[mark]

    def classifier(self, pattern: PointPattern | None = None) -> LGCPClassifier:
        """The classifier of the paper, with one kernel and one mean per type, fitted to points and their types.

        It answers the question: if one more point is seen at x, of which type is it? It is the limit of vanishing
        thinning (eq. conditionalModel): the points that it knows are a small share of all points, and empty places say
        nothing. Given all points of a dense pattern it is far too sure, and the type with most points wins everywhere;
        `posterior_probabilities` is the map for that case.

        Parameters
        ----------
        pattern : PointPattern, optional
            Labelled points to learn from, such as ``thin(pattern, 0.05)``. Default: all points that were fitted.
        """
        pattern = self.pattern if pattern is None else pattern
        from coxfield.estimators.supervised import LGCPClassifier

        trended = [mark for mark, fit in self.fits.items() if fit.trend_ is not None]
        if trended:
            raise ValueError(f"a classifier has one mean per type, but {trended[0]!r} has a trend: fit without one")
        clf = LGCPClassifier(
            {mark: fit.kernel_ for mark, fit in self.fits.items()},
            mean={mark: float(fit.mean_) for mark, fit in self.fits.items()},  # type: ignore[arg-type]
            selection=None,
        )
        return clf.fit(pattern.points, pattern.marks)

    def posterior_probabilities(self, grid: Grid | None = None, **how) -> tuple[Grid, dict[object, NDArray]]:
        """The share of each type in the posterior mean intensity on a grid: a map that knows of empty places."""
        first = next(iter(self.fits.values()))
        grid = first.grid(64) if grid is None else grid
        means = {mark: fit.posterior(grid, **how).mean for mark, fit in self.fits.items()}
        total = np.sum(list(means.values()), axis=0)
        return grid, {mark: mean / total for mark, mean in means.items()}

    def sample_labels(self, points, n: int = 100, *, random_state=None) -> NDArray:
        """Draw joint labels of new points given the labelled ones, shape (n, len(points)): the label field.

        Labels are drawn by Swendsen-Wang moves in four chains.
        """
        from coxfield.field import LabelField, SwendsenWang, sample

        points = np.asarray(points, dtype=float)
        marks = list(self.fits)
        known = np.array([marks.index(mark) for mark in self.pattern.marks.tolist()])  # type: ignore[union-attr]
        field = LabelField.from_points(
            np.concatenate([self.pattern.points, points]),
            [fit.kernel_ for fit in self.fits.values()],
            np.concatenate([known, np.full(len(points), -1)]),
            mean=[float(fit.mean_) for fit in self.fits.values()],  # type: ignore[arg-type]
        )
        drawn = sample(SwendsenWang(field), -(-n // 4), random_state=random_state)
        codes = np.asarray(drawn.labels).reshape(-1, len(points))[:n]
        return np.array(marks)[codes]
