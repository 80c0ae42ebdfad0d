"""Gibbs sampling of the label field: each node in turn is drawn given all others, in several chains at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from coxfield.field.rows import CouplingRows, coupling_rows
from coxfield.field.sampling.chains import State, initial_state

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.potts import LabelField

BLOCK = 128  # nodes drawn together; with 1,000 nodes, half and double of it are as fast


@dataclass(frozen=True)
class Gibbs:
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

    field: LabelField

    @cached_property
    def _rows(self) -> CouplingRows:
        return coupling_rows(self.field, BLOCK)

    def init(self, rng: np.random.Generator, n_chains: int = 1, labels=None) -> State:
        """Start from given labels, or from draws by the unary terms alone; see `initial_state`."""
        return initial_state(self.field, rng, n_chains, labels)

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
