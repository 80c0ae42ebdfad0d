"""Errors at certain points, and which rows of the user's data these points are.

A kernel or a transformer is called far below the estimators, on blocks of rows in another order. There only the points
themselves are known, so that is what the error keeps. Those who have the data in the user's order open `rows_named`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SHOWN = 3  # features of a point that a sentence shows


class PointsError(ValueError):
    """Something that a user gave fails at certain points."""

    _said: tuple[str, str]
    _points: tuple
    _rows: list[tuple[str, int] | None]

    @classmethod
    def at(cls, what: str, points: Sequence, remedy: str) -> PointsError:
        """The error '<what> for <points>: <remedy>'; each point is an array with one row."""
        error = cls()
        error._said, error._points, error._rows = (what, remedy), tuple(points), [None] * len(points)
        error._write()
        return error

    def name_rows(self, sets: Mapping[str, Any]) -> None:
        """Say which rows of some sets of points these are. Points that are in none of the sets stay as they are."""
        sets = {name: X() if callable(X) else X for name, X in sets.items()}
        different = list({id(X): name for name, X in sets.items()}.values())
        for k, point in enumerate(self._points):
            # Of two points the first is one that is asked about, and the second one that is known: the last set.
            names = different if k == 0 else different[::-1]
            found = ((name, _row_of(point, sets[name])) for name in names)
            self._rows[k] = next(((name, row) for name, row in found if row is not None), self._rows[k])
        self._write()

    def _write(self) -> None:
        what, remedy = self._said
        self.args = (f"{what} for {self._where()}: {remedy}",)

    def _where(self) -> str:
        named = [row for row in self._rows if row is not None]
        if not named:
            return f"the point{'s' * (len(self._points) > 1)} {' and '.join(map(_features, self._points))}"
        if len(named) == 2 and named[0][0] == named[1][0]:
            (name, first), (_, second) = named
            return f"rows {first} and {second} of the {name}" if first != second else f"{_row(*named[0])} and itself"
        both = zip(self._rows, self._points, strict=True)
        return " and ".join(f"the point {_features(point)}" if row is None else _row(*row) for row, point in both)


@contextmanager
def rows_named(sets: Mapping[str, Any]) -> Iterator[None]:
    """A context in which errors at points say which rows they are.

    Parameters
    ----------
    sets : mapping name -> points, or a function that returns them
        Points in the order in which the user knows them, such as {"queries": X, "training points": X_fit}. The points
        that are known come last.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> with rows_named({"training points": X}):
    ...     raise PointsError.at("MyKernel() is nan", (X[1:], X[:1]), "correct it")
    Traceback (most recent call last):
        ...
    coxfield.kernels.named_rows.PointsError: MyKernel() is nan for rows 1 and 0 of the training points: correct it
    """
    try:
        yield
    except PointsError as error:
        error.name_rows(sets)
        raise


def _row_of(point, X) -> int | None:
    """The first row of X that is the point, None if there is none."""
    if sparse.issparse(X) != sparse.issparse(point) or X.shape[1] != point.shape[1]:
        return None
    if sparse.issparse(X):
        X, point = sparse.csr_array(X), sparse.csr_array(point)
        same = (X[:, point.indices].toarray() == point.data).all(axis=1) & (np.diff(X.indptr) == point.nnz)
    else:
        same = (point == X).all(axis=1)
    return int(same.argmax()) if same.any() else None


def _row(name: str, row: int) -> str:
    return f"row {row} of the {name}"


def _features(point) -> str:
    """The first features of a point."""
    features = point[:, :SHOWN].toarray() if sparse.issparse(point) else point[:, :SHOWN]
    more = [] if point.shape[1] <= SHOWN else ["..."]
    return f"({', '.join([*(f'{value:.4g}' for value in features[0].tolist()), *more])})"
