"""Reliability diagrams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coxfield.plotting.figures import axes_for
from coxfield.plotting.styles import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
