"""Newton's method for the weights of a mixture, with steps projected back to weights that are not negative.

L-BFGS-B stops when a step gains little. Among many similar members that is too early, and from some starts its line
search fails. The problem is concave with few unknowns, so Newton's method reaches the optimum to the last digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_STEPS = 100
TOLERANCE = 1e-6  # of the gradient, in nats per unit of evidence
RIDGE = 1e-12  # of the mean curvature: members may be the same up to rounding
NEARLY = 0.01  # nats
ENOUGH = 1e-4  # of the gain that the gradient promises
SHORTENED = 0.5 ** np.arange(30)  # lengths of a step that are tried


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
    for _ in range(MOST_STEPS):
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
