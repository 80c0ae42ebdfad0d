"""Fit a log Gaussian Cox process to a pattern: its trend, its covariance, its mean, and how sure one can be of them.

The trend comes first, by Poisson likelihood. The covariance C follows from pairs of points, because the pair
correlation of the process is g = exp(C): by minimum contrast with an estimate of g or K, by Palm likelihood, or by
composite likelihood of pairs. Two numbers are fitted, the variance and a factor of the length scales; the form of the
kernel is the user's. Standard errors come from patterns that the fitted process draws.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import fft
from scipy.integrate import cumulative_trapezoid, trapezoid
from scipy.interpolate import RegularGridInterpolator
from scipy.optimize import minimize

from coxfield.geometry.window import Window, directions
from coxfield.kernels.sklearn_tree import free_length_scales, rescale, values_of, variance_is_free
from coxfield.process.densities import check_in_dimension, check_kernel, variance
from coxfield.process.fields import Grid
from coxfield.process.summaries import (
    STEPS,
    check_correction,
    close_pairs,
    k_function,
    longest,
    pair_correlation,
    sphere_size,
)
from coxfield.utils.numbers import positive_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray
    from sklearn.gaussian_process.kernels import Kernel

    from coxfield.process.pattern import PointPattern

METHODS = ("contrast", "palm", "composite")
STATISTICS = ("pcf", "K")
VARIANCES = (1e-3, 10.0)  # of the log intensity; exp(10) is a pair correlation of 22,000
SHORTEST = 0.01  # length at which the correlation is 1/e, in units of the longest distance
STARTS = (24, 16)  # lengths and variances from which the search begins
TREND_CELLS = {1: 512, 2: 128, 3: 32}  # along the longest side, for the integral of the intensity


class FitWarning(UserWarning):
    """A fit that means less than it seems to: no clustering, or a parameter at its bound."""


@dataclass(frozen=True, eq=False)
class Covariates:
    """Covariates on the cells of a grid, by name.

    Examples
    --------
    >>> slope = Covariates(Grid.over([(0, 2), (0, 1)], 2), {"height": [[1.0], [5.0]]})
    >>> slope["height"](np.array([[0.5, 0.5], [1.5, 0.5]])).tolist()
    [1.0, 5.0]
    """

    grid: Grid
    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        checked = {name: np.asarray(values, dtype=float) for name, values in self.values.items()}
        for name, values in checked.items():
            if values.shape != self.grid.shape:
                raise ValueError(
                    f"the covariate {name!r} has the shape {values.shape}, but the grid has {self.grid.shape} cells: "
                    "give one value per cell"
                )
        object.__setattr__(self, "values", checked)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __iter__(self):
        return iter(self.values)

    def __getitem__(self, name: str) -> Callable[[NDArray], NDArray]:
        return partial(self._at, name)

    def _at(self, name: str, points: NDArray) -> NDArray:
        return self.values[name].ravel()[self.grid.cells_in_box(points)]


@dataclass(frozen=True, eq=False)
class Trend:
    """A log-linear intensity: log lambda(x) = b_0 + sum_k b_k z_k(x), fitted by the likelihood of a Poisson process."""

    names: tuple[str, ...]
    functions: tuple[Callable[[NDArray], NDArray], ...]
    coefficients: NDArray
    """b_0, b_1, ..., in the units of the covariates."""

    def __call__(self, points: NDArray) -> NDArray:
        """log lambda at points, shape (n,)."""
        values = np.full(len(points), self.coefficients[0])
        for b, function in zip(self.coefficients[1:], self.functions, strict=True):
            values += b * function(points)
        return values


@dataclass(frozen=True)
class ShiftedTrend:
    """The mean mu(x) = log lambda(x) - C(0)/2 of the Gaussian process behind a trend."""

    trend: Trend
    shift: float

    def __call__(self, points: NDArray) -> NDArray:
        """mu at points, shape (n,)."""
        return self.trend(points) - self.shift


@dataclass(frozen=True)
class Settings:
    """How a covariance is fitted, checked."""

    kernel: Kernel
    method: str
    statistic: str
    q: float
    p: float
    r_min: float | None
    r_max: float | None
    correction: str | None
    trend: tuple[str, ...]
    covariates: Any


def fit_trend(pattern: PointPattern, names, covariates=None) -> Trend:
    r"""Fit a log-linear intensity by maximum likelihood of a Poisson process.

    The log likelihood is :math:`\sum_i \log\lambda(x_i) - \int_W \lambda`, and the integral is a sum over the cells of
    a grid, each with the volume that it has in the window.

    Parameters
    ----------
    pattern : PointPattern
    names : sequence of str
        Covariates; "x", "y" and "z" are coordinates if no covariate has that name.
    covariates : Covariates, or mapping name -> function of points, optional

    Returns
    -------
    Trend

    Examples
    --------
    >>> from coxfield.process import poisson_process
    >>> pattern = poisson_process(lambda x: np.exp(3 + x[:, 0]), [(0, 2), (0, 2)], bound=np.exp(5), random_state=0)
    >>> fit_trend(pattern, ["x"]).coefficients.round(1).tolist()
    [2.9, 1.2]
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    functions = tuple(_covariate(name, covariates, pattern.window.dimension) for name in names)
    grid = covariates.grid if isinstance(covariates, Covariates) else _trend_grid(pattern.window)
    volumes = _volumes(pattern.window, grid)
    used = volumes > 0
    z_cells = _design(functions, names, grid.centres()[used])
    z_points = _design(functions, names, pattern.points)
    weights = volumes[used]
    # Standard units keep the Hessian well conditioned.
    centre = weights @ z_cells / weights.sum()
    spread = np.sqrt(weights @ (z_cells - centre) ** 2 / weights.sum())
    if len(names) and (spread <= 1e-12 * np.abs(centre)).any():
        flat = names[int(np.argmin(spread))]
        raise ValueError(f"the covariate {flat!r} is the same everywhere in the window: leave it out")
    cells = np.column_stack([np.ones(len(z_cells)), (z_cells - centre) / spread])
    sums = np.concatenate([[len(pattern)], ((z_points - centre) / spread).sum(axis=0)])
    if np.linalg.matrix_rank(cells) < cells.shape[1]:
        raise ValueError(f"the covariates {', '.join(names)} are linear functions of each other: leave some out")

    def loss(b):
        rate = weights * np.exp(np.minimum(cells @ b, 700))
        return rate.sum() - sums @ b, cells.T @ rate - sums

    def hessian(b):
        return (cells * (weights * np.exp(np.minimum(cells @ b, 700)))[:, None]).T @ cells

    start = np.zeros(cells.shape[1])
    start[0] = np.log(len(pattern) / weights.sum())
    found = minimize(loss, start, jac=True, hess=hessian, method="trust-exact", options={"gtol": 1e-8 * len(pattern)}).x
    slopes = found[1:] / spread
    return Trend(names, functions, np.concatenate([[found[0] - slopes @ centre], slopes]))


