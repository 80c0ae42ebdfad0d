"""The length scale of a permanental classifier, by leave-one-out with the cyclic approximation.

Leaving a point out of its own class is done in the expansion (`CyclicExpansion.leave_one_out`); to the other classes it
is a new point. O(n^3) operations for a length scale, where n refits would be O(n^4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coxfield.engine.decision import decide, log_probabilities
from coxfield.permanents.cyclic import expand
from coxfield.permanents.ratios import ClassProcess, excess_sums, sign_and_log, usable
from coxfield.selection.loo import LooPath

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.engine.class_sums import ClassSums


def loo_log_ratios(X: NDArray, y: NDArray, kernels: Sequence, alpha: NDArray, cycles: int) -> tuple[NDArray, ClassSums]:
    """Log ratios of each training point from all the others, for each class: prior and sums, as from `log_ratios`."""
    n, n_classes = len(y), len(kernels)
    prior, signs, logs = (np.empty((n, n_classes)) for _ in range(3))
    for c, kernel in enumerate(kernels):
        own, other = y == c, y != c
        expansion = expand(usable(kernel.matrix(X[own]), "cyclic"), alpha[c], cycles)
        process = ClassProcess(kernel, alpha[c], X[own], "cyclic", expansion.insertion())
        prior[:, c] = process.log_prior(X)
        signs[other, c], logs[other, c] = process.log_excess(X[other])
        rows = kernel.rows(X[own], X[own], leave_out=True)
        forms = expansion.leave_one_out(usable(rows.values, "cyclic"))
        # Nothing here is negative but by rounding, in what is taken away.
        signs[own, c], logs[own, c] = sign_and_log(np.maximum(forms, 0), rows)
    return prior, excess_sums(prior, signs, logs)


def loo_path(X: NDArray, y: NDArray, alpha: NDArray, cycles: int, factors: NDArray, at: Callable) -> LooPath:
    """Leave-one-out losses for factors of the length scale, longest first.

    `at(factor)` gives one covariance a class, or None when the length scale is too short for the window: the path then
    ends there.
    """
    errors: list[float] = []
    losses: list[float] = []
    for factor in factors:
        kernels = at(factor)
        if kernels is None:
            break
        prior, sums = loo_log_ratios(X, y, kernels, alpha, cycles)
        errors.append(float(np.mean(decide(prior, sums) != y)))
        losses.append(float(-np.mean(log_probabilities(prior, sums)[np.arange(len(y)), y])))
    tried = len(errors)
    return LooPath(factors[:tried], np.ones(tried), np.array(errors), np.array(losses))
