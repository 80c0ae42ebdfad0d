"""The weights of a mixture: one concave problem on leave-one-out class sums.

The score of class i at point j is mu_i + sum of w_m S_m[j, i] over the members. The sum of the log probabilities of the
labels is concave in the weights and the means, so there is one optimum. No kernel is evaluated here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Newton's method for the weights of a mixture, with steps projected back to weights that are not negative.
#
# L-BFGS-B stops when a step gains little. Among many similar members that is too early, and from some starts its line
# search fails. The problem is concave with few unknowns, so Newton's method reaches the optimum to the last digits.


NEWTON_STEPS = 100
TOLERANCE = 1e-6  # of the gradient, in nats per unit of evidence
RIDGE = 1e-12  # of the mean curvature: members may be the same up to rounding
NEARLY = 0.01  # nats
ENOUGH = 1e-4  # of the gain that the gradient promises
SHORTENED = 0.5 ** np.arange(30)  # lengths of a step that are tried


def row_log_softmax(scores: NDArray) -> NDArray:
    """What `scipy.special.log_softmax` gives for finite scores along the last axis, to the last digit.

    The loss of a few labels is evaluated hundreds of times. SciPy would take most of that time to look at the types.
    """
    relative = scores - scores.max(axis=-1, keepdims=True)
    return relative - np.log(np.exp(relative).sum(axis=-1, keepdims=True))


def row_softmax(scores: NDArray) -> NDArray:
    """Likewise what `scipy.special.softmax` gives."""
    found = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return found / found.sum(axis=-1, keepdims=True)


class Objective(Protocol):
    """A convex loss of weights, which are not negative, followed by other unknowns."""

    @property
    def n_members(self) -> int:
        """Number of weights."""

    def loss(self, vector: NDArray) -> tuple[float, NDArray]:
        """The loss and its gradient."""

    def hessian(self, vector: NDArray, free: NDArray) -> NDArray:
        """Second derivatives by some of the entries, given by their numbers."""


def projected(problem: Objective, vector: NDArray, n_free: int) -> float:
    """How far a projected step downhill leads; 0 at the optimum."""
    _, gradient = problem.loss(vector)
    weight = np.arange(len(vector)) < problem.n_members
    return float(np.abs(np.where(weight, np.minimum(vector, gradient), gradient)[:n_free]).max())


def polish(problem: Objective, vector: NDArray, n_free: int) -> NDArray:
    """The optimum, from a point near it or not; only the first `n_free` entries of the vector may change."""
    _, gradient = problem.loss(vector)
    weight = np.arange(len(vector)) < problem.n_members
    for _ in range(NEWTON_STEPS):
        move = np.where(weight, np.minimum(vector, gradient), gradient)[:n_free]  # of a projected step downhill
        if np.abs(move).max() <= TOLERANCE:
            break
        # Weights that are nearly zero and want to fall are set to zero, so that they do not shorten the step.
        zero = weight & (vector <= min(NEARLY, np.abs(move).max())) & (gradient > 0)
        free = np.flatnonzero(~zero & (np.arange(len(vector)) < n_free))
        vector = np.where(zero, 0, vector)
        if not free.size:
            break
        _, gradient = problem.loss(vector)
        H = problem.hessian(vector, free)
        H[np.diag_indices_from(H)] += RIDGE * max(np.trace(H) / len(free), 1.0)
        # A projected Newton step may lead uphill. A step along the gradient, scaled by the curvature, never does.
        for step in (np.linalg.solve(H, gradient[free]), gradient[free] / np.diagonal(H)):
            found = _shortened(problem, vector, free, step)
            if found is not None:
                break
        if found is None:
            break  # rounding decides
        vector, (_, gradient) = found, problem.loss(found)
    return vector


def _shortened(problem: Objective, vector: NDArray, free: NDArray, step: NDArray) -> NDArray | None:
    """The end of the longest part of a step that lowers the loss enough, None if there is none."""
    loss, gradient = problem.loss(vector)
    for length in SHORTENED:
        tried = vector.copy()
        tried[free] -= length * step
        tried[: problem.n_members] = np.maximum(tried[: problem.n_members], 0)
        if problem.loss(tried)[0] < loss - ENOUGH * gradient @ (vector - tried):
            return tried
    return None


MEAN_PRECISION = 0.01  # of the normal prior on the class means, in 1 / nats^2
MOST_STEPS = 1000
MOST_ROUNDS = 4
NOTHING = 1e-290  # evidence in nats at weight 1; a weight that makes up for less is no number


@dataclass(frozen=True)
class Problem:
    """The log posterior of weights and means.

    A column is a class. If there are very many classes, a point has a few columns for the classes that it may have, and
    one for all others; then means are held.
    """

    evidence: NDArray
    """Leave-one-out class sums in units of `scale`, shape (members, n * columns)."""
    scale: NDArray
    """The rate of the exponential prior of each weight: about the largest evidence in nats at weight 1."""
    y: NDArray
    """The column of each label."""
    counts: NDArray
    centre: NDArray
    """Centre of the prior of the means."""
    offset: NDArray | None = None
    """Means of the columns of each point, shape (n, columns), if means are held; None to learn one mean per column."""

    @classmethod
    def of(
        cls,
        sums: NDArray,
        y: NDArray,
        counts: NDArray,
        centre: NDArray,
        offset: NDArray | None = None,
        at_copies: NDArray | None = None,
        caution: float = 0.0,
        price: float = 0.0,
    ) -> Problem:
        """From class sums of shape (members, n, columns).

        The rate is a^(1 - caution) b^caution + price b. The largest evidence of leave-one-out is a. The largest at a
        copy of a point is b, if the extremes `at_copies` are given. Beside an isolated point, a new point hears what no
        point that was left out has heard.
        """
        relative = sums - sums.mean(axis=2, keepdims=True)
        middle = relative.mean(axis=1, keepdims=True) if offset is None else np.zeros((len(sums), 1, 1))
        scale = np.array([np.abs(each - of_each).max() for each, of_each in zip(relative, middle, strict=True)])
        if at_copies is not None and caution:
            potential = np.maximum(scale, np.abs(at_copies - middle[:, 0]).max(axis=(0, 2)))
            with np.errstate(divide="ignore", over="ignore"):
                scale = scale * (potential / np.where(scale > 0, scale, 1)) ** caution + price * potential
        scale = np.where(scale > NOTHING, scale, np.inf)  # a member that says nothing has no weight
        relative /= scale[:, None, None]
        evidence = relative.reshape(len(sums), sums.shape[1] * sums.shape[2])
        return cls(evidence, scale, y, counts, centre, offset)

    @property
    def n_members(self) -> int:
        """Number of members."""
        return len(self.scale)

    def restricted(self, members: NDArray) -> Problem:
        """The problem with some of the members alone."""
        return replace(self, evidence=self.evidence[members], scale=self.scale[members])

    def scores(self, vector: NDArray) -> NDArray:
        """Scores of weights, in units of `scale`, followed by means, shape (n, columns)."""
        sums = (vector[: self.n_members] @ self.evidence).reshape(len(self.y), -1)
        return sums + (vector[self.n_members :] if self.offset is None else self.offset)

    def vector(self, solution: Solution) -> NDArray:
        """Weights in units of `scale`, followed by means."""
        weights = np.where(solution.weights > 0, solution.weights, 0) * np.where(np.isinf(self.scale), 0, self.scale)
        return np.concatenate([weights, solution.mean])

    def loss(self, vector: NDArray) -> tuple[float, NDArray]:
        """Negative log posterior of weights, in units of `scale`, followed by means; and its gradient."""
        w, mean = vector[: self.n_members], vector[self.n_members :]
        logs = row_log_softmax(self.scores(vector))
        own = np.arange(len(self.y)), self.y
        residual = np.exp(logs) * self.counts[:, None]
        residual[own] -= self.counts
        away = mean - self.centre
        loss = -self.counts @ logs[own] + w.sum() + MEAN_PRECISION / 2 * away @ away
        by_w = self.evidence @ residual.ravel() + 1
        by_mean = residual.sum(axis=0) if self.offset is None else 0
        return float(loss), np.concatenate([by_w, by_mean + MEAN_PRECISION * away])

    def hessian(self, vector: NDArray, free: NDArray) -> NDArray:
        """Second derivatives of the loss by some of the entries, given by their numbers."""
        probabilities = row_softmax(self.scores(vector))
        of_members, of_means = free[free < self.n_members], free[free >= self.n_members] - self.n_members
        features = np.empty((len(free), *probabilities.shape))
        features[: len(of_members)] = self.evidence[of_members].reshape(-1, *probabilities.shape)
        features[len(of_members) :] = np.eye(len(self.centre))[of_means][:, None, : probabilities.shape[1]]
        features -= np.einsum("jc,fjc->fj", probabilities, features)[:, :, None]
        features *= np.sqrt(self.counts[:, None] * probabilities)
        rows = features.reshape(len(free), probabilities.size)
        return rows @ rows.T + np.diag(np.where(free < self.n_members, 0, MEAN_PRECISION))

    def solve(self, start: NDArray | None = None, *, learn_mean: bool = True, done=None) -> Solution:
        """The optimum, from any start: L-BFGS-B to find the weights that are not zero, then Newton's method.

        `done` is called with 1 after each of at most `MOST_STEPS` steps.
        """
        learn_mean = learn_mean and self.offset is None
        vector = np.concatenate([np.zeros(self.n_members), self.centre]) if start is None else start
        held = [(None, None) if learn_mean else (m, m) for m in self.centre]
        total = self.counts.sum()

        def per_point(v: NDArray) -> tuple:
            return tuple(part / total for part in self.loss(v))

        n_free = self.n_members + (len(self.centre) if learn_mean else 0)
        for _ in range(MOST_ROUNDS):  # among hundreds of similar members a wild start may need a second round
            found = minimize(
                per_point,
                vector,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0, None)] * self.n_members + held,
                callback=None if done is None else lambda _: done(1),
                options={"maxiter": MOST_STEPS, "maxfun": 2 * MOST_STEPS, "ftol": 1e-10, "gtol": 1e-7, "maxcor": 30},
            )
            vector = polish(self, found.x, n_free)
            if projected(self, vector, n_free) <= 10 * TOLERANCE:
                break
        return Solution(vector[: self.n_members] / self.scale, vector[self.n_members :], self.loss(vector)[0])


@dataclass(frozen=True)
class Solution:
    """Weights of the members, class means, and the negative log posterior there."""

    weights: NDArray
    mean: NDArray
    loss: float

    def spread_over(self, members: NDArray) -> Solution:
        """The solution of a restricted problem as one of the whole: all other members have no weight."""
        weights = np.zeros(len(members))
        weights[members] = self.weights
        return Solution(weights, self.mean, self.loss)
