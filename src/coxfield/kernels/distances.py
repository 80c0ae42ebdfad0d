"""Squared distances between scaled points, and stationary covariances as functions of them, with their derivatives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import sparse
from scipy.special import gammaln, kve

from coxfield.kernels.namespace import (
    Library,
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
from coxfield.kernels.sklearn_tree import free_parameters
from coxfield.utils.numbers import ORDINARY

if TYPE_CHECKING:
    from numpy.typing import NDArray


SHRINK = 2.0**64  # by which the largest numbers are divided before they are added up
BEYOND = 80.0  # length scales; at half of that, the squared exponential is exp(-800)
SOME = 101  # points whose quartiles say where most points are
ASTRAY = 16  # distances between the quartiles: a mean that is farther away is no centre


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
        return self.coordinates.shape

    @property
    def dtype(self) -> np.dtype:
        return precision(self.coordinates)

    @cached_property
    def farthest(self) -> float:
        return float(to_numpy(self.sq_norms).max(initial=0))

    def __getitem__(self, rows) -> Points:
        stretch = None if self.stretch is None else self.stretch[rows]
        return Points(rows_of(self.coordinates, rows), rows_of(self.sq_norms, rows), stretch)

    def joined(self, other: Points) -> Points:
        """These points and others, without a stretch of distances."""
        coordinates = stacked([self.coordinates, other.coordinates])
        return Points(coordinates, stacked([self.sq_norms, other.sq_norms]))

    def astype(self, dtype) -> Points:
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


# Profiles: stationary covariances as functions of the squared distance, with the length scale divided out.
#
# A profile c satisfies C(x, x') = variance * c(|(x - x') / length_scale|^2) and c(0) = 1. A profile computes its
# logarithm, because a kernel value that underflows still has a logarithm. It works in place, because these are the
# large arrays of the hot path.


CLOSED = (0.5, 1.5, 2.5)  # orders of Matern profiles without Bessel functions, which only SciPy has
LARGE_ORDER = 50.0  # of a Matern profile: above it, an expansion is accurate
ALPHAS = {"float32": (1e-25, 1e12), "float64": (1e-250, 1e15)}


class Profile(Protocol):
    """What the class sums ask of a stationary covariance."""

    def log_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by log c(d2)."""
        ...

    def log_slope_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by log(-2 c'(d2)), from which derivatives by length scales are computed.

        The derivative of c by the logarithm of the length scale of feature k is -2 c'(d2) (z_k - z'_k)^2. At distance 0
        of a rough profile c' is infinite, but the product with the distance is 0, so the logarithm is set to -inf.
        """
        ...


@dataclass(frozen=True)
class SquaredExponential:
    """c(d2) = exp(-d2 / 2): the kernel of all the paper's experiments."""

    def log_of(self, d2: NDArray) -> NDArray:
        d2 *= -0.5
        return d2

    def log_slope_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by -d2 / 2: the profile is its own slope."""
        return self.log_of(d2)


@dataclass(frozen=True)
class Matern:
    """Matern with t = sqrt(2 nu d2); nu = 1/2 is the exponential kernel, nu -> inf the squared exponential."""

    nu: float

    def log_of(self, d2: NDArray) -> NDArray:
        if self.nu > LARGE_ORDER:
            d2[...] = _log_large_order(d2.astype(float) / self.nu * 2, self.nu)
            return d2
        d2 *= 2 * self.nu
        t = into("sqrt", d2, out=d2)
        if self.nu == 0.5:
            t *= -1.0
            return t
        if self.nu in CLOSED:
            polynomial = t if self.nu == 1.5 else t * (1 + t / 3)
            return into("subtract", Library.of(t).xp.log1p(polynomial), t, out=t)
        t[...] = self._log_bessel_form(t)
        return t

    def _log_bessel_form(self, t: NDArray) -> NDArray:
        """Log of 2^(1-nu) / Gamma(nu) t^nu K_nu(t), the profile."""
        value = self._log_bessel(t, self.nu, self.nu)
        # At t = 0 (and where kve overflows just beside it) the profile is 1.
        return np.where(np.isfinite(value), np.minimum(value, 0), 0)

    def _log_bessel(self, t: NDArray, power: float, order: float) -> NDArray:
        """Log of 2^(1-nu) / Gamma(nu) t^power K_order(t); kve = K e^t neither over- nor underflows for large t."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (1 - self.nu) * math.log(2) - gammaln(self.nu) + power * np.log(t) + np.log(kve(order, t)) - t

    def log_slope_of(self, d2: NDArray) -> NDArray:
        """Overwrite squared distances by the logarithm of the slope: t^nu becomes 2 nu t^(nu-1), K_nu K_(nu-1)."""
        if self.nu > LARGE_ORDER:  # t^(nu-1) K_(nu-1)(t) is the profile of order nu - 1, up to its constant
            ratio = self.nu / (self.nu - 1)
            d2[...] = math.log(ratio) + _log_large_order(d2.astype(float) / (self.nu - 1) * 2 * ratio, self.nu - 1)
            return d2
        d2 *= 2 * self.nu
        t = into("sqrt", d2, out=d2)
        xp = Library.of(t).xp
        if self.nu == 1.5:
            t *= -1.0
            t += math.log(3)
            return t
        if self.nu == 2.5:
            return into("subtract", math.log(5 / 3) + xp.log1p(t), t, out=t)
        if self.nu == 0.5:
            with np.errstate(divide="ignore"):
                slope = -t - xp.log(t)
            slope = xp.where(xp.isfinite(slope), slope, xp.full_like(slope, -math.inf))
            t[...] = slope
            return t
        slope = math.log(2 * self.nu) + self._log_bessel(t, self.nu - 1, self.nu - 1)
        t[...] = np.where(np.isfinite(slope), slope, -np.inf)
        return t


