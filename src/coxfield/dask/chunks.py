"""What users give, as Dask arrays whose chunks are whole rows, and checks of the chunks where they are."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask.optimization import cull
from dask.sizeof import sizeof
from distributed import Future
from scipy import sparse

import dask
from coxfield.estimators import validation
from coxfield.estimators.tables import is_table
from coxfield.estimators.validation import EXTREME_WEIGHT, refuse_frame
from coxfield.kernels.namespace import Library, is_foreign, to_numpy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


# Bytes of results. Dask asks for them when it decides whether a result travels to a shard, or a shard to a result.


def count_bytes(*kinds: type) -> None:
    """Let Dask count the bytes of some dataclasses field by field; otherwise it takes them for empty."""
    sizeof.register(kinds, _bytes)


def _bytes(result) -> int:
    return object.__sizeof__(result) + sum(sizeof(getattr(result, field.name)) for field in fields(result))


# Shards that are read when they are needed, and not held.
#
# Every block of queries meets every shard. If a shard were a task of its own, Dask would hold it until the last block
# has met it, and all shards together need not fit into memory. So a shard that is cheap to describe, such as a part
# of a file, is read inside each task that uses it. A shard that the user has persisted is not read again.


LIGHT = 2**16  # bytes that a description may take, because each task carries it


class Recipe:
    """How to make one chunk: tasks that are run one after the other, where the chunk is needed."""

    def __init__(self, tasks: dict, key, size: int = 0):
        self.tasks, self.key = tasks, key
        self.size = size  # in bytes

    def make(self) -> Any:
        """The chunk."""
        return dask.get(self.tasks, self.key)


def made(chunk) -> Any:
    """A chunk, from itself or from its recipe."""
    return chunk.make() if isinstance(chunk, Recipe) else chunk


def references(collection) -> list:
    """For each chunk of rows of a Dask array, its recipe if it has a light one, and otherwise its key."""
    tasks = dict(collection.__dask_graph__())
    return [_reference(tasks, key) for key in keys_of(collection)]


def keys_of(collection) -> list:
    """The keys of the chunks of rows of a Dask array whose columns are in one chunk."""
    keys = collection.__dask_keys__()
    return [key[0] for key in keys] if collection.ndim == 2 else keys


def _reference(tasks: dict, key) -> Any:
    needed = dict(cull(tasks, key)[0])
    values = [getattr(node, "value", node) for node in needed.values()]
    size = sum(map(sizeof, values))
    return key if size > LIGHT or any(isinstance(value, Future) for value in values) else Recipe(needed, key, size)


ROWS = 8192  # of a chunk that is made of a NumPy array


@dataclass(frozen=True)
class Given:
    """Points as they were given, in chunks of whole rows."""

    X: da.Array
    names: tuple | None = None
    """Names of the columns of a data frame."""
    here: bool = False
    """Whether the points came in one piece, as a NumPy array, so that results should too."""
    table: Any = None
    """The data frame, if its parts are tables of pandas."""

    @property
    def rows(self) -> Any:
        """What was given: the data frame, or the array."""
        return self.X if self.table is None else self.table

    @property
    def like(self) -> Any:
        """Something with the same columns, and without rows."""
        return np.empty((0, self.n_features), self.X.dtype) if self.table is None else self.table._meta

    @property
    def lengths(self) -> tuple:
        """Rows of each chunk, NaN if nobody knows."""
        return self.X.chunks[0]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    @property
    def precision(self) -> np.dtype:
        """float32 stays float32; everything else is computed in float64."""
        return np.dtype(np.float32 if self.X.dtype == np.float32 else np.float64)


def points(X) -> Given:
    """Points from a Dask array, a Dask data frame or a NumPy array."""
    if _is_frame(X):
        refuse_frame(X._meta)
        return Given(_array(X), tuple(X.columns), table=X if is_table(X._meta) else None)
    here = isinstance(X, np.ndarray)
    if here:
        X = da.from_array(X, chunks=(ROWS, *X.shape[1:]))
    if not isinstance(X, da.Array):
        make = "dask.dataframe.from_pandas(X, npartitions=1)" if is_table(X) else "dask.array.from_array(X)"
        raise TypeError(
            f"X must be a Dask array or data frame, or a NumPy array, got {type(X).__name__}: give {make}, or use "
            "LGCPClassifier for data in memory"
        )
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}: give X.reshape(-1, 1) if it is a single feature")
    if X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    return Given(X, here=here)


def column(values, X: da.Array, name: str) -> da.Array:
    """One value per row in the same chunks as X, from a Dask array or series or from anything that NumPy takes."""
    if _is_frame(values):
        values = _array(values)
    if isinstance(values, da.Array):
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        return _aligned(values, X, name)
    values = np.asarray(values)
    values = values.astype(np.str_) if values.dtype == object and all(isinstance(v, str) for v in values) else values
    if np.isnan(X.shape[0]):
        raise ValueError(
            f"the chunks of X have unknown lengths, and {name} is a {type(values).__name__}: give {name} as a Dask "
            "array or series with the same chunks, or call X.compute_chunk_sizes() first"
        )
    return _aligned(da.from_array(values, chunks=values.shape), X, name)


def _aligned(values: da.Array, X: da.Array, name: str) -> da.Array:
    if values.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got {values.ndim}: give one value per row of X")
    if not np.isnan([values.shape[0], X.shape[0]]).any():
        if values.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, and {name} has {values.shape[0]}: give one value per row of X")
        return values if values.chunks[0] == X.chunks[0] else values.rechunk((X.chunks[0],))
    if values.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"X has {X.numblocks[0]} chunks, and {name} has {values.numblocks[0]}, of unknown lengths: give both from "
            "one data frame, or call compute_chunk_sizes() on both first"
        )
    return values


def _is_frame(values: Any) -> bool:
    """Whether it is a Dask data frame or series, which NumPy and Dask arrays are not."""
    return hasattr(values, "to_dask_array") and hasattr(values, "npartitions")


def _array(frame: Any) -> da.Array:
    """A data frame or series as an array whose chunks have unknown lengths."""
    like = _values(frame._meta)
    return frame.map_partitions(_values, meta=np.empty(like.shape, like.dtype))


def _values(part: Any) -> np.ndarray:
    """A part of a data frame or series as NumPy holds it; blanks among numbers are NaN."""
    values = part.to_numpy()
    if values.dtype != object or part.ndim == 1:
        return values
    try:
        return part.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):  # text: the check of the chunk names the column
        return values


# Checks of chunks. Each error is one sentence that names the column and the chunk.


class NumbersError(ValueError):
    """A chunk with blank cells or words, which a table may hold."""


@dataclass(frozen=True)
class Form:
    """What the chunks of points must look like."""

    precision: np.dtype
    n_features: int
    names: tuple | None = None
    """Names of the columns, if the points came as a data frame."""
    sparse: bool | None = None
    """Whether chunks are made sparse or dense; None if they stay as they are."""

    def points(self, chunk, number: int, what: str = "X") -> Any:
        """A chunk of points: an array where it is, on its device, or a CSR array, in the right precision."""
        X = made(chunk)
        if not is_foreign(X):
            X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"chunk {number} of {what} has the shape {X.shape}, where {self.n_features} columns were promised: "
                "correct the function that makes the chunks, or the shape that was declared"
            )
        if is_foreign(X):
            return self._elsewhere(X, number, what)
        if X.dtype.kind not in "biuf" and not sparse.issparse(X):
            X = self._numbers(X, number, what)
        found = X.astype(self.precision, copy=False)
        self._refuse_blanks(found, number, what)
        if self.sparse is None or sparse.issparse(found) == self.sparse:
            return found
        return sparse.csr_array(found) if self.sparse else found.toarray()

    def _elsewhere(self, X, number: int, what: str) -> Any:
        """A chunk of another library than NumPy, such as CuPy, which stays on its device."""
        library = Library.of(X)
        if self.sparse:
            raise ValueError(
                f"chunk {number} of {what} holds {library}, where the first chunk is sparse: give all in one form"
            )
        single = self.precision == np.float32
        found = library.xp.astype(X, library.xp.float32 if single else library.double, copy=False)
        if not bool(library.xp.all(library.xp.isfinite(found))):
            self._refuse_blanks(to_numpy(found), number, what)
        return found

    def _numbers(self, X: NDArray, number: int, what: str) -> NDArray:
        for k in range(X.shape[1]):
            try:
                X[:, k].astype(float)
            except (TypeError, ValueError):
                raise NumbersError(
                    f"{self._column(k)} of {what} holds no numbers in chunk {number}, such as {X[0, k]!r}: encode it "
                    "as numbers, or leave it out"
                ) from None
        return X.astype(float)

    def _refuse_blanks(self, X, number: int, what: str) -> None:
        values = X.data if sparse.issparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum(dtype=float)) or np.isfinite(values).all():
                return
        wrong = sparse.coo_array(X) if sparse.issparse(X) else X
        rows, columns = np.nonzero(~np.isfinite(X)) if wrong is X else _places(wrong)
        row, k = int(rows[0]), int(columns[0])
        value = X[[row], :].toarray()[0, k] if sparse.issparse(X) else X[row, k]
        said = "NaN" if np.isnan(value) else "infinity"
        kind = NumbersError if said == "NaN" and not sparse.issparse(X) else ValueError
        raise kind(
            f"Input {what} contains {said}: {self._column(k)} in row {row} of chunk {number}, where a finite number is "
            "needed: fill in a number, or remove the row"
        )

    def _column(self, k: int) -> str:
        return f"column {k if self.names is None else repr(self.names[k])}"


def _places(X: sparse.coo_array) -> tuple[NDArray, NDArray]:
    wrong = ~np.isfinite(X.data)
    rows, columns = X.coords
    return rows[wrong], columns[wrong]


def checked_labels(chunk, X, number: int, estimator: str) -> NDArray:
    """The labels of a chunk of points."""
    y = made(chunk)
    y = to_numpy(y) if is_foreign(y) else y
    if len(y) != X.shape[0]:
        raise ValueError(
            f"chunk {number} of X has {X.shape[0]} rows, and that of y has {len(y)}: give both with the same chunks"
        )
    with in_chunk(number):
        return validation.complete_labels(y, X, estimator)


def checked_weights(chunk, X, number: int) -> NDArray | None:
    """The weights of a chunk of points, not negative; None if every point counts once."""
    if chunk is None:
        return None
    weights = to_numpy(made(chunk)).astype(float)
    if weights.shape != (X.shape[0],):
        raise ValueError(
            f"chunk {number} of X has {X.shape[0]} rows, and that of sample_weight has the shape {weights.shape}: "
            "give one number per row, with the same chunks"
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0) & (weights <= EXTREME_WEIGHT))
    wrong |= (weights > 0) & (weights < 1 / EXTREME_WEIGHT)
    if wrong.any():
        raise ValueError(
            f"sample_weight is {weights[wrong][0]:g} in chunk {number}: give 0, or numbers between "
            f"{1 / EXTREME_WEIGHT:.2g} and {EXTREME_WEIGHT:.2g}"
        )
    return weights


@contextmanager
def in_chunk(number: int) -> Iterator[None]:
    """A context in which a sentence on a row says in which chunk the row is."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"chunk {number}: {error}") from None
