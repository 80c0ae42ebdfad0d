"""Squared distances between points that were scaled by the length scale and moved to the origin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coxfield.kernels.namespace import (
    Library,
    at_home,
    at_least,
    doubled,
    is_foreign,
    like,
    precision,
    rows_of,
    stacked,
    to_numpy,
)
from coxfield.utils.numbers import ORDINARY, units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


SHRINK = 2.0**64  # by which the largest numbers are divided before they are added up
BEYOND = 80.0  # length scales; at half of that, the squared exponential is exp(-800)
SOME = 101  # points whose quartiles say where most points are
ASTRAY = 16  # distances between the quartiles: a mean that is farther away is no centre
TOLERABLE = 0.03  # an error in a squared distance; if it may be larger, distances are computed again with care


@dataclass(frozen=True)
class Stretch:
    """A direction per point, in which squared distances from it grow: by factor (direction . (z - z'))^2.

    This is the metric without the point itself, if the metric was learned from it; see `whitening`.
    """

    directions: NDArray
    """Shape (n, d)."""
    factors: NDArray
    """Shape (n,)."""

    def __getitem__(self, rows) -> Stretch:
        return Stretch(rows_of(self.directions, rows), rows_of(self.factors, rows))

    def astype(self, dtype) -> Stretch:
        """The same in another precision."""
        return Stretch(_cast(self.directions, dtype), _cast(self.factors, dtype))

    def added(self, a: NDArray, b: NDArray) -> NDArray:
        """What it adds to the squared distances between coordinates a, of its own points, and b."""
        xp = Library.of(a).xp
        # The roots of the factors come first: directions may be so long that only the products have squares.
        scaled = self.directions * xp.sqrt(self.factors)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            along = scaled @ b.T
            along -= _row_products(scaled, a)[:, None]
            along *= along
        return along if 0 in along.shape or bool(xp.isfinite(xp.max(along))) else capped(along)


@dataclass(frozen=True)
class Points:
    """Coordinates z = (x - origin) / length_scale and |z|^2, so that a block of distances is one matrix product."""

    coordinates: NDArray | sparse.csr_array
    sq_norms: NDArray
    stretch: Stretch | None = None

    def __len__(self) -> int:
        return self.coordinates.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points and of coordinates."""
        return self.coordinates.shape

    @property
    def dtype(self) -> np.dtype:
        """Precision of the coordinates."""
        return precision(self.coordinates)

    @cached_property
    def farthest(self) -> float:
        """The largest |z|^2."""
        return float(to_numpy(self.sq_norms).max(initial=0))

    def __getitem__(self, rows) -> Points:
        stretch = None if self.stretch is None else self.stretch[rows]
        return Points(rows_of(self.coordinates, rows), rows_of(self.sq_norms, rows), stretch)

    def joined(self, other: Points) -> Points:
        """These points and others, without a stretch of distances."""
        coordinates = stacked([self.coordinates, other.coordinates])
        return Points(coordinates, stacked([self.sq_norms, other.sq_norms]))

    def astype(self, dtype) -> Points:
        """The same points in another precision."""
        stretch = None if self.stretch is None else self.stretch.astype(dtype)
        return Points(_cast(self.coordinates, dtype), _cast(self.sq_norms, dtype), stretch)

    def stretched(self, stretch: Stretch | None) -> Points:
        """The same points with another stretch of the distances from them."""
        return replace(self, stretch=stretch)


def _cast(values, dtype) -> Any:
    """An array in another precision, by its name in NumPy; double precision where the device has it."""
    if not is_foreign(values):
        return values.astype(dtype, copy=False)
    library = Library.of(values)
    wanted = library.double if np.dtype(dtype) == np.float64 else library.xp.float32
    return library.xp.astype(values, wanted, copy=False)


def _row_products(a, b) -> Any:
    """The inner product of each row of a with that of b."""
    return np.einsum("ij,ij->i", a, b) if isinstance(a, np.ndarray) else Library.of(a).xp.vecdot(a, b)


def centre(X) -> NDArray | None:
    """The mean of all rows, for `place`; None for sparse rows, because moving them would make them dense."""
    if sparse.issparse(X):
        return None
    if not X.shape[0]:
        return like(np.zeros(X.shape[1]), X)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = _mean(X)
    if not np.isfinite(mean).all():  # the sum has overflowed
        mean = _mean(X / SHRINK) * SHRINK
    # A few points that are very far away would move the mean so far from the others that their distances lose digits.
    some = to_numpy(rows_of(X, slice(None, None, -(-X.shape[0] // SOME)))).astype(float)
    with np.errstate(over="ignore", invalid="ignore"):  # where differences of quantiles overflow, the mean will do
        low, middle, high = np.quantile(some, [0.25, 0.5, 0.75], axis=0)
        far = np.abs(mean - middle) > ASTRAY * (high - low)
    return like(np.where(far & (high > low) & np.isfinite(middle), middle, mean), X)


def _mean(X) -> NDArray:
    """The mean of all rows, in double precision where the device of the points has it."""
    if is_foreign(X):
        return to_numpy(Library.of(X).xp.mean(doubled(X), axis=0)).astype(float)
    return X.mean(axis=0, dtype=float)


def place(X, length_scale, origin, rows: NDArray | None = None) -> Points:
    """Scale and move the given rows of X, all by default; `origin` comes from `centre`.

    Moving the data to their mean keeps the product form of the distances accurate, above all in float32.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is far from everything
        return _placed_sparse(X, length_scale, rows) if sparse.issparse(X) else _placed(X, length_scale, origin, rows)


def _placed_sparse(X, length_scale, rows: NDArray | None) -> Points:
    Z = sparse.csr_array(X, copy=True) if rows is None else sparse.csr_array(X)[rows]
    scale = np.broadcast_to(np.asarray(length_scale, dtype=float), X.shape[1:])
    Z = sparse.csr_array((_divided(Z.data, scale[Z.indices]), Z.indices, Z.indptr), shape=Z.shape)
    return Points(Z, np.asarray(Z.multiply(Z).sum(axis=1)).ravel())


def _placed(X, length_scale, origin, rows: NDArray | None) -> Points:
    if rows is None:
        Z = X - origin
    else:
        Z = rows_of(X, rows)
        Z -= origin  # already a copy, and a large one
    Z = _divided(Z, np.asarray(length_scale, dtype=float))
    return Points(Z, _row_products(Z, Z))


def _divided(Z: NDArray, length_scale: NDArray) -> NDArray:
    """Overwrite Z by Z / length_scale; in double precision if a length scale is no number in that of Z."""
    limits = np.finfo(precision(Z))
    if length_scale.min(initial=1) < limits.tiny or length_scale.max(initial=1) > limits.max:
        double = _cast(Z, np.float64)
        return _cast(double / like(length_scale, double), precision(Z))
    Z /= like(length_scale, Z)
    return Z


def sq_distances(a: Points, b: Points, out: NDArray | None = None) -> NDArray:
    """Squared distances |a|^2 + |b|^2 - 2 a.b between all pairs, clipped at 0, with the stretch of a."""
    limit = np.square(ORDINARY[a.dtype])
    if a.farthest <= limit and b.farthest <= limit:
        return _sq_distances(a, b, out)
    with np.errstate(over="ignore", invalid="ignore"):
        return capped(_sq_distances(a, b, out))


def _sq_distances(a: Points, b: Points, out: NDArray | None) -> NDArray:
    d2 = at_least(_products(a, b, out), 0.0)
    if a.stretch is not None:
        d2 += a.stretch.added(a.coordinates, b.coordinates)
    return d2


def _products(a: Points, b: Points, out: NDArray | None) -> NDArray:
    if sparse.issparse(a.coordinates):
        d2 = (a.coordinates @ b.coordinates.T).toarray()
        d2 *= -2
    elif isinstance(a.coordinates, np.ndarray):
        d2 = np.matmul(a.coordinates * -2, b.coordinates.T, out=out)
    else:
        d2 = (a.coordinates * -2) @ b.coordinates.T
    # In place: these arrays are as large as memory allows.
    d2 += a.sq_norms[:, None]
    d2 += b.sq_norms[None, :]
    return d2


def product_error(a: Points, b: Points) -> NDArray:
    """Bound on the rounding error of `sq_distances` for each of the points a, of the order of eps |z|^2.

    Points b beyond `BEYOND` are so far from a that any covariance has vanished, whatever the error.
    """
    with np.errstate(over="ignore"):
        own = to_numpy(a.sq_norms).astype(float)
        reach = np.square(2 * np.sqrt(own) + BEYOND)
        norms = own + np.minimum(b.farthest, reach)
    return np.finfo(b.dtype).eps * (8 + np.sqrt(b.shape[1])) * norms


def capped(d2: NDArray) -> NDArray:
    """Replace squared distances that overflowed by a number so large that any covariance has vanished."""
    largest = float(np.finfo(precision(d2)).max) * 1e-9
    if isinstance(d2, np.ndarray):
        np.nan_to_num(d2, copy=False, nan=largest, posinf=largest)
        return np.clip(d2, 0, largest, out=d2)
    xp = Library.of(d2).xp
    return xp.clip(xp.where(xp.isnan(d2), xp.full_like(d2, largest), d2), min=0.0, max=largest)


def pair_sq_distances(X, rows, Y, columns, length_scale, chunk: int = 1 << 17) -> NDArray:
    """Squared distances of listed pairs by subtraction, without the cancellation of the product form.

    So many numbers are taken at a time that they stay in the cache.
    """
    d2 = np.empty(len(rows))
    step = max(1, chunk // X.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = _doubled(X, rows[part]) - _doubled(Y, columns[part])
            if sparse.issparse(difference):
                difference = difference.toarray()
            difference /= length_scale
            d2[part] = np.einsum("ij,ij->i", difference, difference)
    return capped(d2)


def _doubled(X, rows) -> Any:
    """Some rows in double precision, as NumPy or SciPy have them."""
    chosen = rows_of(X, rows)
    return to_numpy(chosen).astype(float) if is_foreign(X) else chosen.astype(np.float64, copy=False)


# Units of features: those of extreme size are divided by powers of two, so that their squares can be computed.


def feature_sizes(X) -> NDArray:
    """The largest absolute value of each feature, in double precision."""
    if is_foreign(X):
        xp = Library.of(X).xp
        return to_numpy(xp.max(xp.abs(X), axis=0)).astype(float)
    if sparse.issparse(X):
        return abs(X).max(axis=0).toarray().ravel().astype(float)
    return np.maximum(X.max(axis=0), -X.min(axis=0)).astype(float)


def feature_units(X) -> NDArray:
    """A power of two for each feature: 1, unless squares of the feature would overflow or vanish.

    Examples
    --------
    >>> feature_units(np.array([[3.0, 1e200], [-5.0, 0.0]])).tolist() == [1, 2.0**664]
    True
    """
    return units_of(feature_sizes(X), precision(X))


def in_units(X, units: NDArray):
    """The features divided by their units, in the precision of X; X itself if all units are 1."""
    if (units == 1).all():
        return at_home(X)
    X = at_home(X)
    if sparse.issparse(X):
        found = sparse.csr_array(X, copy=True)
        found.data = _in_units(found.data, units[found.indices])
        return found
    return _in_units(X, units)


def _in_units(values: NDArray, units: NDArray) -> NDArray:
    # In double precision, because a unit may be no number in single precision. Far from the points that the units
    # come from, the ratio may still overflow; it is then the largest number, which is far enough.
    largest = np.finfo(values.dtype).max
    with np.errstate(over="ignore"):
        return np.clip(values.astype(float) / units, -largest, largest).astype(values.dtype)


class Units(TransformerMixin, BaseEstimator):
    """Divide features of extreme size by powers of two.

    Attributes
    ----------
    units_ : array of shape (n_features,)

    Examples
    --------
    >>> Units().fit_transform(np.array([[1.0, 2.0**700], [3.0, 2.0**701]])).tolist()
    [[1.0, 0.5], [3.0, 1.0]]
    """

    def fit(self, X, y=None):
        """Learn the unit of each feature."""
        self.units_ = feature_units(X)
        return self

    def transform(self, X):
        """Points in these units."""
        check_is_fitted(self)
        return in_units(X, self.units_)


# Points in units of a length scale, as data. Radial covariances compute everything from them.


class RadialForm(Protocol):
    """C(x, x') = variance * profile(|(x - x') / length_scale|^2)."""

    @property
    def kernel(self) -> Any:
        """The kernel of scikit-learn."""

    @property
    def profile(self) -> Any:
        """The function of squared distances, a `Profile` of `kernels/profiles.py`."""

    @property
    def variance(self) -> float:
        """C(0)."""

    @property
    def length_scale(self) -> float | NDArray:
        """One number, or one per feature."""


@dataclass(frozen=True)
class ScaledPoints:
    """Some rows of data, scaled by the length scale and moved to the origin."""

    covariance: RadialForm
    X: NDArray
    """The data that contain the points as rows, as they were given."""
    rows: NDArray
    """Row of each point in `X`."""
    points: Points
    origin: NDArray | None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows) -> Self:
        X, held = self.X, self.rows[rows]
        if not isinstance(rows, slice) and len(held) < X.shape[0]:  # hold nothing of the others
            X, held = rows_of(X, held), np.arange(len(held))
        return replace(self, X=X, rows=held, points=self.points[rows])

    @property
    def dtype(self) -> np.dtype:
        """Precision of the coordinates."""
        return self.points.dtype

    def in_double(self) -> Points:
        """The points in double precision, from the data as they were given."""
        if self.dtype == np.float64:
            return self.points
        origin = None if self.origin is None else _cast(self.origin, np.float64)
        double = place(_cast(rows_of(self.X, self.rows), np.float64), self.covariance.length_scale, origin)
        return double.stretched(None if self.points.stretch is None else self.points.stretch.astype(np.float64))
