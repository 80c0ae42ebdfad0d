"""How good a labelling of more than two classes is: a bound of its energy, and labels that are proven one by one.

The bound. With x_ic = [y_i = c] the energy is a sum of one two-class energy per class,

    E_c(x_c) = sum_i u_i(c) x_ic - sum_{i<j} C^(c)_ij x_ic x_jc,

under the constraints sum_c x_ic = 1. For any multipliers lambda, add up the minima of E_c(x_c) + sum_i lambda_i x_ic
and subtract sum_i lambda_i: this is a lower bound. Subgradient steps raise it. Each minimum is itself bounded from
below on a sparse graph, as in `mincut`.

Proven labels (after Kovtun). For a class alpha, combine all other classes into one label 'other'. Its unary term is
min_{c != alpha} u_i(c), and its covariance is M_ij = max_{c != alpha} C^(c)_ij. Let A be the nodes with label alpha in
a minimum of this two-class problem. Then some optimal labelling gives alpha to all of A.

Proof. Let y be any labelling. Let y' be y with label alpha on A. Let B be the nodes of A whose label in y is not alpha.
From y to y' the energy falls by

- sum_B u_i(y_i) - u_i(alpha), in the unary terms;
- C^(alpha) - [y_i = y_j] C^(y_i), in the pairs within B;
- C^(alpha), in the pairs between B and the rest of A;
- at least -[y_i = y_j] C^(y_i), in the pairs between B and nodes outside A.

Compare the two-class energy when B goes from 'other' to alpha, while the rest of A is alpha and all other nodes are
'other'. Each of its terms falls by no more than the term above. Its total fall is not negative, because A is a minimum.
So E(y') <= E(y).

With one shared covariance, M = C. Class-specific covariances need no extra condition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coxfield.field.edges import couple
from coxfield.field.mincut import Incumbent, TwoClasses, crossing, edge_budget, minimise, row_sums, sparse_minimum
from coxfield.progress import progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.edges import Coupling, Edges, Pairs
    from coxfield.field.mincut import Solution
    from coxfield.field.potts import LabelField


STEPS = 60  # subgradient steps at most
STEPS_PER_GRAPH = 4  # edges are added after so many steps
PATIENCE = 4  # steps without progress before the step length is halved


@dataclass(frozen=True)
class LagrangianBound:
    """A bound on how far a labelling is from the minimum."""

    gap: float
    edges: int
    """The largest number of edges in one cut."""
    cuts: int


@dataclass(frozen=True)
class _OneClass:
    """A lower bound of the two-class energy E_c on a sparse graph, equal to E_c at the given labelling.

    -C x_i x_j = -C (x_i + x_j) / 2 + (C / 2) |x_i - x_j|. The first term is in the balanced unary terms of the field.
    """

    coupling: Coupling
    edges: Edges
    x: NDArray
    omitted: NDArray

    @property
    def separated(self) -> float:
        """The pair terms at the labelling."""
        return self.edges.cut_weight(self.x) + float(self.omitted[self.x].sum())

    def minimum(self, unary: NDArray) -> tuple[NDArray, float]:
        """The sparse graph's minimum x, and a lower bound of min_x sum_i unary_i x_i + sum_{i<j} C/2 |x_i - x_j|."""
        problem = TwoClasses(-unary, self.coupling)
        touching = Incumbent(self.x, self.omitted, problem.terminal_cost(self.x) + self.separated)
        x, value = sparse_minimum(problem, self.edges, touching)
        return x, value - float(np.maximum(-unary, 0).sum())

    def enriched(self, x: NDArray) -> _OneClass:
        """The same energy with more edges: the heaviest pairs that made the bound slack at x."""
        budget = edge_budget(len(x), len(self.edges))
        new = crossing(self.coupling, x, self.x, self.edges, budget).edges
        now_held = new.cut_by(self.x).node_sums(len(x))
        return replace(self, edges=self.edges + new, omitted=np.maximum(self.omitted - now_held, 0))


