"""What a fit gives: the process, with everything that can be asked of it; and one process per type of points."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from coxfield.geometry.window import Window
from coxfield.process.densities import variance
from coxfield.process.fields import Grid, Intensity
from coxfield.process.fitting import FitWarning, Settings, Trend, correlation_length, fit_process
from coxfield.process.lgcp import CoarseGridWarning, LogGaussianCoxProcess
from coxfield.progress import progress
from coxfield.utils.numbers import generator, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

    from coxfield.estimators.supervised import LGCPClassifier
    from coxfield.process.densities import Mean
    from coxfield.process.goodness import Envelope, Residuals
    from coxfield.process.pattern import PointPattern
    from coxfield.process.posterior import Posterior

CELLS_PER_LENGTH = 5  # of a simulation: the correlation of neighbouring cells is then above 0.8
RESOLUTIONS = {1: (256, 4096), 2: (64, 512), 3: (16, 64)}  # fewest and most cells along the longest side


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
        return Grid.over(Window(window.sides), resolution)

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
        s = self.settings
        how = {name: getattr(s, name) for name in ("statistic", "q", "p", "r_min", "r_max", "correction", "covariates")}
        return fit_process(pattern, s.kernel, s.method, trend=s.trend, **how)

    def bootstrap(self, n: int = 99, *, random_state=None) -> Bootstrap:
        """Draw n patterns of the fitted process and fit each: how far the estimates are from what was put in.

        Returns
        -------
        Bootstrap
        """
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

    def envelope(self, statistic="pcf", n: int = 199, *, level: float = 0.95, r=None, random_state=None) -> Envelope:
        """Compare a summary of the pattern with those of n patterns of the fitted process; see `envelope`."""
        from coxfield.process.goodness import envelope

        return envelope(self, statistic, n, level=level, r=r, random_state=random_state)

    def residuals(self, bandwidth: float | None = None, grid: Grid | None = None) -> Residuals:
        """Smoothed counts minus what the fitted intensity expects, on a grid; see `residuals`."""
        from coxfield.process.goodness import residuals

        return residuals(self, bandwidth, grid)

    def posterior(self, grid: Grid | None = None, **how) -> Posterior:
        """The latent intensity given the pattern; see `latent_posterior`."""
        from coxfield.process.posterior import latent_posterior

        return latent_posterior(self.process_, self.pattern, grid, **how)


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Fits of patterns that a fitted process drew."""

    names: tuple[str, ...]
    fitted: NDArray
    """The estimates from the data, shape (k,)."""
    estimates: NDArray
    """Those from simulated patterns, shape (n, k)."""

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard deviation of each estimate."""
        return dict(zip(self.names, self.estimates.std(axis=0, ddof=1).tolist(), strict=True))

    @property
    def bias(self) -> dict[str, float]:
        """Mean of each estimate, minus the value that the patterns were drawn with."""
        return dict(zip(self.names, (self.estimates.mean(axis=0) - self.fitted).tolist(), strict=True))

    def intervals(self, level: float = 0.9) -> dict[str, tuple[float, float]]:
        """Intervals for each parameter: the estimate, and normal quantiles times its standard deviation on both sides.

        Variance and length are taken as logarithms, because they are positive. For weak clustering and few points the
        intervals are too short: see `docs/patterns.md`.
        """
        half, found = norm.ppf((1 + level) / 2), {}
        for name, at, drawn in zip(self.names, self.fitted, self.estimates.T, strict=True):
            if name in ("variance", "correlation_length"):
                factor = np.exp(half * np.log(drawn).std(ddof=1))
                found[name] = (float(at / factor), float(at * factor))
            else:
                spread = half * drawn.std(ddof=1)
                found[name] = (float(at - spread), float(at + spread))
        return found


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


def fit_types(pattern: PointPattern, kernel=None, method: str = "contrast", **how) -> FittedTypes:
    """Fit one process to each type of a marked pattern; see `LogGaussianCoxProcess.fit_types`."""
    parts = pattern.types()
    if len(parts) < 2:
        raise ValueError(f"the points have one type only, {next(iter(parts), None)!r}: use fit for a single type")
    return FittedTypes(pattern, {mark: fit_process(part, kernel, method, **how) for mark, part in parts.items()})
