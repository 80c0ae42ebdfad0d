"""Checks of chunks, where they are. Each error is one sentence that names the column and the chunk."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from coxfield.dask.chunks import made
from coxfield.estimators import validation
from coxfield.estimators.validation import EXTREME_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


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
        """A chunk of points in memory: an array or a CSR array in the right precision."""
        X = in_memory(made(chunk))
        X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"chunk {number} of {what} has the shape {X.shape}, where {self.n_features} columns were promised: "
                "correct the function that makes the chunks, or the shape that was declared"
            )
        if X.dtype.kind not in "biuf" and not sparse.issparse(X):
            X = self._numbers(X, number, what)
        found = X.astype(self.precision, copy=False)
        self._refuse_blanks(found, number, what)
        if self.sparse is None or sparse.issparse(found) == self.sparse:
            return found
        return sparse.csr_array(found) if self.sparse else found.toarray()

    def _numbers(self, X: NDArray, number: int, what: str) -> NDArray:
        for k in range(X.shape[1]):
            try:
                X[:, k].astype(float)
            except (TypeError, ValueError):
                raise ValueError(
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
        raise ValueError(
            f"Input {what} contains {said}: {self._column(k)} in row {row} of chunk {number}, where a finite number is "
            "needed: fill in a number, or remove the row"
        )

    def _column(self, k: int) -> str:
        return f"column {k if self.names is None else repr(self.names[k])}"


def _places(X: sparse.coo_array) -> tuple[NDArray, NDArray]:
    wrong = ~np.isfinite(X.data)
    rows, columns = X.coords
    return rows[wrong], columns[wrong]


def in_memory(chunk) -> Any:
    """A chunk in the memory of the processor: chunks of CuPy are copied from the device."""
    return chunk.get() if type(chunk).__module__.partition(".")[0] in ("cupy", "cupyx") else chunk


def checked_labels(chunk, X, number: int, estimator: str) -> NDArray:
    """The labels of a chunk of points."""
    y = in_memory(made(chunk))
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
    weights = np.asarray(in_memory(made(chunk)), dtype=float)
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
