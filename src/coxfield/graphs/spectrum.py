r"""The spectrum of a graph of all points, and the covariances that follow from it.

Modes are the lowest eigenpairs of the normalised Laplacian L = I - D^-1/2 W D^-1/2. Mode 0 is known: it is proportional
to the square roots of the degrees, with value 0. A graph that falls apart has such a mode for each part. ARPACK finds
the others.

The heat covariance is exp(-t L), scaled to unit diagonal. Its entry for two points says how much heat flows from one to
the other in time t, along the graph. It is never negative. Without mode 0, which is nearly the same for all points, it
is still a covariance and tells classes apart more sharply, but it takes negative values. The time is chosen by
effective rank, :math:`R = (\sum g)^2 / \sum g^2` with :math:`g = e^{-t\lambda}` over the modes from 1 on. It is how
many modes count. Fewer than Q - 1 modes cannot tell Q classes apart.

The linear covariance is the cosine between points that are whitened by the covariance of all points: multiplied by
(Sigma + h tr(Sigma) / d)^-1/2, where h > 0 keeps directions without spread from dominating. Classes that differ in
direction, not in place along the data, are told apart by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.utils.extmath import randomized_svd

from coxfield.graphs.cut import MOST_POINTS, CutGraph
from coxfield.graphs.neighbours import Frame, Listed, Search, row_shares
from coxfield.progress import progress, shares, stages
from coxfield.utils.numbers import power_of_two

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.graphs.neighbours import EdgeRule, Neighbours


DENSE = 300  # points up to which all eigenpairs are computed
FEW_PARTS = 4  # of a graph, up to which products with dense columns are faster
MANY = 1000  # points from which modes are computed in single precision, which takes half the time
WEAKEST = (
    1e-10  # edge weights of S below it do not join parts: at the longest times of `heat` they pass no heat to speak of
)
DAMPED = 0.05  # modes with 1 - lambda above it are those that last
ROUNDING = 1e-14  # of eigenvalues
LASTING = 1e-6  # largest value of a mode that belongs to one part
HOPS = 4  # points that hang one by one on the others: how many in a row get all digits
EDGE = 1.5  # times the modes that are wanted: so many have eigenvalues above the edge of the polynomial, about
LANCZOS = 40  # steps that find it
LEAST_LENGTH = 1e-6  # of a step of Lanczos that is not rounding
HIGHEST_EDGE = 1 - 1e-4
GAIN = 4.5  # logarithm of the polynomial at 1: more makes fewer steps, but each step costs more
ABOVE = 1 + 1e-3  # values of the polynomial that belong to eigenvalues above the edge
SPACE = 1.5  # vectors that ARPACK holds, times the modes that are wanted
LEAST_SPACE = 80
RESTARTS = 300  # of ARPACK; usually a few are enough. Modes that take more belong to islands of a few points.
PRODUCTS = 150  # with a polynomial of a graph that a typical search takes
TOLERANCE = {
    np.dtype(np.float64): 0.0,
    np.dtype(np.float32): 1e-5,
}  # 0 is rounding: looser, nearly equal modes are lost
LOG_TIMES = -6.0, 16.0  # logarithms between which times are searched
HALVINGS = 60
MOST_AXES = 1024  # features up to which all axes are used; beyond, the leading ones
LEADING = 100
OF_MODES = 2.0  # the time that modes of a graph take, relative to the search for neighbours


@dataclass(frozen=True)
class Modes:
    """The lowest eigenpairs of the normalised Laplacian, mode 0 first."""

    values: NDArray
    """Eigenvalues lambda in increasing order, between 0 and 2."""
    vectors: NDArray
    """Unit eigenvectors as columns."""

    def __len__(self) -> int:
        return len(self.values)

    def lowest(self, count: int) -> Modes:
        """At most `count` of them."""
        return self if count >= len(self) else Modes(self.values[:count], self.vectors[:, :count])


def lowest_modes(affinity: sparse.csr_array, count: int, step: Callable[[], None] | None = None) -> Modes:
    """The `count` lowest modes of a symmetric graph, or all if it has no more points.

    A point without neighbours is a mode of its own with value 1, and has no part in mode 0. `step` is called after each
    product with a polynomial of the graph; see `PRODUCTS`.

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
    modes, precision = _rotated(walk, first, found), _precision(n)
    return _cleared(walk.astype(precision), Modes(modes.values, modes.vectors.astype(precision, copy=False)))


