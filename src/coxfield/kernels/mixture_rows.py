"""Reference points of a mixture that come and go: densities are sums over the points that are there.

A point that arrives adds its terms to the densities of all others, and a point that leaves takes its terms away. So the
evidence of a region does not grow with the number of points in it, and no point has a density that lacks itself.
Where most of a density goes, it is computed again: a small difference of large numbers has no digits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from coxfield.kernels.mixture_ladder import VALUES, LadderPoints, log_densities, own_log_densities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.mixture_points import MixturePoints


MOST = 0.5  # share of a density that may be subtracted


def gain(points: MixturePoints, X: Any, counts: NDArray | None, rows: Any) -> MixturePoints:
    """The reference points of a mixture with more of them at the end, bound to the mixture over all of them.

    Parameters
    ----------
    points : MixturePoints
        All reference points, in their order, with their densities.
    X : array or CSR array
        All reference points as they are, with the new ones at the end.
    counts : array, optional
        The weight of each of them.
    rows : array or CSR array
        The new ones.
    """
    mixture, fresh, n = points.covariance, points.at(rows), len(points)
    before, arrived = (None, None) if counts is None else (counts[:n], counts[n:])
    joined = []
    for old, new in zip(points.ladders, fresh.ladders, strict=True):
        assert old.known is not None
        grown = np.logaddexp(old.known, log_densities(old, new, arrived))
        own = np.logaddexp(log_densities(new, old, before), own_log_densities(new, arrived))
        joined.append(LadderPoints(old.ladder, old.points.joined(new.points), np.hstack([grown, own])))
    origin = np.concatenate([np.arange(n), np.full(len(fresh), -1)])
    return mixture.over(X, counts, origin, tuple(joined))


def lose(points: MixturePoints, places: NDArray, X: Any, counts: NDArray | None) -> MixturePoints:
    """The reference points of a mixture without some of them, bound to the mixture over those that stay.

    Parameters
    ----------
    points : MixturePoints
        All reference points, in their order, with their densities.
    places : integer array
        The places of those that go.
    X : array or CSR array
        Those that stay, as they are.
    counts : array, optional
        The weight of each point, those that go included.
    """
    kept = np.setdiff1d(np.arange(len(points)), places)
    stay, gone = points[kept], points[places]
    weights = np.ones(len(points)) if counts is None else counts
    left = tuple(
        replace(old, points=old.points.alone(), known=_less(old, lost, weights[kept], weights[places]))
        for old, lost in zip(stay.ladders, gone.ladders, strict=True)
    )
    return points.covariance.over(X, None if counts is None else counts[kept], kept, left)


def _less(stay: LadderPoints, gone: LadderPoints, counts: NDArray, lost: NDArray) -> NDArray:
    """log q of the points that stay, without the terms of those that go, shape (F, n)."""
    log_q = stay.known
    assert log_q is not None
    new = np.empty_like(log_q)
    for some in gen_batches(len(stay), max(1, VALUES // max(1, len(gone)))):
        share = _share(stay[some], gone, lost)
        with np.errstate(divide="ignore"):
            new[:, some] = log_q[:, some] + np.log1p(-np.minimum(share, 1))
        again = some.start + np.flatnonzero((share > MOST).any(axis=0))
        if again.size:
            new[:, again] = log_densities(stay[again], stay, counts)
    return new


def _share(stay: LadderPoints, gone: LadderPoints, lost: NDArray) -> NDArray:
    """The share of each density that comes from the points that go, shape (F, n)."""
    bound, log_q = stay.points, stay.known
    assert log_q is not None
    share = np.empty_like(log_q)
    for f, tile in enumerate(bound.rungs(gone.points, stay.ladder.factors)):
        sums = (tile.astype(float) - bound.floor) @ lost * bound.unit
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            ratio = np.exp(np.log(np.maximum(sums, 0)) - log_q[f])
        # Where the density itself has vanished, it is computed again.
        share[f] = np.where(np.isneginf(log_q[f]) | np.isnan(ratio), 1.0, ratio)
    return share
