"""How sure one can be of fitted parameters: fits of patterns that the fitted process draws, and inverted tests.

The errors of a fit depend on the parameters, and with few points on parameters that are badly known: a fit with a short
length draws patterns whose fits have short lengths. `invert_tests` therefore tries many values of a parameter, each
with patterns of its own, and keeps those that the pattern does not contradict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from coxfield.process.fitting import Bounds, correlation_length, objective
from coxfield.process.trend import fit_trend
from coxfield.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.process.fitting import Settings
    from coxfield.process.pattern import PointPattern

    Draw = Callable[[float, float, int], list[PointPattern]]

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
    """ValueTests of values of the variance and of the length factor, by the patterns that they draw.

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
    trend = fit_trend(pattern, settings.trend, settings.covariates) if settings.trend else None
    found = objective(pattern, settings, trend)
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
