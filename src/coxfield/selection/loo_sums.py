"""Leave-one-out class sums along a path of length scales: one pass over the pairs for many of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config

from coxfield.engine.tiles import over_rows, whole_rows
from coxfield.utils.powers_of_two import power_of_two

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Group, Labelled, Part
    from coxfield.engine.weights import ClassWeights
    from coxfield.kernels.per_class import PerClass
    from coxfield.kernels.protocol import Bound, Covariance


@dataclass(frozen=True)
class Asked:
    """Points at which log sums are asked for."""

    X: Any
    """Array or CSR array of shape (n, d)."""
    leave_out: NDArray
    """For each point, the labelled row that it must not see, -1 for none."""

    def __len__(self) -> int:
        return len(self.leave_out)


def loo_log_sums(
    labelled: Labelled, covariances: PerClass[Covariance], factors: NDArray, done=None
) -> Iterator[NDArray]:
    """Leave-one-out log class sums for each factor of the length scale, arrays of shape (n, n_classes).

    It is fastest from long to short and where each factor is the last one divided by sqrt(2). A few factors are taken
    at a time, so that memory stays within scikit-learn's `working_memory`. `done` is called with numbers of rows, which
    add up to `work_units` over the whole path.
    """
    return path_log_sums(labelled, covariances, factors, Asked(labelled.X, np.arange(len(labelled))), done)


def path_log_sums(
    labelled: Labelled, covariances: PerClass[Covariance], factors: NDArray, asked: Asked, done=None
) -> Iterator[NDArray]:
    """Log class sums over labelled points at any points, for each factor; see `loo_log_sums`."""
    unit, batches = in_batches(len(asked), labelled.n_classes, factors)
    store = labelled.under(covariances.map(lambda each: each.rescaled(length=unit)))
    for some in batches:
        logs = np.full((len(some), len(asked), labelled.n_classes), -np.inf)
        for group in store.groups:
            _add_group(logs, asked, labelled, group, some, done)
        yield from logs


def in_batches(n: int, n_classes: int, factors: NDArray) -> tuple[float, list[NDArray]]:
    """A unit for length scales, and the factors in this unit, as many at a time as one pass at n points may take.

    In units near the longest length scale, squared distances neither overflow nor vanish.
    """
    unit, batch = power_of_two(float(np.max(factors, initial=0))), _batch_size(n, n_classes)
    factors = np.maximum(factors / unit, np.finfo(float).tiny)
    return unit, [factors[start : start + batch] for start in range(0, len(factors), batch)]


def work_units(labelled: Labelled, covariances: PerClass[Covariance], n_factors: int) -> int:
    """Number of rows that `loo_log_sums` reports to `done`."""
    batch = _batch_size(len(labelled), labelled.n_classes)
    return -(-n_factors // batch) * len(labelled) * len(covariances.distinct)


def _batch_size(n: int, n_classes: int) -> int:
    """How many length scales one pass over the pairs may compute at n points."""
    return max(1, int(get_config()["working_memory"] * 2**20 / 2) // max(1, n * n_classes * 8))


def _add_group(logs: NDArray, asked: Asked, labelled: Labelled, group: Group, factors: NDArray, done) -> None:
    """Write the log sums over the points of one group."""
    for number, part in enumerate(group.parts):
        rows, points = _in_coordinates(asked, labelled, part)
        own = part.column_of(asked.leave_out[rows])

        def work(some: slice, number=number, part=part, rows=rows, points=points, own=own) -> None:
            place = np.ix_(np.arange(len(factors)), rows[some], part.classes)
            found = _part_logs(part, points[some], own[some], factors)
            logs[place] = np.logaddexp(logs[place], found) if number else found

        over_rows(work, len(rows), whole_rows(len(rows), len(part.rows), points.dtype.itemsize), done)


def _in_coordinates(asked: Asked, labelled: Labelled, part: Part) -> tuple[NDArray, Bound]:
    """The points in the coordinates of a part; its own points, without a copy, if these are the labelled points."""
    if asked.X is labelled.X and len(part.rows) == len(labelled):
        return part.rows, part.points
    return np.arange(len(asked)), part.points.at(asked.X)


def _part_logs(part: Part, points: Bound, own: NDArray, factors: NDArray) -> NDArray:
    """Log sums of some points over a part, shape (factors, points, classes of the part)."""
    sums = np.zeros((len(factors), len(points), len(part.classes)))
    tops = points.walk(part.points, factors, own, Adder([[part.weights]] * len(factors), sums[:, None]))
    with np.errstate(divide="ignore"):
        return np.log(sums) + tops[:, :, None]


@dataclass(frozen=True)
class Adder:
    """Adds the tiles of a walk to class sums, once for each set of weights."""

    weights: Sequence[Sequence[ClassWeights]]
    """For each factor, one or more sets of weights."""
    sums: NDArray
    """Shape (factors, sets, rows, classes)."""

    def add(self, k: int, start: int, tile: NDArray) -> None:
        """Add a tile."""
        for weights, sums in zip(self.weights[k], self.sums[k], strict=True):
            weights.add(tile, start, sums)

    def add_entries(self, k: int, at: NDArray, columns: NDArray, values: NDArray) -> None:
        """Add single values of a tile."""
        for weights, sums in zip(self.weights[k], self.sums[k], strict=True):
            weights.add_entries(at, columns, values, sums)
