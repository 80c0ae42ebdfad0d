"""Free members of a mixture: one weight per point and kernel, found together with the tied weights and the means.

The score of class i at row j is mu_i + sum_m w_m S_m[j, i] + the sum of beta_ml k_m(x_j, x_l) over the points l of
class i, without j itself. It is linear in w, beta and mu, and w and beta are not negative, so the log posterior is
concave. A column is one kernel around one point. There are n x M columns, and nearly all have no weight. So only an
active set is solved, by Newton's method. One pass over all columns then says which of them would raise the log
posterior most, and these enter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls
from scipy.special import log_softmax

from coxfield.selection.mixture.concave import MEAN_PRECISION
from coxfield.threads import over_rows
from coxfield.utils.numbers import weighted_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.selection.mixture.concave import Problem

RATES = (3.0, 1.0, 0.3, 0.1, 0.03)  # of the prior of free weights, in 1 / nats
SURE = 2.0  # standard errors within which a larger rate is as good as the best
ENTER = 100  # columns that enter at a time
TOLERANCE = 1e-3  # of the gradient, in nats per unit of evidence
ROUGH = 0.03  # the same where only the rate is chosen
ROUNDS = 50  # of columns that enter
STEPS = 50  # of Newton's method between them
RIDGE = 1e-10  # of the mean curvature: columns of neighbours are nearly the same
WIDEST = 8  # powers of ten that `RIDGE` may grow by
ROUNDED = 1e-4  # of the weights of all rows: a curvature below which differences have no digits, times `RIDGE`
PIVOTS = 20  # exchanges of whole blocks before single ones
ENOUGH = 1e-4  # of the gain that the gradient promises
SHORTENED = 0.5 ** np.arange(25)  # lengths of a step that are tried


@dataclass(frozen=True)
class State:
    """Weights of tied members, of the columns that are not zero, and means."""

    tied: NDArray
    """In units of the rates of the priors, shape (T,)."""
    columns: NDArray
    """Numbers of the columns that have a weight, member * m + candidate, ascending."""
    beta: NDArray
    """Their weights."""
    mean: NDArray

    def kept(self, allowed: NDArray) -> State:
        """The state without columns of candidates that are not allowed."""
        some = allowed[self.columns % len(allowed)]
        return replace(self, columns=self.columns[some], beta=self.beta[some])

    def dense(self, n_members: int, n_candidates: int) -> NDArray:
        """The weights of all columns, shape (M, m)."""
        found = np.zeros(n_members * n_candidates)
        found[self.columns] = self.beta
        return found.reshape(n_members, n_candidates)


@dataclass(frozen=True)
class FreeProblem:
    """The log posterior of tied weights, free weights and means."""

    evidence: NDArray
    """Leave-one-out class sums of tied members in units of their rates, shape (T, n, classes)."""
    kernels: NDArray
    """Values of each kernel between rows and candidates, 0 between a row and itself, shape (M, n, m)."""
    classes: NDArray
    """The class of each candidate, ascending."""
    y: NDArray
    counts: NDArray
    """The weight of each row; a row of weight 0 does not count."""
    centre: NDArray
    """Centre of the prior of the means."""
    rate: float
    """Of the exponential prior of each free weight."""
    allowed: NDArray
    """Whether each candidate may have a weight."""
    learn_mean: bool = True

    @property
    def start(self) -> State:
        """No weight at all."""
        return State(np.zeros(len(self.evidence)), np.empty(0, int), np.empty(0), self.centre)

    def scores(self, state: State) -> NDArray:
        """Scores of all rows, those that do not count included, shape (n, classes)."""
        return np.tensordot(state.tied, self.evidence, 1) + state.mean + self.free_sums(state)

    def free_sums(self, state: State) -> NDArray:
        """What free weights say to all rows, shape (n, classes)."""
        found = np.zeros(self.evidence.shape[1:])
        member, candidate = np.divmod(state.columns, len(self.classes))
        for k, j, beta in zip(member, candidate, state.beta, strict=True):
            found[:, self.classes[j]] += beta * self.kernels[k, :, j]
        return found

    def free_evidence(self, state: State) -> NDArray:
        """How far apart the class sums of each kernel are, on average over the rows, shape (M,)."""
        apart, member = np.zeros(len(self.kernels)), state.columns // len(self.classes)
        for m in np.unique(member):
            some = replace(state, columns=state.columns[member == m], beta=state.beta[member == m])
            apart[m] = np.ptp(self.free_sums(some), axis=1).mean()
        return apart

    def loss(self, state: State) -> float:
        """Negative log posterior."""
        logs = log_softmax(self.scores(state), axis=1)[np.arange(len(self.y)), self.y]
        away = state.mean - self.centre
        return float(
            -self.counts @ logs + state.tied.sum() + self.rate * state.beta.sum() + MEAN_PRECISION / 2 * away @ away
        )

    def gradients(self, state: State) -> tuple[NDArray, NDArray, NDArray]:
        """Derivatives of the loss by tied weights, by all columns, shape (M, m), and by means."""
        residual = np.exp(log_softmax(self.scores(state), axis=1))
        residual[np.arange(len(self.y)), self.y] -= 1
        residual *= self.counts[:, None]
        by_tied = np.tensordot(self.evidence, residual, 2) + 1
        by_column = np.empty((len(self.kernels), len(self.classes)))
        narrow = residual.astype(self.kernels.dtype)
        for c in range(residual.shape[1]):
            some = slice(*np.searchsorted(self.classes, [c, c + 1]))
            if some.start < some.stop:
                by_column[:, some] = narrow[:, c] @ self.kernels[:, :, some]
        return by_tied, by_column + self.rate, residual.sum(axis=0) + MEAN_PRECISION * (state.mean - self.centre)

    def violation(self, state: State) -> float:
        """How far the conditions of the optimum are missed, in nats per unit of evidence; 0 at the optimum."""
        by_tied, by_column, by_mean = self.gradients(state)
        beta = state.dense(*by_column.shape)
        moves = [np.minimum(state.tied, by_tied), np.minimum(beta, by_column)[:, self.allowed].ravel()]
        return float(np.abs(np.concatenate([*moves, by_mean if self.learn_mean else []])).max())

    def solve(self, start: State | None = None, tolerance: float = TOLERANCE) -> State:
        """The optimum, from any start."""
        state = (self.start if start is None else start).kept(self.allowed)
        if self.loss(state) > self.loss(self.start):  # where all probabilities are 0 or 1, curvature says nothing
            state = self.start
        tied = state.tied > 0
        for _ in range(ROUNDS):
            state = self._restricted(state, tied).solve(state, tied, tolerance / 10)
            by_tied, by_column, _ = self.gradients(state)
            by_column[:, ~self.allowed] = 0
            inside = state.columns
            by_column = by_column.ravel()
            by_column[inside] = 0
            new = np.flatnonzero(by_column < -tolerance)
            tied, more = state.tied > 0, (state.tied == 0) & (by_tied < -tolerance)
            if not len(new) and not more.any():
                break
            if len(new) > ENTER:
                new = new[np.argpartition(by_column[new], ENTER)[:ENTER]]
            columns = np.concatenate([inside[state.beta > 0], new])
            beta = np.concatenate([state.beta[state.beta > 0], np.zeros(len(new))])
            order = np.argsort(columns)
            state, tied = replace(state, columns=columns[order], beta=beta[order]), tied | more
        kept = state.beta > 0
        return replace(state, columns=state.columns[kept], beta=state.beta[kept])

    def _restricted(self, state: State, tied: NDArray) -> _Active:
        """The problem of a few columns and members, and of the rows that count."""
        rows = np.flatnonzero(self.counts)
        member, candidate = np.divmod(state.columns, len(self.classes))
        order = np.argsort(self.classes[candidate], kind="stable")
        values = self.kernels[member[order][:, None], rows, candidate[order][:, None]].astype(float)
        tied_rows = self.evidence[tied][:, rows]
        centre, counts, y = self.centre, self.counts[rows], self.y[rows]
        classes = self.classes[candidate[order]]
        return _Active(tied_rows, values, classes, order, y, counts, centre, self.rate, self.learn_mean)


@dataclass(frozen=True)
class _Active:
    """The problem with few unknowns: theta = (tied, free, means)."""

    tied: NDArray
    free: NDArray
    """Values of the columns at the rows, shape (p, n), sorted by class."""
    classes: NDArray
    order: NDArray
    """The place of each of them among the columns of the state."""
    y: NDArray
    counts: NDArray
    centre: NDArray
    rate: float
    learn_mean: bool

    @property
    def n_weights(self) -> int:
        """Number of unknowns that are not negative."""
        return len(self.tied) + len(self.free)

    def solve(self, state: State, tied: NDArray, tolerance: float) -> State:
        """The state at the optimum of these unknowns."""
        theta = np.concatenate([state.tied[tied], state.beta[self.order], state.mean])
        theta = self._newton(theta, tolerance)
        t, weights, beta = len(self.tied), np.zeros(len(tied)), np.empty(len(self.order))
        weights[tied], beta[self.order] = theta[:t], theta[t : self.n_weights]
        return State(weights, state.columns, beta, theta[self.n_weights :])

    def _newton(self, theta: NDArray, tolerance: float) -> NDArray:
        loss, residual, P = self._loss(theta)
        for _ in range(STEPS):
            gradient = self._gradient(theta, residual)
            move = np.where(np.arange(len(theta)) < self.n_weights, np.minimum(theta, gradient), gradient)
            if not self.learn_mean:
                move = move[: self.n_weights]
            if np.abs(move).max(initial=0) <= tolerance:
                break
            step = self._step(theta, gradient, P)
            promise = gradient @ step
            for length in SHORTENED:
                tried = theta + length * step
                tried[: self.n_weights] = np.maximum(tried[: self.n_weights], 0)
                new = self._loss(tried)
                if new[0] <= loss + ENOUGH * length * promise:
                    break
            else:
                break  # rounding decides
            theta, (loss, residual, P) = tried, new
        return theta

    def _scores(self, theta: NDArray) -> NDArray:
        t, n = len(self.tied), self.n_weights
        found = np.tensordot(theta[:t], self.tied, 1) + theta[n:]
        for c, some in self._segments():
            found[:, c] += theta[t:n][some] @ self.free[some]
        return found

    def _segments(self) -> list[tuple[int, slice]]:
        present, starts = np.unique(self.classes, return_index=True)
        ends = [*starts[1:], len(self.classes)] if len(starts) else []
        return [(int(c), slice(a, b)) for c, a, b in zip(present, starts, ends, strict=True)]

    def _loss(self, theta: NDArray) -> tuple[float, NDArray, NDArray]:
        """The loss, its derivatives by the scores, and the probabilities."""
        logs = log_softmax(self._scores(theta), axis=1)
        own = np.arange(len(self.y)), self.y
        P = np.exp(logs)
        residual = P * self.counts[:, None]
        residual[own] -= self.counts
        t, n = len(self.tied), self.n_weights
        away = theta[n:] - self.centre
        loss = -self.counts @ logs[own] + theta[:t].sum() + self.rate * theta[t:n].sum()
        return float(loss + MEAN_PRECISION / 2 * away @ away), residual, P

    def _gradient(self, theta: NDArray, residual: NDArray) -> NDArray:
        by_free = np.empty(len(self.free))
        for c, some in self._segments():
            by_free[some] = self.free[some] @ residual[:, c]
        by_mean = residual.sum(axis=0) + MEAN_PRECISION * (theta[self.n_weights :] - self.centre)
        return np.concatenate([np.tensordot(self.tied, residual, 2) + 1, by_free + self.rate, by_mean])

    def _hessian(self, P: NDArray) -> NDArray:
        """Second derivatives: the sum over rows of U' (diag(p) - p p') U, where U says what moves each score."""
        t, p = len(self.tied), len(self.free)
        weighted = P * self.counts[:, None]
        # p'U of every unknown: what moves the mean score of a row
        G = np.concatenate([np.einsum("tnc,nc->tn", self.tied, P), self.free * P.T[self.classes], P.T])
        H = -(G * self.counts) @ G.T
        H[:t, :t] += (self.tied * weighted).reshape(t, P.size) @ self.tied.reshape(t, P.size).T
        for c, some in self._segments():
            block, at = self.free[some], slice(t + some.start, t + some.stop)
            by_class = block * weighted[:, c]
            H[at, at] += by_class @ block.T
            cross = by_class @ self.tied[:, :, c].T
            H[at, :t] += cross
            H[:t, at] += cross.T
            sums = by_class.sum(axis=1)
            H[at, t + p + c] += sums
            H[t + p + c, at] += sums
        by_mean = (self.tied * weighted).sum(axis=1)
        H[:t, t + p :] += by_mean
        H[t + p :, :t] += by_mean.T
        H[t + p :, t + p :] += np.diag(weighted.sum(axis=0) + MEAN_PRECISION)
        return H

    def _step(self, theta: NDArray, gradient: NDArray, P: NDArray) -> NDArray:
        """The step to the optimum of the quadratic model, in which weights stay not negative.

        Weights that are zero and want to be lower stay; if they should move, the next step sees it.
        """
        n = self.n_weights
        moving = (theta[:n] > 0) | (gradient[:n] < 0)
        t = len(self.tied)
        some = replace(self, tied=self.tied[moving[:t]], free=self.free[moving[t:]], classes=self.classes[moving[t:]])
        H, m = some._hessian(P), int(moving.sum())
        Q, g, from_ = H[:m, :m], gradient[:n][moving], theta[:n][moving]
        step, found = np.zeros(len(theta)), np.zeros(m)
        least = max(1.0, ROUNDED * self.counts.sum())
        if self.learn_mean:  # means are unconstrained, so they are eliminated
            H[m:, m:] += np.diag(np.full(len(H) - m, RIDGE * least))
            back = np.linalg.solve(H[m:, m:], np.column_stack([H[m:, :m], gradient[n:]]))
            Q, g = Q - H[:m, m:] @ back[:, :m], g - H[:m, m:] @ back[:, m]
        if m:
            Q = with_ridge(Q, RIDGE * max(np.trace(Q) / m, least))
            found = nonnegative_minimum(Q, Q @ from_ - g, from_ > 0) - from_
        if self.learn_mean:
            step[n:] = -back[:, m] - back[:, :m] @ found
        step[:n][moving] = found
        return step


def with_ridge(Q: NDArray, ridge: float) -> NDArray:
    """Q with a ridge, of which half is enough for a Cholesky factor.

    Q is a difference of matrices that may be much larger. So its least curvatures may be negative by more than the
    ridge that is asked for, which is then ten times as large, or more. The step is shorter then; where it leads is not
    changed.

    Examples
    --------
    >>> bool(np.linalg.eigvalsh(with_ridge(np.diag([1.0, -1e-8]), 1e-10)).min() > 0)
    True
    """
    eye = np.eye(len(Q))
    for larger in 10.0 ** np.arange(WIDEST):
        try:
            np.linalg.cholesky(Q + ridge * larger / 2 * eye)
        except np.linalg.LinAlgError:
            continue
        return Q + ridge * larger * eye
    raise FloatingPointError("second derivatives of the loss are not those of a convex function")


def nonnegative_minimum(Q: NDArray, b: NDArray, support: NDArray) -> NDArray:
    """The x >= 0 with the least x'Qx/2 - b'x, from a guess of where it is not zero.

    Whole blocks of unknowns are exchanged between zero and not zero. That ends soon, or not at all; then least squares
    with non-negative unknowns take over, which exchange one after the other.

    Examples
    --------
    >>> nonnegative_minimum(np.eye(2), np.array([1.0, -1.0]), np.ones(2, bool)).tolist()
    [1.0, 0.0]
    """
    inside, fewest, patience = support.copy(), len(b) + 1, 3
    tolerance = 1e-12 * max(np.abs(b).max(initial=0), 1.0)
    for _ in range(PIVOTS):
        x = np.zeros(len(b))
        if inside.any():
            x[inside] = cho_solve(cho_factor(Q[np.ix_(inside, inside)]), b[inside])
        slope = Q @ x - b
        wrong = (inside & (x < 0)) | (~inside & (slope < -tolerance))
        count = int(np.count_nonzero(wrong))
        if not count:
            return x
        fewest, patience = (count, 3) if count < fewest else (fewest, patience - 1)
        if patience < 0:
            break
        inside = inside ^ wrong
    root = np.linalg.cholesky(Q)
    return nnls(root.T, solve_triangular(root, b, lower=True), maxiter=30 * len(b))[0]


@dataclass(frozen=True)
class Freed:
    """The rate that the folds prefer, the optimum there, and scores of each row by weights that know not its fold."""

    rate: float
    state: State
    scores: NDArray


@dataclass(frozen=True)
class Folded:
    """The problem of all rows, and those that know nothing of the labels of a fold."""

    whole: FreeProblem
    parts: tuple[FreeProblem, ...]
    units: tuple[NDArray, ...]
    """Units of tied weights in each part, in those of the whole."""
    fold: NDArray
    """The fold of each row."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        parts: Sequence[Problem],
        fold: NDArray,
        kernels: NDArray,
        classes: NDArray,
        fold_of_candidates: NDArray,
        *,
        learn_mean: bool,
    ) -> Folded:
        """From the problems of tied members alone."""

        def free(some: Problem, evidence: NDArray, counts: NDArray, allowed: NDArray) -> FreeProblem:
            return FreeProblem(
                evidence.reshape(len(evidence), len(problem.y), len(some.centre)),
                kernels,
                classes,
                problem.y,
                counts,
                some.centre,
                1.0,
                allowed,
                learn_mean,
            )

        found, units = [], []
        for k, part in enumerate(parts):
            kept = fold != k
            evidence = np.zeros((len(problem.evidence), len(problem.y), len(problem.centre)))
            evidence[:, kept] = part.evidence.reshape(len(evidence), kept.sum(), len(problem.centre))
            found.append(free(part, evidence, np.where(kept, problem.counts, 0), fold_of_candidates != k))
            with np.errstate(invalid="ignore"):
                units.append(np.nan_to_num(problem.scale / part.scale, nan=0.0, posinf=0.0))
        whole = free(problem, problem.evidence, problem.counts, np.ones(len(classes), bool))
        return cls(whole, tuple(found), tuple(units), fold)

    def best(self, start: State) -> Freed:
        """The largest rate that is as good as the best, from the optimum of tied weights alone.

        The rate is infinite, and there are no free weights, if they are not better than none.
        """
        tied = replace(self, parts=tuple(replace(part, allowed=np.zeros_like(part.allowed)) for part in self.parts))
        tried = [Freed(np.inf, start, tied._scores(1.0, start))]
        losses, state = [self._losses(tried[0].scores)], start
        for rate in RATES:
            freed = self.at(rate, state)
            tried.append(freed)
            state = freed.state
            losses.append(self._losses(freed.scores))
            if self._gain(losses[-1], losses[-2])[0] < 0 and rate < RATES[0]:
                break  # so will be all smaller rates
        best = min(losses, key=self.whole.counts.dot)
        return next(freed for freed, each in zip(tried, losses, strict=True) if not self._worse(each, best))

    def at(self, rate: float, start: State) -> Freed:
        """The optimum at a rate."""
        state = replace(self.whole, rate=rate).solve(start)
        return Freed(rate, state, self._scores(rate, state))

    def _losses(self, scores: NDArray) -> NDArray:
        rows = np.arange(len(scores))
        return -log_softmax(scores, axis=1)[rows, self.whole.y]

    def _gain(self, losses: NDArray, others: NDArray) -> tuple[float, float]:
        """By how much losses are smaller than others on average, and the standard error.

        A row counts for all that it stands for: where rows are many, those with doubtful labels are drawn more often.
        """
        return weighted_mean(others - losses, self.whole.counts)

    def _worse(self, losses: NDArray, best: NDArray) -> bool:
        """Whether losses are larger than others beyond doubt."""
        gain, error = self._gain(best, losses)
        return gain > SURE * error

    def _scores(self, rate: float, start: State) -> NDArray:
        found = np.empty((len(self.fold), len(self.whole.centre)))

        def work(folds: slice) -> None:
            k, units = folds.start, self.units[folds.start]
            back = np.divide(1, units, out=np.zeros_like(units), where=units > 0)
            near = replace(start, tied=start.tied * back)
            state = replace(self.parts[k], rate=rate).solve(near, ROUGH)
            judged = self.whole.scores(replace(state, tied=state.tied * units))
            found[self.fold == k] = judged[self.fold == k]

        over_rows(work, len(self.parts), 1)
        return found