def fit_process(
    pattern: PointPattern,
    kernel: Kernel | None = None,
    method: str = "contrast",
    *,
    statistic: str = "pcf",
    q: float = 0.25,
    p: float = 2.0,
    r_min: float | None = None,
    r_max: float | None = None,
    correction: str | None = None,
    trend=(),
    covariates=None,
):
    """Fit the covariance and the mean; see `LogGaussianCoxProcess.fit`. Returns a `FittedCoxProcess`."""
    from sklearn.gaussian_process.kernels import Matern

    from coxfield.process.fitted import FittedCoxProcess

    kernel = Matern(1.0, nu=0.5) if kernel is None else kernel
    names = (trend,) if isinstance(trend, str) else tuple(trend)
    settings = Settings(kernel, method, statistic, q, p, r_min, r_max, correction, names, covariates)
    _check_settings(settings, pattern)
    fitted_trend = fit_trend(pattern, names, covariates) if names else None
    curve = covariance_family(kernel)
    objective, reach = _objective(pattern, settings, fitted_trend, curve)
    found = _search(objective, kernel, reach, pattern.window)
    fitted = rescale(kernel, found[1], found[0] / variance(kernel, pattern.window.dimension))
    _warn_of_bounds(found, kernel, reach, pattern.window)
    half = variance(fitted, pattern.window.dimension) / 2
    mean = float(np.log(pattern.rate) - half) if fitted_trend is None else ShiftedTrend(fitted_trend, half)
    return FittedCoxProcess(pattern, fitted, mean, settings, fitted_trend, found[1], reach)


def covariance_family(kernel: Kernel) -> Callable[[NDArray, float, float], NDArray]:
    """The function (r, variance, length factor) -> C(r), where only the form of the kernel matters."""
    top = variance(kernel, 1)
    origin = np.zeros((1, 1))

    def covariance(r: NDArray, v: float, factor: float) -> NDArray:
        return v / top * values_of(kernel, origin, (r / factor)[:, None])[0]

    return covariance


def _objective(pattern, settings: Settings, trend: Trend | None, curve):
    """What is minimised, as a function of variance and length factor; and the longest distance."""
    reach = longest(pattern.window, pattern.rate) if settings.r_max is None else settings.r_max
    if settings.method == "contrast":
        return _contrast(pattern, settings, trend, curve, reach), reach
    return _pair_likelihood(pattern, settings, trend, curve, reach), reach


