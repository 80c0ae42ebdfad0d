"""The hot path: covariances summed over labelled points, class by class; then probabilities and decisions.

For a query x* and class i the class sum S_i(x*) is the sum of C_i(x*, x) over the points x of class i. It is the last
term of eq. activationFunction. A tile of the kernel matrix takes one matrix product, a few passes in place, and a
product with the weights of the classes. The whole matrix of queries x points is never held.

Everything is a reduction over shards of labelled points. `log_sums` takes queries and a shard and returns `LogSums`,
and those of several shards add. Class sums, leave-one-out at many length scales, densities and the members of a mixture
are such sums. Threads, a device and the workers of a cluster run the same reduction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax
from sklearn import get_config

from coxfield import threads
from coxfield.engine.store import Segments
from coxfield.kernels.namespace import NUMPY, Library, cross_out
from coxfield.kernels.protocol import LARGEST_LOG, LogSums, Path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import ClassWeights, Group, Part, Store
    from coxfield.kernels.protocol import Covariance, KernelPoints, PerClass

# Work in tiles: how large a tile may be, and how threads share the rows.
#
# Each tile is a small matrix product followed by cheap passes that stay in cache. One thread per block of rows, with
# single-threaded BLAS inside, is faster than multi-threaded BLAS and single-threaded NumPy (see `benchmarks/`).


ROWS, COLUMNS = 512, 2048  # a tile of a million numbers was fastest on 60,000 x 784; sizes nearby are as good
# Of libraries with their own threads, all of which share one tile; a GPU needs much work at a time.
ON_CPU, ELSEWHERE = (1024, 2048), (8192, 2048)
COPIES = 6  # of a tile that may be alive at a time there
SMALL = 2**19  # numbers in total, up to which starting threads costs as much time as it saves


def _budget(itemsize: int) -> int:
    """Numbers that each thread may hold, so that all threads together stay within scikit-learn's `working_memory`."""
    return max(1, int(get_config()["working_memory"] * 2**20) // (itemsize * threads.count()))


def tile_shape(n_rows: int, n_columns: int, itemsize: int, library: Library = NUMPY) -> tuple[int, int]:
    """Rows and columns of a tile."""
    if library.foreign:
        rows, columns = ON_CPU if str(library.device).lower().startswith("cpu") else ELSEWHERE
        held = max(1, int(get_config()["working_memory"] * 2**20) // (itemsize * COPIES))
        columns = max(1, min(columns, n_columns, held))
        return max(1, min(rows, held // columns)), columns
    columns = max(1, min(COLUMNS, n_columns, _budget(itemsize)))
    share = n_rows if n_rows * n_columns <= SMALL else -(-n_rows // threads.count())
    return max(1, min(ROWS, share, _budget(itemsize) // columns)), columns


def whole_rows(n_rows: int, n_columns: int, itemsize: int, copies: int = 2) -> int:
    """How many whole rows of `n_columns` numbers a block may hold, with `copies` of them alive at a time."""
    cap = max(1, 16 * ROWS * COLUMNS // max(1, n_columns))
    fitting = _budget(itemsize * copies) // max(1, n_columns)
    return max(1, min(ROWS, cap, -(-n_rows // threads.count()), fitting))


# Where the logarithm of the largest value of a row is below this, all sums of the row are about to vanish.
UNDERFLOWED = {name: float(np.log(np.finfo(name).tiny / np.finfo(name).eps)) for name in ("float32", "float64")}

NOTHING = -1e300  # the logarithm of a sum without terms: a number, so that differences are numbers


@dataclass(frozen=True)
class ClassSums:
    """Class sums of a set of queries, shape (n, n_classes) each."""

    values: NDArray
    logs: NDArray
    """log S, correct even where S itself underflows; -inf for a class without points."""

    @classmethod
    def of_logs(cls, logs: NDArray) -> ClassSums:
        """Class sums from their logarithms."""
        return cls(np.exp(np.minimum(logs, LARGEST_LOG)), logs)

    def __getitem__(self, rows) -> ClassSums:
        return ClassSums(self.values[rows], self.logs[rows])


def class_sums(store: Store, X, leave_out: NDArray | None = None) -> ClassSums:
    """Sum covariances between each row of X and the labelled points, class by class.

    Parameters
    ----------
    store : Store
    X : array or CSR array of shape (n, d)
    leave_out : array of shape (n,), optional
        For leave-one-out: for each row of X, the row of the store that must not count, whatever its weight.
    """
    return sums_at(store, queries_of(store, X, leave_out), X.shape[0], leave_out)


def queries_of(store: Store, X, leave_out: NDArray | None = None) -> list[KernelPoints | None]:
    """Points in the coordinates of each group, without what covariances have learned from rows that are left out."""
    queries = store.queries(X)
    if leave_out is None:
        return queries
    return [None if points is None else points.left_out(leave_out) for points in queries]


def sums_at(
    store: Store, queries: Sequence[KernelPoints | None], n: int, leave_out: NDArray | None = None
) -> ClassSums:
    """`class_sums` of n queries that are already in the coordinates of each group."""
    return total(store.groups, queries, n, store.n_classes, shard_sums(store, queries, leave_out))


def shard_sums(store: Store, queries: Sequence[KernelPoints | None], leave_out: NDArray | None = None) -> list:
    """For each group the sums of which class sums consist, over the points that are here; None without any.

    Those over several shards add, see `added`.
    """
    return [
        None if points is None or not group.parts else _group_sums(group, points, leave_out)
        for group, points in zip(store.groups, queries, strict=True)
    ]


def added(parts: Sequence[list]) -> list:
    """The sums of several shards, group by group."""
    found = []
    for of_group in zip(*parts, strict=True):
        there = [sums for sums in of_group if sums is not None]
        found.append([reduce(add, path) for path in zip(*there, strict=True)] if there else None)
    return found


def total(groups: Sequence[Group], queries: Sequence, n: int, n_classes: int, sums: Sequence) -> ClassSums:
    """Class sums from the sums of each group over all shards."""
    values, logs = np.zeros((n, n_classes)), np.full((n, n_classes), -np.inf)
    for group, points, of_group in zip(groups, queries, sums, strict=True):
        if of_group is not None:
            found = points.total(of_group)
            values[:, group.classes], logs[:, group.classes] = found.values[0, 0], found.logs[0, 0]
    return ClassSums(values, logs)


def _group_sums(group: Group, queries: KernelPoints, leave_out: NDArray | None) -> list[LogSums]:
    """The sums of each path over all parts, with a column for each class of the group."""
    parts = [_part_sums(part, group, queries, leave_out) for part in group.parts]
    return [reduce(add, of_path) for of_path in zip(*parts, strict=True)]


def _part_sums(part: Part, group: Group, queries: KernelPoints, leave_out: NDArray | None) -> list[LogSums]:
    own = np.full(len(queries), -1) if leave_out is None else part.column_of(leave_out)
    columns = np.searchsorted(group.classes, part.classes)
    return [
        on_classes(log_sums(path, path.columns_of(own), precise=True), columns, len(group.classes))
        for path in queries.paths(part.points, part.weights)
    ]


def on_classes(sums: LogSums, present: NDArray, n_classes: int) -> LogSums:
    """Sums over the points of some classes, with a column for every class."""
    if len(present) == n_classes:
        return sums
    every, top = np.zeros((*sums.sums.shape[:-1], n_classes)), sums.top
    every[..., present] = sums.sums
    if top.shape[2] > 1:
        top = np.repeat(top.max(axis=2, keepdims=True), n_classes, axis=2)
        top[..., present] = sums.top
    return LogSums(top, every)


def log_sums(path: Path, leave_out: NDArray, done=None, *, precise: bool = False) -> LogSums:
    """The sums of a path, in threads or on the device of the points.

    Parameters
    ----------
    path : Path
    leave_out : integer array of shape (n,)
        For each query the column that it must not see, -1 for none.
    done : function, optional
        Called with numbers of rows.
    precise : bool
        Whether rows whose distances are spoilt by cancellation are computed again in double precision.
    """
    rows, columns, n = path.rows, path.columns, len(path.rows)
    found = _empty(path)
    if not len(columns):
        found.top[...] = NOTHING
        return found
    shortest = 1.0 if path.factors is None else float(np.min(path.factors, initial=np.inf))
    wrong = rows.imprecise(columns, shortest) if precise and n else np.zeros(n, bool)
    if not wrong.any():
        _fill(found, path, rows, leave_out, done)
        return _class_by_class(found, path, leave_out) if precise and path.factors is not None else found
    for some, points in ((~wrong, rows), (wrong, rows.precisely())):
        at = np.flatnonzero(some)
        part = _empty(path, len(at))
        _fill(part, path, points[at], leave_out[at], done)
        found.top[:, at], found.sums[:, :, at] = part.top, part.sums
    return _class_by_class(found, path, leave_out) if path.factors is not None else found


def _class_by_class(found: LogSums, path: Path, leave_out: NDArray) -> LogSums:
    """The sums with a top for each class in rows that have all vanished, so that all logarithms are right there."""
    vanished = np.flatnonzero(found.top[..., 0].max(axis=0) < UNDERFLOWED[path.rows.dtype.name])
    if not vanished.size:
        return found
    top, rows = np.repeat(found.top, found.sums.shape[-1], axis=2), path.rows[vanished].precisely()
    members = [[weights.members() for weights in layers] for layers in path.weights]
    for c, (columns, _) in enumerate(next(of_layer for layers in members for of_layer in layers)):
        numbers = np.arange(len(path.columns))[columns]
        weights = [[Segments(np.zeros(1, int), of_layer[c][1]) for of_layer in layers] for layers in members]
        place = np.full(len(path.columns) + 1, -1)
        place[numbers] = np.arange(len(numbers))
        part = Path(rows, path.columns[columns], path.factors, weights)
        own = _empty(part)
        if len(numbers):
            _fill(own, part, rows, place[leave_out[vanished]])
        top[:, vanished, c], found.sums[:, : own.sums.shape[1], vanished, c] = own.top[..., 0], own.sums[..., 0]
    return LogSums(top, found.sums)


def _empty(path: Path, n: int | None = None) -> LogSums:
    n = len(path.rows) if n is None else n
    layers = max(map(len, path.weights))
    classes = next(weights for each in path.weights for weights in each).n_classes  # a factor may have no member
    return LogSums(np.zeros((len(path.weights), n, 1)), np.zeros((len(path.weights), layers, n, classes)))


def _fill(found: LogSums, path: Path, rows: KernelPoints, leave_out: NDArray, done=None) -> None:
    step, width = tile_shape(len(rows), len(path.columns), rows.dtype.itemsize, rows.library)

    def work(some: slice) -> None:
        sink = Adder(path.weights, found.sums[:, :, some])
        if path.factors is not None:
            found.top[:, some, 0] = rows[some].walk(path.columns, path.factors, leave_out[some], sink)
            return
        room = np.empty((some.stop - some.start, width), rows.dtype)
        for start in range(0, len(path.columns), width):
            tile = rows[some].tile(path.columns[start : start + width], room)
            sink.add(0, start, cross_out(tile, leave_out[some], start, 0.0))

    threads.over_rows(work, len(rows), step, done, serial=rows.library.foreign)


@dataclass(frozen=True)
class Adder:
    """Adds the tiles of a walk to class sums, once for each set of weights; `Sink` says what the methods are for."""

    weights: Sequence[Sequence[ClassWeights]]
    """For each factor, one or more sets of weights."""
    sums: NDArray
    """Shape (factors, sets, rows, classes)."""

    def add(self, k: int, start: int, tile: NDArray) -> None:
        for weights, sums in zip(self.weights[k], self.sums[k], strict=False):
            weights.add(tile, start, sums)

    def add_entries(self, k: int, at: NDArray, columns: NDArray, values: NDArray) -> None:
        for weights, sums in zip(self.weights[k], self.sums[k], strict=False):
            weights.add_entries(at, columns, values, sums)

    def rescale(self, scale: NDArray) -> None:
        self.sums[...] *= scale[:, None, :, None]


# From class sums to probabilities and decisions: eqs predictiveDistribution and activationFunction.


def prior_terms(covariances: PerClass[Covariance], X, mean: NDArray) -> NDArray:
    """The terms mu_i + C_i(x*, x*) / 2 of eq. activationFunction, shape (1 or n, n_classes).

    If all classes share a covariance that is not stationary, C(x*, x*) is the same number for all of them. It cancels,
    takes time to compute, and may grow without bound away from the data. So it is left out.
    """
    if covariances.shared and not covariances[0].stationary:
        return mean[None].copy()
    halves = covariances.map(lambda covariance: covariance.diagonal(X) / 2)
    n = np.broadcast_shapes(*(half.shape for half in halves.distinct))[0]
    return np.stack([mean[c] + np.broadcast_to(half, n) for c, half in enumerate(halves)], axis=1)


@dataclass(frozen=True)
class Scores:
    """F of eq. activationFunction in two parts. They are kept apart so that small sums keep their digits."""

    prior: NDArray
    """mu_i + C_i(x*, x*) / 2, shape (1 or n, n_classes)."""
    sums: ClassSums

    @property
    def values(self) -> NDArray:
        """F itself, shape (n, n_classes)."""
        return self.prior + self.sums.values

    @property
    def relative(self) -> NDArray:
        """F up to a constant per row.

        The part of the prior that all classes share cancels in the softmax. It is dropped before the sums are added:
        a class sum of 1e-14 would lose its digits beside C(0)/2 = 1/2, although it decides.
        """
        return self.prior - self.prior.max(axis=1, keepdims=True) + self.sums.values

    @property
    def log_probabilities(self) -> NDArray:
        """Log of eq. predictiveDistribution."""
        return log_softmax(self.relative, axis=1)

    @property
    def decisions(self) -> NDArray:
        """Class of largest score; if rounding has made scores equal, the one with the largest log sum among them.

        If every kernel value underflows, all sums are 0. Their logarithms still tell the nearest class.
        """
        scores = self.relative
        best = scores == scores.max(axis=1, keepdims=True)
        finite = np.maximum(self.sums.logs, np.finfo(float).min)  # a class without points may still win by its mean
        return np.where(best, finite, -np.inf).argmax(axis=1)


@dataclass(frozen=True)
class StatedScores:
    """Scores that are log probabilities, of classifiers that average probabilities. The same questions as `Scores`."""

    log_probabilities: NDArray

    @property
    def values(self) -> NDArray:
        return self.log_probabilities

    @property
    def relative(self) -> NDArray:
        return self.log_probabilities

    @property
    def decisions(self) -> NDArray:
        return self.log_probabilities.argmax(axis=1)
