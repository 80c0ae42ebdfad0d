"""The length scales that a selection tries, and the folds by which it may compare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from coxfield.field.potts import LabelField
from coxfield.kernels.called import all_held, hold
from coxfield.kernels.namespace import Library, at_home, doubled, is_foreign, rows_of, to_numpy
from coxfield.kernels.protocol import bind_precisely
from coxfield.kernels.sklearn_tree import free_length_scales, length_scale_bounds, length_unit
from coxfield.kernels.transforms import feature_units, in_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.protocol import Covariance, KernelPoints, PerClass

# All points at one length scale, with their couplings held if possible: every fold needs the same ones.


@dataclass(frozen=True)
class AllPoints:
    """Labelled and unlabelled points under given covariances; build it with `at`."""

    X: Any
    covariances: PerClass[Covariance]
    points: tuple[KernelPoints, ...]
    mean: NDArray

    @classmethod
    def at(cls, X, covariances: PerClass[Covariance], mean: NDArray, factor: float) -> AllPoints:
        """The points at a factor of the length scales."""
        scaled = covariances.map(lambda covariance: covariance.rescaled(length=factor))
        return cls(X, scaled, tuple(hold(bind_precisely(covariance, X)) for covariance in scaled.distinct), mean)

    @property
    def held(self) -> bool:
        """Whether all couplings are held."""
        return all_held(self.points)

    def field(self, codes: NDArray) -> LabelField:
        """The field of the rows whose class number is -1, given the others."""
        return LabelField.of_bound(self.X, self.covariances, self.points, codes, self.mean)

    def free_field(self, variance: float = 1.0) -> LabelField:
        """The field of all rows, none of them labelled, at a factor of the signal variance."""
        scaled = self.covariances.map(lambda covariance: covariance.rescaled(variance=variance))
        points = tuple(bound.rescaled(variance=variance) for bound in self.points)
        return AllPoints(self.X, scaled, points, self.mean).field(np.full(self.X.shape[0], -1))


RATIO = float(np.sqrt(2))
COUNT = 24
SMALLEST, LARGEST = float(np.finfo(float).tiny), float(np.finfo(float).max) / 4  # of a factor, before it is refined
ROWS = 4096  # rows that are converted to double precision at a time


def typical_distance(X, length_scale=1.0, weights: NDArray | None = None) -> float:
    """Root mean square of |x - x'| / length_scale over all pairs of rows, from the variances of the features.

    Repeating all rows does not change it. Reordering them changes it only by rounding. Numbers of any size will do:
    squares are taken in units of powers of two.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
    length_scale : float or array of shape (d,)
    weights : array of shape (n,), optional

    Examples
    --------
    >>> X = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> print(f"{typical_distance(X):.3f}, {typical_distance(X, 2.0):.3f}, {typical_distance(1e300 * X, 1e300):.3f}")
    1.414, 0.707, 1.414
    """
    units = feature_units(X)
    return moments(X, units, in_units(X[:1], units), weights).distance(length_scale)


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows, from which the variances of the features follow. Those of several sets of rows add."""

    units: NDArray
    """Of each feature, a power of two."""
    total: float
    """Sum of the weights."""
    first: NDArray
    """Sum of the differences from an origin."""
    second: NDArray
    """Sum of their squares."""

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.units, self.total + other.total, self.first + other.first, self.second + other.second)

    @property
    def variances(self) -> NDArray:
        """The variance of each feature, in its unit."""
        variance = self.second / self.total - np.square(self.first / self.total)
        # So small a difference of equal numbers is rounding.
        variance[variance <= 4 * np.finfo(float).eps * self.second / self.total] = 0
        return variance

    def distance(self, length_scale) -> float:
        """Root mean square of |x - x'| / length_scale over all pairs of rows."""
        variances = self.variances
        varied = variances > 0
        if not varied.any():
            return 0.0
        lengths = np.broadcast_to(np.asarray(length_scale, dtype=float), varied.shape)[varied]
        own = np.log2(self.units[varied])
        unit = np.floor((np.log2(variances[varied]) / 2 - np.log2(lengths) + own).max())
        with np.errstate(over="ignore"):  # a length scale so long that the feature does not count
            scaled = np.ldexp(lengths, (unit - own).astype(int))
            root = np.sqrt(2 * np.sum(variances[varied] / np.square(scaled)))
            return float(min(np.ldexp(root, int(unit)), np.finfo(float).max))


def moments(X, units: NDArray, origin, weights: NDArray | None = None) -> Moments:
    """The moments of some rows about an origin that is a row in these units; sparse rows are not moved."""
    weights = np.ones(X.shape[0]) if weights is None else weights.astype(float)
    sums_of = _sparse_moments if sparse.issparse(X) else _dense_moments
    if is_foreign(X) and (units == 1).all():
        return Moments(units, float(weights.sum()), *_device_moments(X, origin, weights))
    first, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, X.shape[0], ROWS):  # also of no rows, such as those of an empty chunk
        part = slice(start, start + ROWS)
        sums = sums_of(in_units(rows_of(X, part), units), origin, weights[part])
        first, second = first + sums[0], second + sums[1]
    return Moments(units, float(weights.sum()), first, second)


