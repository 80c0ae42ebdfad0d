"""The second voice: one covariance that is a mixture of the members, by the concave problem of leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from coxfield.selection.mixture.concave import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.selection.committee.sums import Given, MemberSums


@dataclass(frozen=True)
class Blend:
    """softmax(mean + sum of weights times class sums)."""

    weights: NDArray
    mean: NDArray

    def probabilities(self, sums: Sequence[NDArray]) -> NDArray:
        """Probabilities from the class sums of all members."""
        scores = np.tile(self.mean, (len(sums[0]), 1))
        for m in np.flatnonzero(self.weights).tolist():
            scores += self.weights[m] * sums[m]
        return softmax(scores, axis=1)


def blend(sums: Sequence[MemberSums], given: Given, mean: NDArray) -> Blend:
    """The mixture that leave-one-out prefers. The class means stay: few labels do not tell how frequent classes are.

    Only labels that can be judged count; see `Judged`.
    """
    judged = given.judged
    left_out = np.stack([judged.among(one.left_out) for one in sums])
    problem = Problem.of(left_out, judged.y, np.ones(len(judged)), mean[judged.classes])
    return Blend(problem.solve(learn_mean=False).weights, mean)
