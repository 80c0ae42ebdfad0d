"""The only access to the max-flow engine: a minimum cut between two terminals, with its rounding error.

The engine is OR-tools' push-relabel, whose capacities are 64-bit integers. Capacities are multiplied by a power of two,
chosen so that the flow fits, and rounded down. So the result is a lower bound of the real minimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from ortools.graph.python.max_flow import SimpleMaxFlow

if TYPE_CHECKING:
    from numpy.typing import NDArray

BITS = 60  # the flow through a node is at most 2^60, which leaves room below 2^63 for the engine's own sums

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
    engine = _load(n, out, back, i, j, weights)
    status = engine.solve(n, n + 1)
    if status != engine.OPTIMAL:
        raise RuntimeError(f"the max-flow engine stopped with status {status}")
    side = np.zeros(n + 2, bool)
    side[engine.get_source_side_min_cut()] = True
    arcs = np.count_nonzero(source) + np.count_nonzero(sink) + len(i)
    return side[:n], math.ldexp(float(engine.optimal_flow()), -exponent), math.ldexp(float(arcs), -exponent)


def _integers(values: NDArray, exponent: int) -> NDArray:
    if exponent <= LARGEST_EXPONENT:  # a product with a power of two is as exact as ldexp, and ten times faster
        return np.floor(values * math.ldexp(1.0, exponent)).astype(np.int64)
    return np.floor(np.ldexp(values, exponent)).astype(np.int64)


def _load(n: int, source: NDArray, sink: NDArray, i: NDArray, j: NDArray, weights: NDArray) -> SimpleMaxFlow:
    """Give the graph to the engine: the source is node n, the sink is node n + 1, and an edge is two arcs."""
    kept = weights > 0
    i, j, weights = i[kept], j[kept], weights[kept]
    out, back = np.flatnonzero(source), np.flatnonzero(sink)
    tails = np.concatenate([i, j, np.full(len(out), n), back, [n]])
    heads = np.concatenate([j, i, out, np.full(len(back), n + 1), [n + 1]])  # the last arc names both terminals
    engine = SimpleMaxFlow()
    engine.add_arcs_with_capacity(tails, heads, np.concatenate([weights, weights, source[out], sink[back], [0]]))
    return engine
