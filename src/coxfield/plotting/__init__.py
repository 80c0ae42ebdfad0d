"""Pictures of fitted models; needs matplotlib (`pip install coxfield[plot]`).

Colours are of the Okabe-Ito palette, which survives colour-blindness, and classes differ in marker too.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from pathlib import Path

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
DARK = "0.1"  # edge of what was given
MANY = 5000  # points beyond which a PDF or SVG holds a picture of them instead
PICTURES = (".png", ".pdf", ".svg")


def axes_for(ax, projection: str | None = None):
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install coxfield[plot]") from None
    return plt.subplots(layout="constrained", subplot_kw={"projection": projection})[1]


def plot_selection_path(classifier, ax=None):
    """Draw what leave-one-out, or cross validation, said of each length scale, and which was chosen.

    Parameters
    ----------
    classifier : fitted LGCPClassifier or SLGCPClassifier
        With a `selection`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(classifier)
    path = getattr(classifier, "selection_path_", None)
    if path is None:
        raise ValueError(
            "there is no path to draw: the classifier was fitted with selection=None; leave it at its default"
        )
    ax = axes_for(ax)
    scale, chosen = path["length_scale"], path["length_scale"][path["chosen"]].item()
    semi = "cv_error" in path
    name = "cross-validation" if semi else "leave-one-out"
    error = path["cv_error" if semi else "loo_error"]
    drawn = ax.plot(scale, 100 * error, "o-", color=COLOURS[0], label="0-1 loss")
    if not semi:
        twin = ax.twinx()
        drawn += twin.plot(scale, path["loo_log_loss"], "^--", color=COLOURS[1], label="log loss")
        twin.set_ylabel("leave-one-out log loss, nats")
    drawn.append(ax.axvline(chosen, color="0.5", linewidth=1, label=f"chosen: {chosen:.3g}"))
    ax.set(xscale="log", xlabel="length scale", ylabel=f"{name} 0-1 loss, %")
    # Above the axes, where it covers nothing.
    ax.legend(handles=drawn, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    return ax


def plot_points(X, y, ax=None, names=None, size: float = 14):
    """Scatter labelled points in the plane, a colour and a marker a class."""
    ax = axes_for(ax)
    for number, label in enumerate(np.unique(y)):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        at = X[np.asarray(y) == label]
        name = label if names is None else names[number]
        ax.scatter(at[:, 0], at[:, 1], s=size, c=colour, marker=marker, linewidths=0, label=str(name))
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
    ax = axes_for(ax)
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


def plot_labelling(X, labels, given, certified, ax=None, feature_names=None, title=None):
    """Draw a labelling of points: what was given, what was found, and what of it is proven.

    Classes differ in colour and marker. Given labels are large and dark-edged, labels found are small, and those of
    them that are not proven are hollow. Two features are drawn as they are; of more, the first two principal
    components; of one, a line a class.

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
        Heading of the legend: what the classes are classes of.

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
    ax = axes_for(None) if ax is None else ax
    given, certified = np.asarray(given, dtype=bool), np.asarray(certified, dtype=bool)
    classes, codes = np.unique(labels, return_inverse=True)
    at = _in_the_plane(ax, np.asarray(X), feature_names, classes, codes)
    kinds = {"given": given, "found, proven": ~given & certified, "found, not proven": ~given & ~certified}
    small = float(np.clip(9000 / len(at), 5, 20))  # many points need room
    for code in range(len(classes)):
        colour, marker = _style(code)
        for kind, members in kinds.items():
            own = at[members & (codes == code)]
            if len(own):
                ax.scatter(*own.T, marker=marker, rasterized=len(at) > MANY, **_look(kind, colour, small))
    ax.spines[["top", "right"]].set_visible(False)
    _legend(ax, classes, {kind: int(members.sum()) for kind, members in kinds.items()}, small, title)
    return ax


def _style(code: int) -> tuple[str, str]:
    """Colour and marker of a class; no two of the first 64 share both."""
    return COLOURS[code % len(COLOURS)], MARKERS[(code + code // len(COLOURS)) % len(MARKERS)]


def _look(kind: str, colour: str, small: float) -> dict:
    """How points of a kind are drawn: later kinds over earlier ones, and given ones clear of a crowd."""
    if kind == "found, proven":
        return {"s": small, "facecolors": colour, "linewidths": 0, "zorder": 2}
    if kind == "found, not proven":
        return {"s": 1.5 * small, "facecolors": "white", "edgecolors": colour, "linewidths": 1, "zorder": 3}
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=3.2, foreground="white")]
    return {"s": 75, "facecolors": colour, "edgecolors": DARK, "linewidths": 1.3, "zorder": 4, "path_effects": halo}


def _in_the_plane(ax, X, feature_names, classes, codes):
    """Two coordinates of each point; what they are is written at the axes."""
    d = X.shape[1]
    names = [f"feature {k + 1}" for k in range(d)] if feature_names is None else list(feature_names)
    if d == 1:
        ax.set(xlabel=names[0], yticks=range(len(classes)), yticklabels=classes, ylim=(-0.6, len(classes) - 0.4))
        return np.column_stack([X[:, 0], codes])
    if d > 2:
        pca = PCA(2, random_state=0).fit(X)
        X = pca.transform(X)
        share = 100 * pca.explained_variance_ratio_
        names = [
            f"principal component 1 ({share[0]:.0f}% of the variance)",
            f"principal component 2 ({share[1]:.0f}%)",
        ]
    ax.set(xlabel=names[0], ylabel=names[1])
    extent = np.ptp(X, axis=0)
    if extent.max() < 3 * extent.min():  # the covariance goes by distance; slivers, though, show nothing
        ax.set_aspect("equal")
    return X


def _legend(ax, classes, counts: dict[str, int], small: float, title) -> None:
    """Beside the points: classes by colour and marker, then what sizes and edges mean, with numbers."""
    handles = []
    for code, label in enumerate(classes):
        colour, marker = _style(code)
        handles.append(ax.scatter([], [], s=45, c=colour, marker=marker, linewidths=0, label=str(label)))
    handles.append(ax.scatter([], [], s=0, label=" "))  # room between the two
    for kind, count in counts.items():
        if count:
            look = _look(kind, "0.6", max(small, 14))
            handles.append(ax.scatter([], [], marker="o", label=f"{kind}: {count}", **look))
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


def check_picture(path: Path) -> None:
    """Refuse a path that no picture will be written to, before the work is done rather than after."""
    if path.suffix.lower() not in PICTURES:
        raise ValueError(
            f"The ending of {path} is none of {', '.join(PICTURES)}, which are the pictures coxfield draws"
        )
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} to")
    figure()


def figure(width: float = 7.2, height: float = 5.2):
    """A figure that no window will show: pyplot and its backend stay as they are."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install coxfield[plot]") from None
    return Figure(figsize=(width, height), layout="constrained")