def _log_large_order(z2: NDArray, nu: float) -> NDArray:
    """Log of the Matern profile at t^2 = nu^2 z2, by the uniform expansion of K_nu(nu z) for large nu (Olver).

    With the expansion of Gamma(nu) all large terms cancel, so any order will do; above 50, ten digits are right. K_nu
    itself overflows at orders of some hundreds.
    """
    root = np.sqrt(1 + z2)
    q = z2 / (1 + root)
    series = _log_series(1 / root, nu) - _log_series(np.ones(1), nu)
    return nu * (np.log1p(q / 2) - q) - 0.25 * np.log1p(z2) + series


def _log_series(p: NDArray, nu: float) -> NDArray:
    """Log of the sum of (-1/nu)^k u_k(p) over k = 0, ..., 4, with the polynomials u_k of the expansion."""
    s = np.square(p)
    terms = (
        p * (3 - 5 * s) / 24,
        s * (81 + s * (-462 + s * 385)) / 1152,
        p * s * (30375 + s * (-369603 + s * (765765 - s * 425425))) / 414720,
        s**2 * (4465125 + s * (-94121676 + s * (349922430 + s * (-446185740 + s * 185910725)))) / 39813120,
    )
    return np.log1p(sum(term * (-1 / nu) ** k for k, term in enumerate(terms, 1)))


@dataclass(frozen=True)
class RationalQuadratic:
    """c(d2) = (1 + d2 / (2 alpha))^-alpha."""

    alpha: float

    def log_of(self, d2: NDArray) -> NDArray:
        return self._log_power(d2, self.effective_alpha(precision(d2)))

    def log_slope_of(self, d2: NDArray) -> NDArray:
        return self._log_power(d2, self.effective_alpha(precision(d2)) + 1)

    def effective_alpha(self, dtype) -> float:
        """alpha as far as the precision can tell it from 0 and from infinity, where the profile has its limits."""
        return float(np.clip(self.alpha, *ALPHAS[np.dtype(dtype).name]))

    def _log_power(self, d2: NDArray, power: float) -> NDArray:
        """Overwrite squared distances by -power log(1 + d2 / (2 alpha))."""
        with np.errstate(over="ignore"):
            d2 /= 2 * self.effective_alpha(precision(d2))
        xp, largest = Library.of(d2).xp, float(np.finfo(precision(d2)).max)
        d2 = np.minimum(d2, largest, out=d2) if xp is np else xp.clip(d2, max=largest)
        d2 = into("log1p", d2, out=d2)
        d2 *= -power
        return d2

    def by_log_alpha(self, d2: NDArray) -> NDArray:
        """Derivative of log c by log alpha at squared distances, which are not overwritten."""
        alpha, xp = self.effective_alpha(precision(d2)), Library.of(d2).xp
        with np.errstate(over="ignore"):
            u = xp.clip(d2 / (2 * alpha), max=float(np.finfo(precision(d2)).max) / 2)
        return alpha * (u / (1 + u) - xp.log1p(u))


# Derivatives of sums of radial covariances by the parameters of the kernel, in closed form.
#
# The derivative by the variance is the sum itself. The derivatives by one length scale and by alpha are sums of other
# profiles. Length scales per feature are different: their sums would need n x d numbers for every class. There the
# slopes of a tile are kept until the factors of the sums are known. The sum of A_jk (z_jd - z_kd)^2 over j and k is
# then one more product of matrices.


# Logarithms of a covariance are cut to this range: smaller ones stand for zero, larger ones decide anyway.
LOG_RANGE = {"float32": (-80.0, 60.0), "float64": (-680.0, 300.0)}


def differentiate(covariance: Any, rows: Points, columns: Points, weights: NDArray, leave_out: NDArray) -> RadialSums:
    """See `KernelPoints.differentiate`."""
    free = free_parameters(covariance.kernel)
    d2 = sq_distances(rows, columns)
    tiles = _tiles(covariance, d2, free)
    tiles = {name: cross_out(tile, leave_out, 0, 0.0) for name, tile in tiles.items()}
    weights = like(weights, d2)
    per_feature = not isinstance(covariance.length_scale, float)
    by_name = {
        name: to_numpy((tile * d2 if name == "length_scale" else tile) @ weights).astype(float)
        for name, tile in tiles.items()
        if not (per_feature and name == "length_scale")
    }
    slopes = _Slopes(tiles["length_scale"], weights, rows, columns) if per_feature and "length_scale" in free else None
    return RadialSums(free, by_name, slopes)


