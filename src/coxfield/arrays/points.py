"""Points of an array library in units of a length scale, and squared distances between them.

`coxfield.kernels.distances` and `coxfield.kernels.scaled` are the same for NumPy, and say why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.arrays.tiles import slices
from coxfield.kernels.distances import SHRINK
from coxfield.utils.powers_of_two import ORDINARY

if TYPE_CHECKING:
    from coxfield.arrays.library import Library
    from coxfield.kernels.radial import Radial

PAIRS = 2**22  # numbers that are held at a time while distances are computed by subtraction


@dataclass(frozen=True)
class ArrayPoints:
    """Coordinates z = (x - origin) / length_scale and |z|^2."""

    library: Library
    covariance: Radial
    X: Any
    """The points as they were given."""
    origin: Any
    coordinates: Any
    sq_norms: Any
    farthest: float
    """The largest |z|^2 of these points, or of those that they were taken from."""

    @classmethod
    def of(cls, library: Library, covariance: Radial, X, origin) -> ArrayPoints:
        """Place all rows of X."""
        xp = library.xp
        Z = _divided(X - origin, covariance.length_scale, library)
        norms = xp.vecdot(Z, Z)
        return cls(library, covariance, X, origin, Z, norms, float(xp.max(norms)) if X.shape[0] else 0.0)

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows: slice) -> ArrayPoints:
        return replace(self, X=self.X[rows, :], coordinates=self.coordinates[rows, :], sq_norms=self.sq_norms[rows])

    def at(self, X) -> ArrayPoints:
        """Other points in the same coordinates."""
        return ArrayPoints.of(self.library, self.covariance, X, self.origin)

    def taken(self, rows) -> ArrayPoints:
        """Some of the points, by an array of row numbers."""
        take = self.library.xp.take
        parts = {name: take(getattr(self, name), rows, axis=0) for name in ("X", "coordinates", "sq_norms")}
        return replace(self, **parts)

    def in_double(self) -> ArrayPoints:
        """The points in double precision, from the numbers as they were given."""
        if self.X.dtype == self.library.double:
            return self
        double = self.library.doubled
        return ArrayPoints.of(self.library, self.covariance, double(self.X), double(self.origin))

    @property
    def precision(self) -> np.dtype:
        """The dtype of the coordinates, as NumPy has it."""
        return self.library.precision(self.coordinates)

    @property
    def ordinary(self) -> bool:
        """Whether no square overflows."""
        return self.farthest <= np.square(ORDINARY[self.precision])

    @cached_property
    def factor(self) -> Any:
        """-2 z: the left factor of the product form of the distances."""
        return self.coordinates * -2.0


def centre(X, library: Library) -> Any:
    """The mean of all rows."""
    xp, n = library.xp, X.shape[0]
    mean = xp.sum(X, axis=0, dtype=library.double) / n
    if not bool(xp.all(xp.isfinite(mean))):  # the sum has overflowed
        mean = xp.sum(X / SHRINK, axis=0, dtype=library.double) / n * SHRINK
    return xp.astype(mean, X.dtype)


def _divided(Z, length_scale, library: Library) -> Any:
    """Overwrite Z by Z / length_scale; in double precision if a length scale is no number in that of Z."""
    scale, limits = np.atleast_1d(np.asarray(length_scale, dtype=float)), np.finfo(library.precision(Z))
    if scale.min() < limits.tiny or scale.max() > limits.max:
        return library.xp.astype(library.doubled(Z) / library.array(scale), Z.dtype)
    Z /= library.array(scale, Z.dtype)
    return Z


def sq_distances(a: ArrayPoints, b: ArrayPoints) -> Any:
    """Squared distances |a|^2 + |b|^2 - 2 a.b between all pairs, clipped at 0."""
    xp = a.library.xp
    d2 = a.factor @ xp.matrix_transpose(b.coordinates)
    d2 += a.sq_norms[:, None]
    d2 += b.sq_norms[None, :]
    return xp.clip(d2, min=0.0) if a.ordinary and b.ordinary else capped(d2, a.library)


def capped(d2, library: Library) -> Any:
    """Replace squared distances that overflowed by a number so large that any covariance has vanished."""
    xp = library.xp
    largest = float(xp.finfo(d2.dtype).max) * 1e-9
    return xp.clip(xp.where(xp.isnan(d2), largest, d2), min=0.0, max=largest)


def product_error(a: ArrayPoints, b: ArrayPoints) -> Any:
    """Bound on the rounding error of `sq_distances` for each of the points a, of the order of eps |z|^2."""
    units = float(np.finfo(a.precision).eps) * (8 + b.coordinates.shape[1] ** 0.5)
    return (a.library.doubled(a.sq_norms) + b.farthest) * units


def pair_sq_distances(a: ArrayPoints, rows, b: ArrayPoints, columns) -> Any:
    """Squared distances of listed pairs by subtraction, in double precision."""
    library, found = a.library, []
    xp, scale = library.xp, library.array(np.atleast_1d(np.asarray(a.covariance.length_scale, dtype=float)))
    for some in slices(rows.shape[0], max(1, PAIRS // a.X.shape[1])):
        difference = library.doubled(xp.take(a.X, rows[some], axis=0))
        difference = (difference - library.doubled(xp.take(b.X, columns[some], axis=0))) / scale
        found.append(xp.vecdot(difference, difference))
    return capped(xp.concat(found), library)
