"""`LabelField`: the Potts model that a log Gaussian Cox process gives to the labels of unlabelled points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax
from sklearn.utils.validation import check_array

from coxfield import threads
from coxfield.engine.class_sums import sums_at
from coxfield.engine.decision import prior_terms
from coxfield.engine.store import store_bound
from coxfield.field.arguments import (
    check_couplings,
    check_labels,
    check_length,
    check_table,
    field_covariances,
    number_of_classes,
    unary_costs,
)
from coxfield.kernels.called import all_held, hold
from coxfield.kernels.graph import Graph
from coxfield.kernels.per_class import PerClass, class_values, rows_named
from coxfield.kernels.protocol import bind_precisely, values

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from coxfield.kernels.protocol import Covariance, KernelPoints

ENUMERABLE = 2**22  # labellings that may be held at once: 12 nodes of three classes have half a million


@dataclass(frozen=True)
class LabelField:
    r"""The distribution of the unknown labels given the known ones. Build it with `from_points` or `from_graph`.

    The weight of a labelling y of the unlabelled points is exp(-E(y)) with

    .. math:: E(y) = \sum_i u_i(y_i) - \sum_{i<j} [y_i = y_j] \, C^{(y_i)}(x_i, x_j)

    (eqs explicitMRF and smoothingEnergy). Labelled points act through the unary terms,

    .. math:: u_i(c) = -\mu_c - C^{(c)}(x_i, x_i)/2 - \sum_{x \text{ labelled } c} C^{(c)}(x_i, x).

    Couplings are computed from the points, block by block. Nothing of size n x n is held. Couplings of float32 points
    are computed in float32 and summed in double precision.

    Examples
    --------
    One point between two labelled points, nearer to the second:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField, map_labels
    >>> X = np.array([[0.0], [1.0], [0.7]])
    >>> field = LabelField.from_points(X, RBF(0.5), labels=[0, 1, -1])
    >>> field.conditionals([0]).round(3)
    array([[0.387, 0.613]])
    >>> map_labels(field).labels
    array([1])
    """

    X: NDArray | sparse.csr_array
    """The n unlabelled points."""
    covariances: PerClass[Covariance]
    points: tuple[KernelPoints, ...]
    """The points, bound to each of the different covariances."""
    relative_unary: NDArray
    """u_i(c) - `common_unary`, shape (n, Q). Beside C(0)/2 a coupling of 1e-14 would lose digits, but it may decide."""
    common_unary: NDArray
    """The part of u_i(c) that all classes share, shape (n,)."""
    nodes: NDArray
    """Row of each unlabelled point among the points the field was built from."""

    @classmethod
    def from_points(cls, X, kernel, labels, *, mean=0.0, n_classes: int | None = None, n_jobs=None) -> LabelField:
        """Build the field of all points whose label is -1, given the others.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_points, n_features)
            float32 is computed in float32, all other types in float64.
        kernel : kernel of sklearn.gaussian_process.kernels, or a sequence or mapping of them, one per class
            Kernels that may take negative values are refused (Theorem 2).
        labels : array-like of shape (n_points,)
            Class numbers 0, ..., Q - 1, and -1 for unknown labels.
        mean : float, or a sequence or mapping of floats, one per class
        n_classes : int, optional
            Q. By default one more than the largest label, at least two, and at least the number of kernels or means.
        n_jobs : int, optional
            Threads; see `coxfield.threads.use`.
        """
        with np.errstate(invalid="ignore", over="ignore"):  # scikit-learn adds all numbers up to see if one is infinite
            X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=0)
        labels = check_labels(labels, X, n_classes)
        n_classes = number_of_classes(labels, n_classes, kernel, mean)
        covariances = field_covariances(kernel, n_classes, X.shape[1])
        means = class_values(mean, np.arange(n_classes), "mean", default=0.0)
        with threads.use(n_jobs), rows_named({"points": X}):
            points = tuple(bind_precisely(covariance, X) for covariance in covariances.distinct)
            return cls.of_bound(X, covariances, points, labels, means)

    @classmethod
    def from_graph(cls, couplings, labels, *, unary=None, mean=0.0, n_classes: int | None = None) -> LabelField:
        """Build the field of all nodes of a graph whose label is -1, given the others.

        The couplings take the place of C(x_i, x_j), and all classes share them (Potts model). Only listed couplings are
        visited. So a minimum cut of two classes is exact in one step, also for millions of nodes.

        Parameters
        ----------
        couplings : {sparse matrix, array-like} of shape (n_nodes, n_nodes)
            Symmetric, finite and not negative. An entry of 0 is the same as no entry. The diagonal is ignored: C(x, x)
            would be the same constant for all classes.
        labels : array-like of shape (n_nodes,)
            Class numbers 0, ..., Q - 1, and -1 for unknown labels. All may be unknown.
        unary : array-like of shape (n_nodes, Q), optional
            Cost of each class at each node, such as a negative log likelihood. Rows of labelled nodes are ignored.
        mean : float, or a sequence or mapping of floats, one per class
        n_classes : int, optional
            Q. By default one more than the largest label, at least two, and at least the number of columns of `unary`
            or of means.

        Examples
        --------
        A row of six pixels. The third one has an outlier, and the last one is labelled:

        >>> import numpy as np
        >>> from sklearn.feature_extraction.image import grid_to_graph
        >>> from coxfield.field import LabelField, map_labels
        >>> pixels = np.array([0.1, 0.2, 0.8, 0.0, 0.9, np.nan])
        >>> costs = np.stack([pixels**2, (pixels - 1) ** 2], axis=1)
        >>> field = LabelField.from_graph(0.5 * grid_to_graph(1, 6), [-1, -1, -1, -1, -1, 1], unary=costs)
        >>> map_labels(field).labels
        array([0, 0, 0, 0, 1])
        """
        graph = Graph(check_couplings(couplings))
        n = graph.matrix.shape[0]
        rows = np.arange(n)[:, None]
        check_length(labels, n)
        labels = check_labels(labels, rows, n_classes)
        table = check_table(unary, n)
        n_classes = number_of_classes(labels, n_classes, mean, table.T)
        costs = unary_costs(table, labels, n_classes)
        means = class_values(mean, np.arange(n_classes), "mean", default=0.0)
        field = cls.of_bound(rows, PerClass.shared_by(graph, n_classes), (graph.bind(rows),), labels, means)
        least = costs.min(axis=1)
        relative = field.relative_unary + (costs - least[:, None])
        return replace(field, relative_unary=relative, common_unary=field.common_unary + least)

    @classmethod
    def of_bound(
        cls, X, covariances: PerClass[Covariance], points: tuple[KernelPoints, ...], labels, means
    ) -> LabelField:
        """`from_points` for points that are already bound, without checks."""
        known, nodes = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
        free = tuple(bound[nodes] for bound in points)
        prior = np.broadcast_to(prior_terms(covariances, X[nodes], means), (len(nodes), len(covariances)))
        common = prior.max(axis=1)
        fixed = tuple(bound[known] for bound in points)
        unary = common[:, None] - prior - _sums(fixed, labels[known], covariances, free)
        return cls(X[nodes], covariances, free, unary, -common, nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def n_classes(self) -> int:
        """Q, the number of classes."""
        return len(self.covariances)

    @property
    def unary(self) -> NDArray:
        """u_i(c), shape (n, Q)."""
        return self.relative_unary + self.common_unary[:, None]

    @property
    def shared(self) -> bool:
        """Whether all classes share one covariance, so that the field is a Potts model (eq. simpleMRF)."""
        return self.covariances.shared

    @cached_property
    def totals(self) -> NDArray:
        """Sum of C^(c)(x_i, x_j) over all other nodes j, for each node and class, shape (n, Q)."""
        everyone = np.arange(len(self))
        sums = np.empty((len(self), len(self.points)))
        for k, points in enumerate(self.points):
            alone = PerClass.shared_by(self.covariances.distinct[k], 1)
            sums[:, [k]] = _sums((points,), np.zeros(len(self), int), alone, (points,), everyone)
        return sums[:, self.covariances.owner]

    @property
    def balanced_unary(self) -> NDArray:
        """Unary terms if a pair pays (C^(c) + C^(d)) / 2 for disagreeing and nothing for agreeing, shape (n, Q).

        They are known up to a constant per node. The pair term -C^(c) [y_i = y_j = c] equals
        (C^(c)/2) ([one is c, the other is not] - [y_i = c] - [y_j = c]), and its last two terms are unary.
        """
        if self.shared:
            return self.relative_unary
        return self.relative_unary + (self.totals[:, :1] - self.totals) / 2

    def neighbour_sums(self, labels) -> NDArray:
        """Sum of C^(c)(x_i, x_j) over the other nodes j with label c, for each node i and class c, shape (n, Q)."""
        return _sums(self.points, np.asarray(labels), self.covariances, self.points, np.arange(len(self)))

    def energy(self, labels) -> float:
        """E(y), by one pass over all pairs."""
        labels = np.asarray(labels)
        return self.energy_given(labels, self.neighbour_sums(labels))

    def energy_given(self, labels: NDArray, sums: NDArray) -> float:
        """E(y) from the neighbour sums of y."""
        own = np.arange(len(self)), labels
        return float(self.common_unary.sum() + self.relative_unary[own].sum() - sums[own].sum() / 2)

    def elsewhere(self, labels: NDArray, sums: NDArray) -> NDArray:
        """Sum of C^(y_i)(x_i, x_j) over the nodes j whose label is not y_i, from the neighbour sums of y."""
        if self.shared:  # sums of positive terms: no digits are lost
            return sums.sum(axis=1, where=np.arange(self.n_classes) != labels[:, None])
        own = np.arange(len(self)), labels
        return np.maximum(self.totals[own] - sums[own], 0)

    def cost_given(self, labels: NDArray, sums: NDArray) -> float:
        """E(y) minus a constant that is at most its minimum, computed without cancellation.

        It is the sum of what y pays for disagreement and, at each node, beyond the cheapest balanced unary term.
        """
        unary = self.balanced_unary
        paid = unary[np.arange(len(self)), labels] - unary.min(axis=1)
        return float(paid.sum() + self.elsewhere(labels, sums).sum() / 2)

    def log_weight(self, labels) -> float:
        """Logarithm of the unnormalised probability of a labelling: -E(y)."""
        return -self.energy(labels)

    def conditionals(self, labels) -> NDArray:
        """Probability of each class at each node given the labels of all others, shape (n, Q).

        It is eq. predictiveDistribution with all the other points as data.
        """
        return np.exp(log_softmax(self.neighbour_sums(labels) - self.relative_unary, axis=1))

    def enumerate(self) -> tuple[NDArray, NDArray]:
        """All Q^n labellings, shape (Q^n, n), and their energies; for small fields."""
        n, Q = len(self), self.n_classes
        if Q**n > ENUMERABLE:
            raise ValueError(f"{Q} classes on {n} nodes make {Q**n} labellings, too many to list")
        labels = np.indices((Q,) * n).reshape(n, -1).T if n else np.zeros((1, 0), int)
        energies = self.unary[np.arange(n), labels].sum(axis=1)
        matrices = [values(points, points) for points in self.points]
        for i in range(n):
            for j in range(i):
                pair = np.array([matrices[k][i, j] for k in self.covariances.owner])
                energies -= np.where(labels[:, i] == labels[:, j], pair[labels[:, i]], 0)
        return labels, energies

    def condition(self, known: NDArray) -> LabelField:
        """The field of the other nodes after some get labels; `known` holds these labels, -1 for the other nodes."""
        fixed, free = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
        rest = self.among(free)
        points = tuple(bound[fixed] for bound in self.points)
        sums = _sums(points, known[fixed], self.covariances, rest.points)
        return replace(rest, relative_unary=rest.relative_unary - sums)

    def among(self, nodes: NDArray) -> LabelField:
        """The field of some nodes, as if the others were not there."""
        return replace(
            self,
            X=self.X[nodes],
            points=tuple(bound[nodes] for bound in self.points),
            relative_unary=self.relative_unary[nodes],
            common_unary=self.common_unary[nodes],
            nodes=self.nodes[nodes],
        )

    @property
    def is_held(self) -> bool:
        """Whether all couplings are held."""
        return all_held(self.points)

    def held(self) -> LabelField:
        """The same field with all couplings held if it has few enough nodes; see `hold`."""
        return replace(self, points=tuple(map(hold, self.points)))


def _sums(columns, y: NDArray, covariances: PerClass[Covariance], rows, leave_out: NDArray | None = None) -> NDArray:
    """Class sums over labelled points, shape (n, Q). Classes may have no points."""
    return sums_at(store_bound(columns, y, covariances), rows, len(rows[0]), leave_out).values
