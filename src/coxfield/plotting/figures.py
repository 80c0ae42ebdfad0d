"""Figures, axes and picture files; matplotlib is imported here first."""

from __future__ import annotations

from io import BytesIO
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


# Colours and markers, the same in all pictures.
#
# The colours are the Okabe-Ito palette, which colour-blind readers can tell apart. Classes also differ in marker. From
# the ninth class on the colours are darker.


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
DARKER = ("#003A5C", "#7A3600", "#00513B", "#7D3A63", "#8A5F00", "#1F6A94", "#8F8600", "#808080")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
COLOUR_MAP = "cividis"  # its lightness changes evenly, so that the picture is the same in grey
DARK = "0.1"  # edge of given labels


def style(code: int) -> tuple[str, str]:
    """Colour and marker of a class, by its number. No two of the first 64 classes share both."""
    colours = COLOURS if code < len(COLOURS) else DARKER
    return colours[code % len(colours)], MARKERS[(code + code // len(COLOURS)) % len(MARKERS)]


PICTURES = (".png", ".pdf", ".svg")
NO_MATPLOTLIB = "pictures need matplotlib: pip install coxfield[plot]"


def axes_for(ax, projection: str | None = None, **options) -> Any:
    """The axes given, or new axes of pyplot if `ax` is None. `options` are those of `pyplot.subplots`."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(NO_MATPLOTLIB) from None
    return plt.subplots(layout="constrained", subplot_kw={"projection": projection}, **options)[1]


def plain_ticks(axis) -> None:
    """Ticks of a logarithmic axis at 1, 2, 5, 10, ..., written without powers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def figure(width: float = 7.2, height: float = 5.2) -> Figure:
    """A figure for a file. No window shows it, and pyplot and its backend stay as they are."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(NO_MATPLOTLIB) from None
    return Figure(figsize=(width, height), layout="constrained")


def check_picture(path: Path) -> None:
    """Refuse a path to which no picture can be written. Called before the work is done."""
    if path.suffix.lower() not in PICTURES:
        raise ValueError(f"The ending of {path} is none of {', '.join(PICTURES)}: give the file one of these endings")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} to")
    figure()


def encode(figure, path: Path) -> bytes:
    """The bytes of a figure in the format of the file's ending. The same figure always makes the same bytes."""
    import matplotlib as mpl

    ending = path.suffix.lower()
    stamp = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(ending, {})
    stream = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "coxfield"}):
        figure.savefig(stream, format=ending[1:], dpi=200, metadata=stamp, bbox_inches="tight")
    return stream.getvalue()


# Points in the plane, and the probability of a class around them.


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


# Points that are pictures: their shape, and pictures drawn side by side with texts above them.


PIXELS = 64  # rows with fewer features are not taken for pictures, unless their shape is given
GAP = 0.12  # between pictures, as a share of their width
TEXT = 0.55  # height of the two lines above a picture, as a share of its width


def are_pictures(n_features: int) -> bool:
    """Whether points with so many features are taken for square pictures."""
    return n_features >= PIXELS and isqrt(n_features) ** 2 == n_features


def image_shape(n_features: int, given=None) -> tuple[int, int]:
    """Height and width of the picture that a point is: those given, or those of a square."""
    height, width = (isqrt(n_features),) * 2 if given is None else given
    if height * width != n_features:
        raise ValueError(
            f"a picture of shape {(height, width)} does not have {n_features} pixels: give another image_shape"
        )
    return height, width


def draw_pictures(ax, pictures: NDArray, texts: Sequence[str], places: Sequence[tuple[int, int]]):
    """Draw pictures at places of a grid, (row, column) from the upper left, each below its text; returns the axes.

    One picture is 1 wide, and its place is counted downwards.
    """
    tall = pictures.shape[1] / pictures.shape[2]
    limits = {"vmin": pictures.min(), "vmax": pictures.max()}
    for picture, text, (row, column) in zip(pictures, texts, places, strict=True):
        left, top = column * (1 + GAP), row * (tall + TEXT + GAP) + TEXT
        ax.imshow(picture, cmap="gray_r", extent=(left, left + 1, top + tall, top), **limits)
        ax.text(left + 0.5, top - 0.05, text, ha="center", va="bottom", fontsize="small")
    rows, columns = (1 + max(numbers) for numbers in zip(*places, strict=True))
    ax.set(xlim=(-GAP, columns * (1 + GAP)), ylim=(rows * (tall + TEXT + GAP), -GAP))
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax
