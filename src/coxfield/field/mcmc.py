"""Markov chains on the labellings of a field: Gibbs sampling, and Swendsen-Wang sampling.

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

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax

from coxfield.engine.class_sums import whole_rows
from coxfield.field.chains import FieldSampler, State, draw
from coxfield.field.edges import CouplingRows, coupling_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
        """Draw every node once.

        Parameters
        ----------
        rng : numpy Generator
        state : State
        coupling : float, default=1.0
            Factor of the couplings between the nodes; the unary terms do not change.
        """
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
        """Bind nodes into clusters and draw a class for each cluster.

        Parameters
        ----------
        rng : numpy Generator
        state : State
        coupling : float, default=1.0
            Factor of the couplings between the nodes; the unary terms do not change.
        """
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
