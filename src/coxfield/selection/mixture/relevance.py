"""Which columns matter: a diagonal metric from the gradients of a kernel smoother.

The smoother estimates the class probabilities at each row from all the others. Where its gradient along a column is large,
the column matters. Columns are multiplied by the root mean square of their gradients, and the smoother sees the new
columns; a few such steps shrink columns that say nothing. How many steps are good is judged by leave-one-out, with the
columns as they are among the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS = 5
LEAST = 0.01  # of the largest relevance
WIDTHS = (0.5, 0.35, 0.25, 0.175, 0.125)  # of the smoother, in root mean square distances
MOST = 1000  # rows that are looked at
SURE = 2.0  # standard errors by which the first step must gain


@dataclass(frozen=True)
class Steps:
    """A metric after each step, the first being that of the columns as they are."""

    relevance: NDArray
    """Shape (STEPS + 1, n_columns); the largest of each step is 1."""
    losses: NDArray
    """Leave-one-out log loss of each row that was looked at, shape (STEPS + 1, rows)."""


def steps_of(Z: NDArray, y: NDArray, counts: NDArray, n_classes: int) -> Steps:
    """The metrics that gradients suggest, one after the other.

    Parameters
    ----------
    Z : array of shape (n, n_columns)
        Points, in units in which columns can be compared.
    y : array of shape (n,)
    counts : array of shape (n,)
        The weight of each point.
    n_classes : int
    """
    if len(Z) > MOST:
        some = np.sort(np.random.default_rng(0).choice(len(Z), MOST, replace=False))
        Z, y, counts = Z[some], y[some], counts[some]
    Z = (Z - Z.mean(axis=0)).astype(float)
    own = np.zeros((len(y), n_classes))
    own[np.arange(len(y)), y] = counts
    metric, metrics, losses = np.ones(Z.shape[1]), [], []
    for _ in range(STEPS + 1):
        gradients, loss = smoother_gradients(Z * metric, y, own)
        metrics.append(metric)
        losses.append(loss)
        sizes = metric * gradients
        metric = sizes / sizes.max() + LEAST if sizes.max() > 0 else np.ones(len(metric))
        metric = metric / metric.max()
    return Steps(np.array(metrics), np.array(losses))


def smoother_gradients(Z: NDArray, y: NDArray, own: NDArray) -> tuple[NDArray, NDArray]:
    """Root mean square gradient of the smoother along each column, and its leave-one-out log loss at each row.

    The width is the one of `WIDTHS` with the least loss.
    """
    squares = np.einsum("jd,jd->j", Z, Z)
    d2 = np.maximum(squares[:, None] + squares - 2 * Z @ Z.T, 0)
    typical = d2.mean()
    shares = own.sum(axis=0) / own.sum()
    best = None
    for width in WIDTHS:
        with np.errstate(divide="ignore", invalid="ignore"):
            K = np.exp(d2 * (-0.5 / (width**2 * typical))) if typical > 0 else np.ones_like(d2)
        np.fill_diagonal(K, 0)
        sums = K @ own + shares  # one more point without a class, so that far rows have the class shares
        f = sums / sums.sum(axis=1, keepdims=True)
        loss = -np.log(f[np.arange(len(y)), y])
        if best is None or loss.mean() < best[0].mean():
            best = loss, f, K, sums.sum(axis=1), width
    loss, f, K, totals, width = best
    # d f_i / d z = sum over l of k(z, z_l) (z_l - z) (own_li - f_i) / (h^2 total)
    weights, Y = own.sum(axis=1), [np.flatnonzero(own[:, c]) for c in range(own.shape[1])]
    along = [K[:, rows] @ (weights[rows, None] * Z[rows]) - Z * (K[:, rows] @ weights[rows])[:, None] for rows in Y]
    whole, square = sum(along), np.zeros(Z.shape[1])
    for c, each in enumerate(along):
        square += np.square((each - f[:, [c]] * whole) / totals[:, None]).mean(axis=0)
    return np.sqrt(square) / (width**2 * typical if typical > 0 else 1.0), loss


def chosen_step(found: list[Steps]) -> int:
    """The step of least loss over all folds; 0 unless it is better than the columns as they are beyond doubt."""
    losses = np.concatenate([each.losses for each in found], axis=1)
    step = int(losses.mean(axis=1).argmin())
    gain = losses[0] - losses[step]
    # Each row is in all folds but one, so there are fewer independent rows than losses.
    error = gain.std() / np.sqrt(max(len(gain) / max(len(found) - 1, 1), 1))
    return step if gain.mean() > SURE * error else 0
