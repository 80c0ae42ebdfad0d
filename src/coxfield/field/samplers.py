"""Samplers of a label field: Gibbs, Swendsen-Wang, perturb and map, and randomised cuts.

`Gibbs` draws each node in turn given all others. In `SwendsenWang` whole clusters of nodes change class, with exact
unary terms. For it classes are put into groups. Among nodes whose classes are in the same group, agreement is rewarded
by a weight w_ij that does not depend on the class:

- One covariance: all classes are one group, and w_ij = C_ij.
- Different covariances: classes are paired at random. By the identity of `edges` a pair {a, b} has the weight
  w_ij = (C^(a)_ij + C^(b)_ij) / 2 and the unary terms u_i(c) - T_i(c) / 2. Here T_i(c) is the sum of C^(c)_ij over the
  nodes j whose class is now in the pair. Nodes of different groups never agree, so all pairs move together. If the
  number of classes is odd, one class does not move.

Nodes of equal class are bound with probability 1 - exp(-w_ij). Each cluster of bound nodes takes class c of its group
with probability proportional to exp(-sum of its unary terms for c). Bonds and classes have a joint distribution whose
marginal over the classes is the label field. Both are drawn from their exact conditional distributions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax

from coxfield.engine.class_sums import whole_rows
from coxfield.field.chains import FieldSampler, State, draw
from coxfield.field.edges import NEIGHBOURS, CouplingRows, Edges, couple, coupling_rows, first_pairs
from coxfield.field.mincut import TwoClasses, min_cut, minimise
from coxfield.field.solve import expand, gains, in_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.edges import Coupling, Pairs
    from coxfield.field.potts import LabelField


BLOCK = 128  # nodes drawn together; with 1,000 nodes, half and double of it are as fast
PROPOSALS = 2**20  # bonds that are proposed at a time; this limits how many chains move together
CROWDED = 1 / 8  # proposed bonds per entry of a block of couplings; with more, each pair is visited instead
FEW = 2000  # nodes and bonds up to which SciPy takes longer to make a graph than we take to search it


@dataclass(frozen=True)
class Gibbs(FieldSampler):
    """Sample a field by drawing each node in turn from its conditional distribution (systematic scan).

    A sweep draws its random numbers first. With Gumbel variables g the class of node i is the c that maximises
    S_i(c) - u_i(c) + g_i(c). The neighbour sums S_i use new labels for nodes before i and old labels for nodes after i.
    These equations are solved for a block of nodes by fixed-point iteration. Their solution is unique, because each
    node depends only on earlier ones. It is the result of the sequential scan, found by a few matrix products.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import Gibbs, LabelField
    >>> X = np.arange(5.0).reshape(-1, 1)
    >>> sampler = Gibbs(LabelField.from_points(X, 9.0 * RBF(2.0), labels=[-1, -1, 1, -1, -1]))
    >>> rng = np.random.default_rng(0)
    >>> sampler.step(rng, sampler.init(rng, n_chains=2)).labels
    array([[1, 1, 1, 1],
           [1, 1, 1, 1]])
    """

    @cached_property
    def _rows(self) -> CouplingRows:
        return coupling_rows(self.field, BLOCK)

    def step(self, rng: np.random.Generator, state: State, coupling: float = 1.0) -> State:
        """Draw every node once, with their couplings multiplied by `coupling`."""
        # Nodes are the first axis, so that neighbour sums of all chains and classes are one matrix product.
        indicators = np.eye(self.field.n_classes)[state.labels.T]
        probabilities = np.empty_like(indicators)
        for rows in self._rows.blocks:
            logits = self._draw_block(rng, indicators, rows, coupling)
            probabilities[rows] = softmax(logits, axis=-1)
        labels = indicators.argmax(axis=-1).T
        return State(np.ascontiguousarray(labels), probabilities.transpose(1, 0, 2))

    def _draw_block(self, rng, indicators: NDArray, rows: slice, coupling: float) -> NDArray:
        """Replace the indicators of a block, and return the logits from which its nodes were drawn."""
        tiles = [self._rows.values(k, rows) for k in range(len(self._rows.users))]
        before = [self._rows.before(tile, rows) for tile in tiles]
        old = indicators[rows].copy()
        noise = rng.gumbel(size=old.shape)
        fixed = coupling * self._sums(tiles, indicators) - self.field.relative_unary[rows, None]
        logits = fixed
        for _ in range(len(old) + 1):  # after k rounds the first k nodes are final
            new = np.eye(self.field.n_classes)[(logits + noise).argmax(axis=-1)]
            if np.array_equal(new, indicators[rows]):
                break
            indicators[rows] = new
            logits = fixed + coupling * self._sums(before, new - old)
        return logits

    def _sums(self, tiles: list, weights: NDArray) -> NDArray:
        """Sum of C^(c)(x_i, x_j) weights_jc over the columns j of the tiles, shape (rows, n_chains, Q)."""
        sums = np.empty((tiles[0].shape[0], *weights.shape[1:]))
        for tile, users in zip(tiles, self._rows.users, strict=True):
            mine = weights[:, :, users]
            sums[:, :, users] = (tile @ mine.reshape(len(mine), -1)).reshape(-1, *mine.shape[1:])
        return sums


@dataclass(frozen=True)
class SwendsenWang(FieldSampler):
    """Sample a field by binding nodes of equal class into clusters and drawing a class for each cluster.

    Not every pair is visited in every chain. A pair is bound if a Poisson variable of mean w_ij is not 0. To draw such
    variables for all pairs, draw a Poisson number of pairs with probabilities proportional to w_ij. A drawn pair is
    bound if its classes agree.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, SwendsenWang
    >>> X = np.arange(5.0).reshape(-1, 1)
    >>> sampler = SwendsenWang(LabelField.from_points(X, 9.0 * RBF(2.0), labels=[-1, -1, 1, -1, -1]))
    >>> rng = np.random.default_rng(0)
    >>> sampler.step(rng, sampler.init(rng, n_chains=2)).labels
    array([[1, 1, 1, 1],
           [1, 1, 1, 1]])
    """

    @cached_property
    def _rows(self) -> CouplingRows:
        return coupling_rows(self.field, whole_rows(len(self.field), len(self.field), 8))

    def step(self, rng: np.random.Generator, state: State, coupling: float = 1.0) -> State:
        """Draw a class for each cluster of bound nodes, with their couplings multiplied by `coupling`."""
        pairs = coupling * self.field.totals.sum() / 2
        size = max(1, int(PROPOSALS / max(pairs, 1)))
        moved = [self._move(rng, part, coupling) for part in _parts(state.labels, size)]
        return State(np.concatenate([m.labels for m in moved]), np.concatenate([m.probabilities for m in moved]))

    def _move(self, rng, labels: NDArray, coupling: float) -> State:
        """The next labels of some chains."""
        groups = self._groups(rng, len(labels))
        mine = np.take_along_axis(groups, labels, axis=1)
        n_clusters, cluster = clusters(self._bonds(rng, labels, groups, coupling), labels.size)
        logits = np.where(groups[:, None] == mine[:, :, None], self._logits(mine, coupling), -np.inf)
        columns = logits.reshape(-1, self.field.n_classes).T
        sums = np.stack([np.bincount(cluster, column, n_clusters) for column in columns], axis=1)
        probabilities = softmax(sums, axis=-1)[cluster]
        return State(draw(rng, sums)[cluster].reshape(labels.shape), probabilities.reshape(logits.shape))

    def _groups(self, rng, n_chains: int) -> NDArray:
        """The group of each class, shape (n_chains, Q). Each chain draws its own, so that chains are independent."""
        if self.field.shared:
            return np.zeros((n_chains, self.field.n_classes), int)
        return rng.permuted(np.tile(np.arange(self.field.n_classes), (n_chains, 1)), axis=1) // 2

    def _logits(self, mine: NDArray, coupling: float) -> NDArray:
        """Minus the balanced unary terms, shape (n_chains, n, Q) or one that broadcasts to it."""
        if self.field.shared:
            return -self.field.relative_unary
        return coupling * self._totals(mine) / 2 - self.field.relative_unary

    def _totals(self, mine: NDArray) -> NDArray:
        """Sum of C^(c)(x_i, x_j) over the nodes j in the group of node i, shape (n_chains, n, Q)."""
        if self.field.n_classes == 2:  # both classes are the only group
            return self.field.totals
        totals = np.empty((*mine.shape, self.field.n_classes))
        present = (mine.T[:, :, None] == np.arange(mine.max(initial=0) + 1)).astype(float)
        for rows in self._rows.blocks:
            for k, users in enumerate(self._rows.users):
                sums = self._rows.values(k, rows) @ present.reshape(len(present), -1)
                by_chain = sums.reshape(-1, *present.shape[1:]).transpose(1, 0, 2)
                own = np.take_along_axis(by_chain, mine[:, rows, None], axis=2)
                totals[:, rows, users] = own
        return totals

    def _bonds(self, rng, labels: NDArray, groups: NDArray, coupling: float) -> NDArray:
        """Bonds of all chains, as pairs of n_chains n nodes."""
        found = [np.zeros((2, 0), int)]
        for k, users in enumerate(self._rows.users):
            # In a pair of classes a covariance counts one half for each class that uses it.
            together = groups[:, :, None] == groups[:, None]
            rates = coupling * together.astype(float) @ users / together.sum(axis=2)
            for rows in self._rows.blocks:
                cumulative, ends = self._cumulative(k, rows), self._rows.ends(k, rows)
                if not cumulative.size:
                    continue
                if coupling * cumulative[-1] < CROWDED * cumulative.size:
                    found.append(_few_bonds(rng, cumulative, ends, labels, rates))
                else:
                    found.append(_many_bonds(rng, self._rows.after(k, rows), ends, labels, rates))
        return np.concatenate(found, axis=1)

    @cached_property
    def _held(self) -> dict[tuple[int, int], NDArray]:
        return {}

    def _cumulative(self, k: int, rows: slice) -> NDArray:
        """Running sums of the couplings C_ij, i < j, of a block of rows."""
        held = self._held.get((k, rows.start))
        if held is None:
            held = self._rows.after(k, rows).cumsum()
            if self._rows.held:
                self._held[k, rows.start] = held
        return held


def _few_bonds(rng, cumulative: NDArray, ends: tuple[NDArray, NDArray], labels: NDArray, rates: NDArray) -> NDArray:
    """Bonds of some rows with all later nodes: a Poisson number of pairs, kept if their classes agree."""
    n_chains, n = labels.shape
    count = rng.poisson(rates.max() * cumulative[-1] * n_chains)
    chain = rng.integers(n_chains, size=count)
    sorted_draws = np.sort(rng.random(count)) * cumulative[-1]  # sorted, so that memory is read in order
    places = np.searchsorted(cumulative, sorted_draws, side="right")
    i, j = _at(ends, np.minimum(places, cumulative.size - 1))
    label = labels[chain, i]
    kept = (label == labels[chain, j]) & (rng.random(count) * rates.max() < rates[chain, label])
    return (chain * n + np.stack([i, j]))[:, kept]


def _many_bonds(rng, values: NDArray, ends: tuple[NDArray, NDArray], labels: NDArray, rates: NDArray) -> NDArray:
    """Bonds of some rows with all later nodes, by one random number per pair."""
    mine, theirs = labels[:, ends[0]], labels[:, ends[1]]
    rate = np.take_along_axis(rates, labels, axis=1)[:, ends[0]]
    bound = rng.random((len(labels), *values.shape)) < -np.expm1(-rate * values)
    bound &= mine == theirs
    chain, place = np.nonzero(bound.reshape(len(labels), -1))
    return chain * labels.shape[1] + np.stack(_at(ends, place))


def _at(ends: tuple[NDArray, NDArray], places: NDArray) -> tuple[NDArray, ...]:
    """Both ends of the pairs at some places of a block, read row by row."""
    pairs = np.broadcast_arrays(*ends)
    cells = np.unravel_index(places, pairs[0].shape)
    return tuple(end[cells] for end in pairs)


def _parts(labels: NDArray, size: int) -> list[NDArray]:
    """The chains, `size` at a time."""
    return [labels[start : start + size] for start in range(0, len(labels), size)]


def clusters(bonds: NDArray, n: int) -> tuple[int, NDArray]:
    """How many clusters n nodes make, and the cluster of each node; `bonds` are pairs, shape (2, n_bonds).

    Clusters are numbered by their first node.

    Examples
    --------
    >>> clusters(np.array([[0, 3], [2, 1]]), 5)
    (3, array([0, 1, 0, 1, 2]))
    """
    if n + bonds.shape[1] > FEW:
        graph = sparse.coo_array((np.ones(bonds.shape[1], bool), tuple(bonds)), shape=(n, n))
        return connected_components(graph, directed=False)
    firsts = _first_nodes(bonds, n)
    names, cluster = np.unique(firsts, return_inverse=True)
    return len(names), cluster


def _first_nodes(bonds: NDArray, n: int) -> NDArray:
    """The first node of the cluster of each node: bound nodes take the lower name, and names take their own names."""
    first, (i, j) = np.arange(n), bonds
    while True:
        low = np.minimum(first[i], first[j])
        if (first[i] == low).all() and (first[j] == low).all():
            return first
        # The nodes that give the names hear of it too, so that clusters join at once, however long they are.
        np.minimum.at(first, first[i], low)
        np.minimum.at(first, first[j], low)
        while (first != first[first]).any():
            first = first[first]


# Draws by randomised MAP: labellings of least energy of a field with random terms.
#
# `PerturbAndMap` perturbs the unary terms (Hazan, Maji and Jaakkola, 2013). If each of the Q^n labellings had its own
# Gumbel variable, the best labelling would be an exact draw from the field. That is too expensive. One Gumbel variable
# per node and class is exact if the nodes are independent, and otherwise an approximation. `coxfield reproduce
# table-samplers` shows how good it is.
#
# `RandomisedCut` cuts a graph with noisy weights (Blum, Lafferty, Rwebangira and Reddy, 2004). The nodes of the graph
# are the unlabelled points. Edges join nearest neighbours, with the couplings of the field as weights. With all
# couplings, most cuts would give nearly everything to one class. Labelled points act through the unary terms. In each
# draw every weight, and what every node pays for each class beyond its cheapest one, is multiplied by 1 - s + s e,
# where s is the `noise` and e is drawn from the standard exponential distribution. The labelling of least energy is
# kept if its smallest class is large enough. The result of the method is the share of draws in which a node has each
# class. The draws do not follow the distribution of the field.


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
