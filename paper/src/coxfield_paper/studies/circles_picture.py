"""The three panels of figure concentricCircles, drawn from a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import gaussian_filter

from coxfield import plotting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

NAMES = {2: ("inner ring", "outer ring"), 3: ("inner ring", "middle ring", "outer ring")}


def picture(n_rings: int, result: Mapping[str, Any]):
    """Three panels: the data with errors circled, the predictive surface, and the labels given."""
    figure = plotting.figure(12, 4.6)
    panels = figure.subplots(ncols=3)
    X, truth, y, labels = (np.array(result[key]) for key in ("points", "truth", "given", "found"))
    _draw_data(panels[0], X, truth, X[labels != truth], NAMES[n_rings])
    _draw_surface(panels[1], n_rings, result)
    _draw_labelled(panels[2], X, y, NAMES[n_rings])
    for panel in panels:
        panel.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
        panel.set(xlim=(result["across"][0], result["across"][-1]), ylim=(result["up"][0], result["up"][-1]))
    return figure


def _draw_data(panel, X: NDArray, truth: NDArray, wrong: NDArray, names: Sequence[str]) -> None:
    plotting.plot_points(X, truth, panel, names)
    panel.scatter(*wrong.T, s=150, facecolors="none", edgecolors="black", linewidths=1.6, label="not recovered")
    panel.set_title("data")
    _legend_below(panel)


def _draw_surface(panel, n_rings: int, result: Mapping[str, Any]) -> None:
    across, up, probability, winner = (np.array(result[key]) for key in ("across", "up", "probability", "winner"))
    least = 0 if n_rings == 2 else 1 / n_rings
    colours = panel.pcolormesh(across, up, probability, cmap="cividis", vmin=least, vmax=1, rasterized=True)
    # Where the most probable ring changes. Smoothed over one grid step, because the steps would show.
    for ring in range(n_rings - 1):
        within = gaussian_filter((winner <= ring).astype(float), 1)
        panel.contour(across, up, within, levels=[0.5], colors="white", linewidths=1.2)
    panel.set_title(f"probability of the {'inner' if n_rings == 2 else 'likeliest'} ring")
    panel.figure.colorbar(colours, ax=panel, label="probability", fraction=0.046)


def _draw_labelled(panel, X: NDArray, y: NDArray, names: Sequence[str]) -> None:
    panel.scatter(*X[y < 0].T, s=10, c="0.7", linewidths=0, label="not labelled")
    plotting.plot_points(X[y >= 0], y[y >= 0], panel, names, size=55)
    panel.set_title("labels given")
    _legend_below(panel)


def _legend_below(panel) -> None:
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, columnspacing=1)
