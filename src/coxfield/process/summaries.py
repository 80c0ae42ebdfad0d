r"""Summaries of point patterns as functions of distance: pair correlation, K and L, of one type and between two, and J.

All of the first are sums over pairs of points,

.. math:: \hat K(r) = \sum_{i \ne j} \frac{e_{ij} \, 1[d_{ij} \le r]}{|W| \lambda_i \lambda_j}, \qquad
          \hat g(r) = \sum_{i \ne j} \frac{e_{ij} \, k(r - d_{ij})}{|W| \lambda_i \lambda_j \, S(r)},

where d is the distance of two points, S(r) the size of a sphere of radius r (2 pi r in the plane) and k the
Epanechnikov kernel. The edge correction e makes up for the pairs of which one point lies outside of the window W. Close
pairs are found by a tree, block by block, so that neither time nor memory grow with the number of all pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.integrate import cumulative_trapezoid
from scipy.spatial import cKDTree
from scipy.special import gamma as gamma_function
from scipy.stats import norm

from coxfield.process.fields import Grid, shape_over
from coxfield.progress import progress
from coxfield.utils.numbers import positive_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from coxfield.geometry.window import Window
    from coxfield.process.pattern import PointPattern

CORRECTIONS = ("isotropic", "translation", "none")
STEPS = 512  # distances of a summary
STOYAN = 0.15  # half-width of the kernel, in units of the mean spacing of points (Stoyan and Stoyan, 1994)
NEIGHBOURS = 1000  # within the longest distance: beyond it there is little to learn about a process
MOST_WEIGHT = 100.0  # of a pair: a sliver of a circle in the window must not outweigh everything else
AT_ONCE = 2_000_000  # pairs in memory
LATTICE = 64  # empty places along the longest side, for J


@dataclass(frozen=True, eq=False)
class Summary:
    """A summary of a pattern at some distances, beside its value for a Poisson process."""

    name: str
    """"pcf", "K", "L" or "J"."""
    r: NDArray
    """Distances."""
    values: NDArray
    poisson: NDArray
    """What a Poisson process would have."""
    standard_errors: NDArray | None = None
    """Standard errors of the estimate if the pattern is a Poisson process; None where there is no formula.

    They count pairs as if they were independent, which holds at distances far below the sides of the window. At a
    quarter of the shortest side they may be a third too small.
    """
    correction: str = "none"
    bandwidth: float | None = None
    """Half-width of the kernel of a pair correlation."""
    unit: str = ""

    def band(self, level: float = 0.95) -> tuple[NDArray, NDArray]:
        """The band in which the values of a Poisson process lie at each distance with probability `level`."""
        if self.standard_errors is None:
            raise ValueError(f"{self.name} has no band in closed form: draw an envelope by simulation")
        half = norm.ppf((1 + level) / 2) * self.standard_errors
        return self.poisson - half, self.poisson + half

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the summary with the band of a Poisson process; returns the axes."""
        from coxfield.plotting.processes import plot_summary

        return plot_summary(self, ax)


