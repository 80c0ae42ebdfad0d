"""Modes of a graph: the lowest eigenpairs of its normalised Laplacian L = I - D^-1/2 W D^-1/2.

Mode 0 is known: it is proportional to the square roots of the degrees, with value 0. A graph that falls apart has such
a mode for each part. ARPACK finds the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from coxfield.utils.powers_of_two import power_of_two

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

DENSE = 300  # points up to which all eigenpairs are computed
MANY = 20_000  # points from which modes are computed in single precision, which takes half the time
FAINT = 1e-10  # ties of S below it do not join parts: at the longest times of `heat` they pass no heat to speak of
DAMPED = 0.05  # modes with 1 - lambda above it are those that last
LASTING = 1e-6  # largest value of a mode that belongs to one part
HOPS = 4  # points that hang one by one on the others: how many in a row get all digits
POWER = 4  # of (I + S) / 2 that ARPACK sees: its eigenvalues near 1 lie farther apart than those of S
SPARSE = 20  # neighbours per point up to which more products cost less than more steps of ARPACK
RESTARTS = 300  # of ARPACK; usually a few are enough. Modes that take more belong to islands of a few points.
LEAST_SPACE = 80  # vectors that ARPACK holds at least
PRODUCTS = 600  # with a graph that a typical search takes
TOLERANCE = {
    np.dtype(np.float64): 0.0,
    np.dtype(np.float32): 1e-5,
}  # 0 is rounding: looser, nearly equal modes are lost


@dataclass(frozen=True)
class Modes:
    """The lowest eigenpairs of the normalised Laplacian, mode 0 first."""

    values: NDArray
    """Eigenvalues lambda in increasing order, between 0 and 2."""
    vectors: NDArray
    """Unit eigenvectors as columns."""

    def __len__(self) -> int:
        return len(self.values)


def lowest_modes(affinity: sparse.csr_array, count: int, step: Callable[[], None] | None = None) -> Modes:
    """The `count` lowest modes of a symmetric graph, or all if it has no more points.

    A point without neighbours is a mode of its own with value 1, and has no part in mode 0. `step` is called after each
    product with the graph; see `PRODUCTS`.

    Examples
    --------
    A path of three points:

    >>> from scipy import sparse
    >>> path = sparse.csr_array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> lowest_modes(path, 3).values.round(3) + 0.0
    array([0., 1., 2.])
    """
    walk, first = _normalised(affinity)
    n = len(first)
    if n <= DENSE or 3 * count >= n:
        return _cleared(walk, _dense(walk, first, min(count, n)))
    parts = _parts(walk, first, count)
    found = np.concatenate([parts, _others(walk, parts, count - parts.shape[1], step)], axis=1)
    modes = _cleared(walk, _rotated(walk, first, found))
    return Modes(modes.values, modes.vectors.astype(_precision(n), copy=False))


def _precision(n: int) -> np.dtype:
    return np.dtype(np.float32 if n >= MANY else np.float64)


def _normalised(affinity: sparse.csr_array) -> tuple[sparse.csr_array, NDArray]:
    """S = D^-1/2 W D^-1/2, and mode 0."""
    # The unit of the weights cancels. In this one, sums and squares of degrees are numbers.
    affinity = affinity / power_of_two(float(affinity.max()) if affinity.nnz else 1.0)
    degrees = np.asarray(affinity.sum(axis=1), dtype=float).ravel()
    roots = np.sqrt(degrees)
    inverse = np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)
    walk = sparse.csr_array(affinity.multiply(inverse[:, None]).multiply(inverse[None, :]))
    size = np.linalg.norm(roots)
    if size == 0:  # no edge at all: any vector is a mode
        roots, size = np.ones_like(roots), np.sqrt(len(roots))
    return walk, roots / size


def _dense(walk: sparse.csr_array, first: NDArray, count: int) -> Modes:
    """All eigenpairs at once, with mode 0 moved away from the others."""
    values, vectors = linalg.eigh(walk.toarray() + 2 * np.outer(first, first))
    return _in_order(values, vectors, count)


def _parts(walk: sparse.csr_array, first: NDArray, count: int) -> NDArray:
    """The modes of value 0, as columns: mode 0 on each part of the graph, at most `count`.

    A graph may fall apart. Then the value 0 is repeated, and ARPACK would miss some of its modes. Parts beyond the
    largest count as one.
    """
    strong = walk.copy()
    strong.data[strong.data < FAINT] = 0
    strong.eliminate_zeros()
    part = connected_components(strong, directed=False)[1]
    sizes = np.bincount(part)
    order = np.argsort(-sizes, kind="stable")
    place = np.empty(len(sizes), dtype=int)
    place[order] = np.minimum(np.arange(len(sizes)), count - 1)
    columns = place[part]
    parts = np.zeros((len(first), columns.max() + 1))
    in_parts = sizes[part] > 1
    parts[in_parts, columns[in_parts]] = first[in_parts]
    parts = parts[:, parts.any(axis=0)]
    parts /= np.linalg.norm(parts, axis=0)
    values = 1 - np.einsum("ij,ij->j", parts, walk @ parts)
    parts = parts[:, values < LASTING]  # points that hang together by faint ties alone are no part
    return parts if parts.size else first[:, None]


def _others(walk: sparse.csr_array, parts: NDArray, count: int, step: Callable[[], None] | None) -> NDArray:
    """The lowest modes beside those of the parts, as columns, found by ARPACK."""
    n, dtype = len(parts), _precision(len(parts))
    if count < 1:
        return np.empty((n, 0))
    if not walk.nnz:  # every vector is a mode, and some versions of ARPACK stop at that
        return _beside(parts, count)
    walk, parts = walk.astype(dtype), sparse.csr_array(parts, dtype=dtype)
    across = sparse.csr_array(parts.T)
    power = POWER if walk.nnz <= SPARSE * n else 1

    def without_parts(vector: NDArray) -> NDArray:
        vector = vector.ravel()
        vector = vector - parts @ (across @ vector)  # their value here is 0, and is not looked for
        for _ in range(power):
            vector = (vector + walk @ vector) / 2
        if step is not None:
            step()
        return vector - parts @ (across @ vector)

    operator = LinearOperator(walk.shape, matvec=without_parts, dtype=dtype)
    start = np.random.default_rng(0).standard_normal(n).astype(dtype)
    space = min(n - 1, max(2 * count + 1, LEAST_SPACE))
    try:
        _, vectors = eigsh(operator, count, which="LA", v0=start, ncv=space, tol=TOLERANCE[dtype], maxiter=RESTARTS)
    except ArpackNoConvergence as stopped:
        vectors = stopped.eigenvectors  # fewer modes, but right ones
    return vectors.astype(float)


def _beside(parts: NDArray, count: int) -> NDArray:
    """Random unit vectors as columns, orthogonal to each other and to the parts."""
    drawn = np.random.default_rng(0).standard_normal((len(parts), count))
    return np.linalg.qr(np.concatenate([parts, drawn], axis=1))[0][:, parts.shape[1] :]


def _rotated(walk: sparse.csr_array, first: NDArray, found: NDArray) -> Modes:
    """The modes within the span of vectors that are nearly modes, in double precision.

    Values that differ by less than the tolerance of ARPACK are told apart here.
    """
    own = found.T @ first
    within = found.T @ (walk @ found)
    values, rotation = linalg.eigh((within + within.T) / 2 + 2 * np.outer(own, own), found.T @ found)
    return _in_order(values, found @ rotation, len(values))


def _in_order(values: NDArray, vectors: NDArray, count: int) -> Modes:
    """The lowest modes from increasing eigenvalues of S, where that of mode 0 is 3 instead of 1."""
    values, vectors = values[::-1][:count].copy(), vectors[:, ::-1][:, :count]
    values[0] -= 2
    return Modes(np.clip(1 - values, 0, 2), vectors)


def _cleared(walk: sparse.csr_array, modes: Modes) -> Modes:
    """The same modes without rounding at points that are hardly tied to others, or not at all.

    There a mode is as small as the ties, but rounding is not. S v = (1 - lambda) v gives each such point what its
    neighbours have, with all digits. It matters because covariances are scaled to unit diagonal.
    """
    shares = 1 - modes.values
    clear = shares > DAMPED
    vectors = np.array(modes.vectors)
    for _ in range(HOPS):
        vectors[:, clear] = (walk @ vectors[:, clear]) / shares[clear]
    return Modes(modes.values, vectors)
