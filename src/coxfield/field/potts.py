"""`LabelField`: the Potts model that a log Gaussian Cox process gives to the labels of unlabelled points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.special import log_softmax
from sklearn.utils.validation import check_array, check_consistent_length

from coxfield import threads
from coxfield.engine.class_sums import prior_terms, sums_at
from coxfield.engine.store import store_bound
from coxfield.kernels.called import Graph, all_held, hold
from coxfield.kernels.protocol import PerClass, bind_precisely, class_kernels, class_values, rows_named, values
from coxfield.kernels.radial import recognise
from coxfield.utils.numbers import whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Covariance, KernelPoints

# Arguments of `LabelField.from_points` and `LabelField.from_graph`, checked once.


UNLABELLED = 1000  # so many classes may have no label; with more, labels are no class numbers
BYTES = 2**34  # memory that the numbers of a field may take
SYMMETRIC = 1e-10  # two values of one coupling may differ by this share: it is rounding
NUMBERS = "biuf"  # kinds of arrays that hold real numbers


def check_labels(labels, X, n_classes: int | None) -> NDArray:
    """Class numbers, -1 for unknown labels."""
    if n_classes is not None:
        whole_number("n_classes", n_classes)
    labels = np.asarray(labels)
    if labels.ndim != 1 or not (labels.dtype.kind in "iu" or labels.size == 0):
        raise ValueError(
            f"labels must be class numbers, -1 for the unknown, got an array of {labels.dtype} of shape {labels.shape}"
            ": np.unique(names, return_inverse=True) numbers the names of classes"
        )
    check_consistent_length(X, labels)
    least, top = (int(labels.min()), int(labels.max())) if labels.size else (-1, -1)
    if least < -1 or top >= (2**63 if n_classes is None else n_classes):
        raise ValueError(f"labels must lie between -1 and n_classes - 1, got {least} to {top}")
    return labels.astype(int)


def number_of_classes(labels: NDArray, n_classes: int | None, *per_class) -> int:
    """The number of classes that is given, or the least that fits the labels and whatever is given once per class.

    It is at least two. Everything that follows holds a number per class, also for classes without labels. So a label
    far above the number of points is refused, and so is a number of classes that does not fit into memory.
    """
    given = [len(one) for one in per_class if isinstance(one, list | tuple | Mapping | np.ndarray)]
    top, n = int(labels.max(initial=-1)), len(labels)
    if n_classes is None and top >= max(UNLABELLED, n, *given):
        raise ValueError(
            f"labels must be class numbers 0, 1, 2 and so on, got {top} for {n} points: number the classes by "
            "np.unique(names, return_inverse=True), or give n_classes"
        )
    found = max([2, top + 1, *given]) if n_classes is None else int(n_classes)
    size = 8 * found * (40 + 6 * n)  # measured: some tables of a number per point and class, and vectors per class
    if size > BYTES:
        raise ValueError(
            f"{found} classes of {n} points would take about {size / 2**30:.3g} GiB of memory: give n_classes as the "
            "number of classes that there are"
        )
    return found


def field_covariances(kernel, n_classes: int, n_features: int) -> PerClass[Covariance]:
    """One covariance per class, never negative, from a kernel or a sequence or mapping of kernels."""
    if isinstance(kernel, PerClass):
        kernels = kernel
    elif isinstance(kernel, list | tuple):
        kernel = dict(enumerate(kernel))
        if len(kernel) != n_classes:
            raise ValueError(f"got {len(kernel)} kernels for {n_classes} classes: give one, or one per class")
        kernels = class_kernels(kernel, np.arange(n_classes))
    else:
        kernels = class_kernels(kernel, np.arange(n_classes))
    covariances = kernels.map(lambda one: recognise(one, n_features))
    for covariance in covariances.distinct:
        covariance.check_nonnegative()
    return covariances


def check_couplings(couplings) -> sparse.csr_array:
    """Couplings as a sparse matrix of float64: symmetric, sorted, without diagonal, repeated entries and zeros.

    Time and memory are proportional to the number of stored entries. The given matrix is not changed.
    """
    if not sparse.issparse(couplings):
        couplings = np.asarray(couplings)
    if couplings.ndim != 2 or couplings.shape[0] != couplings.shape[1]:
        raise ValueError(
            f"couplings must be a square matrix with one row and one column per node, got shape {couplings.shape}"
        )
    if couplings.dtype.kind not in NUMBERS:
        raise ValueError(f"couplings must be real numbers, got a matrix of {couplings.dtype}")
    matrix = sparse.csr_array(couplings, dtype=float, copy=True)
    matrix.sum_duplicates()
    matrix.data[_first_ends(matrix) == matrix.indices] = 0
    matrix.eliminate_zeros()
    _refuse(matrix, ~np.isfinite(matrix.data), "is not finite: give a number, or no entry for nodes without a link")
    _refuse(matrix, matrix.data < 0, "is negative: minimum cuts need couplings of at least 0 (Theorem 2)")
    return _symmetric(matrix)


def _first_ends(matrix: sparse.csr_array) -> NDArray:
    """The row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _refuse(matrix: sparse.csr_array, wrong: NDArray, why: str) -> None:
    """Raise ValueError with the first entry that is wrong, if there is one."""
    if wrong.any():
        place = int(wrong.argmax())
        i, j = _first_ends(matrix)[place], matrix.indices[place]
        raise ValueError(f"the coupling of the nodes {i} and {j} is {matrix.data[place]:.6g}, which {why}")