def pair_correlation(
    pattern: PointPattern,
    r=None,
    *,
    correction: str | None = None,
    bandwidth: float | None = None,
    divisor: str = "r",
    intensity=None,
    types: tuple | None = None,
) -> Summary:
    """Kernel estimate of the pair correlation g(r): 1 without interaction, exp(C(r)) for a log Gaussian Cox process.

    Parameters
    ----------
    pattern : PointPattern
    r : array of shape (n,), optional
        Positive distances. Default: 512 up to a quarter of the shortest side, or up to where a ball has 1,000 points.
    correction : {"isotropic", "translation", "none"}, optional
        Of the edges. "isotropic" (Ripley) is for boxes in the plane, and the default there. "translation" is for all
        windows.
    bandwidth : float, optional
        Half-width h of the Epanechnikov kernel, whose standard deviation is h / sqrt(5). Default: Stoyan's rule,
        0.15 times the mean spacing, which is 0.15 / sqrt(rate) in the plane.
    divisor : {"r", "d"}
        Whether a pair is divided by the sphere at r or at its own distance. "d" has less bias near 0.
    intensity : array of shape (n,), function of points, or Intensity, optional
        Of a pattern whose intensity varies: the inhomogeneous pair correlation. Weights of one type are
        made to add up to the window, which lowers the variance, and makes a constant factor harmless.
    types : pair of marks, optional
        The correlation between points of two types, instead of among all points.

    Examples
    --------
    >>> from coxfield.process import poisson_process
    >>> g = pair_correlation(poisson_process(300.0, [(0, 1), (0, 1)], random_state=0))
    >>> bool(abs(g.values.mean() - 1) < 0.1), round(g.bandwidth, 4)
    (True, 0.0086)
    """
    if divisor not in ("r", "d"):
        raise ValueError(f"divisor must be 'r' or 'd', got {divisor!r}")
    pairs = Pairs.of(pattern, r, correction, intensity, types)
    h = STOYAN * pairs.spacing if bandwidth is None else positive_number("bandwidth", bandwidth)
    if pairs.r.min() <= 0:
        raise ValueError(
            f"the pair correlation is estimated at positive distances, got {pairs.r.min():g}: leave it out"
        )
    d = pattern.window.dimension
    sums = _kernel_sums(pairs, h, divisor)
    sphere = sphere_size(pairs.r, d)
    values = sums / sphere if divisor == "r" else sums
    roughness = 3 / (5 * h)  # the integral of the squared kernel
    coarse = np.linspace(0, pairs.r[-1], 65)
    overlap = np.interp(pairs.r, coarse, pattern.window.mean_set_covariance(coarse))
    errors = pairs.noise * np.sqrt(roughness / (sphere * overlap))
    return Summary("pcf", pairs.r, values, np.ones_like(values), errors, pairs.correction, h, pattern.unit)


def k_function(
    pattern: PointPattern, r=None, *, correction: str | None = None, intensity=None, types: tuple | None = None
) -> Summary:
    """Ripley's K: the expected number of further points within r of a point, divided by the intensity.

    It is pi r^2 for a Poisson process in the plane. Parameters and result are as for `pair_correlation`.

    Examples
    --------
    >>> from coxfield.process import PointPattern
    >>> square = PointPattern([[1, 1], [1, 3], [3, 1], [3, 3]], [(0, 4), (0, 4)])
    >>> k_function(square, [1.0, 2.0], correction="none").values.round(2).tolist()  # 16 / (4 x 3) x 8 pairs
    [0.0, 10.67]
    """
    pairs = Pairs.of(pattern, r, correction, intensity, types)
    edges = np.concatenate([[0.0], pairs.r])
    counts = np.zeros(len(pairs.r))
    for d, weights in pairs.blocks(edges[-1]):
        counts += np.bincount(np.searchsorted(pairs.r, d), weights, len(pairs.r) + 1)[:-1]
    fine = np.linspace(0, edges[-1], 65)
    shell = sphere_size(fine, pattern.window.dimension) / pattern.window.mean_set_covariance(fine)
    variance = np.interp(pairs.r, fine, cumulative_trapezoid(shell, fine, initial=0))
    poisson = ball_volume(pairs.r, pattern.window.dimension)
    return Summary(
        "K", pairs.r, np.cumsum(counts), poisson, pairs.noise * np.sqrt(variance), pairs.correction, None, pattern.unit
    )


def l_function(pattern: PointPattern, r=None, **how) -> Summary:
    """Besag's L: the radius of a ball of volume K(r), which is r for a Poisson process, and has an even variance.

    Parameters and result are as for `k_function`.
    """
    k = k_function(pattern, r, **how)
    d = pattern.window.dimension
    radius = (k.values / ball_volume(np.ones(1), d)) ** (1 / d)
    errors = None
    if k.standard_errors is not None:
        errors = k.standard_errors / sphere_size(k.r, d)  # the derivative of a ball's volume is its sphere
    return Summary("L", k.r, radius, k.r.copy(), errors, k.correction, None, pattern.unit)