def _precision(n: int) -> np.dtype:
    return np.dtype(np.float32 if n >= MANY else np.float64)


def _normalised(affinity: sparse.csr_array) -> tuple[sparse.csr_array, NDArray]:
    """S = D^-1/2 W D^-1/2, and mode 0."""
    # The unit of the weights cancels. In this one, sums and squares of degrees are numbers.
    affinity = affinity / power_of_two(float(affinity.max()) if affinity.nnz else 1.0)
    degrees = np.asarray(affinity.sum(axis=1), dtype=float).ravel()
    roots = np.sqrt(degrees)
    inverse = np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)
    rows = np.repeat(np.arange(affinity.shape[0]), np.diff(affinity.indptr))
    values = affinity.data * inverse[rows] * inverse[affinity.indices]
    walk = sparse.csr_array((values, affinity.indices, affinity.indptr), shape=affinity.shape)
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
    strong.data[strong.data < WEAKEST] = 0
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
    parts = parts[:, values < LASTING]  # points that hang together by weak edges alone are not a part
    return parts if parts.size else first[:, None]


def _others(walk: sparse.csr_array, parts: NDArray, count: int, step: Callable[[], None] | None) -> NDArray:
    """The lowest modes beside those of the parts, as columns, found by ARPACK.

    It sees a Chebyshev polynomial of S that is large for the lowest modes, and between -1 and 1 for most others. If too
    few modes are where it is large, its values say so, and the search begins again with (I + S) / 2.
    """
    n, dtype = len(parts), _precision(len(parts))
    if count < 1:
        return np.empty((n, 0))
    if not walk.nnz:  # every vector is a mode, and some versions of ARPACK stop at that
        return _beside(parts, count)
    walk, parts = walk.astype(dtype), parts.astype(dtype)
    parts = parts if parts.shape[1] <= FEW_PARTS else sparse.csr_array(parts)
    across, start = parts.T, np.random.default_rng(0).standard_normal(n).astype(dtype)
    space = min(n - 1, max(int(SPACE * count), LEAST_SPACE))

    def search(polynomial: Callable[[NDArray], NDArray]) -> tuple[NDArray, NDArray]:
        def without_parts(vector: NDArray) -> NDArray:
            vector = vector.ravel()
            vector = polynomial(vector - parts @ (across @ vector))  # their value here is 0, and is not looked for
            if step is not None:
                step()
            return vector - parts @ (across @ vector)

        operator = LinearOperator(walk.shape, matvec=without_parts, dtype=dtype)
        try:
            return eigsh(operator, count, which="LA", v0=start, ncv=space, tol=TOLERANCE[dtype], maxiter=RESTARTS)
        except ArpackNoConvergence as stopped:
            return stopped.eigenvalues, stopped.eigenvectors  # fewer modes, but right ones

    values, vectors = search(_chebyshev(walk, _edge(walk, start, EDGE * count + parts.shape[1])))
    if not (values > ABOVE).all():
        values, vectors = search(lambda vector: (vector + walk @ vector) / 2)
    return vectors.astype(float)


