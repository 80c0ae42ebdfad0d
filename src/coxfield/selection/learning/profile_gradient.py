"""Derivatives of class sums for recognised kernels, in closed form and block by block.

The derivative by the variance is the class sum itself; those by one length scale and by alpha are class sums of other
profiles. Length scales a feature are different: their sums would fill n x Q x d numbers. There the slopes of a block of
rows are held until its residuals are known, and the sum of A_jk (z_jd - z_kd)^2 over j and k is one more product of
matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from coxfield.engine import tiles as blocks
from coxfield.engine.class_sums import columns_of, cross_out
from coxfield.kernels.points import TOLERABLE, product_error, sq_distances
from coxfield.kernels.profiles import RationalQuadratic, SquaredExponential

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from coxfield.engine.class_sums import Group, TrainingPoints
    from coxfield.kernels.covariance import Covariance
    from coxfield.kernels.points import Points

# Logarithms of a covariance are held within these: what is less stands for zero, what is more has long decided.
LOG_RANGE = {"float32": (-80.0, 60.0), "float64": (-680.0, 300.0)}


def free_parameters(kernel) -> list[str]:
    """What each free parameter of a recognised kernel is, in the order of `kernel.theta`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> free_parameters(2.0 * RBF([1.0, 2.0])), free_parameters(2.0 * RBF(1.0, "fixed"))
    (['constant_value', 'length_scale'], ['constant_value'])
    """
    return [parameter.name.rsplit("__", 1)[-1] for parameter in kernel.hyperparameters if not parameter.fixed]


@dataclass(frozen=True)
class ProfileGroup:
    """The points of one group, ready to be seen from blocks of rows."""

    training: TrainingPoints
    group: Group
    points: Points
    own_column: NDArray
    """Column that each row leaves out, -1 for none."""
    half_variance: float
    """What C(x, x) / 2 adds to the scores and does not cancel."""

    @classmethod
    def of(cls, training: TrainingPoints, group: Group, rows: NDArray, *, shared: bool) -> ProfileGroup:
        """Find what to leave out, and the precision to compute in."""
        points = group.points
        # Rounded distances spoil derivatives: where single precision is too coarse, double is taken throughout.
        if product_error(points, points).max(initial=0) > TOLERABLE:
            points = training.place(group, training.X[group.rows].astype(np.float64))
        own_column = columns_of(group, training, rows)
        assert own_column is not None
        return cls(training, group, points, own_column, 0.0 if shared else group.covariance.variance / 2)

    def part(self, X, block: slice) -> ProfilePart:
        """Class sums of a block of rows with all that their derivatives need."""
        queries = self.training.place(self.group, X.astype(self.points.dtype, copy=False))
        part = ProfilePart.empty(self, queries)
        for segment, columns in _panels(self.group):
            d2 = sq_distances(queries, self.points[columns])
            tiles = _tiles(self.group.covariance, d2, part.free)
            for tile in tiles.values():
                cross_out(tile, self.own_column[block], columns.start, columns.stop, 0)
            part.take(segment, columns, d2, tiles)
        return part

    def weights(self, columns: slice) -> NDArray:
        """Weights of some columns."""
        if self.group.weights is None:
            return np.ones(columns.stop - columns.start, self.points.dtype)
        return self.group.weights[columns].astype(self.points.dtype, copy=False)


def _panels(group: Group) -> Iterator[tuple[int, slice]]:
    """Columns of one class after the other, as many at a time as a tile takes."""
    for segment, (start, size) in enumerate(zip(group.starts.tolist(), group.sizes.tolist(), strict=True)):
        for part in gen_batches(size, blocks.COLUMNS):
            yield segment, slice(start + part.start, start + part.stop)


def _tiles(covariance: Covariance, d2: NDArray, free: list[str]) -> dict[str, NDArray]:
    """Values of the covariance, and what the derivatives by its free parameters are made of."""
    log_v, profile = np.log(covariance.variance), covariance.profile
    assert profile is not None
    tiles = {"constant_value": _exp(profile.log_of(d2.copy()), log_v)}
    if "alpha" in free:
        assert isinstance(profile, RationalQuadratic)
        tiles["alpha"] = tiles["constant_value"] * profile.by_log_alpha(d2)
    if "length_scale" in free:
        own_slope = isinstance(profile, SquaredExponential)
        tiles["length_scale"] = tiles["constant_value"] if own_slope else _exp(profile.log_slope_of(d2.copy()), log_v)
    return tiles


def _exp(logs: NDArray, log_v: float) -> NDArray:
    """Overwrite by exp(logs + log_v). Only together do they tell what is too small to matter."""
    logs += logs.dtype.type(log_v)
    np.clip(logs, *LOG_RANGE[logs.dtype.name], out=logs)
    return np.exp(logs, out=logs)


@dataclass(frozen=True)
class ProfilePart:
    """What a block of rows sees of one group."""

    seen: ProfileGroup
    queries: Points
    free: list[str]
    by_class: dict[str, NDArray]
    """Derivatives of the class sums by the logarithm of each parameter that is one number, the variance always."""
    slopes: list[tuple[int, slice, NDArray]]
    """(class of the group, columns, tile); for length scales a feature."""

    @classmethod
    def empty(cls, seen: ProfileGroup, queries: Points) -> ProfilePart:
        """Nothing summed yet."""
        covariance = seen.group.covariance
        free = free_parameters(covariance.kernel)
        single = {"constant_value", *free}
        if not isinstance(covariance.length_scale, float):
            single.discard("length_scale")
        shape = len(queries), len(seen.group.classes)
        return cls(seen, queries, free, {name: np.zeros(shape) for name in single}, [])

    @property
    def sums(self) -> NDArray:
        """The class sums: the variance multiplies them, so they are their own derivative."""
        return self.by_class["constant_value"]

    def take(self, segment: int, columns: slice, d2: NDArray, tiles: dict[str, NDArray]) -> None:
        """Add one tile of columns, all of one class."""
        weights = self.seen.weights(columns)
        for name, sums in self.by_class.items():
            sums[:, segment] += (tiles[name] * d2 if name == "length_scale" else tiles[name]) @ weights
        if "length_scale" in self.free and "length_scale" not in self.by_class:
            self.slopes.append((segment, columns, tiles["length_scale"]))

    def by_theta(self, residual: NDArray) -> NDArray:
        """Derivatives of the pseudo-likelihood by `kernel.theta`."""
        pieces = {name: np.atleast_1d(np.sum(residual * sums)) for name, sums in self.by_class.items()}
        pieces["constant_value"] += self.seen.half_variance * residual.sum()
        if self.slopes:
            pieces["length_scale"] = self._by_length_scales(residual)
        return np.concatenate([np.empty(0), *(pieces[name] for name in self.free)])

    def _by_length_scales(self, residual: NDArray) -> NDArray:
        total, a = np.zeros(self.queries.shape[1]), self.queries.coordinates
        for segment, columns, tile in self.slopes:
            b, w = self.seen.points[columns].coordinates, self.seen.weights(columns)
            total += squared_differences(tile, residual[:, segment], w, a, b)
        return total


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