def _dense_moments(rows, origin, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Weighted sums of z and z^2 over some rows, where z is the difference from the origin."""
    moved = rows.astype(float) - origin
    return weights @ moved, weights @ np.square(moved)


def _device_moments(X, origin, weights: NDArray) -> tuple[NDArray, NDArray]:
    """The same of all rows in the library of the points, where they are."""
    rows, library = doubled(X), Library.of(X)
    moved, by = rows - library.array(origin.astype(float), rows.dtype), library.array(weights, rows.dtype)
    return to_numpy(by @ moved), to_numpy(by @ (moved * moved))


def _sparse_moments(rows, origin, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Weighted sums of x and x^2 over some rows; moving them would make them dense."""
    rows = rows.astype(float)
    return rows.T @ weights, rows.power(2).T @ weights


def class_distance(labelled: Labelled, kernels: PerClass) -> float:
    """The typical distance of the points of a kernel's classes in units of its length scales, the largest of all."""
    found = []
    for k, kernel in enumerate(kernels.distinct):
        rows = np.flatnonzero(np.isin(labelled.y, kernels.classes(k)))
        X, weights = at_home(labelled.X), labelled.weights
        if len(rows) < len(labelled):
            X, weights = X[rows], None if weights is None else weights[rows]
        found.append(typical_distance(X, length_unit(kernel), weights))
    return max(found)


def default_factors(distance: float, count: int = COUNT) -> NDArray:
    """Factors for the length scale, from twice the typical distance downwards by sqrt(2).

    At twice the typical distance the scores are nearly flat and the largest class wins. At a 1500th of that, on all
    data we have seen, the nearest neighbour decides. If the units of X change, the factors change with them.
    """
    if distance == 0:
        raise ValueError("all points are the same, so there is no length scale to choose: give selection=None")
    with np.errstate(over="ignore"):
        factors = 2 * distance * RATIO ** -np.arange(count)
    # Numbers end somewhere: of points near that end, the length scales that are numbers are tried.
    return np.unique(np.clip(factors, SMALLEST, LARGEST))[::-1]


def given_factors(length_scales) -> NDArray:
    """The factors that the user gave, longest first."""
    try:
        factors = np.asarray(length_scales, dtype=float)
    except (TypeError, ValueError):
        factors = np.empty(0)  # not numbers
    if factors.ndim != 1 or not factors.size or not (np.isfinite(factors) & (factors > 0)).all():
        raise ValueError(f"length_scales must be a list of positive finite numbers, got {length_scales!r}")
    return np.sort(factors)[::-1]


def candidate_factors(kernels: Sequence, distance: float, length_scales, *, bounded: bool) -> NDArray:
    """The factors to try for the length scales, longest first.

    Parameters
    ----------
    kernels : sequence of kernels
        The different kernels in use; at least one must have a length scale that is not fixed.
    distance : float
        Of the points, in units of the length scale; see `typical_distance`.
    length_scales : array-like or None
        Given by the user; None for `default_factors`.
    bounded : bool
        Whether default factors outside the bounds of the kernels are dropped.
    """
    if not any(map(free_length_scales, kernels)):
        raise ValueError(
            f"there is no length scale to choose: {kernels[0]!r} has no free length scale; give selection=None"
        )
    if length_scales is not None:
        return given_factors(length_scales)
    factors = default_factors(distance)
    inside = within_bounds(factors, kernels) if bounded else factors
    if not inside.size:
        raise ValueError(
            f"no length scale to try: the data suggest factors of {factors[-1]:.3g} to {factors[0]:.3g}, outside the "
            f"bounds of {kernels[0]!r}; widen length_scale_bounds or give length_scales"
        )
    return inside


def finer_factors(best: float, kernels: Sequence, *, bounded: bool) -> NDArray:
    """Factors between the best of the default grid and its two neighbours, spaced by 2^(1/8).

    They come in pairs of ratio sqrt(2), because the second of a pair then costs only a square.
    """
    steps = np.array([3, -1, 2, -2, 1, -3])
    factors = best * 2 ** (steps / 8)
    return within_bounds(factors, kernels) if bounded else factors


def within_bounds(factors: NDArray, kernels: Sequence) -> NDArray:
    """The factors that keep the length scales of all kernels within their bounds."""
    low, high = np.array([length_scale_bounds(kernel) for kernel in kernels]).T
    return factors[(factors >= low.max()) & (factors <= high.min())]


def length_scale_of(kernels: Sequence) -> float:
    """The length scale at a factor of 1 if there is only one length scale; 1 if there are several."""
    unit = np.asarray(length_unit(kernels[0]))
    return 1.0 if len(kernels) > 1 or unit.size > 1 else float(unit.item())


# Folds of the labelled points, for cross validation that uses all other points too.


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
