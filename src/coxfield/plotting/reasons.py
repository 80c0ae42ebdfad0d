"""Pictures of reasons: one query beside the training rows that speak loudest for each class."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from coxfield.plotting.few_labels import MANY
from coxfield.plotting.figures import DARK, are_pictures, axes_for, draw_pictures, plot_points, style
from coxfield.plotting.figures import image_shape as shape_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Reasons as bars: what each training row adds to the score of a class, until the sum is the score.


PRIOR = "0.6"  # colour of what no row has added
PALE = 0.45  # opacity of what many rows have added
SPACE = 0.6  # between classes, in bars


@dataclass(frozen=True)
class Reasons:
    """The reasons of one query, with everything that a picture says of them."""

    query: NDArray
    """Shape (1, n_features)."""
    classes: list[int]
    """Numbers of the classes to show, highest score first."""
    names: list[str]
    """Names of all classes."""
    scores: NDArray
    """The score of each class."""
    prior: NDArray
    """The part of it that comes from no row."""
    rows: list[NDArray]
    """For each class, its witnesses among the training rows, loudest first."""
    shares: list[NDArray]
    """What each of them adds to the score."""


def draw_bars(ax, reasons: Reasons, ids: list[str]):
    """One block of bars per class: its score, and below it what the score is made of, each where the last one ends.

    Parameters
    ----------
    ax : matplotlib Axes
    reasons : Reasons
    ids : list of str
        What to call each training row.
    """
    at, ticks, labels = 0.0, [], []
    for code in reasons.classes:
        parts = _parts(reasons, code, ids)
        heights = at + np.arange(len(parts) + 1)
        colour = style(code)[0]
        ax.barh(heights[0], reasons.scores[code], color="none", edgecolor=colour, linewidth=1.5)
        ends = np.concatenate([[0.0], np.cumsum([value for _, value, _ in parts])])
        for height, (_, value, look), (start, _) in zip(heights[1:], parts, pairwise(ends), strict=True):
            ax.barh(height, value, left=start, **({"color": colour} | look))
        _write(ax, heights, ends, [reasons.scores[code], *(value for _, value, _ in parts)])
        ticks += heights.tolist()
        labels += [f"score of {reasons.names[code]}", *(name for name, _, _ in parts)]
        at = heights[-1] + 1 + SPACE
    ax.set_yticks(ticks, labels)
    ax.invert_yaxis()  # the highest score comes first
    ax.axvline(0, color="0.3", linewidth=0.8)
    ax.use_sticky_edges = False
    ax.margins(x=0.12)  # room for the numbers
    ax.set_xlabel("score")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _parts(reasons: Reasons, code: int, ids: list[str]) -> list[tuple[str, float, dict]]:
    """Name, value and look of everything that the score of a class is made of."""
    shares = reasons.shares[code]
    prior = float(reasons.prior[code])
    others = float(reasons.scores[code]) - prior - float(shares.sum())
    named: list[tuple[str, float, dict]]
    named = [(ids[row], float(share), {}) for row, share in zip(reasons.rows[code], shares, strict=True)]
    return [*named, ("all other rows", others, {"alpha": PALE}), ("prior", prior, {"color": PRIOR})]


def _write(ax, heights, ends, values) -> None:
    """Write each value beside its bar: right of a bar that goes to the right, left of one that goes to the left."""
    spans = [(0.0, ends[-1]), *pairwise(ends)]
    for height, value, span in zip(heights, values, spans, strict=True):
        right = value >= 0
        place = {"ha": "left" if right else "right", "va": "center", "fontsize": "small"}
        look = {"xytext": (3 if right else -3, 0), "textcoords": "offset points"}
        ax.annotate(f"{value:.3g}", (max(span) if right else min(span), height), **place, **look)


KINDS = ("points", "images", "table")
POINT, QUERY = 14, 110  # areas of markers
SMALLEST, LARGEST = 24, 110  # areas of witnesses: of one that can hardly be heard, and of the loudest
THINNEST, WIDEST = 0.4, 4.0  # lines to them, likewise


def plot_reasons(classifier, x, top=5, *, kind=None, n_classes=3, ax=None, image_shape=None, names=None, ids=None):
    """Draw one query beside its witnesses: the training rows that add most to the score of each class.

    Points in the plane are drawn with lines from the query to its witnesses; the wider the line and the larger the
    witness, the more the row adds. Pictures are drawn in one line per class, with what each adds. Other points are
    listed as bars, one after the other, which end at the score of the class.

    Parameters
    ----------
    classifier : fitted LGCPClassifier
    x : array-like of shape (n_features,) or (1, n_features), or a data frame or sparse matrix with one row
        The query.
    top : int
        How many witnesses to show per class.
    kind : {"points", "images", "table"}, optional
        By default, two features are points in the plane, and 64 or more features whose number is a square are square
        pictures, as are all points if `image_shape` is given. Everything else is a table.
    n_classes : int
        How many classes to show, those with the highest scores.
    ax : matplotlib Axes, optional
    image_shape : pair of int, optional
        Height and width of the pictures.
    names : sequence of str, optional
        What to call the classes, in the order of `classes_`.
    ids : sequence, optional
        What to call the training rows, in the order of `X_fit_`. Their numbers by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from coxfield import LGCPClassifier
    >>> from coxfield.datasets import load_synth
    >>> from coxfield.plotting import figure, plot_reasons
    >>> X, y, *_ = load_synth(return_X_y=True)
    >>> ax = plot_reasons(LGCPClassifier().fit(X, y), [-0.5, 0.5], ax=figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', 'query']
    """
    if n_classes < 1:
        raise ValueError(f"there is nothing to draw: n_classes is {n_classes}; give the number of classes to show")
    reasons = _reasons_of(classifier, x, top, n_classes, names)
    X = classifier.X_fit_
    ids = _row_names(ids, X.shape[0])
    kind = _kind(kind, X.shape[1], image_shape)
    if kind == "table":
        return draw_bars(axes_for(ax), reasons, ids)
    if kind == "images":
        return _draw_images(axes_for(ax), reasons, X, shape_of(X.shape[1], image_shape), ids)
    return _draw_points(axes_for(ax), reasons, X, classifier.y_fit_)


def _kind(kind: str | None, n_features: int, image_shape) -> str:
    if kind is None:
        plane = image_shape is None and n_features == 2
        return "points" if plane else "images" if image_shape is not None or are_pictures(n_features) else "table"
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, or None to choose it, got {kind!r}")
    if kind == "points" and n_features != 2:
        raise ValueError(f"points with {n_features} features are not in the plane: give kind='table'")
    return kind


def _reasons_of(classifier, x, top: int, n_classes: int, names) -> Reasons:
    query = x if hasattr(x, "shape") and len(x.shape) == 2 else np.reshape(x, (1, -1))
    if query.shape[0] != 1:
        raise ValueError(f"one query is drawn at a time, but x has {query.shape[0]} rows: give one of them")
    found = classifier.contributions(query, top)  # says it if nothing is fitted
    scores, shown = found.shares[0].sum(axis=1) + found.rest[0], [str(name) for name in found.classes]
    if names is not None:
        shown = [str(name) for name in names]
        if len(shown) != len(found.classes):
            raise ValueError(f"names has {len(shown)} entries, but there are {len(found.classes)} classes")
    there = found.rows[0] >= 0
    return Reasons(
        _dense(query),
        np.argsort(-scores, kind="stable")[:n_classes].tolist(),
        shown,
        scores,
        found.prior[0],
        [rows[some] for rows, some in zip(found.rows[0], there, strict=True)],
        [shares[some] for shares, some in zip(found.shares[0], there, strict=True)],
    )


def _row_names(ids, n: int) -> list[str]:
    """What to call each training row."""
    if ids is None:
        return [f"row {k}" for k in range(n)]
    found = [str(name) for name in ids]
    if len(found) != n:
        raise ValueError(f"ids has {len(found)} entries, but there are {n} training rows: give one for each")
    return found


def _dense(X: Any) -> NDArray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _draw_points(ax, reasons: Reasons, X, codes: NDArray):
    """All training points, and a line from the query to each witness."""
    present = [reasons.names[code] for code in np.unique(codes)]
    everyone, (at,) = _dense(X), reasons.query
    plot_points(everyone, np.asarray(codes), ax, present, POINT)
    loudest = max(reasons.shares[code].max(initial=0) for code in reasons.classes) or 1.0
    for code in reasons.classes:
        _draw_witnesses(ax, at, everyone[reasons.rows[code]], reasons.shares[code] / loudest, style(code))
    ax.scatter(*at, s=QUERY, marker="*", c="white", edgecolors="black", linewidths=1.2, zorder=5, label="query")
    for drawn in ax.collections:
        drawn.set_rasterized(len(everyone) > MANY)
    ax.spines[["top", "right"]].set_visible(False)
    # Above the axes, where it covers nothing.
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4, frameon=False)
    return ax


def _draw_witnesses(ax, at: NDArray, places: NDArray, loudness: NDArray, look: tuple[str, str]) -> None:
    """Lines from the query to witnesses of one class, which are drawn larger than other points."""
    colour, marker = look
    for place, width in zip(places, THINNEST + (WIDEST - THINNEST) * loudness, strict=True):
        ax.plot(*np.stack([at, place]).T, color=colour, linewidth=width, alpha=0.6, solid_capstyle="round", zorder=2)
    sizes = SMALLEST + (LARGEST - SMALLEST) * loudness
    ax.scatter(*places.T, s=sizes, c=colour, marker=marker, edgecolors=DARK, linewidths=0.8, zorder=3)


def _draw_images(ax, reasons: Reasons, X, shape: tuple[int, int], ids: list[str]):
    """The query at the left, and a line of witnesses for each class."""
    rows, texts, places = [], [f"query\npredicted: {reasons.names[reasons.classes[0]]}"], [(0, 0)]
    for line, code in enumerate(reasons.classes):
        for k, (row, share) in enumerate(zip(reasons.rows[code], reasons.shares[code], strict=True)):
            rows.append(row)
            texts.append(f"{ids[row]}\nclass {reasons.names[code]}: {share:.2g}")
            places.append((line, 1 + k))
    pictures = np.concatenate([reasons.query, _dense(X[np.array(rows, int)])]).reshape(-1, *shape)
    return draw_pictures(ax, pictures, texts, places)
