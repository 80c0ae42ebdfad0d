"""Max-flow engines, and the exact minimum of a two-class problem on all pairs from minimum cuts of sparse graphs.

The problem is to minimise, over x in {0, 1}^n,

    D(x) = sum_i source_i (1 - x_i) + sink_i x_i + sum_{i<j} w_ij |x_i - x_j|,

where all n (n - 1) / 2 couplings are positive. Only a few of them are held as edges. Let y be the best labelling so
far. A coupling that is not an edge is replaced by a smaller term that costs a cut little. If y_i = 1 and y_j = 0, this
is the linear term w_ij (x_i - x_j), which goes into the terminals. If y_i = y_j, it is 0. So the sparse problem is at
most D everywhere and equals D at y. If y is a minimum of the sparse problem, y is also a minimum of D. Otherwise the
sparse problem has another minimum x. If x is better than y, it replaces y. The heaviest pairs whose bound is slack at x
become edges. `crossing` finds them in one pass over the pairs that x separates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from coxfield.engine.class_sums import tile_shape
from coxfield.field.edges import NO_EDGES, Edges
from coxfield.kernels.namespace import cross_out
from coxfield.threads import over_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.field.edges import Coupling

    Engine = Callable[[NDArray, NDArray, NDArray, NDArray, NDArray], "tuple[NDArray, int]"]
    """Integer capacities of source, sink and edges (i, j) -> the side of the source, and the flow."""

# The only access to max-flow engines: a minimum cut between two terminals, with its rounding error.
#
# Capacities are multiplied by a power of two, chosen so that the flow fits into 60 bits, and rounded down. So the
# result is a lower bound of the real minimum. Both engines are exact on these integers, and of all minimum cuts they
# return the one with the fewest nodes at the source. So they return the same cut, bit by bit:
#
# - OR-tools' push-relabel, if it is installed: its capacities have 64 bits.
# - SciPy's algorithm of Dinic otherwise: its capacities have 32 bits, so it is asked several times.


BITS = 60  # the flow through a node is at most 2^60, which leaves room below 2^63 for the engines' own sums
DIGITS = 30  # bits that SciPy is given at a time: a capacity and that of the opposite arc stay below 2^31 together

LARGEST_EXPONENT = 1000  # two to this power is a number


@dataclass(frozen=True)
class MinCut:
    """A minimum cut, and bounds of its value."""

    side: NDArray
    """Whether each node is on the side of the source."""
    value: float
    """A lower bound of the minimum."""
    error: float
    """The minimum is at most `value + error`."""


def min_cut(source: NDArray, sink: NDArray, i: NDArray, j: NDArray, capacity: NDArray) -> MinCut:
    """Minimise sum_k source_k [k at sink] + sink_k [k at source] + sum_e capacity_e [i_e and j_e apart].

    Parameters
    ----------
    source, sink : arrays of shape (n,)
        Non-negative capacities from the source to each node, and from each node to the sink.
    i, j : integer arrays of shape (m,)
        Ends of the undirected edges; no pair occurs twice.
    capacity : array of shape (m,)
        Non-negative.

    Examples
    --------
    >>> import numpy as np
    >>> min_cut(np.array([3.0, 0]), np.array([0, 2.0]), np.array([0]), np.array([1]), np.array([1.0])).value
    1.0
    """
    # Flow that a node passes directly from source to sink needs no engine.
    through = np.minimum(source, sink)
    base, source, sink = float(through.sum()), source - through, sink - through
    if source.sum() <= sink.sum():
        side, value, error = _max_flow(source, sink, i, j, capacity)
    else:  # the weaker terminal is made the source, so that it limits the sums inside the engine
        side, value, error = _max_flow(sink, source, i, j, capacity)
        side = ~side
    return MinCut(side, base + value, error)


def _max_flow(source, sink, i, j, capacity) -> tuple[NDArray, float, float]:
    """The side of the source, the flow, and how much rounding may have lowered it."""
    n, total = len(source), float(source.sum())
    if not total > 0:
        return np.zeros(n, bool), 0.0, 0.0
    exponent = BITS - math.frexp(total)[1]
    # No arc carries more than the source gives. An arc of twice that capacity is never cut, even after rounding.
    out, back, weights = (_integers(np.minimum(c, 2 * total), exponent) for c in (source, sink, capacity))
    kept = weights > 0
    side, flow = _engine()(out, back, i[kept], j[kept], weights[kept])
    arcs = np.count_nonzero(source) + np.count_nonzero(sink) + len(i)
    return side, math.ldexp(float(flow), -exponent), math.ldexp(float(arcs), -exponent)


def _integers(values: NDArray, exponent: int) -> NDArray:
    if exponent <= LARGEST_EXPONENT:  # a product with a power of two is as exact as ldexp, and ten times faster
        return np.floor(values * math.ldexp(1.0, exponent)).astype(np.int64)
    return np.floor(np.ldexp(values, exponent)).astype(np.int64)


@cache
def _engine() -> Engine:
    """The fastest engine that is installed."""
    try:
        import ortools.graph.python.max_flow  # noqa: F401
    except ImportError:
        return in_rounds
    return push_relabel


def push_relabel(source: NDArray, sink: NDArray, i: NDArray, j: NDArray, weights: NDArray) -> tuple[NDArray, int]:
    """The cut by OR-tools: the source is node n, the sink is node n + 1, and an edge is two arcs."""
    from ortools.graph.python.max_flow import SimpleMaxFlow

    n, out, back = len(source), np.flatnonzero(source), np.flatnonzero(sink)
    tails = np.concatenate([i, j, np.full(len(out), n), back, [n]])
    heads = np.concatenate([j, i, out, np.full(len(back), n + 1), [n + 1]])  # the last arc names both terminals
    engine = SimpleMaxFlow()
    engine.add_arcs_with_capacity(tails, heads, np.concatenate([weights, weights, source[out], sink[back], [0]]))
    status = engine.solve(n, n + 1)
    if status != engine.OPTIMAL:
        raise RuntimeError(f"the max-flow engine stopped with status {status}")
    side = np.zeros(n + 2, bool)
    side[engine.get_source_side_min_cut()] = True
    return side[:n], engine.optimal_flow()


def in_rounds(source: NDArray, sink: NDArray, i: NDArray, j: NDArray, weights: NDArray) -> tuple[NDArray, int]:
    """The cut by SciPy, whose capacities have 32 bits: the leading bits first, then what they left.

    A round takes the leading bits of all residual capacities and finds a maximum flow of these. What remains is at most
    what the whole residual capacities let through the cut that it found: less than one unit of the round per arc of the
    cut. So the next round can take smaller units, and the last one has units of one: its flow is maximal.

    Examples
    --------
    >>> import numpy as np
    >>> two = np.array([2**50 + 1, 0]), np.array([0, 2**60])
    >>> side, flow = in_rounds(*two, np.array([0]), np.array([1]), np.array([2**59]))
    >>> side.tolist(), flow == 2**50 + 1
    ([False, False], True)
    """
    n = len(source)
    network = _network(source, sink, i, j, weights)
    residual, rows = network.data, np.repeat(np.arange(n + 2), np.diff(network.indptr))
    limit, flow, shift = int(source.sum()), 0, 1  # no more than `limit` can still flow
    while limit and shift:
        shift = max(limit.bit_length() - DIGITS, 0)
        leading = (np.minimum(residual, limit) >> shift).astype(np.int32)
        found = maximum_flow(csr_array((leading, network.indices, network.indptr), network.shape), n, n + 1)
        flow += int(found.flow_value) << shift
        residual = residual - (found.flow.data.astype(np.int64) << shift)
        side = _reached(network, leading - found.flow.data, n)
        limit -= int(found.flow_value) << shift
        through = np.minimum(residual[side[rows] & ~side[network.indices]], limit)
        limit = min(limit, int(through.sum()))
    return _reached(network, residual, n)[:n], flow


def _network(source: NDArray, sink: NDArray, i: NDArray, j: NDArray, weights: NDArray) -> csr_array:
    """Capacities of all arcs; each has its opposite, so that every flow of this network has the same places."""
    n, out, back = len(source), np.flatnonzero(source), np.flatnonzero(sink)
    tails = np.concatenate([i, np.full(len(out), n), back]).astype(np.int32)
    heads = np.concatenate([j, out, np.full(len(back), n + 1)]).astype(np.int32)
    there = np.concatenate([weights, source[out], sink[back]])
    opposite = np.concatenate([weights, np.zeros(len(out) + len(back), np.int64)])
    ends = np.concatenate([tails, heads]), np.concatenate([heads, tails])
    return coo_array((np.concatenate([there, opposite]), ends), shape=(n + 2, n + 2)).tocsr()


def _reached(network: csr_array, left: NDArray, start: int) -> NDArray:
    """Whether each node is reached from `start` along arcs with capacity left."""
    open_ = left > 0
    indptr = np.concatenate([[0], np.cumsum(open_)])[network.indptr].astype(np.int32)
    arcs = csr_array((np.ones(indptr[-1]), network.indices[open_], indptr), network.shape)
    reached = np.zeros(network.shape[0], bool)
    reached[breadth_first_order(arcs, start, return_predecessors=False)] = True
    return reached


EDGES_PER_NODE = 10  # a round adds at most so many, or as many as there are already
MOST_EDGES_PER_ROUND = 2**22  # half a gigabyte in the max-flow engine


@dataclass(frozen=True)
class TwoClasses:
    """Minimise sum_i -pull_i x_i + sum_{i<j} w_ij |x_i - x_j| over x in {0, 1}^n; D adds sum_i max(pull_i, 0)."""

    pull: NDArray
    """How much cheaper x_i = 1 is than x_i = 0."""
    coupling: Coupling

    def terminal_cost(self, x: NDArray) -> float:
        """The first two terms of D."""
        against = np.where(x, -self.pull, self.pull)
        return float(np.maximum(against, 0).sum())


@dataclass(frozen=True)
class Incumbent:
    """A labelling whose cost on all pairs is known."""

    x: NDArray
    omitted: NDArray
    """For each node, the weight of the pairs that x separates and the sparse graph does not hold."""
    cost: float
    """D(x)."""


@dataclass(frozen=True)
class Round:
    """The state of a solution, given to `progress` after each round."""

    rounds: int
    edges: int
    cost: float
    lower_bound: float


@dataclass(frozen=True)
class Solution:
    """The best labelling found, and the proof of how good it is."""

    x: NDArray
    cost: float
    """D(x)."""
    lower_bound: float
    """At most the minimum of D."""
    edges: Edges
    rounds: int

    @property
    def gap(self) -> float:
        """How far the cost may be above the minimum."""
        return max(self.cost - self.lower_bound, 0.0)


def minimise(
    problem: TwoClasses,
    edges: Edges,
    *,
    tolerance: float,
    max_rounds: int,
    init: NDArray | None = None,
    progress: Callable[[Round], None] | None = None,
) -> Solution:
    """Minimise D on all pairs, and prove it.

    Parameters
    ----------
    problem : TwoClasses
    edges : Edges
        The sparse graph to start from, weighted by the problem's coupling.
    tolerance : float
        Stop if the gap is at most this share of D(x).
    max_rounds : int
        Stop after so many cuts.
    init : boolean array of shape (n,), optional
        A labelling to start from; otherwise the better of the two constant ones.
    progress : callable, optional
        Called with each `Round`.
    """
    best = _start(problem, edges, init)
    bound, rounds = 0.0, 0
    while best.cost - bound > tolerance * best.cost and rounds < max_rounds:
        rounds += 1
        x, value = sparse_minimum(problem, edges, best)
        bound = max(bound, value)
        if progress is not None:
            progress(Round(rounds, len(edges), best.cost, bound))
        if best.cost - bound <= tolerance * best.cost or np.array_equal(x, best.x):
            break  # in the second case the rest of the gap is the rounding of capacities
        best, edges = _improve(problem, edges, best, x)
    return Solution(best.x, best.cost, min(bound, best.cost), edges, rounds)


def _start(problem: TwoClasses, edges: Edges, init: NDArray | None) -> Incumbent:
    """The given labelling, or the better constant one, which separates nothing."""
    n = len(problem.pull)
    constants = [np.zeros(n, bool), np.ones(n, bool)]
    best = min((Incumbent(x, np.zeros(n), problem.terminal_cost(x)) for x in constants), key=lambda one: one.cost)
    if init is None or init.all() or not init.any():
        return best
    sums = crossing(problem.coupling, init, init, edges, 0).sums
    given = Incumbent(init, sums, _cost(problem, edges, init, sums))
    return min(best, given, key=lambda one: one.cost)


def _cost(problem: TwoClasses, edges: Edges, x: NDArray, omitted: NDArray) -> float:
    return problem.terminal_cost(x) + edges.cut_weight(x) + float(omitted[x].sum())


def sparse_minimum(problem: TwoClasses, edges: Edges, best: Incumbent) -> tuple[NDArray, float]:
    """The minimum of the sparse problem that equals D at the incumbent, and a lower bound of D."""
    # w (x_i - x_j) = w x_i + w (1 - x_j) - w: the sink's end, the source's end, a constant.
    source = np.maximum(problem.pull, 0) + np.where(best.x, 0, best.omitted)
    sink = np.maximum(-problem.pull, 0) + np.where(best.x, best.omitted, 0)
    constant = float(best.omitted[~best.x].sum())
    # No minimum pays more than the incumbent. Limiting the capacities keeps digits for the couplings that decide.
    ceiling = 2 * (best.cost + constant)
    cut = min_cut(np.minimum(source, ceiling), np.minimum(sink, ceiling), edges.i, edges.j, edges.weight)
    return cut.side, cut.value - constant


def edge_budget(n: int, held: int) -> int:
    """How many edges may be added to a graph of n nodes: more in each round, up to a limit by memory."""
    return min(max(EDGES_PER_NODE * n, held), MOST_EDGES_PER_ROUND)


def _improve(problem: TwoClasses, edges: Edges, best: Incumbent, x: NDArray) -> tuple[Incumbent, Edges]:
    """Take x if it is better, and add the heaviest pairs whose bound is slack at x as edges."""
    n = len(x)
    seen = crossing(problem.coupling, x, best.x, edges, edge_budget(n, len(edges)))
    cost = _cost(problem, edges, x, seen.sums)
    if cost < best.cost:
        best = Incumbent(x, seen.sums, cost)
    # New edges no longer count as omitted. The cost is summed again: in single precision, two passes give a pair two
    # weights that differ in the last digit, but the bound must equal the cost to the last digit of double precision.
    omitted = np.maximum(best.omitted - seen.edges.cut_by(best.x).node_sums(n), 0)
    edges = edges + seen.edges
    return Incumbent(best.x, omitted, _cost(problem, edges, best.x, omitted)), edges


@dataclass(frozen=True)
class Crossing:
    """Pairs that a labelling separates and that are not edges of the sparse graph."""

    sums: NDArray
    """For each node, the weight of its separated pairs."""
    edges: Edges
    """The heaviest of those pairs that the reference labelling does not separate the same way."""


@dataclass
class _Heaviest:
    """The heaviest pairs seen so far, at most `budget` of them after `settle`."""

    budget: int
    threshold: float = 0.0
    kept: list[Edges] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def offer(self, tile: NDArray, rows: NDArray, columns: NDArray) -> None:
        """Keep the pairs of a tile that may be among the heaviest."""
        if not tile.size or not self.budget:
            return
        above = tile > self.threshold
        if np.count_nonzero(above) > self.budget:  # at most `budget` of these can stay
            above = tile >= np.partition(tile[above], -self.budget)[-self.budget]
        at, to = np.nonzero(above)
        new = Edges(rows[at], columns[to], tile[at, to].astype(float))
        with self.lock:
            self.kept.append(new)
            if sum(map(len, self.kept)) > 4 * self.budget:
                self.settle()

    def settle(self) -> Edges:
        """Drop all but the heaviest pairs, and remember the weight that a new pair must exceed."""
        edges = sum(self.kept, start=NO_EDGES)
        if len(edges) > self.budget:
            top = np.argpartition(edges.weight, -self.budget)[-self.budget :]
            edges = Edges(edges.i[top], edges.j[top], edges.weight[top])
            self.threshold = float(edges.weight.min())
        self.kept = [edges]
        return edges


def crossing(coupling: Coupling, labels: NDArray, reference: NDArray, edges: Edges, budget: int) -> Crossing:
    """Sum the pairs that `labels` separates and that are not in `edges`, and find heavy ones to add.

    Parameters
    ----------
    coupling : Coupling
    labels, reference : boolean arrays of shape (n,)
    edges : Edges
        The sparse graph.
    budget : int
        The largest number of heavy pairs to return.
    """
    # Nodes with label 1 in the reference come first on both sides. So the pairs that it separates the same way are
    # one corner of the matrix.
    rows = np.concatenate([np.flatnonzero(labels & reference), np.flatnonzero(labels & ~reference)])
    columns = np.concatenate([np.flatnonzero(~labels & reference), np.flatnonzero(~labels & ~reference)])
    corner = int((labels & reference).sum()), int((~labels & reference).sum())
    sums, heaviest, lock = np.zeros(len(labels)), _Heaviest(budget), Lock()
    if edges.complete or not len(rows) or not len(columns):
        return Crossing(sums, NO_EDGES)
    left, right = coupling[rows], coupling[columns]
    held = _Held.of(edges.cut_by(labels), rows, columns)
    step, width = tile_shape(len(rows), len(columns), coupling.dtype.itemsize)

    def work(part: slice) -> None:
        block = left[part]
        for start in range(0, len(columns), width):
            across = slice(start, min(start + width, len(columns)))
            tile = block.tile(right[across])
            held.cross_out(tile, part, across)
            sums[rows[part]] += tile.sum(axis=1, dtype=float)
            with lock:
                sums[columns[across]] += tile.sum(axis=0, dtype=float)
            a, c = max(corner[0] - part.start, 0), max(corner[1] - start, 0)
            heaviest.offer(tile[a:], rows[part][a:], columns[across])
            heaviest.offer(tile[:a, :c], rows[part][:a], columns[across][:c])

    over_rows(work, len(rows), step)
    return Crossing(sums, heaviest.settle())


def row_sums(coupling: Coupling) -> NDArray:
    """Sum of w_ij over all other nodes j, for each node."""
    n = len(coupling)
    step, width = tile_shape(n, n, coupling.dtype.itemsize)
    sums = np.zeros(n)

    def work(part: slice) -> None:
        block, own = coupling[part], np.arange(part.start, part.stop)
        for start in range(0, n, width):
            tile = block.tile(coupling[start : start + width])
            cross_out(tile, own, start, 0)
            sums[part] += tile.sum(axis=1, dtype=float)

    over_rows(work, n, step)
    return sums


@dataclass(frozen=True)
class _Held:
    """Edges of the sparse graph by their place in the rows and columns of a pass, sorted by row."""

    row: NDArray
    column: NDArray

    @staticmethod
    def of(edges: Edges, rows: NDArray, columns: NDArray) -> _Held:
        place = np.empty(len(rows) + len(columns), int)
        place[rows], place[columns] = np.arange(len(rows)), np.arange(len(columns))
        order = np.argsort(place[edges.i], kind="stable")
        return _Held(place[edges.i][order], place[edges.j][order])

    def cross_out(self, tile: NDArray, rows: slice, columns: slice) -> None:
        """Write 0 at the edges of the sparse graph, because they are counted there."""
        first, last = np.searchsorted(self.row, [rows.start, rows.stop])
        column = self.column[first:last]
        mine = np.flatnonzero((column >= columns.start) & (column < columns.stop))
        tile[self.row[first:last][mine] - rows.start, column[mine] - columns.start] = 0
