"""Pictures of mixtures of covariances."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from coxfield.plotting.figures import axes_for, plain_ticks
from coxfield.plotting.styles import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
