"""Whether a fitted process describes a pattern: global envelopes with a p-value, residual maps, third-order statistics.

The pair correlation cannot tell processes apart that were fitted to it. J and the third-order statistic can: a log
Gaussian Cox process and a permanental process with the same pair correlation differ in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import fft
from scipy.optimize import minimize_scalar
from scipy.spatial import cKDTree
from scipy.stats import rankdata

from coxfield.kernels.sklearn_tree import rescale
from coxfield.process.densities import check_in_dimension, check_kernel, covariances, variance
from coxfield.process.fields import Grid, Intensity, covariance_on, embed
from coxfield.process.fitting import correlation_length
from coxfield.process.pattern import draw_from
from coxfield.process.summaries import (
    STEPS,
    Summary,
    ball_volume,
    j_function,
    k_function,
    l_function,
    longest,
    pair_correlation,
)
from coxfield.progress import progress
from coxfield.utils.numbers import generator, positive_number, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

    from coxfield.process.pattern import PointPattern
    from coxfield.process.trend import Trend

SUMMARIES: dict[str, Callable[..., Summary]] = {
    "pcf": pair_correlation,
    "K": k_function,
    "L": l_function,
    "J": j_function,
}
FEWEST = 0.8  # share of simulations in which a distance must have a value, as J has none far out
FIELDS = (1, 12)  # of a permanental process: squares that are added up


class Fitted(Protocol):
    """A process that was fitted to a pattern, and that draws others in its window."""

    @property
    def pattern(self) -> PointPattern:
        """What it was fitted to."""

    def simulate(self, size: int, *, random_state=None) -> list[PointPattern]:
        """Draw patterns."""


class FittedIntensity(Fitted, Protocol):
    """What the residuals of a fitted process depend on."""

    @property
    def kernel_(self) -> Kernel:
        """C."""

    @property
    def trend_(self) -> Trend | None:
        """The log intensity, if it is not the same everywhere."""


@dataclass(frozen=True, eq=False)
class Envelope:
    """A summary of a pattern beside those of simulated patterns, all distances judged at once."""

    name: str
    r: NDArray
    observed: NDArray
    low: NDArray
    """Lower bound of the global envelope: the least value among the simulations that are not extreme."""
    high: NDArray
    central: NDArray
    """Mean of the simulations."""
    p_value: float
    """Of the extreme rank length test: the share of curves that are at least as extreme as the observed one."""
    p_interval: tuple[float, float]
    """Of the rank test, whose ties leave an interval."""
    level: float
    n: int
    unit: str = ""

    @property
    def outside(self) -> NDArray:
        """Distances at which the observed curve leaves the envelope."""
        return self.r[(self.observed < self.low) | (self.observed > self.high)]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve, the envelope and the p-value; returns the axes."""
        from coxfield.plotting.processes import plot_envelope

        return plot_envelope(self, ax)


def envelope(
    fit: Fitted,
    statistic: str | Callable[[PointPattern], Summary] = "pcf",
    n: int = 199,
    *,
    level: float = 0.95,
    r=None,
    random_state=None,
) -> Envelope:
    """Global envelope test of a fitted process (Myllymäki, Mrkvička, Grabarnik, Seijo and Hahn, 2017).

    Curves are ordered by extreme rank length: by their most extreme rank over all distances, ties by how often it
    occurs, and so on. The envelope holds a curve of the model entirely with probability `level`. Parameters that were
    fitted to the same pattern make the test conservative.

    Parameters
    ----------
    fit : FittedCoxProcess or FittedPermanental
    statistic : {"pcf", "K", "L", "J"} or function of a pattern that returns a Summary
    n : int
        Simulated patterns.
    level : float
    r : array, optional
        Distances; default: those of the summary of the pattern, 64 of them.
    random_state : int, RandomState instance, numpy Generator or None
    """
    if not callable(statistic) and statistic not in SUMMARIES:
        raise ValueError(f"statistic must be one of {', '.join(SUMMARIES)}, or a function; got {statistic!r}")
    n, rng = whole_number("n", n, least=19), generator(random_state)
    summary = statistic if callable(statistic) else _summary(fit, statistic, r)
    first = summary(fit.pattern)
    curves = [first.values]
    with progress(f"{n} simulated patterns", n, None, "fewer patterns take less time") as done:
        while len(curves) <= n:
            for drawn in fit.simulate(size=n + 1 - len(curves), random_state=rng):
                if len(drawn) > 2:
                    curves.append(summary(drawn).values)
                done(1)
    table = np.array(curves)
    kept = (np.isfinite(table).mean(axis=0) >= FEWEST) & np.isfinite(table[0])
    table = table[:, kept]
    table = np.where(np.isfinite(table), table, np.nanmean(np.where(np.isfinite(table), table, np.nan), axis=0))
    low, high, p_value, p_interval = global_envelope(table, level)
    central = table[1:].mean(axis=0)
    return Envelope(first.name, first.r[kept], table[0], low, high, central, p_value, p_interval, level, n, first.unit)


