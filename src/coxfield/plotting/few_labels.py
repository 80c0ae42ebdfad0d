"""Pictures of what few labels say about many points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from coxfield.plotting.figures import COLOUR_MAP, DARK, axes_for, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ROOMY = 40  # area of a marker from which it has room for a halo


def plot_few_labels(classifier, X=None, *, axes=None, feature_names=None, title=None) -> tuple[Axes, Axes]:
    """Draw the classes that few labels give to all points, and the doubt that is left.

    The first panel shows the most probable class of each point. Classes differ in colour, and in marker if markers are
    large enough to be seen. Given labels are large with a dark edge. The second panel shows the doubt: the entropy of
    `label_distributions_` in bits. It is 0 where the class is sure, and 1 where two classes are equally probable.

    Parameters
    ----------
    classifier : fitted SLGCPClassifier
        With `inference_ == "mixture"`, which is the default.
    X : array of shape (n, 2), optional
        Where to draw the points. By default `map_` of the classifier says it: at their features, if they have two,
        and otherwise at two principal components of the loudest covariance of a graph.
    axes : pair of matplotlib Axes, optional
    feature_names : pair of str, optional
        Names of the two coordinates.
    title : str, optional
        Heading of the legend: the name of the target.

    Returns
    -------
    pair of matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from coxfield import SLGCPClassifier
    >>> from coxfield.datasets import make_circles
    >>> from coxfield.plotting import figure, plot_few_labels
    >>> X, truth = make_circles(2, random_state=0)
    >>> clf = SLGCPClassifier().fit(X, np.where(np.arange(300) % 30 == 0, truth, -1))
    >>> left, right = plot_few_labels(clf, axes=figure(10, 4.2).subplots(1, 2))
    >>> [text.get_text() for text in left.get_legend().get_texts()]
    ['0', '1', ' ', 'given: 10', 'found: 290']
    """
    check_is_fitted(classifier)
    at = _places(classifier, X)
    axes = axes_for(axes, ncols=2, figsize=(11, 4.6))
    distributions = classifier.label_distributions_
    given = np.zeros(len(at), dtype=bool)
    given[classifier._few_labels.rows] = True
    small = float(np.clip(9000 / len(at), 1.5, 20))  # many points need room
    _draw_classes(axes[0], at, distributions.argmax(axis=1), given, small)
    counts = {"given": int(given.sum()), "found": int((~given).sum())}
    legend(axes[0], classifier.classes_, counts, small, title)
    _draw_doubt(axes[1], at, distributions, given, small)
    for ax in axes:
        _frame(ax, at, _names(classifier, X, feature_names))
    return axes


def _places(classifier, X) -> np.ndarray:
    """Two coordinates per point; ValueError if there are none."""
    found = getattr(classifier, "inference_", None)
    if found != "mixture":
        raise ValueError(
            f"there are no covariances of graphs to draw: the classifier was fitted with inference_={found!r}; "
            "use plot_labelling, or fit an SLGCPClassifier with inference='mixture'"
        )
    if X is None:
        return np.asarray(classifier.map_)
    X, n = np.asarray(X), len(classifier.label_distributions_)
    if X.shape != (n, 2):
        raise ValueError(f"X must have the shape ({n}, 2), got {X.shape}: give two columns, or leave X out")
    return X


def _names(classifier, X, feature_names) -> list[str]:
    """What the two coordinates are."""
    if feature_names is not None:
        return list(feature_names)
    if X is not None:
        return list(map(str, getattr(X, "columns", ("coordinate 1", "coordinate 2"))))
    if classifier.kernel is None and classifier.n_features_in_ == 2:
        return list(getattr(classifier, "feature_names_in_", ("feature 1", "feature 2")))
    return ["component 1 of the loudest graph", "component 2"]


def _draw_classes(ax, at, codes, given, small: float) -> None:
    """Points found in the colours of their classes, and given ones on top."""
    found, crowded = np.flatnonzero(~given), len(at) > MANY
    if crowded:  # in random order, so that no class covers the others; markers could not be told apart
        found = np.random.default_rng(0).permutation(found)
        colours = np.array([style(code)[0] for code in range(codes.max() + 1)])
        ax.scatter(*at[found].T, s=small, c=colours[codes[found]], linewidths=0, rasterized=True, zorder=2)
    large = float(np.clip(2500 / given.sum(), 12, 75))
    for code in np.unique(codes).tolist():
        colour, marker = style(code)
        own = found[codes[found] == code]
        if len(own) and not crowded:
            ax.scatter(*at[own].T, marker=marker, **look("found", colour, small))
        mine = given & (codes == code)
        if mine.any():
            options = look("given", colour, small) | {"s": large}
            if large < ROOMY:
                options |= {"linewidths": 0.7, "path_effects": None}
            ax.scatter(*at[mine].T, marker=marker, rasterized=mine.sum() > MANY, **options)
    ax.set_title("most probable class", loc="left", fontsize="medium")


def _draw_doubt(ax, at, distributions, given, small: float) -> None:
    """Points found, coloured by their entropy, the most doubtful ones on top; given ones are rings."""
    found = np.flatnonzero(~given)
    doubt = entr(distributions[found]).sum(axis=1) / np.log(2)
    order = np.argsort(doubt, kind="stable")
    points = ax.scatter(
        *at[found[order]].T,
        c=doubt[order],
        cmap=f"{COLOUR_MAP}_r",  # doubt is dark, so that it stands out from the ground
        vmin=0,
        vmax=max(1.0, float(doubt.max(initial=0))),
        s=1.5 * small,
        linewidths=0,
        rasterized=len(at) > MANY,
        zorder=2,
    )
    size = float(np.clip(2000 / given.sum(), 4, 26))
    ax.scatter(*at[given].T, s=size, facecolors="none", edgecolors=DARK, linewidths=0.8, zorder=3)
    ax.figure.colorbar(points, ax=ax, label="doubt: entropy in bits (0 = sure)")
    errors = float((1 - distributions[found].max(axis=1)).sum())
    shown = f"{errors:.1f}" if errors < 10 else f"{errors:,.0f}"
    ax.set_title(f"doubt: {shown} errors to expect", loc="left", fontsize="medium")


def _frame(ax, at, names: list[str]) -> None:
    """Axes with their names, and with true distances unless the picture would be very flat."""
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.spines[["top", "right"]].set_visible(False)
    extent = np.ptp(at, axis=0)
    if extent.max() < 3 * extent.min():
        ax.set_aspect("equal")


# Pictures of labellings of points.


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
