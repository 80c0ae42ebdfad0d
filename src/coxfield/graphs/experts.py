r"""The model of `SLGCPClassifier`: three experts on covariances of all points, and their stacking weights.

The members are heat covariances of several graphs at several times, and linear covariances; see `bank`. Each expert
combines the class sums S_m of the members:

1. `Average`: member m at strength b predicts with softmax(mu + b S_m). Its weight is the product of two factors. One is
   the probability that it gives to each label from the others, by leave-one-out. The other is a prior exp(-R / n),
   where R is its effective rank and n the number of labels: few labels cannot fill many modes. With one label per class
   leave-one-out says nothing, and the prior decides.
2. `Blend`: one covariance that is a mixture of the members, by the concave problem of leave-one-out.
3. `SupervisedExpert`: a classifier that sees the labelled points alone.

`stack` finds the weights of the experts that make the labels most probable, each from the others. The prior is worth
ten labels, divided between the experts. So with few labels all weights are about equal.

A number for each choice was settled on the data sets of `coxfield reproduce table-few-labels`, and holds for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.utils import gen_batches

from coxfield.selection.mixture.concave import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.graphs.bank import Given, Member, MemberSums


STRENGTHS = 0.5 * 2.0 ** np.arange(7)  # nats that separate the best class from the mean class, at the average point
ROUNDING = 16  # units of the last digit by which class sums may differ by rounding alone
LEAST_MEAN = -300.0  # relative to the largest: e to this power is a normal number, and excludes a class
ROWS = 4096  # points at a time, so that what is added up stays near the processor
VANISHED = 1e-30  # spread of class sums that say nothing; covariances have a variance of 1
NEGLIGIBLE = 1e-4  # a weight that no probability shows
PRIOR = 10.0  # labels that the prior of the stacking weights is worth
ROUNDS = 500  # of the stacking weights, at most
TOLERANCE = 1e-9  # change of a stacking weight at which rounds end
SMALLEST = 1e-9  # probability of a label that an expert excludes
IMAGINED = 5.0  # labels more in each class when shares are counted: labels are often asked for, and not drawn
EXPERTS = ("average", "mixture", "labelled points alone")


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
        total = np.zeros(sums[0].shape)
        for part in gen_batches(len(total), ROWS):
            for m in self.members.tolist():
                self._add(total[part], m, sums[m][part])
        return total * self._factors

    @property
    def _factors(self) -> NDArray:
        """exp(mean), with a floor that keeps sums of products with it above 0."""
        return np.exp(np.maximum(self.mean - self.mean.max(), LEAST_MEAN))

    def _add(self, total: NDArray, m: int, sums: NDArray) -> None:
        """Add what a member says at all strengths, but for the factors of the classes.

        Each strength is twice the one before. So one exponential is enough: its squares are the others.
        """
        powers = np.exp(self.strengths[m, 0] * (sums - sums.max(axis=1, keepdims=True)))
        factors, weights = self._factors, self.weights[m]
        for s in range(np.flatnonzero(weights)[-1] + 1):
            if s > 0:
                powers *= powers
            if weights[s] > 0:
                total += powers * (weights[s] / (powers @ factors))[:, None]


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
    logs -= (ranks / max(len(given.y), given.n_classes))[:, None]  # a class without a label counts as one label
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


def stack(probabilities: NDArray) -> NDArray:
    """Stacking weights of experts from the probabilities that each gives to the labels, shape (experts, labels).

    Examples
    --------
    The second expert is right a little more often:

    >>> stack(np.array([[0.5, 0.9, 0.1], [0.6, 0.9, 0.9]])).round(2)
    array([0.46, 0.54])
    """
    likely = np.maximum(probabilities, SMALLEST)
    weights = np.full(len(likely), 1 / len(likely))
    for _ in range(ROUNDS):
        parts = weights[:, None] * likely
        counts = (parts / parts.sum(axis=0)).sum(axis=1) + PRIOR / len(likely)
        new = counts / counts.sum()
        done = np.abs(new - weights).max() <= TOLERANCE
        weights = new
        if done:
            break
    return weights


@dataclass(frozen=True)
class SupervisedExpert:
    """Probabilities of the expert that sees the labelled points alone."""

    whole: NDArray
    """Probabilities at all points, shape (n, n_classes)."""
    left_out: NDArray
    """Probabilities at the labelled points, each from the others, shape (n_labelled, n_classes)."""


@dataclass(frozen=True)
class Experts:
    """Members that count, the experts that combine them, and their stacking weights."""

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
    """Stacking weight of each expert in the order of `EXPERTS`; 0 for experts that are absent."""

    def probabilities(self, sums: Sequence[NDArray], supervised: NDArray | None = None) -> NDArray:
        """Probabilities of all experts together, from the class sums of all members and those of the third expert."""
        total = self.loudness[0] * self.average.probabilities(sums)
        if self.blend is not None:
            total += self.loudness[1] * self.blend.probabilities(sums)
        if supervised is not None:
            total += self.loudness[2] * supervised
        return total / total.sum(axis=1, keepdims=True)

    @property
    def shares(self) -> NDArray:
        """The share of each member in the first two experts; the shares add up to 1."""
        spoken = self.loudness[0] * self.average.weights.sum(axis=1)
        if self.blend is not None:
            evidence = self.blend.weights * [float(np.ptp(one, axis=1).mean()) for one in self.sums]
            spoken = spoken + self.loudness[1] * evidence / (evidence.sum() or 1.0)
        return spoken / (spoken.sum() or 1.0)


def learn_experts(
    members: Sequence[Member],
    sums: Sequence[MemberSums],
    given: Given,
    mean: NDArray,
    supervised: SupervisedExpert | None = None,
) -> Experts:
    """The experts with the weights that leave-one-out prefers.

    Parameters
    ----------
    members : sequence of Member
    sums : sequence of MemberSums
        Class sums of each member.
    given : Given
        The labelled points.
    mean : array of shape (n_classes,)
        Class means relative to the logarithms of the class shares.
    supervised : SupervisedExpert, optional
        What a classifier says that looks at the labelled points alone.
    """
    counts = given.counts + IMAGINED
    centre = mean + np.log(counts / counts.sum())
    first = average(sums, np.array([member.rank for member in members]), given, centre)
    second = blend(sums, given, centre) if len(given.judged) else None
    weights = _stacking_weights(first, second, supervised, sums, given)
    alive = first.weights.any(axis=1) | (False if second is None else second.weights > 0)
    kept = np.flatnonzero(alive).tolist()
    return Experts(
        tuple(members[m] for m in kept),
        tuple(sums[m].whole for m in kept),
        tuple(sums[m].left_out for m in kept),
        tuple(sums[m].directions for m in kept),
        replace(first, strengths=first.strengths[kept], weights=first.weights[kept]),
        None if second is None else replace(second, weights=second.weights[kept]),
        weights,
    )


def _stacking_weights(
    first: Average, second: Blend | None, supervised: SupervisedExpert | None, sums, given: Given
) -> NDArray:
    """Stacking weights, from what the experts say about labels that can be judged."""
    judged = given.judged
    if second is None:
        return np.array([1.0, 0.0, 0.0])
    left_out = [one.left_out for one in sums]
    experts = [first.probabilities(left_out), second.probabilities(left_out)]
    if supervised is not None:
        experts.append(supervised.left_out)
    weights = np.zeros(len(EXPERTS))
    weights[: len(experts)] = stack(np.stack([judged.own(expert) for expert in experts]))
    return weights
