"""`LabelField`: the Potts model that a log Gaussian Cox process gives to the labels of unlabelled points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax
from sklearn.utils.validation import check_array

from coxfield.engine.class_sums import arrange, class_sums
from coxfield.field.arguments import check_labels, class_covariances, class_means, prior_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from coxfield.kernels.covariance import Covariance

ENUMERABLE = 2**22  # labellings worth holding at once: 12 nodes of three classes are half a million


@dataclass(frozen=True)
class LabelField:
    r"""The distribution of the unknown labels given the known ones, as data; build it with `from_points`.

    The weight of a labelling y of the unlabelled points is exp(-E(y)) with

    .. math:: E(y) = \sum_i u_i(y_i) - \sum_{i<j} [y_i = y_j] \, C^{(y_i)}(x_i, x_j)

    (eqs explicitMRF and smoothingEnergy), where labelled points are absorbed in the unary terms,

    .. math:: u_i(c) = -\mu_c - C^{(c)}(x_i, x_i)/2 - \sum_{x \text{ labelled } c} C^{(c)}(x_i, x).

    Couplings are evaluated from the points, block by block; nothing of size n x n is held. Points of float32 have
    couplings of float32 arithmetic, summed in double precision.

    Examples
    --------
    Two labelled points and one between them, nearer to the second:

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
    covariances: tuple[Covariance, ...]
    """One a class; classes that share a covariance hold the same object."""
    relative_unary: NDArray
    """u_i(c) less `common_unary`, shape (n, Q): a coupling of 1e-14 would be lost beside C(0)/2, and may decide."""
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
            float32 is computed in float32, anything else in float64.
        kernel : kernel of sklearn.gaussian_process.kernels, or a sequence or mapping of them, one a class
            Kernels that may take negative values are refused (Theorem 2).
        labels : array-like of shape (n_points,)
            Class numbers 0, ..., Q - 1, and -1 for the unknown.
        mean : float, or a sequence of floats, one a class
        n_classes : int, optional
            Q; by default one more than the largest label, at least two and as many as there are kernels or means.
        n_jobs : int, optional
            Threads; None for as many as a matrix product would take.
        """
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=0)
        labels = check_labels(labels, X, n_classes)
        given = [len(v) for v in (kernel, mean) if isinstance(v, (list, tuple, Mapping, np.ndarray))]
        n_classes = n_classes or max([2, int(labels.max(initial=-1)) + 1, *given])
        covariances = class_covariances(kernel, n_classes, X.shape[1])
        known, nodes = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
        prior = prior_terms(X[nodes], covariances, class_means(mean, n_classes))
        common = prior.max(axis=1)
        unary = common[:, None] - prior
        unary -= _sums(X[known], labels[known], covariances, X[nodes], n_jobs=n_jobs)
        return cls(X[nodes], covariances, unary, -common, nodes)

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
        return all(covariance is self.covariances[0] for covariance in self.covariances)

    @cached_property
    def totals(self) -> NDArray:
        """Sum of C^(c)(x_i, x_j) over all other nodes j, for each node and class, shape (n, Q)."""
        totals = np.empty((len(self), self.n_classes))
        for covariance in {id(c): c for c in self.covariances}.values():
            users = [c for c, other in enumerate(self.covariances) if other is covariance]
            everyone = np.arange(len(self))
            totals[:, users] = _sums(self.X, np.zeros(len(self), int), (covariance,), self.X, everyone)
        return totals

    @property
    def balanced_unary(self) -> NDArray:
        """Unary terms when a pair pays (C^(c) + C^(d)) / 2 for disagreeing and nothing for agreeing, shape (n, Q).

        Up to a constant a node; -C^(c) [y_i = y_j = c] is (C^(c)/2) ([one is c, the other is not] - [y_i = c] - [y_j =
        c]), and the last two are unary.
        """
        if self.shared:
            return self.relative_unary
        return self.relative_unary + (self.totals[:, :1] - self.totals) / 2

    def neighbour_sums(self, labels, n_jobs=None) -> NDArray:
        """Sum of C^(c)(x_i, x_j) over the other nodes j that `labels` gives to class c, shape (n, Q)."""
        return _sums(self.X, np.asarray(labels), self.covariances, self.X, np.arange(len(self)), n_jobs)

    def energy(self, labels, n_jobs=None) -> float:
        """E(y), by one pass over all pairs."""
        labels = np.asarray(labels)
        return self.energy_given(labels, self.neighbour_sums(labels, n_jobs))

    def energy_given(self, labels: NDArray, sums: NDArray) -> float:
        """E(y) from the neighbour sums of y."""
        own = np.arange(len(self)), labels
        return float(self.common_unary.sum() + self.relative_unary[own].sum() - sums[own].sum() / 2)

    def elsewhere(self, labels: NDArray, sums: NDArray) -> NDArray:
        """Sum of C^(y_i)(x_i, x_j) over the nodes j labelled otherwise than i, from the neighbour sums of y."""
        if self.shared:  # sums of positive terms: no digits are lost
            return sums.sum(axis=1, where=np.arange(self.n_classes) != labels[:, None])
        own = np.arange(len(self)), labels
        return np.maximum(self.totals[own] - sums[own], 0)

    def cost_given(self, labels: NDArray, sums: NDArray) -> float:
        """E(y) less a constant that is at most its minimum, without the digits that the constant would eat.

        It is what y pays beyond each node's cheapest balanced unary term, plus for disagreement.
        """
        unary = self.balanced_unary
        paid = unary[np.arange(len(self)), labels] - unary.min(axis=1)
        return float(paid.sum() + self.elsewhere(labels, sums).sum() / 2)

    def log_weight(self, labels, n_jobs=None) -> float:
        """Logarithm of the unnormalised probability of a labelling: -E(y)."""
        return -self.energy(labels, n_jobs)

    def conditionals(self, labels, n_jobs=None) -> NDArray:
        """Probability of each class at each node given the labels of all others, shape (n, Q).

        It is eq. predictiveDistribution with all the other points as data.
        """
        return np.exp(log_softmax(self.neighbour_sums(labels, n_jobs) - self.relative_unary, axis=1))

    def enumerate(self) -> tuple[NDArray, NDArray]:
        """All Q^n labellings, shape (Q^n, n), and their energies; for small fields."""
        n, Q = len(self), self.n_classes
        if Q**n > ENUMERABLE:
            raise ValueError(f"{Q} classes on {n} nodes make {Q**n} labellings, too many to list")
        labels = np.indices((Q,) * n).reshape(n, -1).T if n else np.zeros((1, 0), int)
        energies = self.unary[np.arange(n), labels].sum(axis=1)
        values = [covariance.kernel(self.X) for covariance in self.covariances] if n else []
        for i in range(n):
            for j in range(i):
                pair = np.array([value[i, j] for value in values])
                energies -= np.where(labels[:, i] == labels[:, j], pair[labels[:, i]], 0)
        return labels, energies

    def condition(self, known: NDArray, n_jobs=None) -> LabelField:
        """The field of the remaining nodes when some become labelled; `known` holds their labels, -1 elsewhere."""
        fixed, free = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
        sums = _sums(self.X[fixed], known[fixed], self.covariances, self.X[free], n_jobs=n_jobs)
        unary = self.relative_unary[free] - sums
        return replace(
            self, X=self.X[free], relative_unary=unary, common_unary=self.common_unary[free], nodes=self.nodes[free]
        )


def _sums(training, y: NDArray, covariances: Sequence[Covariance], X, leave_out=None, n_jobs=None) -> NDArray:
    """Class sums over labelled points, shape (n, Q); a class without points, or no points at all, is no obstacle."""
    sums = np.zeros((X.shape[0], len(covariances)))
    if len(y) and X.shape[0]:
        present, codes = np.unique(y, return_inverse=True)
        arranged = arrange(training, codes, [covariances[c] for c in present])
        sums[:, present] = class_sums(arranged, X, leave_out=leave_out, n_jobs=n_jobs).values
    return sums