def _contrast(pattern, settings: Settings, trend: Trend | None, curve, reach: float):
    r = np.linspace(0, reach, STEPS + 1)[1:]
    low = reach / 1000 if settings.r_min is None else settings.r_min
    intensity = None if trend is None else np.exp(trend(pattern.points))
    summary = pair_correlation if settings.statistic == "pcf" else k_function
    observed = summary(pattern, r, correction=settings.correction, intensity=intensity)
    return contrast(r, observed.values, curve, settings, pattern.window.dimension, low)


def contrast(r: NDArray, observed: NDArray, curve, settings: Settings, dimension: int, r_min: float = 0.0):
    """The contrast int |observed(r)^q - theory(r)^q|^p dr as a function of variance and length factor."""
    kept = r >= r_min
    target = np.maximum(observed, 0) ** settings.q
    fine = np.concatenate([[0.0], r])

    def value(v: float, factor: float) -> float:
        if settings.statistic == "pcf":
            theory = np.exp(curve(r, v, factor))
        else:
            g = np.exp(curve(fine, v, factor))
            theory = cumulative_trapezoid(g * sphere_size(fine, dimension), fine, initial=0)[1:]
        gap = np.abs(target - theory**settings.q) ** settings.p
        return float(gap[kept].mean()) * (r[-1] - r_min)  # a sum, as in spatstat: half a first value would differ

    return value


def _pair_likelihood(pattern, settings: Settings, trend: Trend | None, curve, reach: float):
    r"""Minus the log likelihood of pairs closer than R, as if they were a Poisson process or a sample.

    Pairs at distance r have the density :math:`M(r) g(r)`, where M(r) is the sphere times the integral of
    :math:`\lambda(u) \lambda(u + h)` over the window, averaged over the directions of h. Palm likelihood (Tanaka, Ogata
    and Stoyan, 2008) takes their number as Poisson, composite likelihood (Guan, 2006) takes it as given:

    .. math:: \sum_{i \ne j} \log g(d_{ij}) - \int_0^R M g \qquad\text{and}\qquad
              \sum_{i \ne j} \log g(d_{ij}) - N \log \int_0^R M g.
    """
    distances, counts = _distance_counts(pattern, reach, settings.r_min or 0.0)
    r = np.linspace(settings.r_min or 0.0, reach, STEPS + 1)
    measure = sphere_size(r, pattern.window.dimension) * _pair_measure(pattern, trend, r)
    total = counts.sum()

    def value(v: float, factor: float) -> float:
        logs = counts @ curve(distances, v, factor)
        expected = trapezoid(measure * np.exp(curve(r, v, factor)), r)
        return float((expected if settings.method == "palm" else total * np.log(expected)) - logs)

    return value


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


