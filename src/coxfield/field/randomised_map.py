r"""Draws by randomised MAP: labellings of least energy of a field with random terms.

`PerturbAndMap` perturbs the unary terms (Hazan, Maji and Jaakkola, 2013). If each of the Q^n labellings had its own
Gumbel variable, the best labelling would be an exact draw from the field. That is too expensive. One Gumbel variable
per node and class is exact if the nodes are independent, and otherwise an approximation. `coxfield reproduce
table-samplers` shows how good it is.

`RandomisedCut` cuts a graph with noisy weights (Blum, Lafferty, Rwebangira and Reddy, 2004). The nodes of the graph are
the unlabelled points. Edges join nearest neighbours, with the couplings of the field as weights. With all couplings,
most cuts would give nearly everything to one class. Labelled points act through the unary terms. In each draw every
weight, and what every node pays for each class beyond its cheapest one, is multiplied by

.. math:: 1 - s + s e, \qquad e \sim \mathrm{Exponential}(1),

independently, where s is the `noise`. The labelling of least energy is kept if its smallest class is large enough. The
result of the method is the share of draws in which a node has each class. The draws do not follow the distribution of
the field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from coxfield.field.chains import FieldSampler, State
from coxfield.field.edges import NEIGHBOURS, Edges, couple, first_pairs
from coxfield.field.mincut import TwoClasses, min_cut, minimise
from coxfield.field.solve import expand, gains, in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.edges import Coupling, Pairs
    from coxfield.field.potts import LabelField


TOLERANCE, ROUNDS = 1e-9, 100  # gap of each minimum and number of its cuts, as `map_labels` has by default
ATTEMPTS = 20  # to draw a balanced labelling; then the most balanced of them is taken


@dataclass(frozen=True)
class PerturbAndMap(FieldSampler):
    """Draw labellings of least energy after subtracting new Gumbel variables g_i(c) from the unary terms u_i(c).

    Draws are independent of each other. For two classes each is the exact minimum. For more classes no expansion of a
    class improves it. The distribution of the draws differs slightly from that of the field.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, PerturbAndMap
    >>> X = np.arange(5.0).reshape(-1, 1)
    >>> sampler = PerturbAndMap(LabelField.from_points(X, 9.0 * RBF(2.0), labels=[-1, -1, 1, -1, -1]))
    >>> rng = np.random.default_rng(0)
    >>> sampler.step(rng, sampler.init(rng, n_chains=2)).labels
    array([[1, 1, 1, 1],
           [1, 1, 1, 1]])
    """

    @cached_property
    def _field(self) -> LabelField:
        """The field with its couplings held if possible, because every draw needs them."""
        return self.field.held()

    @cached_property
    def _pairs(self) -> Pairs:
        return first_pairs(self.field.points)

    @cached_property
    def _coupling(self) -> Coupling:
        """The coupling for two classes. Perturbations do not change it."""
        return couple(self._field, 1, [0])

    @cached_property
    def _edges(self) -> Edges:
        return self._coupling.edges(self._pairs)

    def step(self, rng: np.random.Generator, state: State) -> State:
        """A new labelling for each chain. The last labelling is only the start of the minimisation."""
        noise = rng.gumbel(size=(*state.labels.shape, self.field.n_classes))
        found = [self._minimum(one, labels) for one, labels in zip(noise, state.labels, strict=True)]
        return State(np.array(found, int).reshape(state.labels.shape))

    def _minimum(self, noise: NDArray, labels: NDArray) -> NDArray:
        if len(self.field) == 0 or self.field.n_classes == 1:
            return np.zeros_like(labels)
        if self.field.n_classes == 2:
            unary = self._field.balanced_unary - noise
            problem = TwoClasses(unary[:, 0] - unary[:, 1], self._coupling)
            found = minimise(problem, self._edges, tolerance=TOLERANCE, max_rounds=ROUNDS, init=labels == 1)
            return found.x.astype(int)
        perturbed = replace(self._field, relative_unary=self.field.relative_unary - noise)
        return expand(perturbed, labels, self._pairs, tolerance=TOLERANCE, max_rounds=ROUNDS).labels


@dataclass(frozen=True)
class RandomisedCut(FieldSampler):
    """Draw labellings as minimum cuts of a nearest-neighbour graph with noisy weights, and discard unbalanced ones.

    For two classes the cut is the exact minimum on the graph. For more classes, the weight of an edge is the mean of
    the covariances of the classes, and classes expand in turn until no expansion helps.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, RandomisedCut
    >>> X = np.arange(7.0).reshape(-1, 1)
    >>> sampler = RandomisedCut(LabelField.from_points(X, RBF(0.5), labels=[0, -1, -1, -1, -1, -1, 1]))
    >>> rng = np.random.default_rng(0)
    >>> labels = sampler.step(rng, sampler.init(rng, n_chains=2)).labels
    >>> labels[:, 0], labels[:, -1]
    (array([0, 0]), array([1, 1]))
    """

    noise: float = 1.0
    """Between 0 and 1; at 0 all draws are the same."""
    balance: float = 0.05
    """Least share of the nodes that each class must have."""
    neighbours: int = NEIGHBOURS

    def __post_init__(self) -> None:
        if not 0 <= self.noise <= 1:
            raise ValueError(f"noise must lie between 0 and 1, got {self.noise}")
        if not 0 <= self.balance <= 1 / self.field.n_classes:
            most = f"1/{self.field.n_classes}"
            raise ValueError(f"balance must lie between 0 and {most}, the share of equal classes, got {self.balance}")

    @cached_property
    def _graph(self) -> tuple[NDArray, Edges]:
        """Balanced unary terms minus the cheapest of each node, and the edges."""
        pairs = first_pairs(self.field.points, self.neighbours)
        edges = [couple(self.field, c, [c]).edges(pairs) for c in range(self.field.n_classes)]
        sums = np.stack([one.node_sums(len(self.field)) for one in edges], axis=1)
        unary = self.field.relative_unary - sums / 2  # the identity of `LabelField.balanced_unary`, for the edges only
        mean = np.mean([one.weight for one in edges], axis=0)
        return unary - unary.min(axis=1, keepdims=True), Edges(edges[0].i, edges[0].j, mean)

    def step(self, rng: np.random.Generator, state: State) -> State:
        """A new labelling for each chain. The last labelling is only the start of the minimisation."""
        if len(self.field) == 0 or self.field.n_classes == 1:
            return State(np.zeros_like(state.labels))
        return State(np.array([self._balanced(rng, labels) for labels in state.labels]))

    def _balanced(self, rng, labels: NDArray) -> NDArray:
        """The first minimum that is balanced; after too many attempts, the most balanced of them."""
        best, largest = labels, -1
        for _ in range(ATTEMPTS):
            found = self._minimum(rng, labels)
            smallest = int(np.bincount(found, minlength=self.field.n_classes).min())
            if smallest > largest:
                best, largest = found, smallest
            if smallest >= self.balance * len(found):
                break
        return best

    def _minimum(self, rng, labels: NDArray) -> NDArray:
        unary, edges = self._graph
        unary = unary * self._factors(rng, unary.shape)
        edges = Edges(edges.i, edges.j, edges.weight * self._factors(rng, len(edges)))
        if self.field.n_classes == 2:
            return min_cut(unary[:, 0], unary[:, 1], edges.i, edges.j, edges.weight).side.astype(int)
        return _expand(unary, edges, labels)

    def _factors(self, rng, size) -> NDArray:
        return 1 - self.noise + self.noise * rng.exponential(size=size)


def _cost(unary: NDArray, edges: Edges, labels: NDArray) -> float:
    """The cost of a labelling: its unary terms, and the weights between different classes."""
    return float(unary[np.arange(len(labels)), labels].sum()) + edges.cut_weight(labels)


def _expand(unary: NDArray, edges: Edges, labels: NDArray) -> NDArray:
    """Move nodes to one class after the other until no move lowers the cost."""

    def move(labels: NDArray, alpha: int) -> tuple[NDArray, bool]:
        moved = _move(unary, edges, labels, alpha)
        better = gains(_cost(unary, edges, labels), _cost(unary, edges, moved))
        return (moved if better else labels), better

    return in_turn(labels, unary.shape[1], move)


def _move(unary: NDArray, edges: Edges, labels: NDArray, alpha: int) -> NDArray:
    """The best labelling in which each node keeps its class or takes alpha.

    Let x_i = 1 if node i takes alpha. Two neighbours of the same class pay w |x_i - x_j|. Two neighbours of different
    classes pay w (1 - x_i x_j) = w (1 - (x_i + x_j) / 2 + |x_i - x_j| / 2). A node of class alpha always has x_i = 1.
    """
    i, j, weight = edges.i, edges.j, edges.weight
    apart = labels[i] != labels[j]
    half = np.where(apart, weight / 2, weight)
    gain = Edges(i[apart], j[apart], weight[apart] / 2).node_sums(len(labels))
    stay = unary[np.arange(len(labels)), labels] + gain
    forced = 2 * (stay.sum() + weight.sum()) + 1
    stay = np.where(labels == alpha, forced, stay)
    return np.where(min_cut(stay, unary[:, alpha], i, j, half).side, alpha, labels)
