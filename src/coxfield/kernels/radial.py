"""Radial covariances: C(x, x') = variance * profile(|(x - x') / length_scale|^2), the fast path."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.gaussian_process import kernels

from coxfield.kernels import ladder, profiles
from coxfield.kernels.called import nearest
from coxfield.kernels.distances import (
    TOLERABLE,
    ScaledPoints,
    centre,
    is_view,
    pair_sq_distances,
    place,
    product_error,
    sq_distances,
    stacked,
)
from coxfield.kernels.ladder import PlainBound
from coxfield.kernels.sklearn_tree import check_nonnegative, factorise, length_unit, rescale

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Where the largest sum of a row is below this, kernel values have lost digits or vanished.
FAINT = {name: float(np.finfo(name).tiny / np.finfo(name).eps) for name in ("float32", "float64")}


@dataclass(frozen=True)
class Radial:
    """A profile of scaled distances, from a product of constants with one RBF, Matern or RationalQuadratic."""

    kernel: kernels.Kernel
    profile: profiles.Profile
    variance: float
    length_scale: float | NDArray
    """One number, or one per feature."""

    @classmethod
    def of(cls, kernel: kernels.Kernel) -> Radial | None:
        """The kernel as a profile, or None if it is not of this form."""
        variance, base = factorise(kernel) or (1.0, None)
        return None if base is None else cls(kernel, _profile(base), variance, length_unit(kernel))

    def bind(self, X, rows: NDArray | None = None) -> RadialPoints:
        """Scale the rows of X by the length scale, and move their mean to the origin."""
        return RadialPoints.of(self, X, np.arange(X.shape[0]) if rows is None else rows, centre(X))

    def diagonal(self, X) -> NDArray:
        """The variance, for all rows."""
        return np.array([self.variance])

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Radial:
        """The covariance with its free length scales and its variance multiplied."""
        found = Radial.of(rescale(self.kernel, length, variance))
        assert found is not None  # rescaling keeps the form of a kernel
        return found

    @property
    def stationary(self) -> bool:
        """Always: only differences of points count."""
        return True

    def check_nonnegative(self) -> None:
        """Raise ValueError if the kernel may take negative values."""
        check_nonnegative(self.kernel)

    def floored_profile(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by C / C(0), with no value below `profile_floor`.

        Arithmetic on subnormal numbers is tens of times slower than on normal ones. On real data, at useful length
        scales, many kernel values would be subnormal.
        """
        logs = self.profile.log_of(d2)
        np.maximum(logs, log_floor(logs.dtype.name), out=logs)
        return np.exp(logs, out=logs)


def _profile(base) -> profiles.Profile:
    if type(base) is kernels.RBF or (type(base) is kernels.Matern and math.isinf(base.nu)):
        return profiles.SquaredExponential()
    if type(base) is kernels.Matern:
        return profiles.Matern(float(base.nu))
    return profiles.RationalQuadratic(float(base.alpha))


def log_floor(dtype: str) -> float:
    """The logarithm below which no value of `Radial.floored_profile` falls."""
    return float(np.log(8 * np.finfo(dtype).tiny))  # a normal number, also after rounding


@cache
def profile_floor(dtype: str) -> float:
    """The smallest value of `Radial.floored_profile`; it stands for zero."""
    # Computed as an array, by the same arithmetic as the values, so that it is equal to the last bit.
    return float(np.exp(np.full(64, log_floor(dtype), dtype))[0])


