"""Arguments of `LabelField.from_points` and `LabelField.from_graph`, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from coxfield.kernels.per_class import PerClass, class_kernels
from coxfield.kernels.recognise import recognise
from coxfield.utils.numbers import whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.protocol import Covariance


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
