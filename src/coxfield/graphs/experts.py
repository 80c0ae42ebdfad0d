r"""The model of `SLGCPClassifier`: three experts on covariances of all points, and their stacking weights.

The members are heat covariances of several graphs at several times, and linear covariances, as unit features. A
covariance is the inner product of features, so a class sum is one product of features with the sum of the features of
the class, and no matrix of all pairs is formed. Each expert combines the class sums S_m of the members:

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

from coxfield.graphs.neighbours import EdgeRule
from coxfield.graphs.spectrum import Heat, time_of_rank
from coxfield.selection.mixture.concave import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from coxfield.graphs.spectrum import Axes, Modes


# Few neighbours follow thin shapes, and many follow clouds. With one scale and a sharp rule, edges do not cross gaps.
EDGE_RULES = (
    EdgeRule(5),
    EdgeRule(40),
    EdgeRule(10, sharpness=4.0, common=True),
    EdgeRule(10, sharpness=10.0, common=True),
)
MULTIPLES = (1.2, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # of Q - 1: effective ranks
LEAST_MODES = 64
MODES_PER_CLASS = 6
RESOLVED = 0.6  # effective ranks up to this share of the modes are those of all modes
SHRINKAGES = (0.03, 0.1, 0.3, 1.0)
STRENGTHS = 0.5 * 2.0 ** np.arange(7)  # nats that separate the best class from the mean class, at the average point
ROUNDING = 16  # units of the last digit by which class sums may differ by rounding alone
VANISHED = 1e-30  # spread of class sums that say nothing; covariances have a variance of 1
NEGLIGIBLE = 1e-4  # a weight that no probability shows
PRIOR = 10.0  # labels that the prior of the stacking weights is worth
ROUNDS = 500  # of the stacking weights, at most
TOLERANCE = 1e-9  # change of a stacking weight at which rounds end
SMALLEST = 1e-9  # probability of a label that an expert excludes
IMAGINED = 5.0  # labels more in each class when shares are counted: labels are often asked for, and not drawn
EXPERTS = ("average", "mixture", "labelled points alone")


@dataclass(frozen=True)
class Member:
    """One covariance of the bank."""

    source: int
    """Index of its graph; -1 for linear covariances."""
    rank: float
    """Effective rank."""
    parameter: float
    """The time t of a heat covariance, or the shrinkage h of a linear one."""
    means: bool
    """Whether it takes negative values, so that class means are used instead of sums: without mode 0, or linear."""


def n_modes(n_points: int, n_classes: int) -> int:
    """How many modes of a graph are computed."""
    return min(n_points, max(LEAST_MODES, MODES_PER_CLASS * (n_classes - 1)))


def graph_members(source: int, modes: Modes, n_classes: int) -> Iterator[tuple[Member, NDArray]]:
    """Heat covariances of a graph, with and without mode 0, and their features."""
    if len(modes) < 2:
        return
    n = len(modes.vectors)
    most = min(n / 4, RESOLVED * len(modes)) if len(modes) < n else n / 4
    ranks = [(n_classes - 1) * multiple for multiple in MULTIPLES]
    ranks = [rank for rank in ranks if rank <= most] or ranks[:1]
    times: dict[float, float] = {}
    for rank in ranks:
        times.setdefault(time_of_rank(modes.values, rank), rank)  # a graph that falls apart repeats its longest time
    for time, rank in times.items():
        for centred in (False, True):
            yield Member(source, rank, time, centred), Heat(modes, time, centred).features()


def linear_members(axes: Axes, coordinates: NDArray) -> Iterator[tuple[Member, NDArray]]:
    """Linear covariances at several shrinkages, and their features."""
    if not axes.variances.any():
        return
    for share in SHRINKAGES:
        yield Member(-1, axes.rank(share), share, True), axes.features(coordinates, share)


@dataclass(frozen=True)
class Given:
    """The labelled points."""

    rows: NDArray
    """Their rows among all points."""
    y: NDArray
    n_classes: int

    @property
    def counts(self) -> NDArray:
        """Labelled points per class."""
        return np.bincount(self.y, minlength=self.n_classes)

    @property
    def indicators(self) -> NDArray:
        """1 where a labelled point has the class, shape (n_labelled, n_classes)."""
        return np.eye(self.n_classes)[self.y]

    @property
    def judged(self) -> Judged:
        """What leave-one-out can judge."""
        classes = np.flatnonzero(self.counts > 1)
        rows = np.flatnonzero(np.isin(self.y, classes) & (len(classes) > 1))
        return Judged(rows, classes, np.searchsorted(classes, self.y[rows]))


@dataclass(frozen=True)
class Judged:
    """Labels that leave-one-out can judge: those of classes with several labels, among these classes.

    The only label of its class would be predicted without any point of its class, which is evidence against every
    member. So such labels do not count. Their classes do not count either: otherwise the member would win that never
    names them.
    """

    rows: NDArray
    """Of the labelled points."""
    classes: NDArray
    y: NDArray
    """Numbers of the labels among these classes."""

    def __len__(self) -> int:
        return len(self.rows)

    def among(self, left_out: NDArray) -> NDArray:
        """The rows and classes that count, of an array of shape (n_labelled, n_classes)."""
        return left_out[np.ix_(self.rows, self.classes)]

    def own(self, probabilities: NDArray) -> NDArray:
        """The probability of each label that counts, given that it is one of these classes."""
        some = self.among(probabilities)
        return some[np.arange(len(self)), self.y] / np.maximum(some.sum(axis=1), np.finfo(float).tiny)


@dataclass(frozen=True)
class MemberSums:
    """Class sums of one member."""

    whole: NDArray
    """At all points, shape (n, n_classes)."""
    left_out: NDArray
    """At the labelled points without themselves, shape (n_labelled, n_classes)."""
    directions: NDArray
    """What features are multiplied with to give class sums, shape (n_features, n_classes)."""


def member_sums(features: NDArray, given: Given, *, means: bool) -> MemberSums:
    """Class sums, or class means, of the covariance that is the inner product of unit features.

    Means are sums divided by the number of points in the class. The number leaves out the point itself where the sum
    does. A covariance that takes negative values would favour the larger class on both sides. Other sums are
    divided by the root of the number: labels are often asked for, and their numbers say little about the classes.
    """
    own, indicators = features[given.rows], given.indicators.astype(features.dtype)
    power = 1.0 if means else 0.5
    directions = own.T @ indicators
    left_out = own @ directions - indicators * np.einsum("ij,ij->i", own, own)[:, None]
    left_out = left_out / np.maximum(given.counts - given.indicators, 1) ** power
    directions = directions / (given.counts**power).astype(features.dtype)
    return MemberSums(features @ directions, left_out.astype(float), directions)


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