def lagrangian_bound(field: LabelField, labels: NDArray, sums: NDArray, pairs: Pairs, close: float) -> LagrangianBound:
    """Bound the energy from below. This also bounds the gap of the labelling.

    Parameters
    ----------
    field : LabelField
    labels : integer array of shape (n,)
        The labelling.
    sums : array of shape (n, Q)
        Its neighbour sums.
    pairs : Pairs
        Edges of the sparse graph.
    close : float
        Stop if the gap is at most this.
    """
    classes = [_one_class(field, c, labels == c, pairs) for c in range(field.n_classes)]
    unary = field.balanced_unary
    upper = float(unary[np.arange(len(field)), labels].sum()) + sum(one.separated for one in classes)
    with progress(f"lower bound of the energy, {STEPS} steps at most", STEPS, None, at_most=True) as done:
        return _climb(classes, unary, _first_multipliers(field, sums), upper, close, done)


def _one_class(field: LabelField, c: int, x: NDArray, pairs: Pairs) -> _OneClass:
    coupling = couple(field, c)
    edges = coupling.edges(pairs)
    return _OneClass(coupling, edges, x, crossing(coupling, x, x, edges, 0).sums)


def _first_multipliers(field: LabelField, sums: NDArray) -> NDArray:
    """Multipliers half-way between the best and the second-best class of each node, given the labels of its neighbours.

    For two classes that share a covariance they are optimal, because both cuts are then the same.
    """
    total = sums.sum(axis=1, keepdims=True) if field.shared else field.totals[:, :1]
    local = field.relative_unary - sums + total / 2
    return -np.partition(local, 1, axis=1)[:, :2].mean(axis=1)


def _climb(classes, unary: NDArray, multipliers: NDArray, upper: float, close: float, done) -> LagrangianBound:
    """Raise the bound by subgradient steps of Polyak's length, and add edges to the graphs between steps."""
    best, length, stalled, step = -np.inf, 1.0, 0, 0
    while step < STEPS:
        step += 1
        found = [one.minimum(unary[:, c] + multipliers) for c, one in enumerate(classes)]
        bound = sum(value for _, value in found) - float(multipliers.sum())
        best, stalled = max(best, bound), 0 if bound > best else stalled + 1
        done(1)
        if upper - best <= close:
            break
        excess = np.sum([x for x, _ in found], axis=0) - 1
        if step % STEPS_PER_GRAPH == 0 or not excess.any():
            held = [len(one.edges) for one in classes]
            classes = [one.enriched(x) for one, (x, _) in zip(classes, found, strict=True)]
            if not excess.any() and held == [len(one.edges) for one in classes]:
                break  # neither other multipliers nor more edges can improve the bound
        if stalled == PATIENCE:
            length, stalled = length / 2, 0
        multipliers = multipliers + length * (upper - bound) / max(float(excess @ excess), 1.0) * excess
    return LagrangianBound(max(upper - best, 0.0), max(len(one.edges) for one in classes), step * len(classes))


@dataclass(frozen=True)
class Persistency:
    """Labels that all belong to one optimal labelling."""

    labels: NDArray
    """-1 where nothing is proven."""
    slack: float
    """The sum of the gaps of the cuts: the labels belong to a labelling at most this much above the minimum."""
    edges: int
    cuts: int


def persistent_labels(field: LabelField, pairs: Pairs, *, tolerance: float, **solver) -> Persistency:
    """Prove labels, class by class. Labels proven for one class are given labels for the next."""
    known, slack, edges, cuts = np.full(len(field), -1), 0.0, 0, 0
    left, rest = field, np.arange(len(field))
    for alpha in range(field.n_classes):
        if not len(rest):
            break
        found = _alpha_against_others(left, pairs.among(rest), alpha, tolerance=tolerance, **solver)
        edges, cuts = max(edges, len(found.edges)), cuts + found.rounds
        if found.gap <= tolerance * found.cost:
            known[rest[found.x]] = alpha
            slack += found.gap
            left, rest = left.condition(np.where(found.x, alpha, -1)), rest[~found.x]
    return Persistency(known, slack, edges, cuts)


def _alpha_against_others(field: LabelField, pairs: Pairs, alpha: int, **solver) -> Solution:
    """Minimise the two-class energy of a class against the best of the other classes."""
    others = [c for c in range(field.n_classes) if c != alpha]
    coupling = couple(field, alpha, others)
    pull = field.relative_unary[:, others].min(axis=1) - field.relative_unary[:, alpha]
    if not field.shared:  # (sum_j C1 - C0) / 2, where w = (C1 + C0) / 2
        pull = pull + field.totals[:, alpha] - row_sums(coupling)
    return minimise(TwoClasses(pull, coupling), coupling.edges(pairs), **solver)