def j_function(pattern: PointPattern, r=None) -> Summary:
    """J(r) = (1 - G(r)) / (1 - F(r)), of distances to the nearest point from points (G) and from empty places (F).

    It is 1 for a Poisson process, and below 1 for clustered points (van Lieshout and Baddeley, 1996). Only places
    farther than r from the boundary count at r, which is the border correction. Where fewer than ten points or one in a
    hundred empty places are left, the value is NaN.
    """
    _check_pattern(pattern, 2)
    window, tree = pattern.window, cKDTree(pattern.points)
    r = _distances(r, 1.2 / pattern.rate ** (1 / window.dimension), 64)
    places = Grid(window.box, shape_over(window, LATTICE)).centres()
    places = places[window.contains(places)]
    empty, total = _farther(tree.query(places)[0], window.boundary_distance(places), r)
    alone, n = _farther(tree.query(pattern.points, k=2)[0][:, 1], window.boundary_distance(pattern.points), r)
    enough = (n >= 10) & (empty >= 0.01 * len(places))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(enough, (alone / n) / (empty / total), np.nan)
    return Summary("J", r, values, np.ones_like(r), None, "border", None, pattern.unit)


def _farther(nearest: NDArray, border: NDArray, r: NDArray) -> tuple[NDArray, NDArray]:
    """How many of the places with border >= r have nearest > r, and how many such places there are, at each r."""
    seen = np.sort(border)
    inside = len(seen) - np.searchsorted(seen, r, side="left")
    near = np.sort(border[nearest <= border]), np.sort(nearest[nearest <= border])
    # Places with nearest <= r <= border: those whose nearest has been passed, without those whose border has.
    within = np.searchsorted(near[1], r, side="right") - np.searchsorted(near[0], r, side="left")
    return inside - within, inside


@dataclass(frozen=True, eq=False)
class Pairs:
    """The close pairs of a pattern with their weights e_ij / (|W| lambda_i lambda_j), to be summed block by block."""

    window: Window
    points: NDArray
    others: NDArray | None
    """The points of the second type; None for pairs within `points`."""
    inverse: tuple[NDArray, NDArray]
    """1 / lambda of the points and of the others, up to the factor `scale`."""
    scale: float
    r: NDArray
    correction: str
    spacing: float
    noise: float
    """The standard error of a sum of Poisson pairs is this times the root of an integral."""

    @classmethod
    def of(cls, pattern: PointPattern, r, correction: str | None, intensity, types: tuple | None) -> Pairs:
        """Check what a user gave."""
        window = pattern.window
        first, second = (pattern, pattern) if types is None else (pattern.marked(mark) for mark in types)
        for some in (first, second):
            _check_pattern(some, 2 if types is None else 1)
        inverse, scale, noise = _weighing(first, second, intensity, within=types is None)
        return cls(
            window,
            first.points,
            None if types is None else second.points,
            inverse,
            scale,
            _distances(r, longest(window, min(first.rate, second.rate)), STEPS),
            check_correction(correction, window),
            (1 / first.rate) ** (1 / window.dimension),
            noise,
        )

    def blocks(self, reach: float) -> Iterator[tuple[NDArray, NDArray]]:
        """Distances and weights of all ordered pairs within `reach`; pairs within one set are listed once, doubled."""
        n = len(self.points)
        with progress(f"pairs of {n} points", n, None, "a shorter distance takes less time") as done:
            for i, j, d, found in close_pairs(self.points, self.others, reach):
                if len(d):
                    yield d, self._weights(i, j, d)
                done(found)

    def _weights(self, i: NDArray, j: NDArray, d: NDArray) -> NDArray:
        others = self.points if self.others is None else self.others
        both = 2.0 if self.others is None else 1.0
        weights = both * self.scale * self.inverse[0][i] * self.inverse[1][j]
        if self.correction == "translation":
            weights *= self.window.volume / np.maximum(
                self.window.set_covariance(others[j] - self.points[i]), self.window.volume / MOST_WEIGHT
            )
        elif self.correction == "isotropic":
            around = 1 / self._shares(self.points[i], d)
            if self.others is None:
                around = (around + 1 / self._shares(others[j], d)) / 2
            weights *= around
        return weights

    def _shares(self, centres: NDArray, d: NDArray) -> NDArray:
        return np.maximum(circle_shares(self.window, centres, d), 1 / MOST_WEIGHT)


