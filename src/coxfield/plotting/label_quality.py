"""Pictures of doubtful labels."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from coxfield.plotting.figures import axes_for
from coxfield.plotting.labelling import MANY
from coxfield.plotting.pictures import PIXELS, are_pictures, draw_pictures
from coxfield.plotting.pictures import image_shape as shape_of
from coxfield.plotting.points import plot_points
from coxfield.plotting.styles import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

RING, POINT = 130, 16  # areas of markers


def plot_label_quality(classifier, n: int = 12, *, ax: Axes | None = None, image_shape=None, names=None) -> Axes:
    """Draw the most doubtful labels of the training points.

    Points in the plane are drawn with their given labels, and a ring around a point means that its label is doubtful.
    The colour of the ring is that of the label that the other points suggest. Pictures are drawn in the order of their
    ranks, the most doubtful one first, with both labels.

    Parameters
    ----------
    classifier : fitted LGCPClassifier
        With two features, or with pictures as points.
    n : int
        How many doubtful labels to show.
    ax : matplotlib Axes, optional
    image_shape : pair of int, optional
        Height and width of the pictures. By default, 64 or more features whose number is a square are a square picture.
    names : sequence of str, optional
        What to call the classes, in the order of `classes_`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from coxfield import LGCPClassifier
    >>> from coxfield.datasets import load_synth
    >>> from coxfield.plotting import figure, plot_label_quality
    >>> X, y, *_ = load_synth(return_X_y=True)
    >>> ax = plot_label_quality(LGCPClassifier().fit(X, y), 5, ax=figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', 'doubtful, 0 suggested', 'doubtful, 1 suggested']
    """
    if n < 1:
        raise ValueError(f"there is nothing to draw: n is {n}; give the number of labels to show")
    quality = classifier.label_quality()  # says it if nothing is fitted
    X, classes = classifier.X_fit_, classifier.classes_
    shape = _shape(X.shape[1], image_shape)
    names = [str(name) for name in (classes if names is None else names)]
    first = np.argsort(quality["rank"])[:n]
    label, suggested = (np.searchsorted(classes, quality[name]) for name in ("label", "suggested"))
    points = X[first].toarray() if sparse.issparse(X) else X[first]
    ax = axes_for(ax)
    if shape is not None:
        texts = [f"given: {names[label[k]]}\nsuggested: {names[suggested[k]]}" for k in first]
        places = [divmod(k, _columns(len(first))) for k in range(len(first))]
        return draw_pictures(ax, points.reshape(-1, *shape), texts, places)
    everyone = X.toarray() if sparse.issparse(X) else X
    plot_points(everyone, label, ax, [names[code] for code in np.unique(label)], POINT)
    return _draw_rings(ax, points, suggested[first], names, len(everyone) > MANY)


def is_drawable(d: int) -> bool:
    """Whether points with d features can be drawn without a word about their shape: in the plane, or as pictures.

    Examples
    --------
    >>> [is_drawable(d) for d in (2, 3, 16, 64, 784)]
    [True, False, False, True, True]
    """
    return d == 2 or are_pictures(d)


def _shape(d: int, given) -> tuple[int, int] | None:
    """Height and width of the pictures that points with d features are, None for points in the plane."""
    if given is None and d == 2:
        return None
    if given is None and not are_pictures(d):
        raise ValueError(
            f"points with {d} features are neither in the plane nor square pictures of at least {PIXELS} pixels: "
            "give image_shape if they are pictures, or read label_quality() as a table"
        )
    return shape_of(d, given)


def _draw_rings(ax, at: NDArray, suggested: NDArray, names: list[str], crowded: bool):
    """Rings around points, in the colours of the suggested labels."""
    for code in np.unique(suggested):
        own = at[suggested == code]
        look = {"s": RING, "facecolors": "none", "edgecolors": style(code)[0], "linewidths": 1.6, "zorder": 4}
        ax.scatter(*own.T, marker="o", label=f"doubtful, {names[code]} suggested", **look)
    for drawn in ax.collections:
        drawn.set_rasterized(crowded)
    ax.spines[["top", "right"]].set_visible(False)
    # Above the axes, where it covers nothing.
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    return ax


def _columns(count: int) -> int:
    """Pictures per row, a third more than there are rows."""
    return ceil((4 * count / 3) ** 0.5)
