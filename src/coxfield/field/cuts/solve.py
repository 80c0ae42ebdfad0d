"""`map_labels`: the most probable labelling of a field, and the proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from coxfield.field.couplings import couple
from coxfield.field.cuts.bounds import lagrangian_bound
from coxfield.field.cuts.expansion import expand
from coxfield.field.cuts.mincut import TwoClasses, minimise
from coxfield.field.cuts.persistency import persistent_labels
from coxfield.field.neighbours import nearest_pairs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from coxfield.field.cuts.mincut import Round
    from coxfield.field.potts import LabelField


@dataclass(frozen=True)
class MapResult:
    """A labelling of least energy, as far as it is proven."""

    labels: NDArray
    """Class of each node, shape (n,). Kernel values that underflow count as 0: a node for which all do, with equal
    means, is a tie, and any class is optimal there."""
    energy: float
    """E(labels)."""
    lower_bound: float
    """No labelling has less energy than this."""
    gap: float
    """energy - lower_bound, computed without cancellation."""
    cost: float
    """What the labels pay beyond each node's cheapest class, plus for disagreement: the scale to judge the gap by."""
    certified: NDArray
    """Whether each label is proven, shape (n,): the certified labels, together, belong to a labelling whose energy is
    within the tolerance of the minimum. Where several labellings are that good, one of them is meant."""
    edges: int
    """The most couplings that one cut held."""
    cuts: int
    """Minimum cuts solved."""
    rounds: int
    """Rounds of adding edges (two classes), or moves that lowered the energy (more)."""

    def rescaled(self, factor: float, constant: float = 0.0) -> MapResult:
        """The same labels when all of the energy but a constant is multiplied: another temperature."""
        energy, bound = (constant + factor * (value - constant) for value in (self.energy, self.lower_bound))
        return replace(self, energy=energy, lower_bound=bound, gap=factor * self.gap, cost=factor * self.cost)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the cost; constants of the energy, however large, do not make it look small."""
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

    Two classes: exactly, by minimum cuts of sparse graphs, however many couplings there are. More: labels that can be
    proven are fixed, alpha-expansion labels the rest, and a Lagrangian bound says how far the energy may be from the
    minimum.

    Parameters
    ----------
    field : LabelField
    tolerance : float, default=1e-9
        A gap that counts as none, as a share of the result's `cost`.
    max_rounds : int, default=100
        Give up on a two-class problem after so many cuts.
    n_jobs : int, optional
        Threads; None for as many as a matrix product would take.
    progress : callable, optional
        Told of each `Round`.
    init : integer array of shape (n,), optional
        A labelling to start from; by default the better constant one for two classes, the supervised one for more.

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
    init = None if init is None else _check_init(init, field)
    if len(field) == 0 or field.n_classes == 1:
        labels = np.zeros(len(field), int)
        energy = field.energy(labels, n_jobs)
        return MapResult(labels, energy, energy, 0.0, 0.0, np.ones(len(field), bool), 0, 0, 0)
    solver = {"tolerance": tolerance, "max_rounds": max_rounds, "n_jobs": n_jobs, "progress": progress}
    return _two_classes(field, init, solver) if field.n_classes == 2 else _more_classes(field, init, solver)


def _check_init(init, field: LabelField) -> NDArray:
    init = np.asarray(init)
    if init.shape != (len(field),) or init.min(initial=0) < 0 or init.max(initial=0) >= field.n_classes:
        raise ValueError(f"init must hold a class below {field.n_classes} for each of the {len(field)} nodes")
    return init


def _two_classes(field: LabelField, init, solver) -> MapResult:
    coupling = couple(field.X, field.covariances[1], field.covariances[:1])
    unary = field.balanced_unary
    pull = unary[:, 0] - unary[:, 1]
    edges = coupling.edges(nearest_pairs(field.X, field.covariances[0], n_jobs=solver["n_jobs"]))
    found = minimise(TwoClasses(pull, coupling), edges, init=None if init is None else init == 1, **solver)
    labels = found.x.astype(int)
    energy = field.energy(labels, solver["n_jobs"])
    certified = np.full(len(field), found.gap <= solver["tolerance"] * found.cost)
    return MapResult(
        labels,
        energy,
        energy - found.gap,
        found.gap,
        found.cost,
        certified,
        len(found.edges),
        found.rounds,
        found.rounds,
    )


def _more_classes(field: LabelField, init, solver) -> MapResult:
    n_jobs, tolerance = solver["n_jobs"], solver["tolerance"]
    pairs = nearest_pairs(field.X, field.covariances[0], n_jobs=n_jobs)
    proven = persistent_labels(field, pairs, **solver)
    free = np.flatnonzero(proven.labels < 0)
    rest = field.condition(proven.labels, n_jobs)
    start = rest.relative_unary.argmin(axis=1) if init is None else init[free]
    found = expand(rest, start, pairs.among(free), **solver)
    labels = proven.labels.copy()
    labels[free] = found.labels
    sums = field.neighbour_sums(labels, n_jobs)
    cost = field.cost_given(labels, sums)
    bound = lagrangian_bound(rest, found.labels, found.sums, pairs.among(free), tolerance * cost, n_jobs)
    gap = bound.gap + proven.slack
    energy = field.energy_given(labels, sums)
    certified = (proven.labels >= 0) | (gap <= tolerance * cost)
    edges, cuts = max(proven.edges, found.edges, bound.edges), proven.cuts + found.cuts + bound.cuts
    return MapResult(labels, energy, energy - gap, gap, cost, certified, edges, cuts, found.moves)