def _summary(fit: Fitted, statistic: str, r) -> Callable[[PointPattern], Summary]:
    """The summary of this name at the same distances for every pattern, with the trend of the fit."""
    pattern, function = fit.pattern, SUMMARIES[statistic]
    if statistic == "J":  # has neither an inhomogeneous version nor a choice of edge corrections
        return partial(j_function, r=j_function(pattern, r).r)
    r = np.linspace(0, longest(pattern.window, pattern.rate), 65)[1:] if r is None else r
    how: dict[str, Any] = {"r": r, "correction": "translation"}
    trend = getattr(fit, "trend_", None)
    if trend is not None:
        how["intensity"] = lambda points: np.exp(trend(points))
    return partial(function, **how)


def global_envelope(curves: NDArray, level: float) -> tuple[NDArray, NDArray, float, tuple[float, float]]:
    """Envelope and p-values of the first of some curves among all of them, by extreme rank length.

    Returns
    -------
    low, high, p_value, (liberal, conservative)

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(100, 20))
    >>> table[0] += 9
    >>> low, high, p, (least, most) = global_envelope(table, 0.95)
    >>> p, bool((table[0] > high).all())
    (0.01, True)
    """
    up = rankdata(curves, axis=0)
    ranks = np.minimum(up, len(curves) + 1 - up)
    ordered = np.sort(ranks, axis=1)
    # Extreme rank length: compare the smallest ranks, then the next smallest, and so on.
    order = np.lexsort(ordered.T[::-1])
    place = np.empty(len(curves))
    place[order] = np.arange(1, len(curves) + 1)
    _, same, counts = np.unique(ordered, axis=0, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)[same.ravel()]  # curves with the same ranks share their place
    p_value = float(last[0] / len(curves))
    extreme = ordered[:, 0]
    interval = float((extreme < extreme[0]).mean()), float((extreme <= extreme[0]).mean())
    kept = last > (1 - level) * len(curves) * (1 + 1e-12)  # so that 1 - 0.9 is a tenth
    return curves[kept].min(axis=0), curves[kept].max(axis=0), p_value, interval


