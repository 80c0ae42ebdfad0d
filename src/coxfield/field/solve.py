"""`map_labels`: the most probable labelling of a field, and a proof of how good it is.

Two classes are one minimum cut. For more, alpha-expansion finds a labelling that cannot be improved by moving nodes to
a single class. In a move, each node whose label is not alpha may take the label alpha: x_i = 1. By eq. smoothingEnergy
two nodes that both move gain C^(alpha)_ij, two nodes that both stay gain [y_i = y_j] C^(y_i)_ij, and a mixed pair gains
nothing. This is a two-class problem with C1 = C^(alpha) and C0 = [y_i = y_j] C^(y_i). It is submodular by eq.
submodularInequality, because neither is negative. For the other nodes, nodes that already have label alpha are labelled
points.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from coxfield import threads
from coxfield.field.edges import couple, first_pairs
from coxfield.field.mincut import Incumbent, TwoClasses, crossing, edge_budget, minimise, row_sums, sparse_minimum
from coxfield.progress import progress
from coxfield.progress import progress as watched
from coxfield.utils.numbers import number_from_zero, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.field.edges import Coupling, Edges, Pairs
    from coxfield.field.mincut import Round, Solution
    from coxfield.field.potts import LabelField

# How good a labelling of more than two classes is: a bound of its energy, and labels that are proven one by one.
#
# The bound. With x_ic = [y_i = c] the energy is a sum of one two-class energy per class,
#
#     E_c(x_c) = sum_i u_i(c) x_ic - sum_{i<j} C^(c)_ij x_ic x_jc,
#
# under the constraints sum_c x_ic = 1. For any multipliers lambda, add up the minima of E_c(x_c) + sum_i lambda_i x_ic
# and subtract sum_i lambda_i: this is a lower bound. Subgradient steps raise it. Each minimum is itself bounded from
# below on a sparse graph, as in `mincut`.
#
# Proven labels (after Kovtun). For a class alpha, combine all other classes into one label 'other'. Its unary term is
# min_{c != alpha} u_i(c), and its covariance is M_ij = max_{c != alpha} C^(c)_ij. Let A be the nodes with label alpha
# in a minimum of this two-class problem. Then some optimal labelling gives alpha to all of A.
#
# Proof. Let y be any labelling. Let y' be y with label alpha on A. Let B be the nodes of A whose label in y is not
# alpha. From y to y' the energy falls by
#
# - sum_B u_i(y_i) - u_i(alpha), in the unary terms;
# - C^(alpha) - [y_i = y_j] C^(y_i), in the pairs within B;
# - C^(alpha), in the pairs between B and the rest of A;
# - at least -[y_i = y_j] C^(y_i), in the pairs between B and nodes outside A.
#
# Compare the two-class energy when B goes from 'other' to alpha, while the rest of A is alpha and all other nodes are
# 'other'. Each of its terms falls by no more than the term above. Its total fall is not negative, because A is a
# minimum. So E(y') <= E(y).
#
# With one shared covariance, M = C. Class-specific covariances need no extra condition.


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


ROUNDING = 1e-12  # a gain below this share of the cost may be rounding


@dataclass(frozen=True)
class MapResult:
    """A labelling of least energy, and how far this is proven."""

    labels: NDArray
    """Class of each node, shape (n,). Kernel values that underflow count as 0. If all values of a node underflow and
    the means are equal, any class is optimal for it."""
    energy: float
    """E(labels)."""
    lower_bound: float
    """No labelling has less energy than this."""
    gap: float
    """energy - lower_bound, computed without cancellation."""
    cost: float
    """What the labels pay for disagreement and beyond the cheapest class of each node. The gap is relative to it."""
    certified: NDArray
    """Whether each label is proven, shape (n,). All certified labels belong to one labelling whose energy is within the
    tolerance of the minimum. Several labellings may be that good."""
    edges: int
    """The largest number of couplings in one cut."""
    cuts: int
    """Number of minimum cuts."""
    rounds: int
    """Two classes: rounds of adding edges. More classes: moves that lowered the energy."""

    def rescaled(self, factor: float, constant: float = 0.0) -> MapResult:
        """The same labels at another temperature: all of the energy but a constant is multiplied."""
        energy, bound = (constant + factor * (value - constant) for value in (self.energy, self.lower_bound))
        return replace(self, energy=energy, lower_bound=bound, gap=factor * self.gap, cost=factor * self.cost)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the cost. Large constants of the energy do not make it look small."""
        return self.gap / self.cost if self.cost > 0 else 0.0


