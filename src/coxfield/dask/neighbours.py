"""Nearest neighbours over shards: all that few labels need to know of points that no machine holds together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from coxfield.dask.chunks import Form, count_bytes, points, references
from coxfield.dask.plan import Plan, computed
from coxfield.estimators.validation import refuse_columns
from coxfield.graphs.bank import EDGE_RULES as TIES
from coxfield.graphs.neighbours import Frame
from coxfield.kernels.namespace import at_home
from coxfield.utils.numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MOST = max(ties.neighbours for ties in TIES)  # that `SLGCPClassifier` looks at


@dataclass(frozen=True)
class Nearest:
    """The nearest neighbours of the points of a block in some shards, the nearest first."""

    shards: NDArray
    """The shard of each neighbour, shape (n, at most k)."""
    rows: NDArray
    """Its row there."""
    distances: NDArray
    """In units of the frame."""


count_bytes(Nearest)


def neighbour_distances(X, n_neighbors: int = MOST, *, verbose: int = 0) -> sparse.csr_array:
    """Distances of each point to its nearest neighbours, for `SLGCPClassifier(kernel="precomputed_distances")`.

    The points stay on the workers, and each chunk meets each other chunk. What comes back is a sparse matrix with
    `n_neighbors` entries per row, whatever the number of features is.

    Parameters
    ----------
    X : Dask array or data frame of shape (n_samples, n_features)
        Its chunks may be NumPy arrays, SciPy sparse arrays or CuPy arrays, which are
        copied from the device. Sparse rows are scaled to length 1, as
        `SLGCPClassifier` does: what counts is their angle.
    n_neighbors : int, default=40
        Neighbours of each point, without itself. `SLGCPClassifier` looks at no more than 40.
    verbose : int, default=0
        Above 0, show the progress.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)

    Notes
    -----
    The result is computed at once. `SLGCPClassifier` has graphs of neighbours then, and no linear covariances, because
    these need the features.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from coxfield import SLGCPClassifier
    >>> from coxfield.dask import neighbour_distances
    >>> from coxfield.datasets import make_circles
    >>> X, truth = make_circles(2, random_state=0)
    >>> y = np.where(np.arange(len(X)) % 30 == 0, truth, -1)
    >>> distances = neighbour_distances(da.from_array(X, chunks=(100, 2)))
    >>> clf = SLGCPClassifier(kernel="precomputed_distances").fit(distances, y)
    >>> int(np.sum(clf.transduction_ != truth))
    0
    """
    given = points(X)
    refuse_columns(given.like)
    count, form = whole_number("n_neighbors", n_neighbors), Form(given.precision, given.n_features, given.names)
    if not np.isnan(given.X.shape[0]):
        _check_count(count, given.X.shape[0])
    parts = list(enumerate(references(given.X)))
    frame = _frame(given.X, form, parts, verbose)
    plan = Plan(given.X)
    how = plan.value("form", (form, frame, count))
    keys = []
    for number, reference in parts:
        block = plan.add("block", placed, how, number, reference)
        near = [plan.add("nearest", nearest, how, number, block, *part) for part in parts]
        keys.append(plan.tree("nearest-join", partial(joined_nearest, count), near))
    return _matrix(computed(plan.delayed(keys), verbose), count, frame.unit)


def _check_count(count: int, n: int) -> None:
    if n <= count:
        raise ValueError(f"n_neighbors={count}, but there are {n} points: give at most {max(n - 1, 0)} neighbours")


def _frame(X, form: Form, parts: Sequence[tuple[int, Any]], verbose: int) -> Frame:
    """The frame of all points, from what is least and largest in each chunk."""
    plan = Plan(X)
    how = plan.value("form", form)
    keys = [plan.add("bounds", bounds, how, *part) for part in parts]
    (found,) = computed(plan.delayed([plan.tree("bounds-join", joined_bounds, keys)]), verbose)
    return Frame() if found is None else Frame.between(*found)


def bounds(form: Form, number: int, X) -> tuple[NDArray, NDArray] | None:
    """The least and the largest value of each feature in a chunk; None if it is sparse or has no rows."""
    found = at_home(form.points(X, number))
    return None if sparse.issparse(found) or not len(found) else (found.min(axis=0), found.max(axis=0))


def joined_bounds(parts: Sequence[tuple[NDArray, NDArray] | None]) -> tuple[NDArray, NDArray] | None:
    """The bounds of several chunks."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    low, high = zip(*found, strict=True)
    return np.min(low, axis=0), np.max(high, axis=0)


def placed(how: tuple[Form, Frame, int], number: int, X) -> Any:
    """A chunk of points in the frame."""
    form, frame, _ = how
    return frame.place(at_home(form.points(X, number)))  # the search is that of scikit-learn, in NumPy


def nearest(how: tuple[Form, Frame, int], block_number: int, block, number: int, X) -> Nearest:
    """The neighbours of a block in one shard."""
    count, shard = how[2], placed(how, number, X)
    own = number == block_number
    wanted = min(count + own, shard.shape[0])
    if not wanted or not block.shape[0]:
        none = np.zeros((block.shape[0], 0))
        return Nearest(none.astype(int), none.astype(int), none)
    distance, rows = NearestNeighbors(n_neighbors=wanted, algorithm="brute", n_jobs=1).fit(shard).kneighbors(block)
    if own:
        distance, rows = _without_itself(distance, rows, count)
    return Nearest(np.full(rows.shape, number), rows, distance.astype(float, copy=False))


def _without_itself(distance: NDArray, rows: NDArray, count: int) -> tuple[NDArray, NDArray]:
    """Neighbours without the point itself. Of points at the same place, the point itself may be missing."""
    others = rows != np.arange(len(rows))[:, None]
    others[others.all(axis=1), -1] = False
    keep = rows.shape[1] - 1
    return distance[others].reshape(-1, keep)[:, :count], rows[others].reshape(-1, keep)[:, :count]


def joined_nearest(count: int, parts: Sequence[Nearest]) -> Nearest:
    """The nearest of several sets of shards, at most `count`."""
    shards, rows, distances = (
        np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("shards", "rows", "distances")
    )
    order = np.argsort(distances, axis=1, kind="stable")[:, :count]
    return Nearest(*(np.take_along_axis(values, order, axis=1) for values in (shards, rows, distances)))


def _matrix(blocks: Sequence[Nearest], count: int, unit: float) -> sparse.csr_array:
    lengths = [len(block.rows) for block in blocks]
    n = sum(lengths)
    _check_count(count, n)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(int)
    blocks = [block for block in blocks if len(block.rows)]
    columns = np.concatenate([starts[block.shards] + block.rows for block in blocks])
    with np.errstate(over="ignore"):  # what is farther than the largest number is as far as that
        distances = np.minimum(np.concatenate([block.distances for block in blocks]) * unit, np.finfo(float).max)
    return sparse.csr_array((distances.ravel(), columns.ravel(), np.arange(0, n * count + 1, count)), shape=(n, n))
