"""Poisson processes, and two operations on point processes: thinning and superposition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from coxfield.geometry.window import Window
from coxfield.process.fields import Intensity
from coxfield.process.pattern import Pattern
from coxfield.utils.numbers import generator, number_from_zero

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Positional = Callable[[NDArray], NDArray]

MOST_POINTS = 5e7  # more would fill the memory


def poisson_process(
    intensity: float | Intensity | Positional, window=None, *, bound: float | None = None, random_state=None
) -> Pattern:
    """Draw a Poisson process (section 'Background').

    Parameters
    ----------
    intensity : float, Intensity, or function of points of shape (n, d)
        A number gives a homogeneous process. For an `Intensity`, points are drawn cell by cell. For a function, a
        homogeneous process of rate `bound` is thinned. Both are exact.
    window : Window or pairs
        One (low, high) pair per axis. Not needed for an `Intensity`, which has its own.
    bound : float
        Needed for a function: a number that it does not exceed anywhere in the window.
    random_state : int, RandomState instance, numpy Generator or None

    Returns
    -------
    Pattern

    Examples
    --------
    >>> pattern = poisson_process(3.0, [(0, 10), (0, 10)], random_state=0)
    >>> len(pattern)  # the expected number is 300
    307
    >>> slope = poisson_process(lambda x: x[:, 0], (0, 20), bound=20, random_state=0)
    >>> slope.count((0, 10)) < slope.count((10, 20))
    True
    """
    rng = generator(random_state)
    if isinstance(intensity, Intensity):
        return draw_from(intensity, rng)
    if window is None:
        raise ValueError("window is missing: give one (low, high) pair per axis, such as [(0, 10), (0, 10)]")
    window = Window.of(window)
    if not callable(intensity):
        return _homogeneous(number_from_zero("intensity", intensity), window, rng)
    if bound is None:
        raise ValueError(
            "an intensity that is a function needs a bound: give a number that it never exceeds in the window"
        )
    bound = number_from_zero("bound", bound)
    pattern = _homogeneous(bound, window, rng)
    rate = _values(intensity, pattern.points, "intensity", bound)
    return Pattern(pattern.points[rng.random(len(pattern)) * bound < rate], window)


def draw_from(intensity: Intensity, rng: np.random.Generator, most_points: float | None = None) -> Pattern:
    """Draw a Poisson process whose intensity is constant on cells: for each cell the number of points, then places."""
    grid = intensity.grid
    _refuse_crowds(intensity.integral, most_points)
    counts = rng.poisson(intensity.values.ravel() * grid.cell_volume)
    cells = np.repeat(np.arange(counts.size), counts)
    corner = np.stack(np.unravel_index(cells, grid.shape), axis=1)
    points = grid.window.low + (corner + rng.random(corner.shape)) * grid.spacing
    # Rounding may move a point of the last cell across the edge.
    return Pattern(np.minimum(points, grid.window.high), grid.window, intensity=intensity)


def thin(pattern: Pattern, retention: float | Positional, *, random_state=None) -> Pattern:
    """Keep each point independently with a given probability: tau(X, gamma) of section 'Model definition'.

    Parameters
    ----------
    pattern : Pattern
    retention : float in [0, 1], or function of points of shape (n, d)
        gamma, the probability that a point stays.
    random_state : int, RandomState instance, numpy Generator or None

    Returns
    -------
    Pattern
        The points that stayed, with their marks. If the intensity was known and gamma is a number, the result has the
        intensity times gamma.

    Examples
    --------
    >>> crowd = poisson_process(50.0, (0, 10), random_state=0)
    >>> len(crowd), len(thin(crowd, 0.1, random_state=0))
    (509, 49)
    """
    rng = generator(random_state)
    intensity = None
    if callable(retention):
        keep = rng.random(len(pattern)) < _values(retention, pattern.points, "retention", 1.0)
    else:
        gamma = check_gamma(retention)
        keep = rng.random(len(pattern)) < gamma
        if pattern.intensity is not None:
            intensity = Intensity(pattern.intensity.grid, gamma * pattern.intensity.values)
    marks = None if pattern.marks is None else pattern.marks[keep]
    return Pattern(pattern.points[keep], pattern.window, marks, intensity)


def superpose(patterns: Sequence[Pattern] | Mapping[object, Pattern]) -> Pattern:
    """Join patterns into one, and mark each point by the pattern that it came from: X of section 'Model definition'.

    Parameters
    ----------
    patterns : sequence of Pattern, or mapping mark -> Pattern
        All in the same window. The points of a sequence are marked 0, 1, 2, ... by pattern. Earlier marks are lost.

    Returns
    -------
    Pattern
        Has the total intensity rho_T if all intensities are known on the same grid.

    Examples
    --------
    >>> window = [(0, 2), (0, 2)]
    >>> both = superpose({"cat": Pattern([[1, 1]], window), "dog": Pattern([[0, 1], [1, 2]], window)})
    >>> both.marks.tolist()
    ['cat', 'dog', 'dog']
    """
    marked = dict(patterns if isinstance(patterns, Mapping) else enumerate(patterns))
    parts = list(marked.values())
    if not parts:
        raise ValueError("there is nothing to superpose: give at least one pattern")
    for part in parts[1:]:
        if part.window != parts[0].window:
            raise ValueError(
                f"patterns must share one window, got {parts[0].window.sides} and {part.window.sides}: draw them anew"
            )
    marks = np.repeat(np.array(list(marked)), [len(part) for part in parts])
    return Pattern(np.concatenate([part.points for part in parts]), parts[0].window, marks, _total(parts))


def _total(parts: list[Pattern]) -> Intensity | None:
    """rho_T, the sum of the intensities, if they are all known on the same grid."""
    known = [part.intensity for part in parts if part.intensity is not None]
    if len(known) < len(parts) or any(rho.grid != known[0].grid for rho in known):
        return None
    return Intensity(known[0].grid, np.sum([rho.values for rho in known], axis=0))


def _homogeneous(rate: float, window: Window, rng: np.random.Generator) -> Pattern:
    _refuse_crowds(rate * window.volume)
    n = rng.poisson(rate * window.volume)
    return Pattern(window.sample(n, rng), window)


def check_gamma(gamma) -> float:
    """The thinning probability as a float; refuse what is not between 0 and 1."""
    if not isinstance(gamma, Real) or not 0 <= float(gamma) <= 1:
        raise ValueError(f"gamma, the probability that a point is kept, must lie between 0 and 1; got {gamma!r}")
    return float(gamma)


def _values(function: Positional, points: NDArray, name: str, bound: float) -> NDArray:
    """Values of a function at some points; refuse values that are not between 0 and the bound."""
    values = np.asarray(function(points), dtype=float)
    if values.shape != (len(points),):
        raise ValueError(
            f"{name} gave an array of shape {values.shape} for {len(points)} points: it must give one number per point"
        )
    wrong = np.flatnonzero(~((values >= 0) & (values <= bound)))
    if len(wrong):
        at, value = points[wrong[0]].tolist(), values[wrong[0]]
        raise ValueError(f"{name} must lie between 0 and {bound:g} everywhere, but it is {value:g} at {at}: correct it")
    return values


def _refuse_crowds(expected: float, most: float | None = None) -> None:
    limit = MOST_POINTS if most is None else most
    if expected > limit:
        remedy = "" if most is None else ", or raise most_points (--most-points)"
        raise ValueError(
            f"about {expected:.2g} points are to be expected, more than the {limit:g} that are drawn at most: "
            f"lower the intensity (mean, variance) or take a smaller window{remedy}"
        )
