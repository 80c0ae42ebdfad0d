"""The length scale of a permanental classifier, by leave-one-out with the cyclic approximation.

Leaving a point out of its own class is done in the expansion (`CyclicExpansion.leave_one_out`); to the other classes it
is a new point. O(n^3) operations for a length scale, where n refits would be O(n^4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.engine.decision import Scores
from coxfield.permanents.cyclic import expand
from coxfield.permanents.ratios import ClassProcess, Units, excess_sums, sign_and_log, usable
from coxfield.progress import progress
from coxfield.selection.path import SelectionPath

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.kernels.per_class import PerClass


FASTER = "fewer length_scales or cycles take less time"


def loo_log_ratios(X: NDArray, y: NDArray, kernels: PerClass, alpha: NDArray, cycles: int, done=None) -> Scores:
    """Log ratios of each training point from all the others, for each class, as from `log_ratios`.

    `done` is called with the share of each class in the work.
    """
    n, n_classes = len(y), len(kernels)
    prior, signs, logs = (np.empty((n, n_classes)) for _ in range(3))
    for c, kernel in enumerate(kernels):
        own, other = y == c, y != c
        A = usable(kernel.matrix(X[own]), "cyclic")
        units = Units.of(A)
        expansion = expand(units.matrix(A), alpha[c], cycles)
        process = ClassProcess(kernel, alpha[c], X[own], "cyclic", units, expansion.insertion())
        prior[:, c] = process.log_prior(X)
        signs[other, c], logs[other, c] = process.log_excess(X[other])
        rows = units.rows(kernel.rows(X[own], X[own], leave_out=True))
        forms = expansion.leave_one_out(usable(rows.values, "cyclic"))
        # Nothing here is negative but by rounding, in what is taken away.
        signs[own, c], logs[own, c] = sign_and_log(np.maximum(forms, 0), rows)
        if done is not None:
            done(float(own.mean()))
    return Scores(prior, excess_sums(prior, signs, logs))


def loo_path(X: NDArray, y: NDArray, alpha: NDArray, cycles: int, factors: NDArray, at: Callable, criteria):
    """Leave-one-out losses for factors of the length scale, longest first, as a `SelectionPath`.

    `at(factor)` gives one covariance per class, or None when the length scale is too short for the window: the path
    then ends there. `criteria` are those of the path.
    """
    rows = []
    with progress(f"leave-one-out, {len(factors)} length scales", len(factors), None, FASTER) as done:
        for factor in factors.tolist():
            kernels = at(factor)
            if kernels is None:
                break
            scores = loo_log_ratios(X, y, kernels, alpha, cycles, done)
            losses = -scores.log_probabilities[np.arange(len(y)), y]
            error = float(np.mean(scores.decisions != y))
            rows.append({"factor": factor, "variance": 1.0, "loo_error": error, "loo_log_loss": float(losses.mean())})
    return SelectionPath.of(rows, criteria)
