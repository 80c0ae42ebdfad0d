"""From class sums to a committee: three voices, and how loud each of them speaks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coxfield.selection.committee.average import average
from coxfield.selection.committee.blend import blend
from coxfield.selection.committee.stacking import stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.selection.committee.average import Average
    from coxfield.selection.committee.bank import Member
    from coxfield.selection.committee.blend import Blend
    from coxfield.selection.committee.sums import Given, MemberSums

IMAGINED = 5.0  # labels more in each class when shares are counted: labels are often asked for, and not drawn
VOICES = ("average", "mixture", "labelled points alone")


@dataclass(frozen=True)
class Opinion:
    """What a voice from outside the bank says."""

    whole: NDArray
    """Probabilities at all points, shape (n, n_classes)."""
    left_out: NDArray
    """Probabilities at the labelled points, each from the others, shape (n_labelled, n_classes)."""


@dataclass(frozen=True)
class Committee:
    """Members that have a say, and the voices that they speak with."""

    members: tuple[Member, ...]
    sums: tuple[NDArray, ...]
    """Class sums of each member at all points."""
    left_out: tuple[NDArray, ...]
    """Class sums of each member at the labelled points, each without itself."""
    directions: tuple[NDArray, ...]
    """What the features of each member are multiplied with to give class sums."""
    average: Average
    blend: Blend | None
    """None if no label can be judged."""
    loudness: NDArray
    """Weight of each voice in the order of `VOICES`; 0 for voices that are absent."""

    def probabilities(self, sums: Sequence[NDArray], alone: NDArray | None = None) -> NDArray:
        """What the committee says, given the class sums of all members and what the third voice says."""
        total = self.loudness[0] * self.average.probabilities(sums)
        if self.blend is not None:
            total += self.loudness[1] * self.blend.probabilities(sums)
        if alone is not None:
            total += self.loudness[2] * alone
        return total / total.sum(axis=1, keepdims=True)

    @property
    def shares(self) -> NDArray:
        """The share of each member in what the first two voices say; the shares add up to 1."""
        spoken = self.loudness[0] * self.average.weights.sum(axis=1)
        if self.blend is not None:
            evidence = self.blend.weights * [float(np.ptp(one, axis=1).mean()) for one in self.sums]
            spoken = spoken + self.loudness[1] * evidence / (evidence.sum() or 1.0)
        return spoken / (spoken.sum() or 1.0)


def learn_committee(
    members: Sequence[Member], sums: Sequence[MemberSums], given: Given, mean: NDArray, alone: Opinion | None = None
) -> Committee:
    """The committee that leave-one-out prefers.

    Parameters
    ----------
    members : sequence of Member
    sums : sequence of MemberSums
        Class sums of each member.
    given : Given
        The labelled points.
    mean : array of shape (n_classes,)
        Class means relative to the logarithms of the class shares.
    alone : Opinion, optional
        What a classifier says that looks at the labelled points alone.
    """
    counts = given.counts + IMAGINED
    centre = mean + np.log(counts / counts.sum())
    first = average(sums, np.array([member.rank for member in members]), given, centre)
    second = blend(sums, given, centre) if len(given.judged) else None
    loudness = _loudness(first, second, alone, sums, given)
    alive = first.weights.any(axis=1) | (False if second is None else second.weights > 0)
    kept = np.flatnonzero(alive).tolist()
    return Committee(
        tuple(members[m] for m in kept),
        tuple(sums[m].whole for m in kept),
        tuple(sums[m].left_out for m in kept),
        tuple(sums[m].directions for m in kept),
        replace(first, strengths=first.strengths[kept], weights=first.weights[kept]),
        None if second is None else replace(second, weights=second.weights[kept]),
        loudness,
    )


def _loudness(first: Average, second: Blend | None, alone: Opinion | None, sums, given: Given) -> NDArray:
    """The weight of each voice, from what it says about labels that can be judged."""
    judged = given.judged
    if second is None:
        return np.array([1.0, 0.0, 0.0])
    left_out = [one.left_out for one in sums]
    voices = [first.probabilities(left_out), second.probabilities(left_out)]
    if alone is not None:
        voices.append(alone.left_out)
    loudness = np.zeros(len(VOICES))
    loudness[: len(voices)] = stack(np.stack([judged.own(voice) for voice in voices]))
    return loudness