def map_labels(
    field: LabelField,
    *,
    tolerance: float = 1e-9,
    max_rounds: int = 100,
    n_jobs: int | None = None,
    progress: Callable[[Round], None] | None = None,
    init: NDArray | None = None,
) -> MapResult:
    """Find the labelling of least energy, the maximum a posteriori.

    For two classes it is exact, by minimum cuts of sparse graphs, however many couplings there are. For more classes,
    labels that can be proven are fixed, and alpha-expansion labels the rest. A Lagrangian bound says how far the energy
    may be from the minimum.

    Parameters
    ----------
    field : LabelField
    tolerance : float, default=1e-9
        A gap of at most this share of the result's `cost` counts as zero.
    max_rounds : int, default=100
        Stop a two-class problem after so many cuts.
    n_jobs : int, optional
        Threads; see `coxfield.threads.use`.
    progress : callable, optional
        Called with each `Round`.
    init : integer array of shape (n,), optional
        A labelling to start from. By default the better constant one for two classes, the supervised one for more.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, map_labels
    >>> X = np.arange(10.0).reshape(-1, 1)
    >>> X[5:] += 1
    >>> result = map_labels(LabelField.from_points(X, RBF(1.0), labels=[0] + 8 * [-1] + [1]))
    >>> result.labels
    array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> bool(result.certified.all()), result.relative_gap < 1e-9
    (True, True)
    """
    tolerance, max_rounds = number_from_zero("tolerance", tolerance), whole_number("max_rounds", max_rounds)
    init = None if init is None else _check_init(init, field)
    if len(field) == 0 or field.n_classes == 1:
        labels = np.zeros(len(field), int)
        energy = field.energy(labels)
        return MapResult(labels, energy, energy, 0.0, 0.0, np.ones(len(field), bool), 0, 0, 0)
    solver = {"tolerance": tolerance, "max_rounds": max_rounds}
    with threads.use(n_jobs), watched("most probable labelling", None, None):
        if field.n_classes > 2:  # two classes take a few cuts, and look at a part of the couplings only
            field = field.held()
        pairs = first_pairs(field.points)
        with threads.small_steps() if field.is_held else nullcontext():
            with watched("minimum cuts of the label field", math.inf, None) as done:
                found = find(field, pairs, init, **solver, progress=_told(done, progress))
            return prove(field, found, tolerance)


def _told(done: Callable[[float], None], progress: Callable[[Round], None] | None) -> Callable[[Round], None]:
    """A function that counts rounds, and tells the user's own function of them."""

    def tell(state: Round) -> None:
        done(1)
        if progress is not None:
            progress(state)

    return tell


def _check_init(init, field: LabelField) -> NDArray:
    init = np.asarray(init)
    if init.shape != (len(field),) or init.min(initial=0) < 0 or init.max(initial=0) >= field.n_classes:
        raise ValueError(f"init must hold a class below {field.n_classes} for each of the {len(field)} nodes")
    return init


@dataclass(frozen=True)
class Found:
    """A labelling, and what is needed for its proof."""

    labels: NDArray
    pairs: Pairs
    cut: Solution | None = None
    """For two classes: the cut, which is its own proof."""
    proven: Persistency | None = None
    """For more classes: the labels that are proven one by one."""
    rest: LabelField | None = None
    """The field of the nodes whose labels are not proven."""
    expansion: Expansion | None = None
    """Their labels by alpha-expansion."""


def find(field: LabelField, pairs: Pairs, init: NDArray | None = None, **solver) -> Found:
    """A labelling of low energy, without any proof that is not part of finding it; exact for two classes.

    Parameters
    ----------
    field : LabelField
        It has at least one node and two classes.
    pairs : Pairs
        The sparse graph to start from.
    init : integer array of shape (n,), optional
    **solver
        `tolerance`, `max_rounds` and `progress` of `minimise`.
    """
    return _find_two(field, pairs, init, solver) if field.n_classes == 2 else _find_more(field, pairs, init, solver)


def _find_two(field: LabelField, pairs: Pairs, init, solver) -> Found:
    coupling, unary = couple(field, 1, [0]), field.balanced_unary
    problem = TwoClasses(unary[:, 0] - unary[:, 1], coupling)
    cut = minimise(problem, coupling.edges(pairs), init=None if init is None else init == 1, **solver)
    return Found(cut.x.astype(int), pairs, cut=cut)


def _find_more(field: LabelField, pairs: Pairs, init, solver) -> Found:
    proven = persistent_labels(field, pairs, **solver)
    free = np.flatnonzero(proven.labels < 0)
    rest = field.condition(proven.labels)
    start = rest.relative_unary.argmin(axis=1) if init is None else init[free]
    expansion = expand(rest, start, pairs.among(free), **solver)
    labels = proven.labels.copy()
    labels[free] = expansion.labels
    return Found(labels, pairs, None, proven, rest, expansion)


def prove(field: LabelField, found: Found, tolerance: float) -> MapResult:
    """The labelling with its energy, and a bound on how far it is from the minimum."""
    sums = field.neighbour_sums(found.labels)
    energy = field.energy_given(found.labels, sums)
    if found.cut is not None:
        cut = found.cut
        certified = np.full(len(field), cut.gap <= tolerance * cut.cost)
        least = energy - cut.gap
        return MapResult(
            found.labels, energy, least, cut.gap, cut.cost, certified, len(cut.edges), cut.rounds, cut.rounds
        )
    proven, rest, expansion = found.proven, found.rest, found.expansion
    assert proven is not None
    assert rest is not None
    assert expansion is not None
    cost = field.cost_given(found.labels, sums)
    among = found.pairs.among(np.flatnonzero(proven.labels < 0))
    bound = lagrangian_bound(rest, expansion.labels, expansion.sums, among, tolerance * cost)
    gap = bound.gap + proven.slack
    certified = (proven.labels >= 0) | (gap <= tolerance * cost)
    edges, cuts = max(proven.edges, expansion.edges, bound.edges), proven.cuts + expansion.cuts + bound.cuts
    return MapResult(found.labels, energy, energy - gap, gap, cost, certified, edges, cuts, expansion.moves)


State = TypeVar("State")


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
