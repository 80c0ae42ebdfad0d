"""Points that are pictures: their shape, and pictures drawn side by side with texts above them."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
