"""Pictures of mixtures of covariances."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from coxfield.plotting.figures import COLOUR_MAP, COLOURS, axes_for, plain_ticks, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Pictures of how parameters were chosen.


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


# Reliability diagrams.


def plot_reliability(reliabilities, ax: Axes | None = None) -> Axes:
    """Draw how often classifiers were right against how sure they were.

    On the diagonal, predictions of probability p are right with frequency p. Below it a classifier is
    too sure. Above it a classifier is not sure enough. Bars are two standard errors: what chance alone can do.

    Parameters
    ----------
    reliabilities : Reliability, or mapping name -> Reliability
        From `coxfield.calibration.reliability`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from coxfield.calibration import reliability
    >>> from coxfield.plotting import figure, plot_reliability
    >>> found = reliability([0, 0, 1], np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]))
    >>> ax = plot_reliability({"three points": found}, figure().subplots())
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('probability of the predicted class', ['three points: log loss 0.415'])
    """
    ax = axes_for(ax)
    named = reliabilities if isinstance(reliabilities, dict) else {"classifier": reliabilities}
    for code, (name, found) in enumerate(named.items()):
        colour, marker = style(code)
        full = found.counts > 0
        at = found.confidence[full], found.accuracy[full], 2 * found.standard_error[full]
        label = f"{name}: log loss {found.log_loss:.3f}"
        ax.errorbar(*at, color=colour, marker=marker, markersize=6, capsize=2, linewidth=1.2, label=label)
    lowest = min(found.edges[0] for found in named.values())
    ax.plot([lowest, 1], [lowest, 1], color="0.5", linewidth=1, zorder=0)
    ax.set(xlabel="probability of the predicted class", ylabel="share of predictions that were right")
    # Bars of bins with few points reach beyond 0 and 1, where no share can be: they are cut off.
    least = min(found.accuracy[found.counts > 0].min(initial=lowest) for found in named.values())
    ax.set(xlim=(lowest - 0.02, 1.02), ylim=(max(least - 0.1, -0.03), 1.03))
    ax.spines[["top", "right"]].set_visible(False)
    # Above the axes, where it covers nothing.
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=1, frameon=False)
    return ax


REPRESENTATIONS = ("raw", "standardised", "whitened")  # they look the same in all pictures
POWERS = (0.75, 0.5)  # likewise
FILLS = ("full", "none", "left", "right", "top", "bottom")  # of markers, one per power of the density
SPAN = np.log(8)  # the horizontal axis covers at least so much, although there may be only one length scale
GAP = 0.025  # of the span: markers that are closer would cover each other
WIDE = 3000  # a ratio of the ends of the axis
MARGIN = 0.06  # of the span, on both sides
COLUMNS = 3  # of the legend


def plot_mixture(classifier, ax: Axes | None = None) -> Axes:
    """Draw the members of the mixture that a classifier has learned.

    Each member is a stem at its length scale, and its height is the share of the member in the evidence. Colours and
    markers are representations of the points. If there are kernels of several kinds, they are representations with a
    kind of kernel. The filling of a marker is the power of the density. Members with almost the same length scale are
    drawn side by side.

    Parameters
    ----------
    classifier : fitted LGCPClassifier
        With `selection="mixture"`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from coxfield import LGCPClassifier
    >>> from coxfield.datasets import load_synth
    >>> from coxfield.plotting import figure, plot_mixture
    >>> synth = load_synth()
    >>> ax = plot_mixture(LGCPClassifier().fit(synth.X_train, synth.y_train), figure().subplots())
    >>> ax.get_ylabel()
    'share of the evidence, %'
    """
    check_is_fitted(classifier)
    table = _table(classifier)
    ax = axes_for(ax)
    names, powers = _names(table), table["alpha"].tolist()
    styles = {name: style(number) for name, number in _numbered(names, REPRESENTATIONS).items()}
    fills = {power: FILLS[number % len(FILLS)] for power, number in _numbered(powers, POWERS).items()}
    places, limits = _places(table["length_scale"])
    for x, share, name, power in zip(places, 100 * table["share"], names, powers, strict=True):
        ax.plot([x, x], [0, share], color=styles[name][0], linewidth=1.2, zorder=2)
        ax.plot(x, share, **_look(*styles[name], fills[power]), clip_on=False, zorder=3)
    ax.set(xscale="log", xlim=limits, ylim=(0, None))
    ax.set(xlabel="length scale, in units of the representation", ylabel="share of the evidence, %")
    _ticks(ax.xaxis, limits)
    ax.spines[["top", "right"]].set_visible(False)
    _legend(ax, styles, fills)
    return ax


def _table(classifier) -> dict:
    """The members of the mixture; ValueError if there are none."""
    table = getattr(classifier, "mixture_", None)
    if table is None:
        selection = getattr(classifier, "selection", None)
        raise ValueError(
            f"there is no mixture to draw: the classifier was fitted with selection={selection!r}; "
            'fit an LGCPClassifier with selection="mixture"'
        )
    if not len(table["share"]):
        raise ValueError("there is no mixture to draw: no member has a weight; give other features or kernels")
    return table


def _numbered(values: list, usual: tuple) -> dict:
    """A number for each different value: the usual values have their place, and others come after them."""
    others = sorted(set(values) - set(usual))
    first = usual if len(others) < len(set(values)) else ()
    return {value: number for number, value in enumerate([*first, *others]) if value in values}


def _names(table) -> list[str]:
    """What each member is called: its representation, and the kind of its kernel if there are several kinds."""
    kinds = [" with ".join(re.findall(r"([A-Za-z]\w*)\(", kernel)) for kernel in table["kernel"]]
    several = len(set(kinds)) > 1
    members = zip(table["representation"], kinds, strict=True)
    return [f"{representation}, {kind}" if several else str(representation) for representation, kind in members]


def _places(length_scale) -> tuple[np.ndarray, tuple[float, float]]:
    """Where members are drawn, and the limits of the axis.

    Members stay as close to their length scales as a gap between neighbours allows. In units in which the gap is 1, the
    places minus 0, 1, 2, ... must not decrease, and the closest numbers that do not are an isotonic regression.
    """
    logs = np.log(length_scale)
    span = max(np.ptp(logs), SPAN)
    order, steps = np.argsort(logs, kind="stable"), GAP * span * np.arange(len(logs))
    places = np.empty(len(logs))
    places[order] = isotonic_regression(logs[order] - steps) + steps
    middle = (places.min() + places.max()) / 2
    half = max(np.ptp(places), span) / 2 + MARGIN * span
    return np.exp(places), (float(np.exp(middle - half)), float(np.exp(middle + half)))


def _ticks(axis, limits: tuple[float, float]) -> None:
    """Ticks at 1, 2, 5, 10, ..., or at powers of 10 where so many would overlap."""
    from matplotlib.ticker import LogLocator

    plain_ticks(axis)
    if limits[1] > WIDE * limits[0]:
        axis.set_major_locator(LogLocator())


def _look(colour: str, marker: str, fill: str) -> dict:
    """How the marker of a member is drawn. What is not filled is white, so that the stem ends at its edge."""
    size = {"markersize": 7, "markeredgewidth": 1.5, "linestyle": "none"}
    faces = {"markerfacecolor": "white"} if fill == "none" else {"fillstyle": fill, "markerfacecoloralt": "white"}
    return {"color": colour, "marker": marker, **size, **faces}


def _legend(ax, styles: dict, fills: dict) -> None:
    """A legend above the axes, where it covers nothing: rows for the representations, then rows for the powers."""
    from matplotlib.lines import Line2D

    kinds = [Line2D([], [], **_look(colour, marker, "full"), label=k) for k, (colour, marker) in styles.items()]
    powers = [Line2D([], [], **_look("0.4", "o", fill), label=f"density power {p:g}") for p, fill in fills.items()]
    columns = min(COLUMNS, max(len(kinds), len(powers)))
    blank = Line2D([], [], linestyle="none", label=" ")
    cells = [cell for group in (kinds, powers) for cell in group + [blank] * (-len(group) % columns)]
    # matplotlib fills a legend column by column.
    handles = [cell for column in range(columns) for cell in cells[column::columns]]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=columns, frameon=False)


# What the columns of a table are worth.


MOST_COLUMNS = 30  # that fit below each other


def plot_features(classifier, ax: Axes | None = None, most: int = MOST_COLUMNS, **options) -> Axes:
    """Draw what each column is worth, the most important at the top, with two standard errors to either side.

    Parameters
    ----------
    classifier : fitted LGCPClassifier
    ax : matplotlib Axes, optional
    most : int
        How many columns to draw.
    **options
        Of `LGCPClassifier.feature_importance`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from coxfield import LGCPClassifier
    >>> from coxfield.datasets import load_synth
    >>> from coxfield.plotting import figure, plot_features
    >>> synth = load_synth()
    >>> clf = LGCPClassifier().fit(synth.X_train, synth.y_train)
    >>> print(plot_features(clf, figure().subplots()).get_xlabel())
    growth of the log loss without the column
    """
    check_is_fitted(classifier)
    found = classifier.feature_importance(**options)
    order = np.argsort(-found["importance"], kind="stable")[:most]
    ax = axes_for(ax)
    names = [str(name) for name in found["column"][order]]
    ax.barh(names, found["importance"][order], xerr=2 * found["standard_error"][order], color=COLOURS[0], ecolor="0.4")
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.invert_yaxis()
    ax.set(xlabel="growth of the log loss without the column")
    return ax
