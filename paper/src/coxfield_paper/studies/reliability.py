"""Whether probabilities are right: sums per bin in records, the error of chance, and diagrams of many data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.calibration import Reliability
from coxfield.plotting import figure, plot_reliability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

COLUMNS = 3  # of a diagram


def sums(judged: Reliability) -> dict[str, Any]:
    """The log loss, and sums over the points of each bin."""
    counts = judged.counts
    confidence, right, spread = (
        np.where(counts > 0, counts * mean, 0) for mean in (judged.confidence, judged.accuracy, judged.standard_error)
    )
    bins = {
        "edges": judged.edges.tolist(),
        "counts": counts.tolist(),
        "confidence": confidence.tolist(),
        "right": right.tolist(),
        "variance": (spread**2).tolist(),
    }
    return {"log_loss": judged.log_loss, "bins": bins}


def pooled(results: Sequence[Mapping[str, Any]]) -> Reliability:
    """The reliability of the predictions of several partitions together, from what `sums` made of each."""
    bins = [result["bins"] for result in results]
    counts, confidence, right, variance = (
        np.sum([one[key] for one in bins], axis=0) for key in ("counts", "confidence", "right", "variance")
    )
    with np.errstate(invalid="ignore"):
        means = confidence / counts, right / counts, np.sqrt(variance) / counts
    loss = np.average([result["log_loss"] for result in results], weights=[sum(one["counts"]) for one in bins])
    return Reliability(np.array(bins[0]["edges"]), *means, counts, float(loss), float(1 - right.sum() / counts.sum()))


def in_double(probabilities: NDArray) -> NDArray:
    """Probabilities in double precision. They sum to one there, too, as the log loss of scikit-learn demands.

    It holds probabilities above the precision of their type, so that a log loss in single precision would be lower.

    Examples
    --------
    >>> in_double(np.array([[0.1, 0.9]], dtype=np.float32)).sum().item()
    1.0
    """
    double = probabilities.astype(np.float64)
    return double / double.sum(axis=1, keepdims=True)


def chance_error(judged: Reliability) -> float:
    """The expected calibration error that chance alone makes, if the probabilities are right.

    The accuracy of a bin is about normal around its probability. The mean distance is sqrt(2 / pi) standard errors.

    Examples
    --------
    >>> from coxfield.calibration import reliability
    >>> coins = reliability([0, 1] * 50, np.full((100, 2), 0.5))  # a standard error of 0.05 for 100 coins
    >>> round(chance_error(coins), 3)
    0.04
    """
    full = judged.counts > 0
    return float(np.average(np.sqrt(2 / np.pi) * judged.standard_error[full], weights=judged.counts[full]))


def panels(judged: Mapping[str, Mapping[str, Reliability]], above: float = 0.0):
    """A figure with a panel per title, with `above` inches of room for a legend. Names of axes stand once."""
    lines = -(-len(judged) // COLUMNS)
    drawn = figure(9, 3 * lines + above)
    axes = drawn.subplots(lines, COLUMNS, squeeze=False).ravel()
    for panel, (title, ways) in zip(axes, judged.items(), strict=False):
        plot_reliability(dict(ways), panel)
        panel.get_legend().remove()
        panel.set(xlabel="", ylabel="")
        panel.set_title(title, fontsize="medium")
    for empty in axes[len(judged) :]:
        empty.set_axis_off()
    drawn.supxlabel("probability of the predicted class")
    drawn.supylabel("share of predictions that were right")
    return drawn