@dataclass(frozen=True, eq=False)
class Residuals:
    """Smoothed residuals on a grid: points per unit volume, minus what the fitted intensity expects."""

    grid: Grid
    values: NDArray
    standard_errors: NDArray
    """Standard deviation of each value under the fitted process, by its pair correlation and Poisson noise."""
    bandwidth: float

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the residuals in units of their standard errors; returns the axes."""
        from coxfield.plotting.processes import plot_map

        scaled = self.values / self.standard_errors
        return plot_map(self.grid, scaled, "residual / standard error", ax, diverging=True)


def residuals(fit: FittedIntensity, bandwidth: float | None = None, grid: Grid | None = None) -> Residuals:
    """Residuals of the fitted mean intensity, smoothed by a Gaussian kernel with this standard deviation.

    Values near the edge are divided by the part of the kernel that lies in the window. Outside of the window they are
    NaN.

    Parameters
    ----------
    fit : FittedCoxProcess
    bandwidth : float, optional
        Default: a tenth of the shortest side.
    grid : Grid, optional
    """
    pattern, window = fit.pattern, fit.pattern.window
    b = float(window.lengths.min()) / 10 if bandwidth is None else positive_number("bandwidth", bandwidth)
    grid = Grid.over(window.box, 64 if window.dimension == 2 else None) if grid is None else grid
    volumes = window.cell_volumes(grid.shape)
    counts = grid.counts(pattern.points)
    rate = np.exp(fit.trend_(grid.centres())).reshape(grid.shape) if fit.trend_ is not None else pattern.rate
    mass = _smooth(volumes, grid, b)
    inside = volumes > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(inside, _smooth(counts - rate * volumes, grid, b) / mass, np.nan)
        variances = _smoothed_variance(fit, grid, rate, volumes, b) / mass**2
    return Residuals(grid, values, np.where(inside, np.sqrt(variances), np.nan), b)


def _kernel_on(grid: Grid, b: float, padded: list[int]) -> NDArray:
    """The Gaussian kernel on a torus, with integral 1."""
    kernel = np.ones(())
    for step, n in zip(grid.spacing, padded, strict=True):
        along = np.exp(-((step * n * fft.fftfreq(n) / b) ** 2) / 2)
        kernel = np.multiply.outer(kernel, along / along.sum() / step)
    return kernel


def _smooth(values: NDArray, grid: Grid, b: float, power: int = 1) -> NDArray:
    """Convolution with a power of the Gaussian kernel."""
    padded = [fft.next_fast_len(2 * n) for n in grid.shape]
    around = fft.irfftn(fft.rfftn(values, padded) * fft.rfftn(_kernel_on(grid, b, padded) ** power), padded)
    return around[tuple(slice(n) for n in grid.shape)]


def _smoothed_variance(fit: FittedIntensity, grid: Grid, rate: NDArray | float, volumes: NDArray, b: float) -> NDArray:
    """Variance of smoothed counts at every cell: Poisson noise, and covariances lambda lambda (g - 1) in the window.

    The product of two Gaussian kernels is one of the distance of u and v, times a narrower one of their midpoint. Of
    the latter it is asked whether it lies in the window, instead of u and v: errors near the edge are rather too large.
    """
    noise = _smooth(rate * volumes, grid, b, power=2)
    padded = [fft.next_fast_len(2 * n) for n in grid.shape]
    extra = np.expm1(covariance_on(fit.kernel_, grid, padded))
    spectrum = np.abs(fft.fftn(_kernel_on(grid, b, padded))) ** 2 * fft.fftn(extra).real
    clustered = float(spectrum.mean()) * grid.cell_volume**2
    return noise + clustered * _smooth(rate**2 * volumes, grid, b / np.sqrt(2))


def third_order(pattern: PointPattern, correlation: Callable[[NDArray], NDArray], r=None) -> Summary:
    r"""The third-order statistic z(t), which is 1 for a log Gaussian Cox process with this pair correlation.

    .. math:: \hat z(t) = \frac{1}{n_t (\lambda |b(t)|)^2} \sum_{i \in W_t} \sum_{j \ne k}
              \frac{1}{g(x_i - x_j) \, g(x_i - x_k) \, g(x_j - x_k)},

    over triples with j and k within t of i, where i lies farther than t from the boundary (Møller, Syversveen and
    Waagepetersen, 1998). A log Gaussian Cox process has the third product density lambda^3 g g g. As lambda is
    estimated from the same points, z of a clustered pattern is below 1 on average: judge it by an `envelope`.
    """
    window, n = pattern.window, len(pattern)
    r = np.linspace(0, longest(window, pattern.rate) / 2, 13)[1:] if r is None else np.asarray(r, dtype=float)
    tree, border = cKDTree(pattern.points), window.boundary_distance(pattern.points)
    sums, inner = np.zeros(len(r)), np.array([(border >= t).sum() for t in r])
    for i in np.flatnonzero(border >= r[0]):
        near = np.array([j for j in tree.query_ball_point(pattern.points[i], r[-1]) if j != i], dtype=int)
        if len(near) < 2:
            continue
        d = np.linalg.norm(pattern.points[near] - pattern.points[i], axis=1)
        between = np.linalg.norm(pattern.points[near, None] - pattern.points[near], axis=2)
        g = correlation(d)
        weights = 1 / (g[:, None] * g * correlation(between.ravel()).reshape(between.shape))
        np.fill_diagonal(weights, 0)
        far = np.maximum(d[:, None], d)
        for k, t in enumerate(r):
            if border[i] >= t:
                sums[k] += weights[far <= t].sum()
    # lambda^2 without bias: n (n - 1) ordered pairs.
    expected = inner * (n * (n - 1) / window.volume**2) * ball_volume(r, window.dimension) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(inner >= 5, sums / expected, np.nan)
    return Summary("z", r, values, np.ones_like(r), None, "border", None, pattern.unit)


@dataclass(frozen=True, eq=False)
class FittedPermanental:
    """A permanental process with the rate and the pair correlation of a pattern: the rival of a Cox process.

    Its intensity is rate / m times the sum of the squares of m Gaussian fields of variance 1 and correlation c, so that
    its pair correlation is 1 + 2 c^2 / m.
    """

    pattern: PointPattern
    kernel_: Kernel
    """c, of variance 1."""
    n_fields_: int
    """m."""

    def pair_correlation(self, r) -> NDArray:
        """g(r) = 1 + 2 c(r)^2 / m."""
        return 1 + 2 / self.n_fields_ * covariances(self.kernel_, np.asarray(r)) ** 2

    def simulate(self, size: int = 1, *, resolution: int = 96, random_state=None) -> list[PointPattern]:
        """Draw patterns in the window of the pattern."""
        rng, window = generator(random_state), self.pattern.window
        grid = Grid.over(window.box, resolution)
        embedding = embed(self.kernel_, grid)
        drawn = []
        for _ in range(size):
            rho = self.pattern.rate / self.n_fields_ * (embedding.draw(self.n_fields_, rng) ** 2).sum(axis=0)
            drawn.append(draw_from(Intensity(grid, rho), rng, window=window))
        return drawn


def fit_permanental(pattern: PointPattern, kernel: Kernel, *, r_max: float | None = None) -> FittedPermanental:
    """Fit a permanental process by minimum contrast with the pair correlation: the length of c, and how many fields.

    The number of fields sets the pair correlation at 0, which is 1 + 2 / m: 3, 2, 1.67, 1.5, ...
    """
    check_kernel(kernel)
    check_in_dimension(kernel, pattern.window.dimension)
    reach = longest(pattern.window, pattern.rate) if r_max is None else r_max
    r = np.linspace(0, reach, STEPS + 1)[1:]
    observed = np.maximum(pair_correlation(pattern, r).values, 0) ** 0.25
    unit = rescale(kernel, 1.0, 1 / variance(kernel, pattern.window.dimension))
    length = correlation_length(kernel)
    best = (np.inf, 1, 1.0)
    for m in range(FIELDS[0], FIELDS[1] + 1):

        def loss(log_factor: float, m: int = m) -> float:
            c = covariances(unit, r / np.exp(log_factor))
            return float(((observed - (1 + 2 / m * c**2) ** 0.25) ** 2).sum())

        low, high = np.log(0.02 * reach / length), np.log(pattern.window.lengths.max() / length)
        starts = np.linspace(low, high, 24)
        start = starts[int(np.argmin([loss(s) for s in starts]))]
        step = starts[1] - starts[0]
        found = minimize_scalar(loss, bounds=(max(low, start - step), min(high, start + step)), method="bounded")
        best = min(best, (float(found.fun), m, float(np.exp(found.x))))
    return FittedPermanental(pattern, rescale(unit, best[2], 1.0), best[1])
