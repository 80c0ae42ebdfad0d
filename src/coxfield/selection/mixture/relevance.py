"""Which columns matter: a diagonal metric from the gradients of a kernel smoother.

The smoother estimates the class probabilities at each row from all the others. Where its gradient along a column is
large, the column matters. Columns are multiplied by the root mean square of their gradients, and the smoother sees the
new columns; a few such steps shrink columns that say nothing. How many steps are good is judged at rows that the metric
has not seen, with the columns as they are among the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.utils.numbers import weighted_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS = 6
PACE = 2 / 3  # how far a step goes; with whole steps some folds lose a column that matters
LEAST = 0.01  # of the largest relevance
WIDTHS = (0.5, 0.35, 0.25, 0.175, 0.125)  # of the smoother, in root mean square distances
MOST = 1000  # rows that are looked at
SURE = 2.0  # standard errors by which a metric must be better than none


def relevances(
    X: NDArray, y: NDArray, counts: NDArray, n_classes: int, fold: NDArray, units: NDArray | float = 1.0
) -> NDArray | None:
    """What each column is worth to the rows of each fold, learned without the fold; the largest is 1.

    One number of steps serves all folds: the one of least log loss at rows that the metric has not seen. None if
    that is not better than the columns as they are, beyond doubt.

    Parameters
    ----------
    X : array of shape (n, n_columns)
    y : array of shape (n,)
    counts : array of shape (n,)
        The weight of each point.
    n_classes : int
    fold : array of shape (n,)
    units : float or array of shape (n_columns,)
        Those in which columns can be compared.

    Returns
    -------
    array of shape (folds, n_columns), or None
    """
    n_folds = fold.max() + 1
    if len(X) > MOST:
        some = np.sort(np.random.default_rng(0).choice(len(X), MOST, replace=False))
        X, y, counts, fold = X[some], y[some], counts[some], fold[some]
    Z = (X / units).astype(float)
    Z -= Z.mean(axis=0)
    own = np.zeros((len(y), n_classes))
    own[np.arange(len(y)), y] = counts
    metrics, losses = np.ones((STEPS + 1, n_folds, Z.shape[1])), np.empty((STEPS + 1, len(y)))
    for k in range(n_folds):
        kept, unseen = fold != k, np.flatnonzero(fold == k)
        for step in range(STEPS + 1):
            smoother = Smoother.best(Z[kept] * metrics[step, k], own[kept])
            losses[step, unseen] = smoother.losses(Z * metrics[step, k], own, unseen)
            if step < STEPS:
                metrics[step + 1, k] = _next(metrics[step, k], smoother.gradients())
    best = int((losses @ counts).argmin())
    gain, error = weighted_mean(losses[0] - losses[best], counts)
    return metrics[best] if gain > SURE * error else None


def _next(metric: NDArray, gradients: NDArray) -> NDArray:
    """The metric that gradients in its own coordinates suggest."""
    sizes = metric * gradients  # gradients along the columns as they are
    if not sizes.max() > 0:
        return metric
    new = metric ** (1 - PACE) * (sizes / sizes.max() + LEAST) ** PACE
    return new / new.max()


@dataclass(frozen=True)
class Smoother:
    """A kernel smoother of labels at the points themselves, each left out."""

    Z: NDArray
    own: NDArray
    """The weight of each point, in the column of its class."""
    scale: float
    """The square of its width."""
    K: NDArray
    sums: NDArray
    """Weights of the neighbours of each point by class, and the class shares as one point more."""

    @classmethod
    def best(cls, Z: NDArray, own: NDArray) -> Smoother:
        """The one of the width with the least log loss."""
        d2 = _squares(Z, Z)
        typical = d2.mean() if d2.any() else 1.0
        found = [cls._of(Z, own, d2, width**2 * typical) for width in WIDTHS]
        return min(found, key=lambda each: own.sum(axis=1) @ _losses(each.sums, own))

    @classmethod
    def _of(cls, Z: NDArray, own: NDArray, d2: NDArray, scale: float) -> Smoother:
        K = np.exp(d2 * (-0.5 / scale))
        np.fill_diagonal(K, 0)
        return cls(Z, own, scale, K, K @ own + _shares(own))

    def losses(self, Z: NDArray, own: NDArray, rows: NDArray) -> NDArray:
        """Log loss at some of other points, each from all the others of these."""
        K = np.exp(_squares(Z[rows], Z) * (-0.5 / self.scale))
        K[np.arange(len(rows)), rows] = 0
        return _losses(K @ own + _shares(own), own[rows])

    def gradients(self) -> NDArray:
        """Root mean square gradient of the probabilities along each column.

        d f_i / d z = sum over l of k(z, z_l) (z_l - z) ([l of class i] - f_i) / (width^2 sum over l of k(z, z_l)).
        """
        totals = self.sums.sum(axis=1)
        f, weights = self.sums / totals[:, None], self.own.sum(axis=1)
        along = []
        for column in self.own.T:
            rows = np.flatnonzero(column)
            K = self.K[:, rows] * weights[rows]
            along.append(K @ self.Z[rows] - self.Z * K.sum(axis=1)[:, None])
        whole, square = sum(along), np.zeros(self.Z.shape[1])
        for c, each in enumerate(along):
            square += np.square((each - f[:, [c]] * whole) / totals[:, None]).T @ weights
        return np.sqrt(square / weights.sum()) / self.scale


def _squares(A: NDArray, B: NDArray) -> NDArray:
    """Squared distances; points are centred and of moderate size, so products do."""
    return np.maximum(np.square(A).sum(axis=1)[:, None] + np.square(B).sum(axis=1) - 2 * A @ B.T, 0)


def _shares(own: NDArray) -> NDArray:
    return own.sum(axis=0) / own.sum()


def _losses(sums: NDArray, own: NDArray) -> NDArray:
    """-log of the share of the class of each point; a class that no other point has counts as little as can be."""
    return -np.log(np.maximum((sums * (own > 0)).sum(axis=1) / sums.sum(axis=1), np.finfo(float).tiny))
