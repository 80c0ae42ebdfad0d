"""Fit a log Gaussian Cox process to a pattern: the trend of its intensity, its covariance, and its mean.

The trend comes first, by Poisson likelihood. The covariance C follows from pairs of points, because the pair
correlation of the process is g = exp(C): by minimum contrast with an estimate of g or K, by Palm likelihood, or by
composite likelihood of pairs. Two numbers are fitted, the variance and a factor of the length scales; the form of the
kernel is the user's.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import fft
from scipy.integrate import trapezoid
from scipy.interpolate import RegularGridInterpolator
from scipy.optimize import minimize
from scipy.spatial import cKDTree
from scipy.stats import norm

from coxfield.geometry.window import directions
from coxfield.kernels.sklearn_tree import free_length_scales, rescale, variance_is_free
from coxfield.process.densities import check_in_dimension, check_kernel, covariances, variance
from coxfield.process.summaries import (
    STEPS,
    check_correction,
    circle_shares,
    close_pairs,
    k_function,
    longest,
    pair_correlation,
    sphere_size,
)
from coxfield.process.trend import ShiftedTrend, Trend, fit_trend, trend_grid
from coxfield.progress import progress
from coxfield.utils.numbers import positive_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

    from coxfield.geometry.window import Window
    from coxfield.process.densities import Mean
    from coxfield.process.pattern import PointPattern

    Draw = Callable[[float, float, int], list[PointPattern]]

METHODS = ("contrast", "palm", "composite")
STATISTICS = ("pcf", "K")
VARIANCES = (1e-3, 10.0)  # of the log intensity; exp(10) is a pair correlation of 22,000
SHORTEST = (0.01, 0.2)  # least and most of the lower bound of the correlation length, in units of the longest distance
NEIGHBOURED = 20  # points that have a neighbour within the lower bound of the correlation length
RADII = 65  # at which it is measured how much of the circles around points is in the window
STARTS = (24, 16)  # lengths and variances from which the search begins


class FitWarning(UserWarning):
    """A fit that means less than it seems to: no clustering, or a parameter at its bound."""


@dataclass(frozen=True)
class Settings:
    """How a covariance is fitted; the fields are the parameters of `LogGaussianCoxProcess.fit`."""

    kernel: Kernel
    method: str = "contrast"
    statistic: str = "pcf"
    q: float = 0.25
    p: float = 2.0
    r_min: float | None = None
    r_max: float | None = None
    correction: str | None = None
    trend: tuple[str, ...] = ()
    covariates: Any = None

    def reach(self, pattern: PointPattern) -> float:
        """The longest distance that counts."""
        if self.r_max is not None:
            return self.r_max
        return longest(pattern.window, pattern.rate) / (2 if self.method == "palm" else 1)

    def trend_of(self, pattern: PointPattern) -> Trend | None:
        """The trend of the intensity, if there is one."""
        return fit_trend(pattern, self.trend, self.covariates) if self.trend else None

    def process(self, pattern: PointPattern, trend: Trend | None, v: float, factor: float) -> tuple[Kernel, Mean]:
        """Kernel and mean with this variance and this factor of the length scales, and the rate of the pattern."""
        kernel = rescale(self.kernel, factor, v / variance(self.kernel, pattern.window.dimension))
        half = variance(kernel, pattern.window.dimension) / 2
        return kernel, float(np.log(pattern.rate) - half) if trend is None else ShiftedTrend(trend, half)


@dataclass(frozen=True)
class Objective:
    """What a fit makes least, as a function of the covariance at some distances."""

    r: NDArray
    """Distances, shape (m,)."""
    of: Callable[[NDArray], NDArray]
    """From covariances at these distances, shape (..., m), to the values that are made least, shape (...)."""

    def at(self, kernel: Kernel, variances, factor: float) -> NDArray:
        """Values for some variances and one factor of the length scales of a kernel."""
        along = covariances(kernel, self.r / factor) / variance(kernel, 1)
        return self.of(np.multiply.outer(variances, along))


@dataclass(frozen=True)
class Bounds:
    """Of the variance and of the length factor, with equal ends for what the user has fixed."""

    variance: tuple[float, float]
    factor: tuple[float, float]

    @classmethod
    def of(cls, kernel: Kernel, reach: float, pattern: PointPattern) -> Bounds:
        """Those of a kernel, for pairs of a pattern up to `reach`.

        A correlation length is not shorter than the distance at which twenty points have a neighbour: a few close pairs
        are chance, but a peak of the pair correlation at distance 0 would fit them best.
        """
        window = pattern.window
        top = variance(kernel, window.dimension)
        variances = VARIANCES if variance_is_free(kernel) else (top, top)
        if not free_length_scales(kernel):
            return cls(variances, (1.0, 1.0))
        length = correlation_length(kernel)
        nearest = np.sort(cKDTree(pattern.points).query(pattern.points, k=2)[0][:, 1])[:NEIGHBOURED]
        shortest = float(np.clip(nearest[-1], SHORTEST[0] * reach, SHORTEST[1] * reach))
        return cls(variances, (shortest / length, float(window.lengths.max()) / length))

    def lattice(self, n_factors: int, n_variances: int, moderate: tuple[float, float] = VARIANCES):
        """Factors and variances at even ratios; variances no less and no more than moderate ones."""
        low, high = self.variance
        ends = (max(low, moderate[0]), min(high, moderate[1])) if low < high else (low, high)
        return _ratios(*self.factor, n_factors), _ratios(*ends, n_variances)


def _ratios(low: float, high: float, n: int) -> NDArray:
    return np.geomspace(low, high, n) if low < high else np.array([low])


def estimate(pattern: PointPattern, settings: Settings) -> tuple[Trend | None, float, float]:
    """Fit the trend, the variance and the factor of the length scales; see `LogGaussianCoxProcess.fit`."""
    _check_settings(settings, pattern.window)
    _check_points(pattern)
    kernel, reach, trend = settings.kernel, settings.reach(pattern), settings.trend_of(pattern)
    bounds = Bounds.of(kernel, reach, pattern)
    found = search(objective(pattern, settings, trend), kernel, bounds)
    _warn_of_bounds(found, kernel, reach, bounds)
    return trend, *found


def objective(pattern: PointPattern, settings: Settings, trend: Trend | None) -> Objective:
    """What is made least for a pattern."""
    reach = settings.reach(pattern)
    if settings.method != "contrast":
        return _pair_likelihood(pattern, settings, trend, reach)
    r = np.linspace(0, reach, STEPS + 1)[1:]
    low = reach / 1000 if settings.r_min is None else settings.r_min
    intensity = None if trend is None else np.exp(trend(pattern.points))
    summary = pair_correlation if settings.statistic == "pcf" else k_function
    observed = summary(pattern, r, correction=settings.correction, intensity=intensity)
    return contrast(r, observed.values, settings, pattern.window.dimension, low)


def contrast(r: NDArray, observed: NDArray, settings: Settings, dimension: int, r_min: float = 0.0) -> Objective:
    """The contrast int |observed(r)^q - theory(r)^q|^p dr."""
    kept = r >= r_min
    target = np.maximum(observed, 0) ** settings.q
    nodes = r
    if settings.statistic == "K":  # an integral from 0: two Gauss nodes a step, for a sum of trapezoids shows
        half = np.diff(r, prepend=0.0) / 2
        nodes = (r - half + half * np.array([[-1.0], [1.0]]) / np.sqrt(3)).ravel()
        weights = np.tile(half, 2) * sphere_size(nodes, dimension)

    def of(covariance: NDArray) -> NDArray:
        theory = np.exp(covariance)
        if settings.statistic == "K":
            theory = (theory * weights).reshape(*theory.shape[:-1], 2, len(r)).sum(axis=-2).cumsum(axis=-1)
        gap = np.abs(target - theory**settings.q) ** settings.p
        return gap[..., kept].mean(axis=-1) * (r[-1] - r_min)  # a sum, as in spatstat: half a first value would differ

    return Objective(nodes, of)


def _pair_likelihood(pattern: PointPattern, settings: Settings, trend: Trend | None, reach: float) -> Objective:
    r"""Minus the log likelihood of pairs closer than R, as if they were a Poisson process or a sample.

    Pairs at distance r have the density :math:`M(r) g(r)`. Palm likelihood (Tanaka, Ogata and Stoyan, 2008) takes their
    number as Poisson, composite likelihood (Guan, 2006) takes it as given:

    .. math:: \sum_{i \ne j} \log g(d_{ij}) - \int_0^R M g \qquad\text{and}\qquad
              \sum_{i \ne j} \log g(d_{ij}) - N \log \int_0^R M g.

    M(r) is the sphere times the average over directions of h, of length r: for composite likelihood of the integral of
    :math:`\lambda(u) \lambda(u + h)` over the window, for Palm likelihood of the sum of :math:`\lambda(x_i + h)` over
    the points. The first point of a pair is then known to be where it is, at an edge or in the middle.
    """
    distances, counts = _distance_counts(pattern, reach, settings.r_min or 0.0)
    r = np.linspace(settings.r_min or 0.0, reach, STEPS + 1)
    palm = settings.method == "palm"
    measure = sphere_size(r, pattern.window.dimension) * _pair_measure(pattern, trend, r, palm=palm)
    pairs = counts.sum()

    def of(covariance: NDArray) -> NDArray:
        logs = covariance[..., : len(counts)] @ counts
        expected = trapezoid(measure * np.exp(covariance[..., len(counts) :]), r)
        return (expected if palm else pairs * np.log(expected)) - logs

    return Objective(np.concatenate([distances, r]), of)


def _distance_counts(pattern: PointPattern, reach: float, low: float) -> tuple[NDArray, NDArray]:
    """Ordered pairs closer than `reach`, gathered in narrow bins: mean distance and number of each bin."""
    edges = np.linspace(low, reach, 4 * STEPS + 1)
    counts, sums = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for _, _, d, _ in close_pairs(pattern.points, None, reach):
        where = np.searchsorted(edges, d, side="right") - 1
        kept = (where >= 0) & (where < len(counts))
        counts += np.bincount(where[kept], minlength=len(counts))
        sums += np.bincount(where[kept], d[kept], len(counts))
    some = counts > 0
    if not some.any():
        raise ValueError(f"no two points are closer than {reach:g}: give a longer r_max, or more points")
    return sums[some] / counts[some], 2 * counts[some]


def _pair_measure(pattern: PointPattern, trend: Trend | None, r: NDArray, *, palm: bool) -> NDArray:
    """How many pairs an independent second point makes at each distance, averaged over directions of h.

    That is the integral of lambda(u) lambda(u + h) over u and u + h in the window; for Palm likelihood, the sum of
    lambda(x_i + h) over the points.
    """
    window, n = pattern.window, len(pattern)
    others = (n - 1) / window.volume
    if trend is None and not palm:
        return n * others / window.volume * window.mean_set_covariance(r)
    if trend is None and window.is_box and window.dimension == 2:
        some = np.linspace(r[0], r[-1], RADII)  # shares are nearly linear in between
        shares = [circle_shares(window, pattern.points, np.full(n, radius)).sum() for radius in some]
        return others * np.interp(r, some, shares)
    grid = trend_grid(window)
    log_rate = np.full(np.prod(grid.shape), np.log(others)) if trend is None else trend(grid.centres())
    mass = (np.exp(log_rate) * window.cell_volumes(grid.shape).ravel()).reshape(grid.shape)
    padded = [fft.next_fast_len(2 * k) for k in grid.shape]
    seen = fft.rfftn(mass, padded)
    first = seen
    if palm:
        box = list(zip(window.low, window.high, strict=True))
        first = fft.rfftn(np.histogramdd(pattern.points, grid.shape, range=box)[0], padded)
    # The real part is the mean over h and -h, because `directions` are those of half of the sphere.
    overlap = fft.fftshift(fft.irfftn((first.conj() * seen).real, padded)) / grid.cell_volume
    axes = [step * (np.arange(k) - k // 2) for step, k in zip(grid.spacing, padded, strict=True)]
    at = RegularGridInterpolator(axes, overlap)
    lags = (r[:, None, None] * directions(window.dimension)).reshape(-1, window.dimension)
    return at(lags).reshape(len(r), -1).mean(axis=1)


def correlation_length(kernel: Kernel) -> float:
    """The distance at which the correlation has fallen to 1/e."""
    r = np.geomspace(1e-6, 1e6, 1201) * float(
        np.mean([kernel.get_params()[n] for n in free_length_scales(kernel)] or 1)
    )
    correlation = covariances(kernel, r) / variance(kernel, 1)
    below = np.flatnonzero(correlation < np.exp(-1))
    if not len(below):
        raise ValueError(f"{kernel!r} does not fall to 0, so it has no length to fit: use RBF or Matern")
    k = below[0]
    share = (np.exp(-1) - correlation[k - 1]) / (correlation[k] - correlation[k - 1])
    return float(r[k - 1] + share * (r[k] - r[k - 1]))


def search(objective: Objective, kernel: Kernel, bounds: Bounds) -> tuple[float, float]:
    """Variance and length factor of the least value: the best of a lattice, then a simplex search in logarithms."""
    # The variance is at most moderate where a search begins: exponentials of large ones hide everything else.
    factors, variances = bounds.lattice(*STARTS, moderate=(0.02, 5.0))
    tried = np.array([objective.at(kernel, variances, factor) for factor in factors])
    f, v = np.unravel_index(np.nanargmin(tried), tried.shape)
    start = np.log([variances[v], factors[f]])
    low, high = np.log([bounds.variance, bounds.factor]).T
    free = np.flatnonzero(low < high)
    if not len(free):
        return float(variances[v]), float(factors[f])

    def loss(x):
        start[free] = x
        return float(objective.at(kernel, np.exp(start[0]), np.exp(start[1])))

    start[free] = minimize(
        loss,
        start[free],
        method="Nelder-Mead",
        bounds=np.stack([low, high], axis=1)[free],
        options={"xatol": 1e-7, "fatol": 1e-12 * max(1.0, abs(tried[0, 0])), "maxiter": 2000},
    ).x
    return tuple(np.exp(start).tolist())


def _warn_of_bounds(found: tuple[float, float], kernel: Kernel, reach: float, bounds: Bounds) -> None:
    (v_low, v_high), (f_low, f_high) = bounds.variance, bounds.factor
    length = correlation_length(kernel) if f_low < f_high else np.nan
    sentence = None
    if v_low < v_high and found[0] < 1.05 * v_low:
        sentence = (
            f"no clustering was found up to distance {reach:.3g}: the variance is at its lower bound {v_low:g}, and "
            "the length scale means nothing; a Poisson process (poisson_process, or its trend) describes the pattern"
        )
    elif v_low < v_high and found[0] > 0.95 * v_high:
        sentence = f"the variance is at its upper bound {v_high:g}: look for duplicated points, or give a longer r_min"
    elif f_low < f_high and found[1] > 0.95 * f_high:
        sentence = (
            f"the correlation length is at its upper bound {f_high * length:.3g}, the longest side of the window: give "
            "a trend, or a larger window"
        )
    elif f_low < f_high and found[1] < 1.05 * f_low:
        sentence = (
            f"the correlation length is at its lower bound {f_low * length:.3g}, and closer pairs are too few to show "
            "a shorter one: look for duplicated points, or give more points"
        )
    if sentence is not None:
        warnings.warn(sentence, FitWarning, stacklevel=5)


def _check_settings(settings: Settings, window: Window) -> None:
    if settings.method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {settings.method!r}")
    if settings.statistic not in STATISTICS:
        raise ValueError(f"statistic must be one of {', '.join(STATISTICS)}; got {settings.statistic!r}")
    check_kernel(settings.kernel)
    check_in_dimension(settings.kernel, window.dimension)
    scales = [settings.kernel.get_params()[name] for name in free_length_scales(settings.kernel)]
    if any(np.ndim(scale) and np.size(scale) > 1 for scale in scales):
        raise ValueError(
            f"{settings.kernel!r} has a length scale per axis, but pairs are compared by their distance: give one "
            "length scale"
        )
    for name in ("q", "p", "r_min", "r_max"):
        value = getattr(settings, name)
        if value is not None:
            positive_number(name, value)
    if settings.r_min is not None and settings.r_max is not None and settings.r_min >= settings.r_max:
        raise ValueError(f"r_min must be below r_max, got {settings.r_min:g} and {settings.r_max:g}: swap them")
    check_correction(settings.correction, window)


def _check_points(pattern: PointPattern) -> None:
    if len(pattern) < 3:
        raise ValueError(
            f"a process is fitted to at least 3 points, but the pattern has {len(pattern)}: give more points"
        )
    if pattern.window.dimension > 1:
        spread = np.linalg.svd(pattern.points - pattern.points.mean(axis=0), compute_uv=False)
        if spread[-1] <= 1e-12 * spread[0]:
            raise ValueError(
                "all points lie on one line, so they do not show a process in the plane: give their positions along "
                "the line, as points of one coordinate"
            )


# How sure one can be of fitted parameters: fits of patterns that the fitted process draws, and inverted tests.
#
# The errors of a fit depend on the parameters, and with few points on parameters that are badly known: a fit with a
# short length draws patterns whose fits have short lengths. `invert_tests` therefore tries many values of a parameter,
# each with patterns of its own, and keeps those that the pattern does not contradict.


VALUES = 15  # of the variance and of the length that are tried, at even ratios
MODERATE = (0.01, 10.0)  # variances that are tried; the least one is as good as none
FEWEST = 3  # points of a simulated pattern that can be compared


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

        Variance and length are taken as logarithms, because they are positive. These intervals are quick. They take the
        errors at the estimate for those at the truth, which may differ with few points: `FittedCoxProcess.intervals`
        does not.
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
class ValueTests:
    """Tests of values of the variance and of the length factor, by the patterns that they draw.

    The statistic of a value is the gap between the least objective with that value and the least of all: a likelihood
    ratio, if the objective is a likelihood. Its distribution comes from patterns drawn with that value, and with the
    best other parameter beside it (Carpenter, 1999, inverts tests in this way). Objectives are least over a lattice.
    """

    settings: Settings
    factors: NDArray
    variances: NDArray
    table: NDArray
    """The objective of the pattern, shape (factors, variances)."""
    draw: Draw
    """From a variance, a length factor and a number to so many patterns."""
    n: int

    @classmethod
    def of(cls, pattern: PointPattern, settings: Settings, draw: Draw, n: int) -> ValueTests:
        """Prepare the tests of a pattern; all patterns are compared up to the same distance."""
        settings = replace(settings, r_max=settings.reach(pattern))
        bounds = Bounds.of(settings.kernel, settings.reach(pattern), pattern)
        factors, variances = bounds.lattice(VALUES, VALUES, MODERATE)
        return cls(settings, factors, variances, _lattice(pattern, settings, factors, variances), draw, n)

    def accepted(self, axis: int, level: float, done) -> tuple[float, float, list[float]]:
        """Ends of the values of an axis (0: factors, 1: variances) that are not rejected; logarithms of counts drawn.

        Values are tried from the best one on, until two in a row are rejected. An end that no test rejects is 0 or
        infinity.
        """
        values, table = (self.factors, self.table) if axis == 0 else (self.variances, self.table.T)
        best = int(np.unravel_index(table.argmin(), table.shape)[0])
        p, counts = np.zeros(len(values)), []
        for way in (range(best, len(values)), range(best - 1, -1, -1)):
            rejected = 0
            for k in way:
                p[k], drawn = self._p_value(axis, k)
                rejected = rejected + 1 if p[k] <= 1 - level else 0
                counts += drawn if not rejected else []
                done(1)
                if rejected == 2:
                    break
        return *_ends(values, p, 1 - level), counts

    def _p_value(self, axis: int, k: int) -> tuple[float, list[float]]:
        """Of one value; and the logarithms of the numbers of points that were drawn for it."""
        table = self.table if axis == 0 else self.table.T
        other = int(table[k].argmin())
        f, v = (k, other) if axis == 0 else (other, k)
        more, counts = 0, []
        for pattern in self.draw(float(self.variances[v]), float(self.factors[f]), self.n):
            if len(pattern) < FEWEST:
                continue
            try:
                drawn = _lattice(pattern, self.settings, self.factors, self.variances)
            except ValueError:  # no two points are close
                continue
            along = drawn[k] if axis == 0 else drawn[:, k]
            more += bool(along.min() - drawn.min() >= table[k].min() - table.min())
            counts.append(float(np.log(len(pattern))))
        return (1 + more) / (1 + len(counts)), counts


def _lattice(pattern: PointPattern, settings: Settings, factors: NDArray, variances: NDArray) -> NDArray:
    """The objective of a pattern, shape (factors, variances)."""
    found = objective(pattern, settings, settings.trend_of(pattern))
    return np.array([found.at(settings.kernel, variances, factor) for factor in factors])


def _ends(values: NDArray, p: NDArray, least: float) -> tuple[float, float]:
    """Where p-values, smoothed over neighbours, cross a bound; 0 or infinity where they do not."""
    padded = np.pad(p, 1, mode="edge")
    smooth = (padded[:-2] + 2 * p + padded[2:]) / 4
    kept = np.flatnonzero(smooth > least)
    if not len(kept):  # of few simulations: the best value alone is left
        kept = np.array([int(smooth.argmax())])
        smooth[kept] = 1.0
    logs = np.log(values)

    def crossing(inside: int, outside: int) -> float:
        share = (smooth[inside] - least) / (smooth[inside] - smooth[outside])
        return float(np.exp(logs[inside] + share * (logs[outside] - logs[inside])))

    first, last = kept[0], kept[-1]
    return (
        0.0 if first == 0 else crossing(first, first - 1),
        np.inf if last == len(values) - 1 else crossing(last, last + 1),
    )


def invert_tests(
    pattern: PointPattern, settings: Settings, draw: Draw, level: float, n: int
) -> tuple[dict[str, tuple[float, float]], float]:
    """Intervals of the variance and of the correlation length that are free, and the error of the log rate."""
    tests = ValueTests.of(pattern, settings, draw, n)
    found: dict[str, tuple[float, float]] = {}
    counts: list[float] = []
    steps = sum(len(values) for values in (tests.factors, tests.variances) if len(values) > 1)
    with progress(f"tests of {steps} values", steps, None, "fewer patterns take less time") as done:
        if len(tests.variances) > 1:
            low, high, counts = tests.accepted(1, level, done)
            found["variance"] = (low, high)
        if len(tests.factors) > 1:
            low, high, more = tests.accepted(0, level, done)
            unit = correlation_length(settings.kernel)
            found["correlation_length"] = (low * unit, high * unit)
            counts = counts or more
    if not found:  # all is fixed but the rate
        only = draw(float(tests.variances[0]), float(tests.factors[0]), n)
        counts = [float(np.log(len(some))) for some in only if len(some)]
    return found, float(np.std(counts))


def of_difference(first: tuple[float, float, float], second: tuple[float, float, float]) -> tuple[float, float]:
    """Interval of a difference, from estimate, low and high end of both terms (Zou and Donner, 2008).

    Examples
    --------
    >>> of_difference((5.0, 2.0, 8.0), (1.0, -3.0, 5.0))
    (-1.0, 9.0)
    """
    (a, a_low, a_high), (b, b_low, b_high) = first, second
    return a - b - float(np.hypot(a - a_low, b_high - b)), a - b + float(np.hypot(a_high - a, b - b_low))