def _edge(walk: sparse.csr_array, start: NDArray, rank: float) -> float:
    """What about `rank` eigenvalues of S exceed.

    Lanczos steps from a random vector give places and weights of a quadrature, which count eigenvalues.
    """
    v, last, length = start / np.linalg.norm(start), np.zeros_like(start), walk.dtype.type(0)
    diagonal, beside = [], []
    for _ in range(LANCZOS):
        w = walk @ v - length * last
        diagonal.append(v @ w)
        w -= diagonal[-1] * v
        length = np.linalg.norm(w)
        if length <= LEAST_LENGTH:  # there are no other eigenvalues
            break
        beside.append(length)
        last, v = v, w / length
    places, vectors = linalg.eigh_tridiagonal(diagonal, beside[: len(diagonal) - 1])
    weights = len(start) * vectors[0, ::-1].astype(float) ** 2
    return float(np.interp(rank, np.cumsum(weights) - weights / 2, places[::-1]))


def _chebyshev(walk: sparse.csr_array, edge: float) -> Callable[[NDArray], NDArray]:
    """A Chebyshev polynomial of S, at most 1 in size from -1 to `edge`, and about e^GAIN at 1."""
    edge = min(max(edge, -HIGHEST_EDGE), HIGHEST_EDGE)
    degree = max(2, int(np.ceil(GAIN / np.arccosh((3 - edge) / (1 + edge)))))
    slope, shift = walk.dtype.type(2 / (1 + edge)), walk.dtype.type((1 - edge) / (1 + edge))
    once = sparse.csr_array(slope * walk + shift * sparse.eye_array(walk.shape[0], dtype=walk.dtype, format="csr"))
    twice = 2 * once

    def polynomial(vector: NDArray) -> NDArray:
        before, now = vector, once @ vector
        for _ in range(degree - 1):
            before, now = now, twice @ now - before
        return now

    return polynomial


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
    values = np.clip(1 - values, 0, 2)
    values[values < ROUNDING] = 0  # of the modes of parts; otherwise the longest times would show rounding
    return Modes(values, vectors)


def _cleared(walk: sparse.csr_array, modes: Modes) -> Modes:
    """The same modes without rounding at points that are hardly joined to others, or not at all.

    There a mode is as small as the edge weights, but rounding is not. S v = (1 - lambda) v gives each such point what
    its neighbours have, with all digits. It matters because covariances are scaled to unit diagonal.
    """
    shares = 1 - modes.values
    clear = shares > DAMPED
    vectors, factors = modes.vectors[:, clear], (1 / shares[clear]).astype(modes.vectors.dtype)
    for _ in range(HOPS):
        vectors = walk @ vectors
        vectors *= factors
    whole = np.array(modes.vectors)
    whole[:, clear] = vectors
    return Modes(modes.values, whole)


def effective_rank(values: NDArray, time: float) -> float:
    """R of the modes from 1 on, given all eigenvalues.

    Examples
    --------
    >>> effective_rank([0.0, 0.5, 0.5, 0.5], time=3.0)
    3.0
    """
    above = np.asarray(values)[1:]
    g = np.exp(-time * (above - above[0]))
    return float(g.sum() ** 2 / (g**2).sum())


def time_of_rank(values: NDArray, rank: float) -> float:
    """The time at which the effective rank falls to `rank`, or the longest time if it never does.

    Examples
    --------
    >>> t = time_of_rank([0.0, 0.1, 0.4, 0.9], rank=2.0)
    >>> round(effective_rank([0.0, 0.1, 0.4, 0.9], t), 6)
    2.0
    """
    low, high = LOG_TIMES
    if effective_rank(values, np.exp(high)) > rank:
        return float(np.exp(high))  # more modes than that have the value 0, because the graph falls apart
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if effective_rank(values, np.exp(middle)) > rank else (low, middle)
    return float(np.exp((low + high) / 2))