@dataclass(frozen=True)
class RadialPoints(PlainBound, ScaledPoints):
    """Points in units of the length scale; `Bound` says what the methods are for."""

    covariance: Radial

    @classmethod
    def of(cls, covariance: Radial, X, rows: NDArray, origin) -> RadialPoints:
        """Place some rows of X."""
        return cls(covariance, X, rows, place(X, covariance.length_scale, origin, rows), origin)

    @property
    def unit(self) -> float:
        """The variance, because tiles have variance 1."""
        return self.covariance.variance

    @property
    def floor(self) -> float:
        """See `Radial.floored_profile`."""
        return profile_floor(self.dtype.name)

    def at(self, X) -> RadialPoints:
        """Other points in the same coordinates."""
        points = place(X, self.covariance.length_scale, self.origin)
        return RadialPoints(self.covariance, X, np.arange(X.shape[0]), points, self.origin)

    def joined(self, other: RadialPoints) -> RadialPoints:
        """These points and others that are in the same coordinates."""
        return replace(
            self,
            X=stacked([self.X[self.rows], other.X[other.rows]]),
            rows=np.arange(len(self) + len(other)),
            points=self.points.joined(other.points),
        )

    def alone(self) -> RadialPoints:
        """The points with their own rows of the data alone; these points, if the data have no other rows.

        An array that is a view of a larger one has other rows.
        """
        held = np.zeros(self.X.shape[0], bool)
        held[self.rows] = True
        if held.all() and not is_view(self.X):
            return self
        return replace(self, X=self.X[self.rows], rows=np.arange(len(self.rows)))

    @property
    def erasable(self) -> bool:
        """Unless the points are sparse: the columns of a sparse row would tell of it."""
        return not sparse.issparse(self.points.coordinates)

    def erase(self, rows: NDArray) -> None:
        """Write zeros: the mean of all points, in these coordinates."""
        self.X[self.rows[rows]] = 0
        self.points.coordinates[rows] = 0
        self.points.sq_norms[rows] = 0

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> RadialPoints:
        """The same points under the rescaled covariance."""
        return RadialPoints.of(self.covariance.rescaled(length, variance), self.X, self.rows, self.origin)

    def diagonal(self) -> NDArray:
        """The variance, for all points."""
        return np.array([self.covariance.variance])

    def tile(self, columns: RadialPoints, out: NDArray | None = None) -> NDArray:
        """One product of matrices, and a few passes in place."""
        room = ladder.room_for(self, columns, out)
        return self.covariance.floored_profile(sq_distances(self.points, columns.points, room))

    def imprecise(self, columns: RadialPoints, factor: float = 1.0) -> NDArray:
        """Whether the product form of the distances may be wrong by more than `TOLERABLE`."""
        return product_error(self.points, columns.points) > TOLERABLE * factor**2

    def faint(self, sums: NDArray) -> NDArray:
        """Whether every kernel value that counts is about to underflow."""
        return sums.max(axis=1, initial=0) < FAINT[self.dtype.name]

    def log_tile(self, columns: RadialPoints, *, groups=None, leave_out: NDArray | None = None) -> NDArray:
        """Logarithms, with distances computed again by subtraction where rounding could matter."""
        return ladder.log_tile(self, columns, groups, leave_out)

    def pairs(self, rows: NDArray, columns: RadialPoints, of_columns: NDArray) -> NDArray:
        """C of listed pairs, by subtraction."""
        return next(self.pair_rungs(rows, columns, of_columns, np.ones(1)))

    def neighbours(self, count: int) -> NDArray:
        """The nearest points."""
        return nearest(self.points.coordinates, count)

    def walk(self, columns: RadialPoints, factors: NDArray, leave_out: NDArray, sink) -> NDArray:
        """All factors from one matrix of distances."""
        return ladder.walk(self, columns, factors, leave_out, sink)

    def rungs(self, columns: RadialPoints, factors: NDArray, out: NDArray | None = None):
        """All factors from one tile of distances."""
        return ladder.rungs(self, columns, factors, out, self.floor)

    def log_rungs(self, columns: RadialPoints, factors: NDArray):
        """All factors from one matrix of precise distances."""
        return ladder.log_rungs(self, columns, factors)

    def pair_rungs(self, rows: NDArray, columns: RadialPoints, of_columns: NDArray, factors: NDArray):
        """All factors from the same distances, by subtraction."""
        scale = self.covariance.length_scale
        d2 = pair_sq_distances(self.X, self.rows[rows], columns.X, columns.rows[of_columns], scale)
        return ladder.pair_rungs(self.covariance, d2, factors)

    def differentiate(self, columns: RadialPoints, weights: NDArray, leave_out: NDArray):
        """Derivatives in closed form."""
        return profiles.differentiate(self, columns, weights, leave_out)

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        """C(x, x) is the variance. Its derivative by its own logarithm is itself; all others are 0."""
        return profiles.diagonal_gradient(self.covariance, weights)
