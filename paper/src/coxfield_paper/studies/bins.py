"""Reliability in records: sums per bin, which can be added over partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.calibration import Reliability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


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