@dataclass(frozen=True)
class Heat:
    """exp(-t L) of some modes, scaled to unit diagonal: the inner products of `features`."""

    modes: Modes
    time: float
    centred: bool = False
    """Whether mode 0 is left out."""

    @property
    def weights(self) -> NDArray:
        """Of the modes, before features are scaled to length 1."""
        values = self.modes.values
        first = values[1] if self.centred and len(values) > 1 else values[0]
        weights = np.exp(-self.time / 2 * np.maximum(values - first, 0))  # a common factor falls out
        if self.centred:
            weights[0] = 0
        return weights

    def features(self, rows=slice(None)) -> NDArray:
        """Unit vectors whose inner products are the covariances; zero for a point that no mode reaches."""
        return unit_rows(self.modes.vectors[rows] * self.weights.astype(self.modes.vectors.dtype))

    def columns(self, rows) -> NDArray:
        """The covariances of all points with some points, shape (n, number of rows)."""
        return self.features() @ self.features(rows).T


def unit_rows(features: NDArray) -> NDArray:
    """Rows divided by their lengths, in place; rows of length zero stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", features, features))
    features /= np.where(lengths > 0, lengths, 1)[:, None]
    return features


@dataclass(frozen=True)
class Axes:
    """Principal axes of all points."""

    centre: NDArray | None
    """The mean of the points; None for sparse points, which are not centred."""
    axes: NDArray
    """As columns."""
    variances: NDArray
    """Variances of the points along the axes."""
    n_features: int
    frame: Frame = field(default_factory=Frame)
    """In which the points are."""

    @classmethod
    def of(cls, X) -> Axes:
        """The axes of given points: all of them, or the leading ones if there are many features."""
        frame = Frame.of(X)
        return replace(cls._of(frame.place(X)), frame=frame)

    @classmethod
    def _of(cls, X) -> Axes:
        if sparse.issparse(X):
            return cls._leading(X, None)
        centre = X.mean(axis=0, dtype=float)
        if X.shape[1] > MOST_AXES:
            return cls._leading(X, centre)
        centred = X - centre.astype(X.dtype)
        covariance = (centred.T @ centred).astype(float) / len(X)
        variances, axes = np.linalg.eigh(covariance)
        return cls(centre, axes, np.maximum(variances, 0), X.shape[1])

    @classmethod
    def _leading(cls, X, centre: NDArray | None) -> Axes:
        shifted = X if centre is None else X - centre.astype(X.dtype)
        n, d = shifted.shape
        count = min(LEADING, n, d)
        _, lengths, axes = randomized_svd(shifted, count, n_iter=2, random_state=0)
        return cls(centre, np.asarray(axes.T, dtype=float), lengths.astype(float) ** 2 / n, d)

    def coordinates(self, X) -> NDArray:
        """Coordinates of points along the axes."""
        X = self.frame.place(X)
        moved = X if self.centre is None else X - self.centre.astype(X.dtype)
        return np.asarray(moved @ self.axes.astype(X.dtype, copy=False))

    def shrunk(self, share: float) -> NDArray:
        """Variances along the axes, each with `share` times the mean variance of a feature added."""
        return self.variances + share * self.variances.sum() / self.n_features

    def rank(self, share: float) -> float:
        """The effective rank of the whitened points, as `effective_rank` counts modes."""
        g = np.divide(self.variances, self.shrunk(share), out=np.zeros_like(self.variances), where=self.variances > 0)
        squares = float((g**2).sum())
        return float(g.sum() ** 2 / squares) if squares > 0 else 1.0

    def weights(self, share: float) -> NDArray:
        """Of the coordinates, before features are scaled to length 1."""
        shrunk = self.shrunk(share)
        return np.divide(1, np.sqrt(shrunk), out=np.zeros_like(shrunk), where=shrunk > 0)

    def features(self, coordinates: NDArray, share: float) -> NDArray:
        """Unit vectors whose inner products are the covariances, from the coordinates of points."""
        return unit_rows(coordinates * self.weights(share).astype(coordinates.dtype))


@dataclass(frozen=True)
class Joined:
    """A new point is joined to its nearest neighbours, by the rule of each graph."""

    search: Search | Listed
    rules: tuple[EdgeRule, ...]
    scales: tuple[NDArray, ...]

    def shares(self, X, graphs: Sequence[int]) -> dict[int, sparse.csr_array]:
        """For each graph, the weights of all points at each new point; they add up to 1."""
        if not len(graphs):
            return {}
        found = self.search.of(X, max(self.rules[g].neighbours for g in graphs))
        return {g: self.rules[g].shares(found, self.scales[g]) for g in graphs}


@dataclass(frozen=True)
class GivenWeights:
    """A new point comes with its weights, one column per point of the graph."""

    def shares(self, X, graphs: Sequence[int]) -> dict[int, sparse.csr_array]:
        """The given weights divided by their sums. A new point without a neighbour has none."""
        return dict.fromkeys(graphs, row_shares(sparse.csr_array(X)))


@dataclass(frozen=True)
class GraphSpectrum:
    """Graphs of all points with their modes: the lowest eigenpairs of their Laplacians."""

    names: tuple[str, ...]
    modes: tuple[Modes, ...]
    join: Joined | GivenWeights
    """How new points join."""
    axes: Axes | None = None
    """Principal axes; None if the points have no features."""
    cut: CutGraph | None = None
    """The graph in which minimum cuts are looked for; None if there are too many points."""


def spectrum_of_points(X, rules: Sequence[EdgeRule], n_modes: int, verbose: int = 0) -> GraphSpectrum:
    """Graphs of points by several rules, and their principal axes."""
    spectrum = _spectrum(Search.among(X), rules, n_modes, verbose)
    with progress("principal axes", None, verbose):
        return replace(spectrum, axes=Axes.of(X))


def spectrum_of_distances(
    distances: sparse.csr_array, rules: Sequence[EdgeRule], n_modes: int, verbose: int = 0
) -> GraphSpectrum:
    """Graphs of listed distances by several rules."""
    return _spectrum(Listed(distances), rules, n_modes, verbose)


def spectrum_of_graph(affinity: sparse.csr_array, n_modes: int, verbose: int = 0) -> GraphSpectrum:
    """A graph of the user's own."""
    with progress("modes of the graph", 1, verbose) as done, shares(done, PRODUCTS) as step:
        modes = lowest_modes(affinity, n_modes, step)
    return GraphSpectrum(("the given graph",), (modes,), GivenWeights(), cut=CutGraph.of(affinity))