def encode(figure, path: Path) -> bytes:
    """The bytes of a figure in the format of a file's ending; the same figure makes the same bytes."""
    import matplotlib as mpl

    ending = path.suffix.lower()
    stamp = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(ending, {})
    stream = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "coxfield"}):
        figure.savefig(stream, format=ending[1:], dpi=200, metadata=stamp, bbox_inches="tight")
    return stream.getvalue()


def plot_reliability(reliabilities, ax=None):
    """Draw how often classifiers were right against how sure they were.

    On the diagonal probabilities mean what they say; below it a classifier is too sure of itself, above it not sure
    enough. Bars are two standard errors of what chance alone would do.

    Parameters
    ----------
    reliabilities : Reliability, or mapping name -> Reliability
        From `coxfield.evaluation.calibration.reliability`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from coxfield.evaluation.calibration import reliability
    >>> from coxfield.plotting import figure, plot_reliability
    >>> found = reliability([0, 0, 1], np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]))
    >>> ax = plot_reliability({"three points": found}, figure().subplots())
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('probability of the predicted class', ['three points: log loss 0.415'])
    """
    ax = axes_for(None) if ax is None else ax
    named = reliabilities if isinstance(reliabilities, dict) else {"classifier": reliabilities}
    for code, (name, found) in enumerate(named.items()):
        colour, marker = _style(code)
        full = found.counts > 0
        at = found.confidence[full], found.accuracy[full], 2 * found.standard_error[full]
        label = f"{name}: log loss {found.log_loss:.3f}"
        ax.errorbar(*at, color=colour, marker=marker, markersize=6, capsize=2, linewidth=1.2, label=label)
    lowest = min(found.edges[0] for found in named.values())
    ax.plot([lowest, 1], [lowest, 1], color="0.5", linewidth=1, zorder=0)
    ax.set(xlabel="probability of the predicted class", ylabel="share of predictions that were right")
    # Bars of bins with a handful of points would reach far beyond what a share can be.
    least = min(found.accuracy[found.counts > 0].min(initial=lowest) for found in named.values())
    ax.set(xlim=(lowest - 0.02, 1.02), ylim=(max(least - 0.1, -0.03), 1.03))
    ax.spines[["top", "right"]].set_visible(False)
    # Above the axes, where it covers nothing.
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=1, frameon=False)
    return ax
