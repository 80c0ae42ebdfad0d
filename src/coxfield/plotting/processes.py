"""Pictures of point patterns and intensities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.plotting.figures import COLOUR_MAP, COLOURS, axes_for, figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 100_000  # points in a picture


def plot_pattern(pattern, ax: Axes | None = None) -> Axes:
    """Draw points in their window, with one colour and marker per mark; returns the axes.

    Of more than 100,000 points, so many are drawn at random.

    Examples
    --------
    >>> from coxfield.process import poisson_process
    >>> ax = plot_pattern(poisson_process(1.0, [(0, 5), (0, 3)], random_state=0), figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('$x_1$', '$x_2$')
    """
    dimension = pattern.window.dimension
    if dimension > 3:
        raise ValueError(f"points of {dimension} coordinates cannot be drawn: draw two or three of the coordinates")
    ax = axes_for(ax, "3d" if dimension == 3 else None)
    marks = np.zeros(len(pattern), int) if pattern.marks is None else pattern.marks
    names, some = np.unique(marks), _drawn(len(pattern))
    for number, name in enumerate(names):
        colour, marker = style(number)
        at = pattern.points[some][marks[some] == name].T
        at = [at[0], np.full(at.shape[1], float(number))] if dimension == 1 else at
        look = {"c": colour, "marker": "|" if dimension == 1 else marker, "label": str(name), **_look(pattern)}
        ax.scatter(*at, **look)
    _frame(ax, pattern.window)
    if dimension == 1:
        ax.set_yticks([] if pattern.marks is None else range(len(names)), [] if pattern.marks is None else names)
        ax.set_ylim(-0.6, max(len(names), 1) - 0.4)
    elif pattern.marks is not None and len(names):
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    return ax


def plot_intensity(intensity, ax: Axes | None = None) -> Axes:
    """Draw an intensity: a curve on the line, or a picture with a colour bar in the plane; returns the axes."""
    grid = intensity.grid
    if grid.window.dimension > 2:
        raise ValueError("an intensity in three dimensions cannot be drawn: draw the points, or a slice of `values`")
    if grid.window.dimension == 2:
        return plot_map(grid, intensity.values, "intensity, points per unit area", ax, root=True)
    ax = axes_for(ax)
    ax.plot(grid.axes[0], intensity.values, color=COLOURS[0], drawstyle="steps-mid")
    ax.set(ylabel="intensity", ylim=(0, None))
    _frame(ax, grid.window)
    return ax


LABELS = {"pcf": "pair correlation g(r)", "K": "K(r)", "L": "L(r) - r", "J": "J(r)", "z": "z(t)"}


def plot_summary(summary, ax: Axes | None = None) -> Axes:
    """Draw a summary of a pattern with the 95 % band of a Poisson process at each distance; returns the axes."""
    ax = axes_for(ax)
    shift = summary.r if summary.name == "L" else 0.0
    if summary.standard_errors is not None:
        low, high = summary.band()
        ax.fill_between(summary.r, low - shift, high - shift, color="0.85", lw=0, label="Poisson, 95 % at each r")
    ax.plot(summary.r, summary.poisson - shift, color="0.5", lw=1, ls="--")
    ax.plot(summary.r, summary.values - shift, color=COLOURS[0], label="estimate")
    if summary.bandwidth is not None and (summary.r > summary.bandwidth).any():
        # Nearer than the bandwidth the estimate is noise divided by r, which would hide everything else.
        ax.set_ylim(0, 1.3 * float(summary.values[summary.r > summary.bandwidth].max()))
    _name_distances(ax, summary)
    if summary.standard_errors is not None:
        ax.legend(frameon=False)
    return ax


def plot_envelope(envelope, ax: Axes | None = None) -> Axes:
    """Draw a summary in its global envelope, with the p-value; returns the axes."""
    ax = axes_for(ax)
    shift = envelope.r if envelope.name == "L" else 0.0
    r = envelope.r
    name = f"fitted process, {envelope.level:.0%} of all curves"
    ax.fill_between(r, envelope.low - shift, envelope.high - shift, color="0.85", lw=0, label=name)
    ax.plot(r, envelope.central - shift, color="0.4", lw=1, ls="--", label=f"mean of {envelope.n} simulations")
    ax.plot(r, envelope.observed - shift, color=COLOURS[0], label="pattern")
    _name_distances(ax, envelope)
    if envelope.name in ("pcf", "K", "J"):
        ax.set_ylim(bottom=0)
    ax.set_title(f"p = {envelope.p_value:.3g}", fontsize="medium")
    ax.legend(frameon=False)
    return ax


def _name_distances(ax, summary) -> None:
    unit = f" ({summary.unit})" if summary.unit else ""
    ax.set(xlabel=f"distance r{unit}", ylabel=LABELS.get(summary.name, summary.name), xlim=(0, summary.r[-1]))


def plot_map(grid, values, label: str, ax: Axes | None = None, *, diverging: bool = False, root: bool = False) -> Axes:
    """Draw values on the cells of a grid in the plane, or a curve on the line; NaN stays white. Returns the axes.

    Colours are even around 0 if `diverging`. They follow the square root if `root`: beside the peaks of an exponential
    everything else would be dark.
    """
    if grid.window.dimension > 2:
        raise ValueError("a map in three dimensions cannot be drawn: draw a slice of the values")
    ax = axes_for(ax)
    if grid.window.dimension == 1:
        ax.plot(grid.axes[0], values, color=COLOURS[0])
        ax.set_ylabel(label)
    else:
        (left, right), (bottom, top) = grid.window.sides
        most = float(np.nanmax(np.abs(values)))
        look: dict[str, Any] = {"cmap": "PuOr_r", "vmin": -most, "vmax": most} if diverging else {"cmap": COLOUR_MAP}
        if root:
            from matplotlib.colors import PowerNorm

            look["norm"] = PowerNorm(0.5, vmin=0)
        picture = ax.imshow(values.T, extent=(left, right, bottom, top), origin="lower", **look)
        ax.figure.colorbar(picture, ax=ax, label=label, fraction=0.046)
    _frame(ax, grid.window)
    return ax


def draw_sample(pattern) -> Figure:
    """A figure of a pattern beside the intensity that it was drawn from, as the paper's figure LGCPSamples.

    In one dimension the points are below the curve. In three dimensions only the points are drawn.
    """
    dimension = pattern.window.dimension
    if dimension == 3:
        drawn = figure(6, 5.4)
        plot_pattern(pattern, drawn.add_subplot(projection="3d"))
        return drawn
    if pattern.intensity is None:
        raise ValueError("the pattern has no intensity to draw: use pattern.plot() to draw the points alone")
    drawn = figure(7.2, 3.6) if dimension == 1 else figure(10, 4.4)
    layout = {"nrows": 2, "height_ratios": (5, 1), "sharex": True} if dimension == 1 else {"ncols": 2}
    panels: Any = drawn.subplots(**layout)
    pattern.intensity.plot(panels[0])
    pattern.plot(panels[1])
    panels[0].set_title("intensity", fontsize="medium")
    if dimension == 1:
        panels[0].set_xlabel("")
        panels[1].set_ylabel(f"{len(pattern)} points", rotation=0, ha="right", va="center")
    else:
        panels[1].set_title(f"{len(pattern)} points", fontsize="medium")
    return drawn


def _drawn(count: int) -> Any:
    """The points to draw: all, or so many drawn at random that a picture takes seconds and shows the same."""
    return slice(None) if count <= MOST else np.sort(np.random.default_rng(0).choice(count, MOST, replace=False))


def _look(pattern) -> dict:
    """Sizes and edges of markers. Many points get small markers; markers at the edge of the window are drawn whole."""
    if pattern.window.dimension == 1:
        return {"s": 150, "linewidths": 0.8}
    size = float(np.clip(6000 / max(len(pattern), 1), 2, 20))
    return {"s": size, "linewidths": 0, "clip_on": False, "zorder": 3}


def _frame(ax, window) -> None:
    """Limits and names of the axes. The limits are the window, which is part of the observation."""
    if not window.is_box:
        for part in getattr(window.geometry, "geoms", [window.geometry]):
            for ring in (part.exterior, *part.interiors):
                ax.plot(*np.asarray(ring.coords).T[:2], color="0.4", lw=0.8)
    for letter, number, side in zip("xyz", (1, 2, 3), window.sides, strict=False):
        ax.set(**{f"{letter}lim": side, f"{letter}label": f"$x_{number}$" if window.dimension > 1 else "$x$"})
    if window.dimension == 2:
        ax.set_aspect("equal")