def _spectrum(search: Search | Listed, rules: Sequence[EdgeRule], n_modes: int, verbose: int) -> GraphSpectrum:
    n, modes, scales = len(search), [], []
    with stages(f"{len(rules)} graphs of {n} points", 1 + OF_MODES * len(rules), verbose) as whole:
        with progress(f"nearest neighbours of {n} points", n, verbose) as done:
            found = search.of_all(max(rule.neighbours for rule in rules), _both(done, whole, n))
        for rule in rules:
            with progress(f"modes of the graph of {rule.name}", 1, verbose) as done:
                with shares(_both(done, whole, 1 / OF_MODES), PRODUCTS) as step:
                    modes.append(lowest_modes(rule.graph(found), n_modes, step))
                scales.append(rule.scales(found))
    join = Joined(search, tuple(rules), tuple(scales))
    return GraphSpectrum(tuple(rule.name for rule in rules), tuple(modes), join, cut=_cut(rules, found))


def _cut(rules: Sequence[EdgeRule], found: Neighbours) -> CutGraph | None:
    """Of the first graph with one scale for all: its edges fade in gaps."""
    source = next((k for k, rule in enumerate(rules) if rule.common), 0)
    return CutGraph.of(rules[source].graph(found), source) if len(found.index) <= MOST_POINTS else None


def _both(done: Callable[[float], None], whole: Callable[[float], None], size: float = 1.0) -> Callable[[float], None]:
    """A function that tells of a stage, and of its share in the whole."""

    def tell(count: float) -> None:
        done(count)
        whole(count / size)

    return tell
