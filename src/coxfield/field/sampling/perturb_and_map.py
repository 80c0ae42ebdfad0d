"""Perturb-and-MAP: labellings of least energy with perturbed unary terms (Hazan, Maji and Jaakkola, 2013).

If each of the Q^n labellings had its own Gumbel variable, the best labelling would be an exact draw from the field.
That is too expensive. One Gumbel variable per node and class is exact if the nodes are independent, and otherwise an
approximation. `coxfield reproduce table-samplers` shows how good it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from coxfield.field.couplings import couple
from coxfield.field.cuts.expansion import expand
from coxfield.field.cuts.mincut import TwoClasses, minimise
from coxfield.field.graph import first_pairs
from coxfield.field.sampling.chains import State, initial_state

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field.couplings import Coupling
    from coxfield.field.graph import Edges, Pairs
    from coxfield.field.potts import LabelField

TOLERANCE, ROUNDS = 1e-9, 100  # gap of each minimum and number of its cuts, as `map_labels` has by default


@dataclass(frozen=True)
class PerturbAndMap:
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

    field: LabelField

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

    def init(self, rng: np.random.Generator, n_chains: int = 1, labels=None) -> State:
        """Labels from which the first minimisation starts; see `initial_state`."""
        return initial_state(self.field, rng, n_chains, labels)

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
