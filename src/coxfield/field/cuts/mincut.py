"""The exact minimum of a two-class problem on all pairs, from the minimum cuts of sparse graphs.

The problem is to minimise, over x in {0, 1}^n,

    D(x) = sum_i source_i (1 - x_i) + sink_i x_i + sum_{i<j} w_ij |x_i - x_j|,

where all n (n - 1) / 2 couplings are positive. Only a few of them are held as edges. Let y be the best labelling so
far. A coupling that is not an edge is replaced by a smaller term that costs a cut little. If y_i = 1 and y_j = 0, this
is the linear term w_ij (x_i - x_j), which goes into the terminals. If y_i = y_j, it is 0. So the sparse problem is at
most D everywhere and equals D at y. If y is a minimum of the sparse problem, y is also a minimum of D. Otherwise the
sparse problem has another minimum x. If x is better than y, it replaces y. The heaviest pairs whose bound is slack at x
become edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coxfield.field.cuts.crossing import crossing
from coxfield.field.cuts.maxflow import min_cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.field.couplings import Coupling
    from coxfield.field.graph import Edges

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
