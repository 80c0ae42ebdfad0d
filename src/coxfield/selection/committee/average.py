r"""The first voice: an average over members and strengths.

Member m at strength b predicts with softmax(mu + b S_m). Its weight is the product of two factors. One is the
probability that it gives to each label from the others, by leave-one-out. The other is a prior exp(-R / n), where R is
its effective rank and n the number of labels: few labels cannot fill many modes. With one label per class leave-one-out
says nothing, and the prior decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax, softmax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.selection.committee.sums import Given, MemberSums

STRENGTHS = 0.5 * 2.0 ** np.arange(7)  # nats that separate the best class from the mean class, at the average point
ROUNDING = 16  # units of the last digit
VANISHED = 1e-30  # covariances have a variance of 1
NEGLIGIBLE = 1e-4  # a weight that no probability shows


@dataclass(frozen=True)
class Average:
    """Weights of members at strengths, and the log class shares."""

    strengths: NDArray
    """Factors of the class sums, shape (members, strengths)."""
    weights: NDArray
    """They add up to one; zero where negligible. Same shape."""
    mean: NDArray

    @property
    def members(self) -> NDArray:
        """Numbers of the members that have a weight."""
        return np.flatnonzero(self.weights.any(axis=1))

    def probabilities(self, sums: Sequence[NDArray]) -> NDArray:
        """The average over members and strengths; `sums` has the class sums of each member."""
        total = 0.0
        for m in self.members:
            for s in np.flatnonzero(self.weights[m]):
                total = total + self.weights[m, s] * softmax(self.strengths[m, s] * sums[m] + self.mean, axis=1)
        return np.asarray(total)


def average(sums: Sequence[MemberSums], ranks: NDArray, given: Given, mean: NDArray) -> Average:
    """Weigh all members at all strengths.

    Parameters
    ----------
    sums : sequence of MemberSums
    ranks : array of shape (members,)
        Effective ranks.
    given : Given
    mean : array of shape (n_classes,)
        Class means: log class shares, plus what the user prefers.
    """
    strengths = np.stack([STRENGTHS / _spread(one.whole) for one in sums])
    logs = np.stack([_log_likelihoods(one, of_one, given, mean) for one, of_one in zip(sums, strengths, strict=True)])
    logs -= (ranks / len(given.y))[:, None]
    weights = softmax(logs)
    weights = np.where(weights >= NEGLIGIBLE * weights.max(), weights, 0)
    return Average(strengths, weights / weights.sum(), mean)


def _spread(sums: NDArray) -> float:
    """How far the class that is farthest from the mean class is from it, on average over the points.

    A member whose class sums differ by rounding alone, or have vanished, says nothing. Its spread is infinite.
    """
    relative = sums - sums.mean(axis=1, keepdims=True)
    spread = float(np.abs(relative).max(axis=1).mean(dtype=float))
    least = max(ROUNDING * np.finfo(sums.dtype).eps * float(np.abs(sums).max()), VANISHED)
    return spread if spread > least else np.inf


def _log_likelihoods(sums: MemberSums, strengths: NDArray, given: Given, mean: NDArray) -> NDArray:
    """Log probability of the labels that can be judged, each from the others, for each strength."""
    judged = given.judged
    if not len(judged):
        return np.zeros(len(strengths))
    left_out, mean, rows = judged.among(sums.left_out), mean[judged.classes], np.arange(len(judged))
    return np.array([log_softmax(b * left_out + mean, axis=1)[rows, judged.y].sum() for b in strengths])
