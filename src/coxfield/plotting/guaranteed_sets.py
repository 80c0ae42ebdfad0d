"""Pictures of sets with a guarantee, over the plane."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from coxfield.plotting.few_labels import MANY
from coxfield.plotting.figures import PIXELS, are_pictures, axes_for, draw_pictures, plot_points, style
from coxfield.plotting.figures import image_shape as shape_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


PALE = 0.55  # how far the colour of a region is from that of its class, towards white


def plot_sets(
    classifier,
    X,
    y=None,
    coverage: float = 0.9,
    *,
    per_class: bool = False,
    ax: Axes | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw the regions of the plane where the sets of `predict_set` are the same.

    A region with one class has the colour of the class. A region with several classes is grey with lines; the more
    classes, the darker. A region with the empty set is white with dots.

    Parameters
    ----------
    classifier : fitted LGCPClassifier, on two features
    X : array of shape (n, 2)
        The picture covers these points and a margin.
    y : array of shape (n,), optional
        The labels of X. The points are drawn if they are given.
    coverage : float
        How often a set must hold the true class.
    per_class : bool
        Whether each class is covered with this probability.
    ax : matplotlib Axes, optional
    resolution : int
        Number of grid points along each side.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield import LGCPClassifier
    >>> from coxfield.datasets import load_synth
    >>> from coxfield.plotting import figure, plot_sets
    >>> X, y, *_ = load_synth(return_X_y=True)
    >>> clf = LGCPClassifier(0.3 * RBF(0.2), selection=None).fit(X, y)
    >>> ax = plot_sets(clf, X, y, 0.95, ax=figure().subplots(), resolution=30)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['{0}', '{1}', '{0, 1}']
    """
    check_is_fitted(classifier)
    X = _plane(X, classifier)
    ax = axes_for(ax)
    across, up = _grid(X, resolution)
    places = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    sets = classifier.predict_set(places, coverage, per_class=per_class)
    different, number = np.unique(sets, axis=0, return_inverse=True)
    order = _by_size(different)
    for k in order:
        _draw_region(ax, across, up, (number == k).reshape(resolution, resolution), different[k])
    if y is not None:
        plot_points(X, y, ax, size=10)
    _legend(ax, different[order], classifier.classes_)
    ax.set(xlim=across[[0, -1]], ylim=up[[0, -1]], title=f"sets that cover {100 * coverage:g} %")
    ax.set_aspect("equal")
    return ax


def _plane(X, classifier) -> np.ndarray:
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != 2 or classifier.n_features_in_ != 2:
        raise ValueError(
            f"regions can be drawn in the plane only, but X has the shape {X.shape} and the classifier has "
            f"{classifier.n_features_in_} features: fit it to two features"
        )
    return X


def _grid(X, resolution: int) -> tuple[np.ndarray, np.ndarray]:
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.12 * (high - low)
    across, up = (np.linspace(low[k] - margin[k], high[k] + margin[k], resolution) for k in (0, 1))
    return across, up


def _by_size(different: np.ndarray) -> np.ndarray:
    """Sets of one class first, in the order of the classes, then larger ones, and the empty set last."""
    sizes = different.sum(axis=1)
    keys = [(np.inf if size == 0 else size, *(~row).tolist()) for size, row in zip(sizes, different, strict=True)]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__))


def _look(members: np.ndarray) -> dict:
    """Colour and hatch of the region of a set."""
    found = np.flatnonzero(members)
    if len(found) == 0:
        return {"facecolor": "white", "hatch": "..."}
    if len(found) == 1:
        return {"facecolor": _pale(style(int(found[0]))[0]), "hatch": None}
    # More classes say less: the region is darker, and its lines are denser.
    return {"facecolor": str(max(0.35, 0.9 - 0.12 * (len(found) - 1))), "hatch": "/" * min(4, len(found))}


def _pale(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(PALE + (1 - PALE) * part for part in to_rgb(colour))


def _draw_region(ax, across, up, inside, members) -> None:
    look, values = _look(members), inside.astype(float)
    # Between a grid point inside and one outside, the edge of a region is half way: neighbours meet without a gap.
    options = {"colors": [look["facecolor"]], "hatches": [look["hatch"]], "zorder": 0}
    ax.contourf(across, up, values, levels=[0.5, 1.5], **options)


def _legend(ax, sets, classes) -> None:
    from matplotlib.patches import Patch

    names = ["empty" if not row.any() else "{" + ", ".join(map(str, classes[row])) + "}" for row in sets]
    patches = [
        Patch(edgecolor="black", linewidth=0.5, label=name, **_look(row)) for name, row in zip(names, sets, strict=True)
    ]
    ax.legend(handles=patches, title="set", loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


# Pictures of doubtful labels.


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