def _weighing(
    first: PointPattern, second: PointPattern, intensity, within: bool
) -> tuple[tuple[NDArray, NDArray], float, float]:
    """1 / lambda of both sets of points, the factor of all pairs, and their noise."""
    volume = first.window.volume
    if intensity is None:
        inverse = np.ones(len(first)), np.ones(len(second))
        # lambda^2 is estimated by n (n - 1) / |W|^2, which has no bias for a Poisson process.
        pairs = len(first) * (len(second) - within)
        scale, noise = volume / pairs, volume / math.sqrt(pairs)
    else:
        inverse = _inverse(intensity, first), _inverse(intensity, second)
        # Weights of one type add up to the volume: an intensity that is wrong by a factor does no harm.
        scale = volume / (inverse[0].sum() * inverse[1].sum())
        noise = scale * math.sqrt((inverse[0] ** 2).sum() * (inverse[1] ** 2).sum())
    return inverse, scale, noise * (math.sqrt(2) if within else 1)


def close_pairs(
    points: NDArray, others: NDArray | None, reach: float
) -> Iterator[tuple[NDArray, NDArray, NDArray, int]]:
    """Pairs (i, j) with their distances, up to `reach`, in blocks, and how many points each block is about.

    Without `others` each pair of `points` is listed once.
    """
    order = np.argsort(points[:, 0], kind="stable")
    target = order if others is None else np.argsort(others[:, 0], kind="stable")
    rows, columns = points[order], (points if others is None else others)[target]
    size = _block(rows, columns, reach)
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        first = start if others is None else np.searchsorted(columns[:, 0], block[0, 0] - reach)
        last = np.searchsorted(columns[:, 0], block[-1, 0] + reach, side="right")
        if first >= last:
            yield order[:0], order[:0], np.zeros(0), len(block)
            continue
        found = cKDTree(block).sparse_distance_matrix(cKDTree(columns[first:last]), reach, output_type="ndarray")
        i, j, d = found["i"], found["j"], found["v"]
        if others is None:
            once = i < j
            i, j, d = i[once], j[once], d[once]
        yield order[start + i], target[first + j], d, len(block)


def _block(rows: NDArray, columns: NDArray, reach: float) -> int:
    """Points per block, so that a block has about `AT_ONCE` pairs if points are spread evenly."""
    spread = np.maximum(np.ptp(columns, axis=0), 1e-300)
    per_point = len(columns) * min(1.0, float(np.prod(np.minimum(2 * reach / spread, 1.0))))
    return int(np.clip(AT_ONCE / max(per_point, 1.0), 64, max(len(rows), 64)))


def _kernel_sums(pairs: Pairs, h: float, divisor: str) -> NDArray:
    """Sums of weight times Epanechnikov kernel at each r, exact, in one pass over the pairs.

    The kernel is a parabola in d between r - h and r + h. So pairs are gathered in the intervals between all such ends,
    with their first three moments there, and each r adds up its intervals.
    """
    r, dimension = pairs.r, pairs.window.dimension
    ends = np.unique(np.concatenate([[0.0], np.maximum(r - h, 0), r + h]))
    centres = (ends[1:] + ends[:-1]) / 2
    moments = np.zeros((3, len(centres)))
    for d, weights in pairs.blocks(ends[-1]):
        where = np.minimum(np.searchsorted(ends, d, side="right") - 1, len(centres) - 1)
        if divisor == "d":
            with np.errstate(divide="ignore"):
                weights = np.where(d > 0, weights / sphere_size(d, dimension), 0)
        off = d - centres[where]
        for power in range(3):
            moments[power] += np.bincount(where, weights * off**power, len(centres))
    first = np.searchsorted(ends, np.maximum(r - h, 0))
    last = np.searchsorted(ends, r + h)
    sums = np.empty(len(r))
    for k, (a, b) in enumerate(zip(first, last, strict=True)):
        gap = r[k] - centres[a:b]
        m0, m1, m2 = moments[:, a:b]
        sums[k] = (m0 * (1 - (gap / h) ** 2) + 2 * m1 * gap / h**2 - m2 / h**2).sum()
    return 0.75 / h * sums


