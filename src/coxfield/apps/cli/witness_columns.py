"""Columns of a table that name training rows, and say what each adds to the score of a class."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl
    from numpy.typing import NDArray

    from coxfield.estimators.reasons import Contributions


def loudest(reasons: "Contributions", codes: "NDArray") -> "tuple[NDArray, NDArray, NDArray]":
    """The rows that speak loudest for one class per query, what each adds, and what everything else adds."""
    import numpy as np

    at = np.arange(len(reasons)), codes
    return reasons.rows[at], reasons.shares[at], reasons.rest[at]


def witness_columns(rows: "NDArray", shares: "NDArray", names: "pl.Series", title: str) -> "Iterable[pl.Series]":
    """For each rank a column of names and a column of shares; blank where a class has fewer rows.

    Parameters
    ----------
    rows, shares : arrays of shape (n, top)
        As from `loudest`.
    names : Series
        What each training row is called.
    title : str
        What the columns of names are called; their number is added.
    """
    import polars as pl

    for k in range(rows.shape[1]):
        there = pl.Series(rows[:, k] >= 0)
        found = names.gather(rows[:, k].clip(0)) if len(names) else names
        for name, values in ((f"{title}_{k + 1}", found), (f"share_{k + 1}", pl.Series(shares[:, k]))):
            yield pl.select(pl.when(there).then(values).alias(name)).to_series()
