"""A mixture that forgets reference points: densities without them, and no trace of them in its representations.

A density is a sum over reference points, so what a point has added is subtracted. Where most of a density goes, it is
computed again instead: a small difference of large numbers has no digits.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from coxfield.kernels.mixture_ladder import VALUES, Ladder, LadderPoints, log_densities
from coxfield.kernels.mixture_points import MixturePoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.kernels.mixture import Mixture

MOST = 0.5  # share of a density that may be subtracted


def forget(
    mixture: Mixture, gone: MixturePoints, places: NDArray, parts: Sequence[MixturePoints], X: Any
) -> tuple[Mixture, list[MixturePoints]]:
    """The mixture without some of its reference points, and other points bound to it.

    Parameters
    ----------
    mixture : Mixture
        It knows the densities of its reference points.
    gone : MixturePoints
        The reference points to forget; there may be none, if only X is to be held in another array.
    places : integer array
        Their places among the reference points.
    parts : sequence of MixturePoints
        Points bound to the mixture, without those to forget. One of them has all reference points that stay.
    X : array or CSR array
        The reference points that stay, in their order.
    """
    kept = np.setdiff1d(np.arange(mixture.n_reference), places)
    counts = None if mixture.counts is None else mixture.counts[kept]
    lost = np.ones(len(places)) if mixture.counts is None else mixture.counts[places]
    ladders = tuple(_without_rows(ladder, places) for ladder in mixture.ladders)
    home, rows = next((part, part.rows) for part in parts if part.rows is not None)
    numbers = np.searchsorted(kept, rows)
    reference = _Reference(home, None if counts is None else counts[numbers], gone, lost)
    known = [reference.densities(part) for part in parts]
    found = known[next(number for number, part in enumerate(parts) if part is home)]
    densities = []
    for log_q in found or ():
        ordered = np.empty_like(log_q)
        ordered[:, numbers] = log_q
        densities.append(ordered)
    new = replace(mixture, ladders=ladders, X=X, counts=counts, log_densities=tuple(densities))
    bound = [_moved(part, new, log_q, kept) for part, log_q in zip(parts, known, strict=True)]
    return new.anchored(next(points.ladders for points in bound if points.rows is not None)), bound


def _moved(part: MixturePoints, mixture: Mixture, log_q: list[NDArray] | None, kept: NDArray) -> MixturePoints:
    """Points bound to the mixture that has forgotten, with their densities."""
    ladders = tuple(
        LadderPoints(ladder, points.points, None if log_q is None else log_q[k])
        for k, (ladder, points) in enumerate(zip(mixture.ladders, part.ladders, strict=True))
    )
    rows = None if part.rows is None else np.searchsorted(kept, part.rows)
    return MixturePoints(mixture, ladders, rows, learned=part.learned)


class _Reference:
    """The reference points that stay and those that go."""

    def __init__(self, stay: MixturePoints, counts: NDArray | None, gone: MixturePoints, lost: NDArray):
        self.stay, self.counts, self.gone, self.lost = stay, counts, gone, lost

    def densities(self, part: MixturePoints) -> list[NDArray] | None:
        """log q of each factor and point for each ladder; None if nobody has asked for them yet."""
        old = part.known_densities
        return None if old is None else [self._ladder(k, points, old[k]) for k, points in enumerate(part.ladders)]

    def _ladder(self, k: int, points: LadderPoints, log_q: NDArray) -> NDArray:
        new = np.empty_like(log_q)
        for some in gen_batches(len(points), max(1, VALUES // max(1, len(self.lost)))):
            share = self._share(k, points[some], log_q[:, some])
            with np.errstate(divide="ignore"):
                new[:, some] = log_q[:, some] + np.log1p(-np.minimum(share, 1))
            again = some.start + np.flatnonzero((share > MOST).any(axis=0))
            if again.size:
                new[:, again] = log_densities(points[again], self.stay.ladders[k], self.counts)
        return new

    def _share(self, k: int, points: LadderPoints, log_q: NDArray) -> NDArray:
        """The share of each density that comes from the points that go, shape (F, n)."""
        bound, theirs, share = points.points, self.gone.ladders[k].points, np.empty_like(log_q)
        for f, tile in enumerate(bound.rungs(theirs, points.ladder.factors)):
            sums = (tile.astype(float) - bound.floor) @ self.lost * bound.unit
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                ratio = np.exp(np.log(np.maximum(sums, 0)) - log_q[f])
            # Where the density itself has vanished, it is computed again.
            share[f] = np.where(np.isneginf(log_q[f]) | np.isnan(ratio), 1.0, ratio)
        return share


def _without_rows(ladder: Ladder, rows: NDArray) -> Ladder:
    """The ladder, whose representation has no entries of some rows of the points that it was learned from."""
    steps = getattr(ladder.transform, "steps", None)  # of a pipeline
    last = steps[-1][1] if steps else ladder.transform
    if not hasattr(last, "forget"):
        return ladder
    return replace(ladder, transform=_with_last(ladder.transform, last.forget(rows)))


def _with_last(transform: Any, last: Any) -> Any:
    """A transformer with another last step, or the last step itself if it is no pipeline."""
    if not hasattr(transform, "steps"):
        return last
    new = copy(transform)
    new.steps = [*transform.steps[:-1], (transform.steps[-1][0], last)]
    return new
