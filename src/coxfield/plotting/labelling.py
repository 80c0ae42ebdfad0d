"""Pictures of labellings of points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.plotting.figures import axes_for
from coxfield.plotting.styles import DARK, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY = 5000  # from so many points on, a PDF or SVG holds a picture of them instead


def plot_labelling(X, labels, given, certified, ax: Axes | None = None, feature_names=None, title=None) -> Axes:
    """Draw a labelling of points: the labels given, the labels found, and which of these are proven.

    Classes differ in colour and marker. Given labels are large with a dark edge. Labels found are small; they are
    hollow if they are not proven. Two features are the axes of the picture. Of more features the first two principal
    components are drawn. With one feature, each class has a line of its own.

    Parameters
    ----------
    X : array of shape (n, d)
    labels : array of shape (n,)
        Such as `transduction_` of an `SLGCPClassifier`.
    given : array of bool, shape (n,)
        Whether the label was known.
    certified : array of bool, shape (n,)
        Whether the label is proven, such as `certified_`.
    ax : matplotlib Axes, optional
    feature_names : sequence of str, optional
        Names of the axes, unless they are principal components.
    title : str, optional
        Heading of the legend: the name of the target.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from coxfield.plotting import figure, plot_labelling
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 1.0], [5.0, 1.0]])
    >>> labels, given = np.array(["a", "a", "b", "b"]), np.array([True, False, False, True])
    >>> ax = plot_labelling(X, labels, given, np.ones(4, bool), ax=figure().subplots(), feature_names=["x", "y"])
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('x', ['a', 'b', ' ', 'given: 2', 'found, proven: 2'])
    """
    ax = axes_for(ax)
    given, certified = np.asarray(given, dtype=bool), np.asarray(certified, dtype=bool)
    classes, codes = np.unique(labels, return_inverse=True)
    at = _in_the_plane(ax, np.asarray(X), feature_names, classes, codes)
    kinds = {"given": given, "found, proven": ~given & certified, "found, not proven": ~given & ~certified}
    small = float(np.clip(9000 / len(at), 5, 20))  # many points need room
    for code in range(len(classes)):
        colour, marker = style(code)
        for kind, members in kinds.items():
            own = at[members & (codes == code)]
            if len(own):
                ax.scatter(*own.T, marker=marker, rasterized=len(at) > MANY, **look(kind, colour, small))
    ax.spines[["top", "right"]].set_visible(False)
    legend(ax, classes, {kind: int(members.sum()) for kind, members in kinds.items()}, small, title)
    return ax


def look(kind: str, colour: str, small: float) -> dict:
    """How points of a kind are drawn. Given labels are on top, and a halo sets them apart from a crowd."""
    if kind in ("found", "found, proven"):
        return {"s": small, "facecolors": colour, "linewidths": 0, "zorder": 2}
    if kind == "found, not proven":
        return {"s": 1.5 * small, "facecolors": "white", "edgecolors": colour, "linewidths": 1, "zorder": 3}
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=3.2, foreground="white")]
    return {"s": 75, "facecolors": colour, "edgecolors": DARK, "linewidths": 1.3, "zorder": 4, "path_effects": halo}


def _in_the_plane(ax, X, feature_names, classes, codes):
    """Two coordinates per point. The names of the axes say what they are."""
    d = X.shape[1]
    names = [f"feature {k + 1}" for k in range(d)] if feature_names is None else list(feature_names)
    if d == 1:
        ax.set(xlabel=names[0], yticks=range(len(classes)), yticklabels=classes, ylim=(-0.6, len(classes) - 0.4))
        return np.column_stack([X[:, 0], codes])
    if d > 2:
        from sklearn.decomposition import PCA

        pca = PCA(2, random_state=0).fit(X)
        X = pca.transform(X)
        share = 100 * pca.explained_variance_ratio_
        names = [
            f"principal component 1 ({share[0]:.0f}% of the variance)",
            f"principal component 2 ({share[1]:.0f}%)",
        ]
    ax.set(xlabel=names[0], ylabel=names[1])
    extent = np.ptp(X, axis=0)
    if extent.max() < 3 * extent.min():  # the covariance depends on distances; but a very flat picture shows nothing
        ax.set_aspect("equal")
    return X


def legend(ax, classes, counts: dict[str, int], small: float, title) -> None:
    """A legend beside the points: classes by colour and marker, then kinds of labels, with their numbers."""
    handles = []
    for code, label in enumerate(classes):
        colour, marker = style(code)
        handles.append(ax.scatter([], [], s=45, c=colour, marker=marker, linewidths=0, label=str(label)))
    handles.append(ax.scatter([], [], s=0, label=" "))  # room between classes and kinds
    for kind, count in counts.items():
        if count:
            drawn = look(kind, "0.6", max(small, 14))
            handles.append(ax.scatter([], [], marker="o", label=f"{kind}: {count}", **drawn))
    ax.legend(
        handles=handles,
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        alignment="left",
        frameon=False,
        labelspacing=0.6,
        ncols=-(-len(handles) // 20),
    )
