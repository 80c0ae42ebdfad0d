"""Points of an array library in units of a length scale, and squared distances between them.

`coxfield.kernels.distances` and `coxfield.kernels.distances` are the same for NumPy, and say why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config

from coxfield.kernels.distances import SHRINK
from coxfield.kernels.profiles import Matern, RationalQuadratic, SquaredExponential
from coxfield.kernels.radial import Radial
from coxfield.utils.numbers import ORDINARY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.arrays.library import Library
    from coxfield.kernels.protocol import Covariance


# Work in tiles on a device: how large they are, and leaving points out of them.


ON_CPU = 1024, 2048  # rows and columns of a tile; all threads share one, and sizes nearby are as good
ELSEWHERE = 4096, 8192  # a GPU needs much work at a time
COPIES = 6  # of a tile that may be alive at a time


def tile_shape(library: Library, n_columns: int, itemsize: int) -> tuple[int, int]:
    """Rows and columns of a tile, within scikit-learn's `working_memory`."""
    rows, columns = ON_CPU if str(library.device).lower().startswith("cpu") else ELSEWHERE
    held = numbers_held(itemsize)
    columns = max(1, min(columns, n_columns, held))
    return max(1, min(rows, held // columns)), columns


def whole_rows(library: Library, n_columns: int, itemsize: int) -> int:
    """How many whole rows of `n_columns` numbers may be held."""
    rows, _ = tile_shape(library, n_columns, itemsize)
    return max(1, min(rows, numbers_held(itemsize) // max(1, n_columns)))


def numbers_held(itemsize: int) -> int:
    """How many numbers a tile may have."""
    return max(1, int(get_config()["working_memory"] * 2**20) // (itemsize * COPIES))


def slices(n: int, step: int) -> Iterator[slice]:
    """The numbers below n, `step` at a time."""
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def crossed_out(tile, leave_out: NDArray | None, start: int, value: float, library: Library) -> Any:
    """A tile with `value` where a row meets the column that it must leave out; see `kernels.leave_out.cross_out`."""
    width = tile.shape[1]
    if leave_out is None:
        return tile
    inside = (leave_out >= start) & (leave_out < start + width)
    if not inside.any():
        return tile
    xp, columns = library.xp, library.array(np.where(inside, leave_out - start, -1))
    return xp.where(columns[:, None] == library.array(np.arange(width))[None, :], value, tile)


# Profiles of radial covariances in any array library; `coxfield.kernels.profiles` has them for NumPy.


ORDERS = (0.5, 1.5, 2.5)  # of Matern profiles without Bessel functions, which the array API standard does not have


def check_covariance(covariance: Covariance, library: Library) -> None:
    """Refuse a covariance that cannot be computed in other libraries than NumPy."""
    if not isinstance(covariance, Radial):
        raise TypeError(
            f"{covariance.kernel!r} can be computed for NumPy arrays only, but the points are {library}: give a "
            "product of constants with one RBF, Matern or RationalQuadratic, or convert the points to NumPy"
        )
    profile = covariance.profile
    if isinstance(profile, Matern) and profile.nu not in ORDERS:
        raise ValueError(
            f"Matern with nu={profile.nu:g} can be computed for NumPy arrays only, but the points are {library}: give "
            "nu of 0.5, 1.5, 2.5 or inf, or convert the points to NumPy"
        )


def log_profile(profile, d2, library: Library) -> Any:
    """log c of squared distances, which may be overwritten."""
    xp = library.xp
    if isinstance(profile, SquaredExponential):
        d2 *= -0.5
        return d2
    if isinstance(profile, RationalQuadratic):
        alpha = profile.effective_alpha(library.precision(d2))
        d2 /= 2 * alpha
        ratio = xp.log1p(xp.clip(d2, max=xp.finfo(d2.dtype).max))
        ratio *= -alpha
        return ratio
    d2 *= 2 * profile.nu
    return _log_matern(profile.nu, xp.sqrt(d2), xp)


def _log_matern(nu: float, t, xp) -> Any:
    """Log of the Matern profile at t = sqrt(2 nu d2)."""
    if nu == 0.5:
        return -t
    return xp.log1p(t if nu == 1.5 else t * (1 + t / 3)) - t


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
