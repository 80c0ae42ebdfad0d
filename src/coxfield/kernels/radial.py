"""Radial covariances: C(x, x') = variance * profile(|(x - x') / length_scale|^2), the fast path."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels

from coxfield.kernels.called import Called, nearest
from coxfield.kernels.distances import (
    CLOSED,
    Matern,
    RationalQuadratic,
    SquaredExponential,
    Stretch,
    capped,
    centre,
    diagonal_gradient,
    differentiate,
    pair_sq_distances,
    place,
    product_error,
    sq_distances,
)
from coxfield.kernels.namespace import (
    Library,
    at_home,
    at_least,
    cross_out,
    doubled,
    into,
    is_foreign,
    like,
    precision,
    rows_of,
    stacked,
    to_numpy,
)
from coxfield.kernels.protocol import Covariance, KernelPoints, Path
from coxfield.kernels.sklearn_tree import (
    check_hyperparameters,
    check_kernel,
    check_nonnegative,
    check_variance,
    factorise,
    free_length_scales,
    length_unit,
    rescale,
)
from coxfield.utils.numbers import ORDINARY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.kernels.distances import Points, Profile
    from coxfield.kernels.protocol import Sink


@dataclass(frozen=True)
class Radial(Covariance):
    """A profile of scaled distances, from a product of constants with one RBF, Matern or RationalQuadratic."""

    kernel: kernels.Kernel
    profile: Profile
    variance: float
    length_scale: float | NDArray
    """One number, or one per feature."""

    @classmethod
    def of(cls, kernel: kernels.Kernel) -> Radial | None:
        """The kernel as a profile, or None if it is not of this form."""
        variance, base = factorise(kernel) or (1.0, None)
        return None if base is None else cls(kernel, _profile(base), variance, length_unit(kernel))

    def bind(self, X, rows: NDArray | None = None) -> RadialPoints:
        origin = centre(X)
        if rows is not None and len(rows) < X.shape[0]:
            X, rows = rows_of(X, rows), None
        return RadialPoints.of(self, X, np.arange(X.shape[0]) if rows is None else rows, origin)

    def diagonal(self, X) -> NDArray:
        return np.array([self.variance])

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> Radial:
        found = Radial.of(rescale(self.kernel, length, variance))
        assert found is not None  # rescaling keeps the form of a kernel
        return found

    @property
    def stationary(self) -> bool:
        return True

    def check_nonnegative(self) -> None:
        check_nonnegative(self.kernel)


def _profile(base) -> Profile:
    if type(base) is kernels.RBF or (type(base) is kernels.Matern and math.isinf(base.nu)):
        return SquaredExponential()
    if type(base) is kernels.Matern:
        return Matern(float(base.nu))
    return RationalQuadratic(float(base.alpha))


def log_floor(dtype) -> float:
    """The logarithm below which no value of a tile falls.

    Arithmetic on subnormal numbers is tens of times slower than on normal ones. On real data, at useful length scales,
    many kernel values would be subnormal.
    """
    return float(np.log(8 * np.finfo(dtype).tiny))  # a normal number, also after rounding


def check_library(covariance: Any, X) -> None:
    """Refuse a covariance that cannot be computed in the library of X."""
    if not is_foreign(X):
        return
    library = Library.of(X)
    if not isinstance(covariance, Radial):
        raise TypeError(
            f"{covariance.kernel!r} can be computed for NumPy arrays only, but the points are {library}: give a "
            "product of constants with one RBF, Matern or RationalQuadratic, or convert the points to NumPy"
        )
    profile = covariance.profile
    if isinstance(profile, Matern) and profile.nu not in CLOSED:
        raise ValueError(
            f"Matern with nu={profile.nu:g} can be computed for NumPy arrays only, but the points are {library}: give "
            "nu of 0.5, 1.5, 2.5 or inf, or convert the points to NumPy"
        )


# Class sums at many length scales in one pass over the pairs.
#
# A tile of distances is computed once and read for every length scale. For the squared exponential the kernel at length
# scale l / sqrt(2) is the elementwise square of the kernel at l. On a grid of that ratio most length scales cost a
# multiplication per entry instead of an exponential.
#
# Values of a row are relative to the nearest point so far, so nothing that counts underflows. When a nearer point
# comes, the sums are scaled down, and never the tiles: squares are right only relative to the top of their own tile.


RATIO = float(np.sqrt(2))
COLUMNS = 2048  # columns of a tile
SPARSE = 1 / 64  # if a smaller share of the kernel values is left, these values are picked out
MODEST = (1e-100, 1e100)  # length scales whose squares are ordinary numbers
NEGLIGIBLE = 1e-6  # an error in a log kernel value that makes no visible difference


@dataclass(frozen=True)
class Squaring:
    """How far a chain of squares may go in one precision."""

    chain: int
    """Squares before a new exponential; each square doubles the relative error."""
    floor: float
    """Kernel values, relative to that of the nearest point, are kept above this. It is negligible beside 1, and
    arithmetic on subnormal numbers is a hundred times slower."""
    refloor: int
    """Squares after which values are raised to the floor again, before floor^(2^refloor) underflows."""


SQUARING = {"float32": Squaring(4, 1e-18, 1), "float64": Squaring(8, 1e-38, 3)}


@dataclass(frozen=True)
class _Scores:
    """Tiles of h = a.b - |b|^2 / 2 for the squared exponential: log C is h / l^2, up to a constant per row.

    Leaving out |a|^2 saves a pass over the tile, and so does the factor of 1/2.
    """

    rows: Points
    columns: Points
    factors: NDArray
    nothing = -np.inf

    def tile(self, part: slice, room: NDArray | None) -> Any:
        some = self.columns[part]
        if sparse.issparse(some.coordinates):
            tile = (self.rows.coordinates @ some.coordinates.T).toarray()
        elif room is not None:
            tile = np.matmul(self.rows.coordinates, some.coordinates.T, out=_part_of(room, len(self.rows), len(some)))
        else:
            tile = self.rows.coordinates @ some.coordinates.T
        tile -= (some.sq_norms * 0.5)[None, :]
        if self.rows.stretch is not None:
            tile -= 0.5 * self.rows.stretch.added(self.rows.coordinates, some.coordinates)
        return tile

    def best(self, tile) -> NDArray:
        """The largest h of each row."""
        return to_numpy(Library.of(tile).xp.max(tile, axis=1)).astype(float)

    def tops(self, best: NDArray) -> NDArray:
        """log C / C(0) of the nearest point at each factor."""
        d2 = np.maximum(to_numpy(self.rows.sq_norms).astype(float) - 2 * best, 0)
        return -0.5 * _at_factors(d2, self.factors)

    def prepared(self, tile, best: NDArray) -> Any:
        tile -= like(best, tile)[:, None]
        return tile

    def logs(self, k: int, prepared, top, out) -> Any:
        """Relative logarithms at a factor."""
        inverse = _inverse(self.factors[k], precision(prepared))
        if inverse == 1 and out is prepared:
            return prepared
        return into("multiply", prepared, inverse, out=out)


@dataclass(frozen=True)
class _Distances:
    """Tiles of squared distances, for any profile and for any size of the numbers."""

    rows: RadialPoints
    columns: RadialPoints
    factors: NDArray
    nothing = np.inf

    def tile(self, part: slice, room: NDArray | None) -> Any:
        if self.rows.exact:
            return exact_sq_distances(self.rows, self.columns[part])
        some = self.columns.points[part]
        return sq_distances(self.rows.points, some, _part_of(room, len(self.rows), len(some)))

    def best(self, tile) -> NDArray:
        """The smallest squared distance of each row, with the other sign."""
        return -to_numpy(Library.of(tile).xp.min(tile, axis=1)).astype(float)

    def tops(self, best: NDArray) -> NDArray:
        return self.rows.covariance.profile.log_of(_at_factors(np.where(np.isinf(best), 0, -best), self.factors))

    def prepared(self, tile, best: NDArray) -> Any:
        return tile

    def logs(self, k: int, prepared, top: NDArray, out) -> Any:
        """Relative logarithms at a factor; `top` has an entry or a column for each row."""
        largest = float(np.finfo(precision(prepared)).max)
        logs = self.rows.covariance.profile.log_of(_at_factor(prepared, self.factors[k], out))
        logs -= like(np.clip(top, -largest, largest), logs)
        # None is above 0, up to rounding; but rounding is large where the nearest point is very far.
        return (
            np.minimum(logs, 1, out=logs) if isinstance(logs, np.ndarray) else Library.of(logs).xp.clip(logs, max=1.0)
        )


def _summed(
    source, squared: NDArray, rows: RadialPoints, columns: RadialPoints, leave_out: NDArray, sink: Sink
) -> NDArray:
    """Hand all tiles to the sink, and return the logarithms of what their rows were divided by."""
    n, n_columns = len(rows), len(columns)
    dense = not rows.library.foreign and not sparse.issparse(rows.points.coordinates) and not rows.exact
    rooms = [np.empty(n * min(COLUMNS, n_columns), rows.dtype) for _ in range(1 + (len(squared) > 1))] if dense else []
    best, tops = np.full(n, -np.inf), np.full((len(squared), n), LOWEST)
    for start in range(0, n_columns, COLUMNS):
        part = slice(start, min(start + COLUMNS, n_columns))
        tile = cross_out(source.tile(part, rooms[0] if dense else None), leave_out, part.start, source.nothing)
        nearer = np.maximum(best, source.best(tile))
        if (nearer > best).any():
            seen = np.isfinite(nearer)
            new = np.where(seen, source.tops(np.where(seen, nearer, 0)), LOWEST)
            if part.start:
                sink.rescale(np.exp(tops - new))
            best, tops = nearer, new
        tile = source.prepared(tile, np.where(np.isfinite(best), best, 0))
        _tile_path(source, squared, tops, tile, rooms[1] if len(rooms) > 1 else None, part.start, leave_out, sink)
    return np.where(tops == LOWEST, 0, tops)


def _tile_path(source, squared: NDArray, tops: NDArray, prepared, room, start: int, leave_out: NDArray, sink) -> None:
    """Hand one tile to the sink, for one factor after another.

    Towards short length scales nearly all values vanish. The few that are left are then picked out, and the rest of the
    tile is not visited again.
    """
    alone, limits = len(squared) == 1, SQUARING[precision(prepared).name]
    floor = math.exp(log_floor(precision(prepared))) if alone else limits.floor
    out = prepared if alone else _part_of(room, *prepared.shape) if room is not None else _empty_like(prepared)
    tile: Any = out
    squares, shortening = 0, shortens(source.factors)
    for k in range(len(squared)):
        if squared[k] and squares < limits.chain:
            tile *= tile
            squares += 1
            tile = at_least(tile, floor) if squares % limits.refloor == 0 else tile
        else:
            logs = source.logs(k, prepared, tops[k][:, None], out)
            tile, squares = into("exp", at_least(logs, math.log(floor)), out=logs), 0
        sink.add(k, start, cross_out(tile, leave_out, start, 0.0))
        if not alone and k % 3 == 2 and shortening[k] and k + 1 < len(squared):
            present = tile > floor
            if _share(present) < SPARSE:
                _entries(source, k + 1, tops, prepared, present, start, floor, sink)
                return


def _entries(source, first: int, tops: NDArray, prepared, present, start: int, floor: float, sink: Sink) -> None:
    """Hand the few entries of a tile that are still present to the sink, for all the remaining factors."""
    near = to_numpy(prepared[present])
    at, columns = np.nonzero(to_numpy(present))
    for k in range(first, len(source.factors)):
        logs = source.logs(k, near, tops[k][at], np.empty_like(near))
        sink.add_entries(k, at, columns + start, np.exp(np.maximum(logs, math.log(floor))))


def _share(present) -> float:
    """The share of the entries that are true."""
    if isinstance(present, np.ndarray):
        return np.count_nonzero(present) / present.size
    return int(Library.of(present).xp.count_nonzero(present)) / math.prod(present.shape)


def _part_of(room: NDArray | None, n: int, width: int) -> NDArray | None:
    """The part of some memory that a tile needs."""
    return None if room is None else room[: n * width].reshape(n, width)


def _empty_like(tile) -> Any:
    return Library.of(tile).xp.empty_like(tile)


def _inverse(factor: float, dtype) -> float:
    """What squared distances are multiplied by for a factor of the length scale; a finite number."""
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.minimum(np.float64(factor) ** -2.0, np.finfo(dtype).max))


def _at_factors(d2: NDArray, factors: NDArray) -> NDArray:
    """Squared distances in double precision at each factor, shape (factors, n); those beyond all numbers are large."""
    inverse = np.array([_inverse(factor, float) for factor in factors])
    with np.errstate(over="ignore"):
        return capped(d2 * inverse[:, None])


def _at_factor(d2: NDArray, factor: float, out) -> NDArray:
    """Squared distances in units of the length scale times a factor; those beyond all numbers are very large."""
    inverse = _inverse(factor, precision(d2))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = into("multiply", d2, inverse, out=out)
    return capped(scaled) if inverse > 1 else scaled


def shortens(factors: NDArray) -> NDArray:
    """Whether no later length scale is longer, so that a value that has vanished stays 0."""
    return factors >= np.maximum.accumulate(factors[::-1])[::-1]


def squares_of_last(profile: Profile, factors: NDArray) -> NDArray:
    """Whether the kernel of each factor is the square of the one before."""
    squared = np.zeros(len(factors), dtype=bool)
    if isinstance(profile, SquaredExponential):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # far apart, or 0 in units of the first
            squared[1:] = np.isclose(factors[:-1] / factors[1:], RATIO, rtol=1e-12)
    return squared


# Squared distances in double precision, where rounding could change which point is the nearest.
#
# Far from the origin, in units of a short length scale, the product form of a squared distance may be wrong by more
# than the gap between the nearest and the second nearest point. The distances are then computed by subtraction.


def exact_sq_distances(rows: RadialPoints, columns: RadialPoints) -> NDArray:
    """Squared distances in double precision, at home, by subtraction where the product form is too coarse."""
    queries, others = rows.in_double(), columns.in_double()
    d2 = to_numpy(sq_distances(queries, others)).astype(float, copy=False)
    unsure = np.flatnonzero(product_error(queries, others) > NEGLIGIBLE)
    if unsure.size:
        d2[unsure] = _by_subtraction(rows[unsure], columns)
    return d2


def _by_subtraction(rows: RadialPoints, columns: RadialPoints) -> NDArray:
    """All squared distances between some points and others, without the cancellation of the product form."""
    # The points as they were given: after a division by a short length scale, differences have fewer digits.
    a, b = (at_home(rows_of(points.X, points.rows)).astype(float) for points in (rows, columns))
    scale, stretch = np.asarray(rows.covariance.length_scale, dtype=float), rows.points.stretch
    if not sparse.issparse(a) and MODEST[0] < scale.min() and scale.max() < MODEST[1]:
        with np.errstate(over="ignore", invalid="ignore"):
            d2 = np.square(cdist(a, b, "seuclidean", V=np.broadcast_to(np.square(scale), a.shape[1:])))
            if stretch is not None:
                home = Stretch(at_home(stretch.directions), at_home(stretch.factors)).astype(np.float64)
                d2 += home.added(*(at_home(points.in_double().coordinates) for points in (rows, columns)))
        return capped(d2)
    at, of_columns = np.divmod(np.arange(len(rows) * len(columns)), len(columns))
    return rows.pair_distances(at, columns, of_columns).reshape(len(rows), len(columns))


LOWEST = float(np.finfo(float).min)


@dataclass(frozen=True)
class RadialPoints(KernelPoints):
    """Points in units of the length scale; `KernelPoints` says what the methods are for."""

    covariance: Radial
    X: NDArray
    """The data that contain the points as rows, as they were given."""
    rows: NDArray
    """Row of each point in `X`."""
    points: Points
    origin: NDArray | None
    exact: bool = False
    """Whether distances from these points are computed with all digits of double precision."""

    @classmethod
    def of(cls, covariance: Radial, X, rows: NDArray, origin) -> RadialPoints:
        return cls(covariance, X, rows, place(X, covariance.length_scale, origin, rows), origin)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows) -> RadialPoints:
        X, held = self.X, self.rows[rows]
        if not isinstance(rows, slice) and len(held) < X.shape[0]:  # hold nothing of the others
            X, held = rows_of(X, held), np.arange(len(held))
        return replace(self, X=X, rows=held, points=self.points[rows])

    @property
    def dtype(self) -> np.dtype:
        return self.points.dtype

    def in_double(self) -> Points:
        """The points in double precision, from the data as they were given."""
        if self.dtype == np.float64:
            return self.points
        origin = None if self.origin is None else doubled(self.origin)
        double = place(doubled(rows_of(self.X, self.rows)), self.covariance.length_scale, origin)
        return double.stretched(None if self.points.stretch is None else self.points.stretch.astype(np.float64))

    @property
    def library(self) -> Library:
        return Library.of(self.points.coordinates)

    def precisely(self) -> RadialPoints:
        return replace(self, exact=True)

    def at(self, X) -> RadialPoints:
        points = place(X, self.covariance.length_scale, self.origin).astype(self.dtype)
        return RadialPoints(self.covariance, X, np.arange(X.shape[0]), points, self.origin)

    def joined(self, other: RadialPoints) -> RadialPoints:
        return replace(
            self,
            X=stacked([rows_of(self.X, self.rows), rows_of(other.X, other.rows)]),
            rows=np.arange(len(self) + len(other)),
            points=self.points.joined(other.points),
        )

    def erase(self, rows: NDArray) -> None:
        """Overwrite some dense points of NumPy by their mean, here and in the data; they must not count any more."""
        self.X[self.rows[rows]] = 0
        self.points.coordinates[rows] = 0
        self.points.sq_norms[rows] = 0
        self.points.__dict__.pop("farthest", None)

    def rescaled(self, length: float = 1.0, variance: float = 1.0) -> RadialPoints:
        return RadialPoints.of(self.covariance.rescaled(length, variance), self.X, self.rows, self.origin)

    def diagonal(self) -> NDArray:
        return np.array([self.covariance.variance])

    def tile(self, columns: RadialPoints, out: NDArray | None = None) -> NDArray:
        return next(self.tiles_at(columns, np.ones(1), out))

    def tiles_at(self, columns: RadialPoints, factors: NDArray, out: NDArray | None = None) -> Iterator[Any]:
        """All factors from one tile of distances."""
        if out is not None:
            out = _part_of(out.ravel(), len(self), len(columns)) if out.dtype == self.dtype else None
        d2, variance = sq_distances(self.points, columns.points, out), self.covariance.variance
        if variance > float(np.finfo(self.dtype).max):  # no number in single precision
            d2 = Library.of(d2).xp.astype(d2, Library.of(d2).double)
        floor = log_floor(precision(d2))
        for factor in factors if free_length_scales(self.covariance.kernel) else np.ones(len(factors)):
            tile = d2 if len(factors) == 1 and factor == 1 else _at_factor(d2, factor, _empty_like(d2))
            logs = at_least(self.covariance.profile.log_of(tile), floor)
            values = into("exp", logs, out=logs)
            values -= _floor_value(precision(d2))
            values *= variance
            yield values if isinstance(values, np.ndarray) else at_least(values, 0.0)

    def error(self, columns: RadialPoints) -> NDArray:
        return product_error(self.points, columns.points)

    def log_tile(self, columns: RadialPoints) -> NDArray:
        """Logarithms, with distances computed again by subtraction where rounding could matter."""
        return next(self.log_tiles_at(columns, np.ones(1)))

    def pairs(self, rows: NDArray, columns: RadialPoints, of_columns: NDArray) -> NDArray:
        return next(self.pairs_at(rows, columns, of_columns, np.ones(1)))

    def pair_distances(self, rows: NDArray, columns: RadialPoints, of_columns: NDArray) -> NDArray:
        """Squared distances of listed pairs, by subtraction."""
        scale = self.covariance.length_scale
        return pair_sq_distances(self.X, self.rows[rows], columns.X, columns.rows[of_columns], scale)

    def neighbours(self, count: int) -> NDArray:
        return nearest(at_home(self.points.coordinates), count)

    def paths(self, columns: RadialPoints, weights: Any) -> list[Path]:
        """One sum, relative to the nearest point."""
        return [Path(self, columns, np.ones(1), [[weights]])]

    def walk(self, columns: RadialPoints, factors: NDArray, leave_out: NDArray, sink: Sink) -> NDArray:
        """It is fastest from long to short and where each factor is the last over sqrt(2)."""
        covariance = self.covariance
        if not free_length_scales(covariance.kernel):  # length scales that the user has fixed stay
            factors = np.ones(len(factors))
        limit = np.square(ORDINARY[self.dtype])
        moderate = self.points.farthest <= limit and columns.points.farthest <= limit and not self.exact
        scores = isinstance(covariance.profile, SquaredExponential) and moderate
        source: Any = _Scores(self.points, columns.points, factors) if scores else _Distances(self, columns, factors)
        squared = squares_of_last(covariance.profile, factors)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            tops = _summed(source, squared, self, columns, leave_out, sink)
        return tops + np.log(covariance.variance)

    def log_tiles_at(self, columns: RadialPoints, factors: NDArray) -> Iterator[NDArray]:
        """All factors from one matrix of precise distances."""
        d2 = exact_sq_distances(self, columns)
        return _values_at(self.covariance, d2, factors)

    def pairs_at(self, rows: NDArray, columns: RadialPoints, of_columns: NDArray, factors: NDArray):
        """All factors from the same distances, by subtraction."""
        d2 = self.pair_distances(rows, columns, of_columns)
        return (np.exp(logs) for logs in _values_at(self.covariance, d2, factors))

    def differentiate(self, columns: RadialPoints, weights: NDArray, leave_out: NDArray):
        return differentiate(self.covariance, self.points, columns.points, weights, leave_out)

    def diagonal_gradient(self, weights: NDArray) -> NDArray:
        """C(x, x) is the variance. Its derivative by its own logarithm is itself; all others are 0."""
        return diagonal_gradient(self.covariance, weights)


def _values_at(covariance: Radial, d2: NDArray, factors: NDArray) -> Iterator[NDArray]:
    """Logarithms of the covariance at each factor, from squared distances of NumPy in double precision."""
    for factor in factors if free_length_scales(covariance.kernel) else np.ones(len(factors)):
        scaled = _at_factor(d2, factor, np.empty_like(d2))
        yield covariance.profile.log_of(scaled) + np.log(covariance.variance)


def _floor_value(dtype) -> float:
    """exp of `log_floor`, as arrays have it to the last bit."""
    return float(np.exp(np.full(64, log_floor(dtype), dtype))[0])


# From a kernel to a covariance: the fast path if the kernel allows it, otherwise calls of the kernel.


def recognise(kernel, n_features: int) -> Covariance:
    """The covariance of a kernel for data with `n_features` columns; anything else is refused.

    Products of constants with one `RBF`, `Matern` or `RationalQuadratic` become `Radial`. Other kernels of scikit-learn
    become `Called`. An object that can be bound to points is already a `Covariance` and is returned unchanged.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> type(recognise(2.0 * RBF(1.0), 3)).__name__, type(recognise(DotProduct(), 3)).__name__
    ('Radial', 'Called')
    """
    if hasattr(kernel, "bind"):
        return kernel
    check_kernel(kernel)
    check_hyperparameters(kernel, n_features)
    radial = Radial.of(kernel)
    if radial is not None:
        check_variance(radial.variance, kernel)
    return radial or Called(kernel)
