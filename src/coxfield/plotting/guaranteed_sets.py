"""Pictures of sets with a guarantee, over the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coxfield.plotting.figures import axes_for
from coxfield.plotting.points import plot_points
from coxfield.plotting.styles import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
