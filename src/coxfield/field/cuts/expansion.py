"""Alpha-expansion: a labelling that cannot be improved by moving nodes to a single class.

In a move, each node whose label is not alpha may take the label alpha: x_i = 1. By eq. smoothingEnergy two nodes that
both move gain C^(alpha)_ij, two nodes that both stay gain [y_i = y_j] C^(y_i)_ij, and a mixed pair gains nothing. This
is a two-class problem with C1 = C^(alpha) and C0 = [y_i = y_j] C^(y_i). It is submodular by eq. submodularInequality,
because neither is negative. For the other nodes, nodes that already have label alpha are labelled points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from coxfield.field.couplings import couple
from coxfield.field.cuts.mincut import TwoClasses, minimise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.field.graph import Pairs
    from coxfield.field.potts import LabelField

State = TypeVar("State")
ROUNDING = 1e-12  # a gain below this share of the cost may be rounding


@dataclass(frozen=True)
class Expansion:
    """The labelling at which alpha-expansion stopped."""

    labels: NDArray
    sums: NDArray
    """Neighbour sums of the field at `labels`."""
    cost: float
    """The energy as measured by `LabelField.cost_given`."""
    edges: int
    """The largest number of edges in one move."""
    cuts: int
    moves: int
    """Moves that lowered the energy."""


def expand(field: LabelField, labels: NDArray, pairs: Pairs, **solver) -> Expansion:
    """Move nodes to one class after the other until no move lowers the energy.

    The result exceeds the minimum by at most the sum of max_c C^(c)_ij over the pairs that an optimal labelling
    separates. With one shared covariance, the optimum pays just that for disagreement: the factor 2 of the Potts model.

    Parameters
    ----------
    field : LabelField
    labels : integer array of shape (n,)
        The start.
    pairs : Pairs
        The edges that each move starts from.
    **solver
        `tolerance`, `max_rounds` and `progress` of `minimise`.
    """
    sums = field.neighbour_sums(labels)
    start = Expansion(labels.copy(), sums, field.cost_given(labels, sums), 0, 0, 0)
    return in_turn(start, field.n_classes, lambda state, alpha: _try_move(field, state, alpha, pairs, solver))


def in_turn(state: State, n_classes: int, move: Callable[[State, int], tuple[State, bool]]) -> State:
    """Expand one class after the other until no move helps; `move` returns the new state and whether it is better."""
    alpha, idle = 0, 0
    while idle < n_classes:
        state, gained = move(state, alpha)
        # A class that has just been expanded gains nothing from a second move.
        idle = 1 if gained else idle + 1
        alpha = (alpha + 1) % n_classes
    return state


def gains(before: float, after: float) -> bool:
    """Whether a cost fell by more than rounding."""
    return before - after > ROUNDING * before


def _try_move(field: LabelField, state: Expansion, alpha: int, pairs: Pairs, solver) -> tuple[Expansion, bool]:
    """The state after expanding one class; the labels stay if the energy would not fall by more than rounding."""
    nodes = np.flatnonzero(state.labels != alpha)
    if not len(nodes):
        return state, False
    problem = _problem(field, state, alpha, nodes)
    found = minimise(problem, problem.coupling.edges(pairs.among(nodes)), **solver)
    state = replace(state, edges=max(state.edges, len(found.edges)), cuts=state.cuts + found.rounds)
    return _moved(field, state, nodes[found.x], alpha) if found.x.any() else (state, False)


def _moved(field: LabelField, state: Expansion, moving: NDArray, alpha: int) -> tuple[Expansion, bool]:
    """The state after the move if the energy, computed independently of the cut, falls."""
    labels = state.labels.copy()
    labels[moving] = alpha
    sums = field.neighbour_sums(labels)
    cost = field.cost_given(labels, sums)
    if not gains(state.cost, cost):
        return state, False
    return replace(state, labels=labels, sums=sums, cost=cost, moves=state.moves + 1), True


def _problem(field: LabelField, state: Expansion, alpha: int, nodes: NDArray) -> TwoClasses:
    """The two-class problem of a move, on the nodes whose label is not alpha."""
    labels, sums, unary = state.labels[nodes], state.sums[nodes], field.relative_unary[nodes]
    row = np.arange(len(nodes))
    if field.shared:
        elsewhere = field.elsewhere(state.labels, state.sums)[nodes]
    else:
        elsewhere = field.totals[nodes, alpha] - sums[row, labels]
    pull = unary[row, labels] - unary[:, alpha] + (sums[:, alpha] + elsewhere) / 2
    coupling = couple(field, alpha, range(field.n_classes), state.labels)[nodes]
    return TwoClasses(pull, coupling)
