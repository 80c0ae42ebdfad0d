"""What users give, as Dask arrays whose chunks are whole rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from coxfield.estimators.frames import refuse_columns

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
