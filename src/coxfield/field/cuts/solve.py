"""`map_labels`: the most probable labelling of a field, and a proof of how good it is."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coxfield import threads
from coxfield.field.couplings import couple
from coxfield.field.cuts.bounds import lagrangian_bound
from coxfield.field.cuts.expansion import expand
from coxfield.field.cuts.mincut import TwoClasses, minimise
from coxfield.field.cuts.persistency import persistent_labels
from coxfield.field.graph import first_pairs
from coxfield.progress import progress as watched
from coxfield.utils.numbers import number_from_zero, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.field.cuts.expansion import Expansion
    from coxfield.field.cuts.mincut import Round, Solution
    from coxfield.field.cuts.persistency import Persistency
    from coxfield.field.graph import Pairs
    from coxfield.field.potts import LabelField


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
        with threads.alone() if field.is_held else nullcontext():
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