def circle_shares(window: Window, centres: NDArray, radii: NDArray) -> NDArray:
    """Share of the circle around each point that lies in a box in the plane: Ripley's isotropic correction, exact.

    Each side that is nearer than the radius cuts off an arc of half-angle arccos(distance / radius). Arcs of two sides
    that meet in a corner overlap if the corner lies in the circle.
    """
    shares = np.ones(len(radii))
    cut = np.flatnonzero(window.boundary_distance(centres) < radii)  # few, as a rule
    near = np.stack([centres[cut] - window.low, window.high - centres[cut]], axis=2)  # point, axis, end
    arcs = np.arccos(np.clip(near / radii[cut, None, None], 0, 1))
    corners = np.maximum(arcs[:, 0, :, None] + arcs[:, 1, None, :] - np.pi / 2, 0).sum(axis=(1, 2))
    shares[cut] -= (2 * arcs.sum(axis=(1, 2)) - corners) / (2 * np.pi)
    return shares


def check_correction(correction: str | None, window: Window) -> str:
    """The edge correction to use."""
    plane = window.is_box and window.dimension == 2
    if correction is None:
        return "isotropic" if plane else "translation"
    if correction not in CORRECTIONS:
        raise ValueError(f"correction must be one of {', '.join(CORRECTIONS)}; got {correction!r}")
    if correction == "isotropic" and not plane:
        raise ValueError("the isotropic correction is for boxes in the plane: use correction='translation'")
    return correction


def longest(window: Window, rate: float) -> float:
    """The longest distance of a summary: a quarter of the shortest side, or the radius of a ball with 1,000 points."""
    ball = (NEIGHBOURS / (rate * ball_volume(np.ones(1), window.dimension)[0])) ** (1 / window.dimension)
    return min(float(window.lengths.min()) / 4, ball)


def sphere_size(r: NDArray, dimension: int) -> NDArray:
    """Size of a sphere: 2 on the line, 2 pi r in the plane, 4 pi r^2 in space."""
    return dimension * ball_volume(np.ones(1), dimension)[0] * r ** (dimension - 1)


def ball_volume(r: NDArray, dimension: int) -> NDArray:
    """Volume of a ball: 2 r on the line, pi r^2 in the plane."""
    return np.pi ** (dimension / 2) / gamma_function(dimension / 2 + 1) * r**dimension


def _distances(r, reach: float, steps: int) -> NDArray:
    if r is None:
        return np.linspace(0, reach, steps + 1)[1:]
    r = np.asarray(r, dtype=float)
    if r.ndim != 1 or not len(r) or not np.isfinite(r).all() or (np.diff(r) <= 0).any() or r[0] < 0:
        raise ValueError("r must be a flat array of distances from 0 on that increase: sort them, and leave out others")
    return r


def _check_pattern(pattern: PointPattern, least: int) -> None:
    n = len(pattern)
    if n < least:
        raise ValueError(f"a summary of pairs needs at least {least} points, but the pattern has {n}: give more points")


def _inverse(intensity, pattern: PointPattern) -> NDArray:
    values = np.asarray(intensity(pattern.points) if callable(intensity) else intensity, dtype=float)
    if values.shape != (len(pattern),):
        raise ValueError(
            f"an intensity must have one value per point, which is {len(pattern)}, but its shape is {values.shape}: "
            "give a function of points for patterns of several types"
        )
    if not ((values > 0) & (values < np.inf)).all():
        raise ValueError(f"the intensity must be positive and finite at every point, but it is {values.min():g} at one")
    return 1 / values
