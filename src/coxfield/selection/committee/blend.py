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

    Only labels with company count. A label that is alone in its class would be predicted without any point of its
    class, which speaks against every member.
    """
    rows = np.flatnonzero(given.in_company)
    left_out = np.stack([one.left_out[rows] for one in sums])
    solution = Problem.of(left_out, given.y[rows], np.ones(len(rows)), mean).solve(learn_mean=False)
    return Blend(solution.weights, solution.mean)
