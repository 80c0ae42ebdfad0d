"""Derivatives of sums of radial covariances by the parameters of the kernel, in closed form.

The derivative by the variance is the sum itself. The derivatives by one length scale and by alpha are sums of other
profiles. Length scales per feature are different: their sums would need n x d numbers for every class. There the slopes
of a tile are kept until the factors of the sums are known. The sum of A_jk (z_jd - z_kd)^2 over j and k is then one
more product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from coxfield.kernels.distances import sq_distances
from coxfield.kernels.leave_out import cross_out
from coxfield.kernels.profiles import RationalQuadratic, SquaredExponential
from coxfield.kernels.sklearn_tree import free_parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.kernels.scaled import RadialForm, ScaledPoints

# Logarithms of a covariance are cut to this range: smaller ones stand for zero, larger ones decide anyway.
LOG_RANGE = {"float32": (-80.0, 60.0), "float64": (-680.0, 300.0)}


def differentiate(rows: ScaledPoints, columns: ScaledPoints, weights: NDArray, leave_out: NDArray) -> RadialSums:
    """See `Bound.differentiate`."""
    free = free_parameters(rows.covariance.kernel)
    d2 = sq_distances(rows.points, columns.points)
    tiles = _tiles(rows.covariance, d2, free)
    for tile in tiles.values():
        cross_out(tile, leave_out, 0, 0)
    weights = weights.astype(rows.dtype, copy=False)
    per_feature = not isinstance(rows.covariance.length_scale, float)
    by_name = {
        name: ((tile * d2 if name == "length_scale" else tile) @ weights).astype(float)
        for name, tile in tiles.items()
        if not (per_feature and name == "length_scale")
    }
    slopes = _Slopes(tiles["length_scale"], weights, rows, columns) if per_feature and "length_scale" in free else None
    return RadialSums(free, by_name, slopes)


def diagonal_gradient(covariance: RadialForm, weights: NDArray) -> NDArray:
    """See `Bound.diagonal_gradient`."""
    pieces = []
    for name in free_parameters(covariance.kernel):
        size = np.size(covariance.length_scale) if name == "length_scale" else 1
        pieces.append(np.full(size, covariance.variance * weights.sum() if name == "constant_value" else 0.0))
    return np.concatenate([np.empty(0), *pieces])


def _tiles(covariance: RadialForm, d2: NDArray, free: list[str]) -> dict[str, NDArray]:
    """Values of the covariance, and the parts of its derivatives by the free parameters."""
    log_v, profile = np.log(covariance.variance), covariance.profile
    tiles = {"constant_value": _exp(profile.log_of(d2.copy()), log_v)}
    if "alpha" in free:
        assert isinstance(profile, RationalQuadratic)
        tiles["alpha"] = tiles["constant_value"] * profile.by_log_alpha(d2)
    if "length_scale" in free:
        own_slope = isinstance(profile, SquaredExponential)
        tiles["length_scale"] = tiles["constant_value"] if own_slope else _exp(profile.log_slope_of(d2.copy()), log_v)
    return tiles


def _exp(logs: NDArray, log_v: float) -> NDArray:
    """Overwrite by exp(logs + log_v). Only the sum of the two says which values are too small to matter."""
    logs += logs.dtype.type(log_v)
    np.clip(logs, *LOG_RANGE[logs.dtype.name], out=logs)
    return np.exp(logs, out=logs)


@dataclass(frozen=True)
class _Slopes:
    """A tile of slopes, for the derivatives by length scales per feature."""

    tile: NDArray
    weights: NDArray
    rows: ScaledPoints
    columns: ScaledPoints

    def gradient(self, r: NDArray) -> NDArray:
        a, b = self.rows.points.coordinates, self.columns.points.coordinates
        with np.errstate(over="ignore", invalid="ignore"):
            found = squared_differences(self.tile, r, self.weights, a, b)
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
    # Small from here on, so in double precision: the three terms nearly cancel.
    product = r[:, None] * (tile @ weighted)
    rows, columns = r * (tile @ w), w * (r.astype(tile.dtype) @ tile).astype(float)
    if sparse.issparse(a):
        return a.power(2).T @ rows + b.power(2).T @ columns - 2 * np.asarray(a.multiply(product).sum(axis=0)).ravel()
    return np.square(a).T @ rows + np.square(b).T @ columns - 2 * np.einsum("jd,jd->d", a, product)