def _pair_measure(pattern: PointPattern, trend: Trend | None, r: NDArray) -> NDArray:
    """The integral of lambda(u) lambda(u + h) over u and u + h in the window, averaged over directions of h."""
    window, n = pattern.window, len(pattern)
    if trend is None:
        return n * (n - 1) / window.volume**2 * window.mean_set_covariance(r)
    grid = _trend_grid(window)
    mass = (np.exp(trend(grid.centres())) * window.cell_volumes(grid.shape).ravel()).reshape(grid.shape)
    padded = [fft.next_fast_len(2 * k) for k in grid.shape]
    power = np.abs(fft.rfftn(mass, padded)) ** 2
    overlap = fft.fftshift(fft.irfftn(power, padded)) / grid.cell_volume
    axes = [step * (np.arange(k) - k // 2) for step, k in zip(grid.spacing, padded, strict=True)]
    at = RegularGridInterpolator(axes, overlap)
    lags = (r[:, None, None] * directions(window.dimension)).reshape(-1, window.dimension)
    return at(lags).reshape(len(r), -1).mean(axis=1)


def _bounds(kernel: Kernel, reach: float, window: Window) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bounds of the variance and of the length factor; equal ends for what the user has fixed."""
    top = variance(kernel, window.dimension)
    variances = VARIANCES if variance_is_free(kernel) else (top, top)
    if not free_length_scales(kernel):
        return variances, (1.0, 1.0)
    length = correlation_length(kernel)
    return variances, (SHORTEST * reach / length, float(window.lengths.max()) / length)


def correlation_length(kernel: Kernel) -> float:
    """The distance at which the correlation has fallen to 1/e."""
    r = np.geomspace(1e-6, 1e6, 1201) * float(
        np.mean([kernel.get_params()[n] for n in free_length_scales(kernel)] or 1)
    )
    correlation = values_of(kernel, np.zeros((1, 1)), r[:, None])[0] / variance(kernel, 1)
    below = np.flatnonzero(correlation < np.exp(-1))
    if not len(below):
        raise ValueError(f"{kernel!r} does not fall to 0, so it has no length to fit: use RBF or Matern")
    k = below[0]
    share = (np.exp(-1) - correlation[k - 1]) / (correlation[k] - correlation[k - 1])
    return float(r[k - 1] + share * (r[k] - r[k - 1]))


def _search(objective, kernel: Kernel, reach: float, window: Window) -> tuple[float, float]:
    """Variance and length factor of the least value: the best of a grid, then a simplex search in logarithms."""
    (v_low, v_high), (f_low, f_high) = _bounds(kernel, reach, window)
    lengths = np.geomspace(f_low, f_high, STARTS[0]) if f_low < f_high else np.array([f_low])
    # The variance is at most moderate where a search begins: exponentials of large ones hide everything else.
    variances = np.geomspace(max(v_low, 0.02), min(v_high, 5.0), STARTS[1]) if v_low < v_high else np.array([v_low])
    tried = [(objective(v, f), v, f) for f in lengths for v in variances]
    _, v, f = min(tried)
    low, high = np.log([v_low, f_low]), np.log([v_high, f_high])
    free = np.flatnonzero(low < high)
    if not len(free):
        return v, f

    def loss(x):
        full = np.log([v, f])
        full[free] = x
        return objective(*np.exp(full))

    found = minimize(
        loss,
        np.log([v, f])[free],
        method="Nelder-Mead",
        bounds=np.stack([low, high], axis=1)[free],
        options={"xatol": 1e-7, "fatol": 1e-12 * max(1.0, abs(tried[0][0])), "maxiter": 2000},
    ).x
    full = np.log([v, f])
    full[free] = found
    return tuple(np.exp(full).tolist())


def _warn_of_bounds(found: tuple[float, float], kernel: Kernel, reach: float, window: Window) -> None:
    (v_low, v_high), (f_low, f_high) = _bounds(kernel, reach, window)
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
            f"the correlation length is at its lower bound {f_low * length:.3g}: look for duplicated points, or give a "
            "shorter r_max"
        )
    if sentence is not None:
        warnings.warn(sentence, FitWarning, stacklevel=4)


def _check_settings(settings: Settings, pattern: PointPattern) -> None:
    if settings.method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {settings.method!r}")
    if settings.statistic not in STATISTICS:
        raise ValueError(f"statistic must be one of {', '.join(STATISTICS)}; got {settings.statistic!r}")
    check_kernel(settings.kernel)
    check_in_dimension(settings.kernel, pattern.window.dimension)
    scales = [settings.kernel.get_params()[name] for name in free_length_scales(settings.kernel)]
    if any(np.ndim(scale) and np.size(scale) > 1 for scale in scales):
        raise ValueError(
            f"{settings.kernel!r} has a length scale per axis, but pairs are compared by their distance: give one "
            "length scale"
        )
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
    for name in ("q", "p", "r_min", "r_max"):
        value = getattr(settings, name)
        if value is not None:
            positive_number(name, value)
    if settings.r_min is not None and settings.r_max is not None and settings.r_min >= settings.r_max:
        raise ValueError(f"r_min must be below r_max, got {settings.r_min:g} and {settings.r_max:g}: swap them")
    check_correction(settings.correction, pattern.window)


def _covariate(name: str, covariates, dimension: int) -> Callable[[NDArray], NDArray]:
    if covariates is not None and name in covariates:
        return covariates[name]
    if name in "xyz"[:dimension]:
        return partial(_coordinate, "xyz".index(name))
    known = ", ".join([*map(repr, covariates or ()), *map(repr, "xyz"[:dimension])])
    raise ValueError(f"there is no covariate {name!r}: the names are {known}")


def _coordinate(axis: int, points: NDArray) -> NDArray:
    return points[:, axis]


def _design(functions, names, points: NDArray) -> NDArray:
    columns = [np.asarray(function(points), dtype=float) for function in functions]
    for name, column in zip(names, columns, strict=True):
        if column.shape != (len(points),) or not np.isfinite(column).all():
            raise ValueError(f"the covariate {name!r} must be one finite number per point of the window: fill in gaps")
    return np.stack(columns, axis=1) if columns else np.empty((len(points), 0))


def _trend_grid(window: Window) -> Grid:
    return Grid.over(Window(window.sides), TREND_CELLS[window.dimension])


def _volumes(window: Window, grid: Grid) -> NDArray:
    """How much of each cell of a grid lies in the window. The grid must cover the window."""
    if grid.window.sides == window.sides:
        return window.cell_volumes(grid.shape).ravel()
    if (grid.window.low > window.low).any() or (grid.window.high < window.high).any():
        raise ValueError(
            f"the grid of the covariates covers {grid.window.sides}, but the window is {window.sides}: give covariates "
            "in all of the window"
        )
    inside = window.contains(grid.centres())
    return np.where(inside, window.volume / max(inside.sum(), 1), 0.0)
