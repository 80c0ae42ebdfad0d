r"""The model of `SLGCPClassifier`: four experts on covariances of all points, and their stacking weights.

The members are heat covariances of several graphs at several times, and linear covariances; see `bank`. Each expert
combines the class sums S_m of the members:

1. `Average`: member m at strength b predicts with softmax(mu + b S_m). Its weight is the product of two factors. One is
   the probability that it gives to each label from the others, by leave-one-out. The other is a prior exp(-R / n),
   where R is its effective rank and n the number of labels: few labels cannot fill many modes. With one label per class
   leave-one-out says nothing, and the prior decides.
2. `Blend`: one covariance that is a mixture of the members, by the concave problem of leave-one-out. If labels are
   many, it also mixes what members say by kriging.
3. A classifier that sees the labelled points alone.
4. The minimum cut; see `cut`.

`stack` finds the weights of the experts that make the labels most probable, each from the others. The prior is worth
ten labels, divided between the experts. So with few labels all weights are about equal.

A number for each choice was settled on the data sets of `coxfield reproduce table-few-labels`, and holds for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.utils import gen_batches

from coxfield.graphs.bank import TIED
from coxfield.graphs.cut import NO_LABEL
from coxfield.selection.mixture.concave import Problem, row_log_softmax, row_softmax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.graphs.bank import Given, Judged, Kriged, Member, MemberSums
    from coxfield.graphs.cut import CutGraph


STRENGTHS = 0.5 * 2.0 ** np.arange(7)  # nats that separate the best class from the mean class, at the average point
ROUNDING = 16  # units of the last digit by which class sums may differ by rounding alone
LEAST_MEAN = -300.0  # relative to the largest: e to this power is a normal number, and excludes a class
ROWS = 4096  # points at a time, so that what is added up stays near the processor
VANISHED = 1e-30  # spread of class sums that say nothing; covariances have a variance of 1
NEGLIGIBLE = 1e-4  # a weight that no probability shows
PRIOR = 10.0  # labels that the prior of the stacking weights is worth
MOST_ALONE = 0.25  # prior weight of the third expert, at most; a third of all harms pictures with few labels
HALF_ALONE = 20.0  # labels per class at which its prior weight would be a quarter
REFUTED = 0.85  # of its prior weight: with less, the third expert is not heard
CUT = 0.5  # prior weight of the fourth expert: it speaks where labels that are left out say that it is right
WORSE = 1.0  # labels more that it may have wrong than each of the first two, if they are left out
LEAST_CUT = 20  # labels from which the cut is asked: fewer do not tell an error in ten from none
FOLDS = 20  # times that a part of the labels is left out of the cut
MOST_WRONG = 0.1  # of the labels that are left out: otherwise the cut says nothing
UNSEEN = 0.5  # wrong labels more, and right ones, when the share of wrong ones is counted
BEYOND = 1.5  # errors to expect at one label per class, for each disagreement of a member with the average
LEAST_DOUBT = 0.01  # share of errors to expect if all members agree
MOST_SHARPNESS = 8.0
SOFTNESS = 0.03  # of known class shares: so far may the mean be from the share, for each nat that scores are moved
NEWTON_STEPS, LONGEST_STEP = 100, 2.0
MOST_TRUST = 2.0  # power of a guess, at most
ROUNDS = 500  # of the stacking weights, at most
TOLERANCE = 1e-9  # change of a stacking weight at which rounds end
SMALLEST = 1e-9  # probability of a label that an expert excludes
IMAGINED = 5.0  # labels more in each class when shares are counted: labels are often asked for, and not drawn
EXPERTS = ("average", "mixture", "labelled points alone", "minimum cut")


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
        total = np.zeros(sums[0].shape, order="F")
        for part in gen_batches(len(total), ROWS) if len(total) else ():
            for m in self.members.tolist():
                self._add(total[part], m, sums[m][part])
        return total * self._factors

    @cached_property
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


def average(
    sums: Sequence[MemberSums | Kriged], ranks: NDArray, given: Given, mean: NDArray, prior: NDArray | None = None
) -> Average:
    """Weigh all members at all strengths.

    Parameters
    ----------
    sums : sequence of MemberSums
    ranks : array of shape (members,)
        Effective ranks.
    given : Given
    mean : array of shape (n_classes,)
        Class means: log class shares, plus what the user prefers.
    prior : array of shape (members,), optional
        How likely each member is beside its rank; equal if None.
    """
    strengths = np.stack([STRENGTHS / _spread(one.whole) for one in sums])
    logs = np.stack([_log_likelihoods(one, of_one, given, mean) for one, of_one in zip(sums, strengths, strict=True)])
    logs -= (ranks / max(len(given.y), given.n_classes))[:, None]  # a class without a label counts as one label
    weights = softmax(logs if prior is None else logs + np.log(prior)[:, None])
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


def _log_likelihoods(sums: MemberSums | Kriged, strengths: NDArray, given: Given, mean: NDArray) -> NDArray:
    """Log probability of the labels that can be judged, each from the others, for each strength."""
    judged = given.judged
    if not len(judged):
        return np.zeros(len(strengths))
    left_out, mean, rows = judged.among(sums.left_out), mean[judged.classes], np.arange(len(judged))
    counted = given.counted[judged.rows]
    scores = strengths[:, None, None] * left_out + mean
    return row_log_softmax(scores)[:, rows, judged.y] @ counted


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
        return row_softmax(scores)


def blend(sums: Sequence[MemberSums | Kriged], given: Given, mean: NDArray, allowed: NDArray | None = None) -> Blend:
    """The mixture that leave-one-out prefers. The class means stay: few labels do not tell how frequent classes are.

    Only labels that can be judged count; see `Judged`.
    """
    judged = given.judged
    chosen = np.arange(len(sums)) if allowed is None else np.flatnonzero(allowed)
    left_out = np.stack([judged.among(sums[m].left_out) for m in chosen.tolist()])
    problem = Problem.of(left_out, judged.y, given.counted[judged.rows], mean[judged.classes])
    weights = np.zeros(len(sums))
    weights[chosen] = problem.solve(learn_mean=False).weights
    return Blend(weights, mean)


def stack(probabilities: NDArray, prior: NDArray | None = None, counted: NDArray | None = None) -> NDArray:
    """Stacking weights of experts from the probabilities that each gives to the labels, shape (experts, labels).

    `prior` has the weights without any label; by default they are equal. `counted` says how often each label counts.

    Examples
    --------
    The second expert is right a little more often:

    >>> stack(np.array([[0.5, 0.9, 0.1], [0.6, 0.9, 0.9]])).round(2)
    array([0.46, 0.54])
    """
    likely = np.maximum(probabilities, SMALLEST)
    prior = np.full(len(likely), 1 / len(likely)) if prior is None else prior
    counted = np.ones(likely.shape[1]) if counted is None else counted
    weights = prior
    for _ in range(ROUNDS):
        parts = weights[:, None] * likely
        counts = (parts / parts.sum(axis=0)) @ counted + PRIOR * prior
        new = counts / counts.sum()
        done = np.abs(new - weights).max() <= TOLERANCE
        weights = new
        if done:
            break
    return weights


@dataclass(frozen=True)
class Opinion:
    """Probabilities of an expert that is not made of members."""

    whole: Callable[[], NDArray]
    """Computes probabilities at all points, shape (n, n_classes). That takes long, and is done only if it is heard."""
    left_out: NDArray
    """Probabilities at the labelled points, each from the others, shape (n_labelled, n_classes)."""


def cut_opinion(graph: CutGraph | None, given: Given, n: int) -> Opinion | None:
    """What the cut says about all points, and about the labelled ones from the others; None if it is not to be heard.

    It gives its labels the share of labels that it finds if they are left out.
    """
    if graph is None or given.n_classes != 2 or len(given.y) < LEAST_CUT or len(given.judged) < len(given.y):
        return None
    codes = np.full(n, NO_LABEL)
    codes[given.rows] = given.y
    left_out, wrong, total = np.empty_like(given.y), 0.0, float(given.counted.sum())
    for fold in range(FOLDS):
        part = slice(fold, None, FOLDS)
        some = codes.copy()
        some[given.rows[part]] = NO_LABEL
        left_out[part] = graph.labels(some)[given.rows[part]]
        wrong += float(given.counted[part] @ (left_out[part] != given.y[part]))
        if wrong > MOST_WRONG * total:
            return None
    error = (wrong + UNSEEN) / (total + 2 * UNSEEN)
    says = np.array([[1 - error, error], [error, 1 - error], [0.0, 0.0]])  # the last row leaves it to the others
    return Opinion(lambda: says[graph.labels(codes)], np.where(left_out[:, None] == NO_LABEL, 0.5, says[left_out]))


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
    sharpness: float = 1.0
    """Power of the probabilities, above 1 if no label can be judged; see `agreement_sharpness`."""

    def probabilities(
        self, sums: Sequence[NDArray], supervised: NDArray | None = None, cut: NDArray | None = None
    ) -> NDArray:
        """Probabilities of all experts together, from the class sums of all members and those of the other experts."""
        total = self.loudness[0] * self.average.probabilities(sums)
        if self.blend is not None:
            total += self.loudness[1] * self.blend.probabilities(sums)
        if supervised is not None:
            total += self.loudness[2] * supervised
        if cut is not None:
            total += self.loudness[3] * cut
        return powers(total, self.sharpness)

    @property
    def hears_supervised(self) -> bool:
        """Whether the third expert is there, and not refuted by the labels."""
        return bool(self.loudness[2] > 0)

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
    sums: Sequence[MemberSums | Kriged],
    given: Given,
    mean: NDArray,
    supervised: Opinion | None = None,
    cut: Opinion | None = None,
) -> Experts:
    """The experts with the weights that leave-one-out prefers.

    Parameters
    ----------
    members : sequence of Member
    sums : sequence of MemberSums or Kriged
        Class sums of each member, and after them what members say by kriging. These are for the mixture only.
    given : Given
        The labelled points.
    mean : array of shape (n_classes,)
        Class means relative to the logarithms of the class shares.
    supervised : Opinion, optional
        What a classifier says that looks at the labelled points alone.
    cut : Opinion, optional
        What the minimum cut says.
    """
    counts = given.counts + IMAGINED
    centre = mean + np.log(counts / counts.sum())
    plain = sum(not member.kriged for member in members)  # these come first
    ranks = np.array([member.rank for member in members[:plain]])
    first = average(sums[:plain], ranks, given, centre, _prior(members[:plain]))
    second = None
    if len(given.judged):
        mixed = np.array([member.source > TIED for member in members])  # clusters need more labels
        second = blend(sums, given, centre, None if given.many else mixed)
    weights = _stacking_weights(first, second, supervised, cut, sums, given)
    sharpness = agreement_sharpness(first, [one.whole for one in sums]) if second is None and len(given.y) else 1.0
    silent = np.zeros((len(members) - plain, len(STRENGTHS)))
    strengths, shares = (np.concatenate([part, silent]) for part in (first.strengths, first.weights))
    kept = np.flatnonzero(shares.any(axis=1) | (False if second is None else second.weights > 0)).tolist()
    return Experts(
        tuple(members[m] for m in kept),
        tuple(sums[m].whole for m in kept),
        tuple(sums[m].left_out for m in kept),
        tuple(sums[m].directions for m in kept),
        replace(first, strengths=strengths[kept], weights=shares[kept]),
        None if second is None else replace(second, weights=second.weights[kept]),
        weights,
        sharpness,
    )


def _prior(members: Sequence[Member]) -> NDArray:
    """How likely members are. If there are several units, all clusters together are as likely as the rest of one unit.

    Clusters are fitted in the first units alone. Without it three times as many graphs would drown them.
    """
    views = len({member.view for member in members})
    clusters = np.array([member.source <= TIED for member in members])
    if views == 1 or not clusters.any():
        return np.ones(len(members))
    return np.where(clusters, (~clusters).sum() / (views * clusters.sum()), 1.0)


def powers(probabilities: NDArray, power: float) -> NDArray:
    """Powers of the probabilities in each row, scaled to add up to 1."""
    largest = probabilities.max(axis=1, keepdims=True)
    found = (probabilities / largest) ** power
    return found / found.sum(axis=1, keepdims=True)


def agreement_sharpness(one: Average, sums: Sequence[NDArray]) -> float:
    """The power of the probabilities that makes them as certain as the members agree, at least 1.

    If no label can be judged, all strengths speak alike, and their average is far too modest. But members that are
    often wrong disagree with each other. The share of points at which a member names another class than the average
    does, times `BEYOND`, is the share of errors to expect.
    """
    p = one.probabilities(sums)
    best, shares = p.argmax(axis=1), one.weights.sum(axis=1)
    apart = sum(shares[m] * float(np.mean(sums[m].argmax(axis=1) != best)) for m in one.members.tolist())
    target = max(BEYOND * apart, LEAST_DOUBT)
    low, high = 0.0, np.log(MOST_SHARPNESS)
    if (1 - p.max(axis=1)).mean() <= target:
        return 1.0
    logs = np.log(np.maximum(p / p.max(axis=1, keepdims=True), np.finfo(float).tiny))
    for _ in range(20):
        middle = (low + high) / 2
        doubt = 1 - (1 / np.exp(np.exp(middle) * logs).sum(axis=1)).mean()  # as by `powers`, in a fraction of the time
        low, high = (middle, high) if doubt > target else (low, middle)
    return float(np.exp(low))


def _stacking_weights(
    first: Average, second: Blend | None, supervised: Opinion | None, cut: Opinion | None, sums, given: Given
) -> NDArray:
    """Stacking weights, from what the experts say about labels that can be judged."""
    judged, weights = given.judged, np.zeros(len(EXPERTS))
    if second is None:
        weights[0] = 1.0
        return weights
    left_out = [one.left_out for one in sums]
    own = np.stack([judged.own(one.probabilities(left_out)) for one in (first, second)])
    heard, prior, counted = [0, 1], np.full(2, 0.5), given.counted[judged.rows]
    if supervised is not None:
        per_class = len(given.y) / given.n_classes
        third = min(MOST_ALONE, per_class / (2 * (per_class + HALF_ALONE)))
        every, of_every = np.vstack([own, judged.own(supervised.left_out)]), np.append((1 - third) * prior, third)
        # Otherwise labels speak against it, and what the prior leaves of it would do harm.
        if stack(every, of_every, counted)[2] >= REFUTED * third:
            heard, own, prior = [0, 1, 2], every, of_every
    if cut is not None:
        fourth = judged.own(cut.left_out)
        if counted @ (fourth < 0.5) <= ((own[:2] < 0.5) @ counted).min() + WORSE:
            heard, own, prior = [*heard, 3], np.vstack([own, fourth]), np.append((1 - CUT) * prior, CUT)
    weights[heard] = stack(own, prior, counted)
    return weights


def meet_shares(probabilities: NDArray, shares: NDArray) -> NDArray:
    """What to add to the log probabilities of the classes, so that their means over the points are about `shares`.

    It is the minimum of mean lse(log p + d) - shares . d + softness / 2 |d|^2, found by Newton's method. There, the
    mean of the probabilities of a class differs from its share by the softness times d.

    Examples
    --------
    >>> p = np.array([[0.5, 0.5], [0.9, 0.1]])
    >>> d = meet_shares(p, np.array([0.5, 0.5]))
    >>> mean = powers(p * np.exp(d), 1.0).mean(axis=0)
    >>> np.allclose(mean, 0.5 - SOFTNESS * d)
    True
    """
    logs, d = np.log(np.maximum(probabilities, np.finfo(float).tiny)), np.zeros(len(shares))
    for _ in range(NEWTON_STEPS):
        p = row_softmax(logs + d)
        gradient = p.mean(axis=0) - shares + SOFTNESS * d
        if np.abs(gradient).max() < TOLERANCE:
            break
        hessian = np.diag(p.mean(axis=0)) - p.T @ p / len(p) + SOFTNESS * np.eye(len(d))
        step = np.linalg.solve(hessian, gradient)
        d = d - step / max(1.0, np.abs(step).max() / LONGEST_STEP)
    return d


def prior_strength(left_out: NDArray, prior: NDArray, judged: Judged) -> float:
    """The power of a guess that makes the labels most probable, each from the others and its guess.

    Without labels that can be judged it is 1: the guess is taken at its word.
    """
    if not len(judged):
        return 1.0
    logs, guess = (judged.among(np.log(np.maximum(p, SMALLEST))) for p in (left_out, prior))
    rows = np.arange(len(judged))

    def loss(power: float) -> float:
        return float(2 * (power - 1) ** 2 - row_log_softmax(logs + power * guess)[rows, judged.y].sum())

    return float(minimize_scalar(loss, bounds=(0.0, MOST_TRUST), method="bounded").x)
