"""Folds of the labelled points, for cross validation that uses all other points too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_folds(n_folds) -> None:
    """Refuse a number of folds that is not an integer of at least 2."""
    if not isinstance(n_folds, int | np.integer) or n_folds < 2:
        raise ValueError(f"n_folds must be an integer of at least 2, got {n_folds!r}")


def folds(codes: NDArray, n_folds: int) -> list[NDArray]:
    """Rows to hide together. Labelled rows are distributed class by class, so that every fold has its share of each.

    Nothing is random: the same data give the same folds. There are never more folds than labelled rows.

    Examples
    --------
    >>> [fold.tolist() for fold in folds(np.array([0, -1, 1, 0, 1]), 2)]
    [[0, 2], [3, 4]]
    """
    labelled = np.flatnonzero(codes >= 0)
    by_class = labelled[np.argsort(codes[labelled], kind="stable")]
    count = min(n_folds, len(labelled))
    return [by_class[fold::count] for fold in range(count)]


def hide(codes: NDArray, rows: NDArray) -> NDArray:
    """The labels without those of some rows."""
    visible = codes.copy()
    visible[rows] = -1
    return visible
