"""Pictures of fitted models; needs matplotlib (`pip install coxfield[plot]`).

Colours are of the Okabe-Ito palette, which survives colour-blindness, and classes differ in marker too.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")


def _axes(ax):
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install coxfield[plot]") from None
    return ax if ax is not None else plt.subplots(layout="constrained")[1]


def plot_selection_path(classifier, ax=None):
    """Draw what leave-one-out said of each length scale, and which was chosen.

    Parameters
    ----------
    classifier : fitted LGCPClassifier
        With a `selection`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(classifier)
    path = getattr(classifier, "selection_path_", None)
    if path is None:
        raise ValueError('there is no path to draw: the classifier was fitted with selection=None; try "loo_error"')
    ax = _axes(ax)
    twin = ax.twinx()
    error = ax.plot(path["length_scale"], 100 * path["loo_error"], "o-", color=COLOURS[0], label="0-1 loss, %")
    loss = twin.plot(path["length_scale"], path["loo_log_loss"], "^--", color=COLOURS[1], label="log loss, nats")
    chosen = path["length_scale"][path["chosen"]].item()
    line = ax.axvline(chosen, color="0.5", linewidth=1, label=f"chosen: {chosen:.3g}")
    ax.set(xscale="log", xlabel="length scale", ylabel="leave-one-out 0-1 loss, %")
    twin.set_ylabel("leave-one-out log loss, nats")
    ax.legend(handles=[*error, *loss, line], loc="best")
    return ax


def plot_points(X, y, ax=None, names=None):
    """Scatter labelled points in the plane, a colour and a marker a class."""
    ax = _axes(ax)
    for number, label in enumerate(np.unique(y)):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        at = X[np.asarray(y) == label]
        name = label if names is None else names[number]
        ax.scatter(at[:, 0], at[:, 1], s=14, c=colour, marker=marker, linewidths=0, label=str(name))
    ax.set_aspect("equal")
    return ax


def plot_probability(classifier, X, ax=None, label=None, resolution: int = 200):
    """Draw the probability of one class over the plane around the points X, as a picture with contours.

    Parameters
    ----------
    classifier : fitted classifier with `predict_proba`, on two features
    X : array of shape (n, 2)
        The picture covers these points and a margin.
    ax : matplotlib Axes, optional
    label : class, default: the last of `classes_`
    resolution : int
        Grid points a side.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(classifier)
    ax = _axes(ax)
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.08 * (high - low)
    across, up = (np.linspace(low[k] - margin[k], high[k] + margin[k], resolution) for k in (0, 1))
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    index = len(classifier.classes_) - 1 if label is None else classifier.classes_.tolist().index(label)
    probability = classifier.predict_proba(grid.reshape(-1, 2))[:, index].reshape(grid.shape[:2])
    picture = ax.pcolormesh(across, up, probability, cmap="cividis", vmin=0, vmax=1, shading="gouraud", rasterized=True)
    ax.contour(across, up, probability, levels=[0.5], colors="white", linewidths=1)
    ax.figure.colorbar(picture, ax=ax, label=f"probability of class {classifier.classes_[index]}")
    ax.set_aspect("equal")
    return ax
