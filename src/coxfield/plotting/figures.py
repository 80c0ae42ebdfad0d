"""Figures, axes and picture files; matplotlib is imported here first."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

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