def diagonal_gradient(covariance: Any, weights: NDArray) -> NDArray:
    """See `KernelPoints.diagonal_gradient`."""
    pieces = []
    for name in free_parameters(covariance.kernel):
        size = np.size(covariance.length_scale) if name == "length_scale" else 1
        pieces.append(np.full(size, covariance.variance * weights.sum() if name == "constant_value" else 0.0))
    return np.concatenate([np.empty(0), *pieces])


def _tiles(covariance: Any, d2: NDArray, free: list[str]) -> dict[str, NDArray]:
    """Values of the covariance, and the parts of its derivatives by the free parameters."""
    log_v, profile = np.log(covariance.variance), covariance.profile
    copy = Library.of(d2).xp.asarray
    tiles = {"constant_value": _exp(profile.log_of(copy(d2, copy=True)), log_v)}
    if "alpha" in free:
        assert isinstance(profile, RationalQuadratic)
        tiles["alpha"] = tiles["constant_value"] * profile.by_log_alpha(d2)
    if "length_scale" in free:
        own_slope = isinstance(profile, SquaredExponential)
        tiles["length_scale"] = (
            tiles["constant_value"] if own_slope else _exp(profile.log_slope_of(copy(d2, copy=True)), log_v)
        )
    return tiles


def _exp(logs: NDArray, log_v: float) -> NDArray:
    """Overwrite by exp(logs + log_v). Only the sum of the two says which values are too small to matter."""
    low, high = LOG_RANGE[precision(logs).name]
    logs += float(log_v)
    logs = (
        np.clip(logs, low, high, out=logs)
        if isinstance(logs, np.ndarray)
        else Library.of(logs).xp.clip(logs, low, high)
    )
    return into("exp", logs, out=logs)


@dataclass(frozen=True)
class _Slopes:
    """A tile of slopes, for the derivatives by length scales per feature."""

    tile: NDArray
    weights: NDArray
    rows: Points
    columns: Points

    def gradient(self, r: NDArray) -> NDArray:
        a, b = self.rows.coordinates, self.columns.coordinates
        with np.errstate(over="ignore", invalid="ignore"):
            found = to_numpy(squared_differences(self.tile, r, self.weights, a, b))
        # Points so far apart that squares overflow have no covariance, and so no part in its derivatives.
        return np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)


@dataclass(frozen=True)
class RadialSums:
    """Weighted sums of covariances, and the data from which their derivatives are computed."""

    free: list[str]
    by_name: dict[str, NDArray]
    """Derivatives of the sums by the logarithm of each parameter that is one number, always including the variance."""
    slopes: _Slopes | None

    @property
    def sums(self) -> NDArray:
        """The sums; they are also their derivative by the log variance, which multiplies them."""
        return self.by_name["constant_value"]

    def gradient(self, rows: NDArray) -> NDArray:
        """Sum over the points of rows_j dsums_j / d theta, in the order of `kernel.theta`."""
        pieces = {name: np.atleast_1d(rows @ sums) for name, sums in self.by_name.items()}
        if self.slopes is not None:
            pieces["length_scale"] = self.slopes.gradient(rows)
        return np.concatenate([np.empty(0), *(pieces[name] for name in self.free)])


def squared_differences(tile: NDArray, r: NDArray, w: NDArray, a, b) -> NDArray:
    """Sum of r_j tile_jk w_k (a_jd - b_kd)^2 over j and k for each feature d, by products of matrices.

    Examples
    --------
    >>> import numpy as np
    >>> b, w = np.array([[1.0], [2.0]]), np.array([1.0, 10.0])
    >>> squared_differences(np.ones((1, 2)), np.ones(1), w, np.zeros((1, 1)), b)
    array([41.])
    """
    weighted = sparse.diags_array(w) @ b if sparse.issparse(b) else b * w[:, None]
    if not sparse.issparse(b) and not isinstance(b, np.ndarray):  # small from here on, so at home
        product, along, across = (to_numpy(each) for each in (tile @ weighted, tile @ w, like(r, tile) @ tile))
        a, b, w = (to_numpy(each).astype(float) for each in (a, b, w))
        rows, columns = r * along, w * across.astype(float)
        return np.square(a).T @ rows + np.square(b).T @ columns - 2 * np.einsum("jd,jd->d", a, r[:, None] * product)
    # Small from here on, so in double precision: the three terms nearly cancel.
    product = r[:, None] * (tile @ weighted)
    rows, columns = r * (tile @ w), w * (r.astype(tile.dtype) @ tile).astype(float)
    if sparse.issparse(a):
        return a.power(2).T @ rows + b.power(2).T @ columns - 2 * np.asarray(a.multiply(product).sum(axis=0)).ravel()
    return np.square(a).T @ rows + np.square(b).T @ columns - 2 * np.einsum("jd,jd->d", a, product)
