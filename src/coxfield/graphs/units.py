r"""Which units features are compared in: as they are, or in units that every column has alike.

Pixels and embeddings share one unit, and how much a column varies says how much it matters. Columns of a table have
units of their own, and distances see the column with the largest numbers. Variances tell the two apart without labels:

.. math:: g = \frac{(\sum v)^2 / \sum v^2 - 1}{d - 1}

where v are the variances of the d columns that vary. If distances see one column alone, g is 0. If all vary alike, it
is 1. From `COMMON` on, points stay as they are. Below, they are represented three times: by z-scores, by normal scores
of the ranks, and by whitened z-scores. Labels then say which representation to trust. Columns whose variances are equal
to many digits have been standardised by somebody, and are treated like those of a table too.

Of each column the outermost values are moved to the next ones before variances are computed, and z-scores are limited.
So a few outliers change little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from coxfield.utils.numbers import power_of_two

if TYPE_CHECKING:
    from numpy.typing import NDArray

COMMON = 0.2  # g from which the units are common; sets of known kind lie below 0.1 or above 0.3
SAME = 1e-5  # relative difference of variances that a scaler leaves
OUTER = 0.01  # share of the values of a column on either side that are moved to the next ones, at least one
LIMIT = 5.0  # of z-scores
EXTREME = 2.0**100  # beyond it, or below its reciprocal, points are taken in units of a power of two
SOME = 5000  # rows from which variances and ranks are computed
KNOTS = 1000  # values of a column with a score of their own; those between are interpolated


@dataclass(frozen=True)
class AsGiven:
    """Points as they are, up to a power of two if their numbers are very large or very small."""

    unit: float = 1.0
    name = ""

    @classmethod
    def of(cls, X) -> AsGiven:
        """Fit to points, dense or sparse."""
        size = float(np.abs(X.data if sparse.issparse(X) else X).max(initial=0.0))
        return cls() if size == 0 or 1 / EXTREME < size < EXTREME else cls(power_of_two(size))

    def place(self, X):
        """The points themselves, or divided by the power of two, in double precision: it may be beyond single."""
        if self.unit == 1:
            return X
        found, largest = X.astype(np.float64), np.finfo(float).max
        values = found.data if sparse.issparse(found) else found
        with np.errstate(over="ignore"):
            np.clip(np.divide(values, self.unit, out=values), -largest, largest, out=values)
        return found


@dataclass(frozen=True)
class ZScores:
    """Number columns as limited z-scores, and other columns as they are."""

    centre: NDArray
    """Of the number columns, which come first."""
    scale: NDArray
    """Infinite for columns that do not vary."""
    name = "z-scores"

    @classmethod
    def of(cls, X: NDArray, n_numbers: int) -> ZScores:
        """Fit to points whose first `n_numbers` columns are numbers."""
        numbers = np.asarray(X[_some(len(X)), :n_numbers], dtype=float)
        unit = _units(numbers)
        inner = _inner(numbers / unit)
        spread = inner.std(axis=0)
        rare = (spread == 0) & (np.ptp(numbers, axis=0) > 0)  # a value that only few rows have is no outlier
        spread[rare] = (numbers / unit)[:, rare].std(axis=0)
        return cls(inner.mean(axis=0) * unit, np.where(spread > 0, spread * unit, np.inf))

    def place(self, X: NDArray) -> NDArray:
        """Points in these units."""
        found, d = np.array(X), len(self.scale)
        with np.errstate(over="ignore"):
            found[:, :d] = np.clip((X[:, :d] / 2 - self.centre / 2) / (self.scale / 2), -LIMIT, LIMIT)
        return found


@dataclass(frozen=True)
class NormalScores:
    """Number columns as normal scores of their ranks, and other columns as they are."""

    values: tuple[NDArray, ...]
    """Of each number column, in increasing order."""
    scores: tuple[NDArray, ...]
    """Of these values."""
    name = "ranks"

    @classmethod
    def of(cls, X: NDArray, n_numbers: int) -> NormalScores:
        """Fit to points whose first `n_numbers` columns are numbers."""
        pairs = [_normal_scores(column) for column in X[_some(len(X)), :n_numbers].T.astype(float)]
        return cls(tuple(values for values, _ in pairs), tuple(scores for _, scores in pairs))

    def place(self, X: NDArray) -> NDArray:
        """Points in these units. Values between known ones are interpolated."""
        found = np.array(X)
        for c, (values, scores) in enumerate(zip(self.values, self.scores, strict=True)):
            found[:, c] = np.interp(X[:, c], values, scores)
        return found


@dataclass(frozen=True)
class Whitened:
    """z-scores along their principal axes, each divided by the root of its variance plus 1."""

    inner: ZScores
    centre: NDArray
    rotation: NDArray
    name = "whitened"

    @classmethod
    def of(cls, X: NDArray, n_numbers: int) -> Whitened:
        """Fit to points whose first `n_numbers` columns are numbers."""
        inner = ZScores.of(X, n_numbers)
        z = inner.place(X)
        variances, axes = np.linalg.eigh(np.atleast_2d(np.cov(z.T, bias=True)))
        return cls(inner, z.mean(axis=0), axes / np.sqrt(np.maximum(variances, 0) + 1))

    def place(self, X: NDArray) -> NDArray:
        """Points in these units."""
        z = self.inner.place(X)
        return (z - self.centre.astype(z.dtype)) @ self.rotation.astype(z.dtype)


Units = AsGiven | ZScores | NormalScores | Whitened


def units_for(X, n_categories: int = 0) -> tuple[Units, ...]:
    """The units to compare points in. The last `n_categories` columns are categories, 0 or 1 each."""
    if sparse.issparse(X):
        return (AsGiven.of(X),)
    n_numbers = X.shape[1] - n_categories
    share = _common_share(np.asarray(X[_some(len(X)), :n_numbers], dtype=float))
    if share is None or (share >= COMMON and not n_categories and not _standardised(X)):
        return (AsGiven.of(X),)
    return tuple(kind.of(X, n_numbers) for kind in (ZScores, NormalScores, Whitened))


def _common_share(numbers: NDArray) -> float | None:
    """g, 1 if one column varies, and None if none does.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(1000, 3))
    >>> bool(_common_share(rows) > 0.9), bool(_common_share(rows * [1.0, 1.0, 1e6]) < 0.01)
    (True, True)
    """
    unit = float(_units(numbers).max(initial=0.0))
    variances = _inner(numbers / (unit or 1.0)).var(axis=0) if numbers.size else np.empty(0)
    variances = variances[variances > 0]
    if not len(variances):
        return None
    variances /= variances.max()
    count = variances.sum() ** 2 / (variances**2).sum()
    return float((count - 1) / (len(variances) - 1)) if len(variances) > 1 else 1.0


def _standardised(X: NDArray) -> bool:
    """Whether several columns vary, all by the same: somebody has given them common units that they did not have."""
    size = np.abs(X).max(initial=0.0)
    variances = (X / (size or 1.0)).var(axis=0, dtype=float)
    variances = variances[variances > 0]
    return len(variances) > 1 and bool(np.ptp(variances) <= SAME * variances.max())


def _some(n: int) -> slice:
    """Rows that are enough, spread over all."""
    return slice(None, None, -(-n // SOME))


def _units(numbers: NDArray) -> NDArray:
    """The size of the numbers of each column, so that their squares can be formed; 1 for a column of zeros."""
    size = np.abs(numbers).max(axis=0, initial=0.0)
    return np.where(size > 0, size, 1.0)


def _inner(numbers: NDArray) -> NDArray:
    """Columns whose outermost values are moved to the next ones inside."""
    n = len(numbers)
    outer = max(1, int(OUTER * n))
    if n < 2 * outer + 1:
        return numbers
    ordered = np.sort(numbers, axis=0)
    return np.clip(numbers, ordered[outer], ordered[n - 1 - outer])


def _normal_scores(column: NDArray) -> tuple[NDArray, NDArray]:
    """Values in increasing order, and the normal score of the middle rank of each."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) == 1:
        return values, np.zeros(1)
    middle = (np.cumsum(counts) - counts / 2) / len(column)
    kept = np.unique(np.linspace(0, len(values) - 1, KNOTS).round().astype(int))
    return values[kept], ndtri(middle[kept])
