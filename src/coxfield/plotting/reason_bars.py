"""Reasons as bars: what each training row adds to the score of a class, until the sum is the score."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from coxfield.plotting.styles import style

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
