"""Points in the plane, and the probability of a class around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield.plotting.figures import axes_for
from coxfield.plotting.styles import COLOUR_MAP, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_points(X, y, ax: Axes | None = None, names=None, size: float = 14) -> Axes:
    """Draw labelled points in the plane, with one colour and marker per class; returns the axes."""
    ax = axes_for(ax)
    for number, label in enumerate(np.unique(y)):
        colour, marker = style(number)
        at = X[np.asarray(y) == label]
        name = label if names is None else names[number]
        ax.scatter(at[:, 0], at[:, 1], s=size, c=colour, marker=marker, linewidths=0, label=str(name))
    ax.set_aspect("equal")
    return ax


def plot_probability(classifier, X, ax: Axes | None = None, label=None, resolution: int = 200) -> Axes:
    """Draw the probability of one class over the plane around the points X, as a picture with contours.

    Parameters
    ----------
    classifier : fitted classifier with `predict_proba`, on two features
    X : array of shape (n, 2)
        The picture covers these points and a margin.
    ax : matplotlib Axes, optional
    label : class, default: the last of `classes_`
    resolution : int
        Number of grid points along each side.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(classifier)
    ax = axes_for(ax)
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.08 * (high - low)
    across, up = (np.linspace(low[k] - margin[k], high[k] + margin[k], resolution) for k in (0, 1))
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    index = len(classifier.classes_) - 1 if label is None else classifier.classes_.tolist().index(label)
    probability = classifier.predict_proba(grid.reshape(-1, 2))[:, index].reshape(grid.shape[:2])
    look: dict[str, Any] = {"cmap": COLOUR_MAP, "vmin": 0, "vmax": 1, "shading": "gouraud", "rasterized": True}
    picture = ax.pcolormesh(across, up, probability, **look)
    ax.contour(across, up, probability, levels=[0.5], colors="white", linewidths=1)
    ax.figure.colorbar(picture, ax=ax, label=f"probability of class {classifier.classes_[index]}")
    ax.set_aspect("equal")
    return ax