def _symmetric(matrix: sparse.csr_array) -> sparse.csr_array:
    """The matrix, symmetric to the last digit. A matrix that differs from its transpose by more is refused."""
    mirrored = matrix.T.tocsr()
    apart = abs(matrix - mirrored)
    apart.eliminate_zeros()
    if not apart.nnz:
        return matrix
    i, j = _first_ends(apart), apart.indices
    values = np.stack([np.asarray(one[i, j]) for one in (matrix, mirrored)])
    wrong = apart.data > SYMMETRIC * values.max(axis=0)
    if wrong.any():
        k = int(wrong.argmax())
        raise ValueError(
            f"couplings must be symmetric, but the entry ({i[k]}, {j[k]}) is {values[0, k]:.6g} and the entry "
            f"({j[k]}, {i[k]}) is {values[1, k]:.6g}: give (A + A.T) / 2, or A.maximum(A.T)"
        )
    return (matrix + mirrored) / 2


def check_length(labels, n: int) -> None:
    """Refuse labels that are not one per node."""
    shape = np.shape(labels)
    if shape != (n,):
        raise ValueError(
            f"labels must hold one class number per node, -1 if it is unknown: couplings have {n} nodes, but labels "
            f"have shape {shape}"
        )


def check_table(unary, n: int) -> NDArray:
    """The costs as a table with one row per node. Without costs the table has no columns."""
    table = np.zeros((n, 0)) if unary is None else np.asarray(unary)
    if table.ndim != 2 or len(table) != n:
        raise ValueError(
            f"unary must be a table with a row for each of the {n} nodes and a column per class, got shape "
            f"{table.shape}"
        )
    if table.dtype.kind not in NUMBERS:
        raise ValueError(f"unary must be real numbers, got an array of {table.dtype}")
    return table


def unary_costs(table: NDArray, labels: NDArray, n_classes: int) -> NDArray:
    """Costs of the classes at the unlabelled nodes, shape (number of unlabelled nodes, n_classes)."""
    free = np.flatnonzero(labels < 0)
    columns = table.shape[1]
    if not columns:
        return np.zeros((len(free), n_classes))
    if columns != n_classes:
        raise ValueError(f"unary has {columns} columns for {n_classes} classes: give one column per class")
    costs = table[free].astype(float)
    wrong = np.argwhere(~np.isfinite(costs))
    if len(wrong):
        i, c = wrong[0]
        raise ValueError(
            f"the unary cost of class {c} at the node {free[i]} is {costs[i, c]}, which is not finite: give a large "
            "cost to forbid a class, or a label to fix one"
        )
    return costs


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
