"""Pictures of what few labels say about many points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from coxfield.plotting.figures import axes_for
from coxfield.plotting.labelling import MANY, legend, look
from coxfield.plotting.styles import COLOUR_MAP, DARK, style

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
