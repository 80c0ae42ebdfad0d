"""What users give, as Dask arrays whose chunks are whole rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask.optimization import cull
from dask.sizeof import sizeof
from distributed import Future

import dask
from coxfield.estimators.validation import refuse_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from coxfield.dask.shards import Plan
    from coxfield.engine.decision import Scores


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

    def __init__(self, tasks: dict, key):
        self.tasks, self.key = tasks, key

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
    if any(isinstance(value, Future) for value in values) or sum(map(sizeof, values)) > LIGHT:
        return key
    return Recipe(needed, key)


ROWS = 8192  # of a chunk that is made of a NumPy array


@dataclass(frozen=True)
class Given:
    """Points as they were given, in chunks of whole rows."""

    X: da.Array
    names: tuple | None = None
    """Names of the columns of a data frame."""
    here: bool = False
    """Whether the points came in one piece, as a NumPy array, so that results should too."""

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
        refuse_columns(X._meta)
        _refuse_words(X._meta)
        return Given(_array(X), tuple(X.columns))
    here = isinstance(X, np.ndarray)
    if here:
        X = da.from_array(X, chunks=(ROWS, *X.shape[1:]))
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a Dask array or data frame, or a NumPy array, got {type(X).__name__}: give "
            "dask.array.from_array(X), or use LGCPClassifier for data in memory"
        )
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}: give X.reshape(-1, 1) if it is a single feature")
    if X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    return Given(X, here=here)


def _refuse_words(frame: Any) -> None:
    """Refuse a data frame with a column of words: its levels would have to be known in all parts at once."""
    for name, dtype in frame.dtypes.items():
        if hasattr(dtype, "categories") or str(dtype).startswith(("str", "large_string")):
            raise ValueError(
                f"Column {name!r} of X is of type {dtype}, and a Dask data frame must hold numbers: give "
                "dask.dataframe.get_dummies(X.categorize()), or use LGCPClassifier for rows in memory"
            )


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


# From planned scores to the Dask arrays that users see.


@dataclass(frozen=True)
class Results:
    """Scores of blocks of rows, or what takes their place, not computed yet."""

    plan: Plan
    keys: Sequence
    """Of the scores of each block."""
    lengths: Sequence
    """Rows of each block, NaN if nobody knows."""
    classes: NDArray
    precision: np.dtype
    here: bool = False
    """Whether to compute at once."""

    def labels(self) -> Any:
        """Most probable classes."""
        return self.array("predict", partial(_labels, self.classes), (), self.classes.dtype)

    def probabilities(self) -> Any:
        """Probabilities of the classes."""
        return self._per_class("predict-proba", _probabilities)

    def log_probabilities(self) -> Any:
        """Log probabilities of the classes."""
        return self._per_class("predict-log-proba", _log_probabilities)

    def class_scores(self) -> Any:
        """Scores of the classes."""
        return self._per_class("class-scores", _in_precision)

    def decision_function(self) -> Any:
        """Score of class 1 minus score of class 0 for two classes; scores up to a constant per row for more."""
        if len(self.classes) > 2:
            return self._per_class("decision-function", _relative)
        return self.array("decision-function", partial(_difference, self.precision), (), self.precision)

    def _per_class(self, step: str, function: Callable) -> Any:
        return self.array(step, partial(function, self.precision), (len(self.classes),), self.precision)

    def array(self, step: str, function: Callable, tail: tuple, dtype) -> Any:
        """An array whose chunks are the function of one result each, with rows of the shape `tail`."""
        array = self.plan.array(step, function, self.keys, self.lengths, tail=tail, dtype=dtype)
        return array.compute() if self.here else array


def returned(precision: np.dtype, values: NDArray) -> NDArray:
    """Numbers in the precision of the training points, and none of them infinite."""
    largest = np.finfo(precision).max
    return np.clip(values, -largest, largest).astype(precision, copy=False)


def _labels(classes: NDArray, scores: Scores) -> NDArray:
    return classes[scores.decisions]


def _in_precision(precision: np.dtype, scores: Scores) -> NDArray:
    return returned(precision, scores.values)


def _relative(precision: np.dtype, scores: Scores) -> NDArray:
    return returned(precision, scores.relative)


def _difference(precision: np.dtype, scores: Scores) -> NDArray:
    found = _relative(precision, scores)
    return found[:, 1] - found[:, 0]


def _log_probabilities(precision: np.dtype, scores: Scores) -> NDArray:
    return returned(precision, scores.log_probabilities)


def _probabilities(precision: np.dtype, scores: Scores) -> NDArray:
    return np.exp(_log_probabilities(precision, scores))
