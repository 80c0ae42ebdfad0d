"""Pictures of how parameters were chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield.plotting.figures import axes_for, plain_ticks
from coxfield.plotting.styles import COLOUR_MAP, COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USUAL = 'give selection="loo_error", or "cv_error" to an SLGCPClassifier'


def plot_selection_path(classifier, ax: Axes | None = None) -> Axes:
    """Draw the losses of all parameters that were tried, and mark those that were chosen.

    If each length scale was tried once, its losses in leave-one-out or cross validation are drawn as lines. If length
    scales were tried with several signal variances, as for marginals, each pair is a point, and its colour is the log
    loss in cross validation. Crosses are pairs for which one class takes all points.

    Parameters
    ----------
    classifier : fitted LGCPClassifier, SLGCPClassifier or PermanentalClassifier
        With a `selection` that tries parameters one after the other. A mixture has no path: `plot_mixture` draws it.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(classifier)
    path = _path(classifier)
    ax = axes_for(ax)
    repeated = len(np.unique(path["length_scale"])) < len(path["length_scale"])
    drawn = _draw_pairs(ax, path) if repeated else _draw_lines(ax, path)
    ax.set(xscale="log", xlabel="length scale")
    plain_ticks(ax.xaxis)
    # Above the axes, where it covers nothing.
    ax.legend(handles=drawn, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    return ax


def _path(classifier) -> dict:
    """What was tried; ValueError if nothing was."""
    if hasattr(classifier, "selection_path_"):
        return classifier.selection_path_
    selection = getattr(classifier, "selection", None)
    remedy = "use plot_mixture" if hasattr(classifier, "mixture_") else USUAL
    raise ValueError(f"there is no path to draw: the classifier was fitted with selection={selection!r}; {remedy}")


def _draw_lines(ax, path) -> list:
    """Losses against the length scale, and a line at the one that was chosen."""
    scale, chosen = path["length_scale"], path["length_scale"][path["chosen"]].item()
    semi = "cv_error" in path
    name = "cross-validation" if semi else "leave-one-out"
    error = path["cv_error" if semi else "loo_error"]
    drawn = ax.plot(scale, 100 * error, "o-", color=COLOURS[0], label="0-1 loss")
    if not semi:
        twin = ax.twinx()
        drawn += twin.plot(scale, path["loo_log_loss"], "^--", color=COLOURS[1], label="log loss")
        twin.set_ylabel("leave-one-out log loss, nats")
    ax.set_ylabel(f"{name} 0-1 loss, %")
    return [*drawn, ax.axvline(chosen, color="0.5", linewidth=1, label=f"chosen: {chosen:.3g}")]


def _draw_pairs(ax, path) -> list:
    """Pairs of length scale and signal variance, coloured by their log loss."""
    scale, variance, loss, trivial, chosen = (
        np.asarray(path[name]) for name in ("length_scale", "variance", "cv_log_loss", "trivial", "chosen")
    )
    usual = ~trivial
    points = ax.scatter(scale[usual], variance[usual], c=loss[usual], cmap=COLOUR_MAP, marker="s", s=75, linewidths=0)
    ax.figure.colorbar(points, ax=ax, label="cross-validation log loss, nats")
    drawn = []
    if trivial.any():
        drawn.append(
            ax.scatter(scale[trivial], variance[trivial], c="0.6", marker="x", s=30, label="one class takes all")
        )
    best = scale[chosen].item(), variance[chosen].item()
    label = f"chosen: length scale {best[0]:.3g}, variance {best[1]:.3g}"
    ring = ax.scatter(*best, s=260, facecolors="none", edgecolors=COLOURS[1], linewidths=2.2, label=label)
    ax.set(yscale="log", ylabel="signal variance")
    return [*drawn, ring]
