"""The only access to max-flow engines: a minimum cut between two terminals, with its rounding error.

Capacities are multiplied by a power of two, chosen so that the flow fits into 60 bits, and rounded down. So the result
is a lower bound of the real minimum. Both engines are exact on these integers, and of all minimum cuts they return the
one with the fewest nodes at the source. So they return the same cut, bit by bit:

- OR-tools' push-relabel, if it is installed: its capacities have 64 bits.
- SciPy's algorithm of Dinic otherwise: its capacities have 32 bits, so it is asked several times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Engine = Callable[[NDArray, NDArray, NDArray, NDArray, NDArray], "tuple[NDArray, int]"]
    """Integer capacities of source, sink and edges (i, j) -> the side of the source, and the flow."""

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
