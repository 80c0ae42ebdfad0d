"""Leave-one-out class sums of every member of a bank, and the densities of the points.

There are two passes over the pairs for each ladder. The first gives the density of every point. The second gives the
class sums, in which points are divided by their densities. In the sums of a point that is left out, its own density
omits its own term, and whitening omits its label. The densities of the other points are held: they use no labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.engine.tiles import over_rows, whole_rows
from coxfield.engine.weights import Segments
from coxfield.kernels.mixture_ladder import log_totals
from coxfield.selection.loo_sums import Adder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.mixture_ladder import Ladder, LadderPoints


@dataclass(frozen=True)
class MemberSums:
    """What a bank says about the labelled points."""

    rows: NDArray
    """The labelled points that were left out, one after the other."""
    sums: NDArray
    """Leave-one-out class sums, shape (n_members, rows, n_classes); members are ordered by ladder, factor, power."""
    log_densities: tuple[NDArray, ...]
    """log q of every labelled point, shape (F, n) for each ladder."""


def member_sums(labelled: Labelled, bank: Sequence[Ladder], rows: NDArray, done=None) -> MemberSums:
    """Leave-one-out class sums of every member at some labelled points, from all the others.

    `done` is called with numbers of rows, which add up to `work_units`.
    """
    order = np.argsort(labelled.y, kind="stable")
    counts = labelled.counts[order]
    present, starts = np.unique(labelled.y[order], return_index=True)
    sums, densities = [], []
    for ladder in bank:
        points = ladder.bind(labelled.X, order)
        others = _log_others(points, counts, done)
        log_q = np.logaddexp(others, np.log(counts) + np.log(points.points.diagonal()))
        weights = Segments(starts, counts.astype(points.points.dtype))
        found = np.zeros((*ladder.weights.shape, len(rows), labelled.n_classes))
        found[..., present] = _ladder_sums(points, weights, log_q, others, order, np.argsort(order)[rows], done)
        sums.append(found.reshape(-1, len(rows), labelled.n_classes))
        densities.append(log_q[:, np.argsort(order)])
    return MemberSums(rows, np.concatenate(sums), tuple(densities))


def work_units(labelled: Labelled, bank: Sequence[Ladder], rows: NDArray) -> int:
    """Number of rows that `member_sums` reports to `done`."""
    return len(bank) * (len(labelled) + len(rows))


def _log_others(points: LadderPoints, counts: NDArray, done) -> NDArray:
    """log of the density of each point without its own term, shape (F, n)."""
    n, dtype = len(points), points.points.dtype
    found, weights = np.empty((len(points.ladder.factors), n)), counts.astype(dtype)

    def work(some: slice) -> None:
        found[:, some] = log_totals(points[some], points, weights, np.arange(n)[some])

    over_rows(work, n, whole_rows(n, n, dtype.itemsize), done)
    return found


def _ladder_sums(points: LadderPoints, weights: Segments, log_q, others, order, place, done) -> NDArray:
    """Class sums of one ladder at some points, given by their place in the order of the columns."""
    ladder, bound, mine = points.ladder, points.points, points[place]
    queries = mine.left_out(order[place])
    # Distances that change when a point is left out change its density too, which is then summed again.
    again = [weights] if queries is not mine else []
    scaled = [[*(weights.scaled(np.exp(-alpha * each)) for alpha in ladder.alphas), *again] for each in log_q]
    n_alphas = len(ladder.alphas)
    found = np.empty((len(log_q), n_alphas, len(place), weights.n_classes))

    def work(some: slice) -> None:
        sums = np.zeros((len(log_q), len(scaled[0]), some.stop - some.start, weights.n_classes))
        tops = queries.points[some].walk(bound, ladder.factors, place[some], Adder(scaled, sums))
        with np.errstate(divide="ignore"):
            logs = np.log(sums) + tops[:, None, :, None]
        own = np.logaddexp.reduce(logs[:, -1], axis=-1) if again else others[:, place[some]]
        powers = ladder.alphas[:, None, None] * np.where(np.isneginf(own), 0, own)[:, None, :, None]
        found[:, :, some] = np.exp(logs[:, :n_alphas] - powers)

    over_rows(work, len(place), whole_rows(len(place), len(points), bound.dtype.itemsize), done)
    return found
