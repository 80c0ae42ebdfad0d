"""The trend of an intensity: a log-linear function of covariates, fitted by the likelihood of a Poisson process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from coxfield.process.fields import Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from coxfield.geometry.window import Window
    from coxfield.process.pattern import PointPattern

TREND_CELLS = {1: 512, 2: 128, 3: 32}  # along the longest side, for the integral of the intensity


@dataclass(frozen=True, eq=False)
class Covariates:
    """Covariates on the cells of a grid, by name.

    Examples
    --------
    >>> slope = Covariates(Grid.over([(0, 2), (0, 1)], 2), {"height": [[1.0], [5.0]]})
    >>> slope["height"](np.array([[0.5, 0.5], [1.5, 0.5]])).tolist()
    [1.0, 5.0]
    """

    grid: Grid
    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        checked = {name: np.asarray(values, dtype=float) for name, values in self.values.items()}
        for name, values in checked.items():
            if values.shape != self.grid.shape:
                raise ValueError(
                    f"the covariate {name!r} has the shape {values.shape}, but the grid has {self.grid.shape} cells: "
                    "give one value per cell"
                )
        object.__setattr__(self, "values", checked)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __iter__(self):
        return iter(self.values)

    def __getitem__(self, name: str) -> Callable[[NDArray], NDArray]:
        return partial(self._at, name)

    def _at(self, name: str, points: NDArray) -> NDArray:
        return self.values[name].ravel()[self.grid.cells_in_box(points)]


@dataclass(frozen=True, eq=False)
class Trend:
    """A log-linear intensity: log lambda(x) = b_0 + sum_k b_k z_k(x), fitted by the likelihood of a Poisson process."""

    names: tuple[str, ...]
    functions: tuple[Callable[[NDArray], NDArray], ...]
    coefficients: NDArray
    """b_0, b_1, ..., in the units of the covariates."""

    def __call__(self, points: NDArray) -> NDArray:
        """log lambda at points, shape (n,)."""
        values = np.full(len(points), self.coefficients[0])
        for b, function in zip(self.coefficients[1:], self.functions, strict=True):
            values += b * function(points)
        return values


@dataclass(frozen=True)
class ShiftedTrend:
    """The mean mu(x) = log lambda(x) - C(0)/2 of the Gaussian process behind a trend."""

    trend: Trend
    shift: float

    def __call__(self, points: NDArray) -> NDArray:
        """mu at points, shape (n,)."""
        return self.trend(points) - self.shift


def fit_trend(pattern: PointPattern, names, covariates=None) -> Trend:
    r"""Fit a log-linear intensity by maximum likelihood of a Poisson process.

    The log likelihood is :math:`\sum_i \log\lambda(x_i) - \int_W \lambda`, and the integral is a sum over the cells of
    a grid, each with the volume that it has in the window.

    Parameters
    ----------
    pattern : PointPattern
    names : sequence of str
        Covariates; "x", "y" and "z" are coordinates if no covariate has that name.
    covariates : Covariates, or mapping name -> function of points, optional

    Examples
    --------
    >>> from coxfield.process import poisson_process
    >>> pattern = poisson_process(lambda x: np.exp(3 + x[:, 0]), [(0, 2), (0, 2)], bound=np.exp(5), random_state=0)
    >>> fit_trend(pattern, ["x"]).coefficients.round(1).tolist()
    [2.9, 1.2]
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    functions = tuple(_covariate(name, covariates, pattern.window.dimension) for name in names)
    grid = covariates.grid if isinstance(covariates, Covariates) else trend_grid(pattern.window)
    volumes = _volumes(pattern.window, grid)
    weights = volumes[volumes > 0]
    cells = _design(functions, names, grid.centres()[volumes > 0])
    # Standard units keep the Hessian well conditioned.
    centre = weights @ cells / weights.sum()
    spread = np.sqrt(weights @ (cells - centre) ** 2 / weights.sum())
    if len(names) and (spread <= 1e-12 * np.abs(centre)).any():
        flat = names[int(np.argmin(spread))]
        raise ValueError(f"the covariate {flat!r} is the same everywhere in the window: leave it out")
    cells = np.column_stack([np.ones(len(cells)), (cells - centre) / spread])
    if np.linalg.matrix_rank(cells) < cells.shape[1]:
        raise ValueError(f"the covariates {', '.join(names)} are linear functions of each other: leave some out")
    sums = np.sum((_design(functions, names, pattern.points) - centre) / spread, axis=0)
    found = _most_likely(cells, weights, np.concatenate([[len(pattern)], sums]))
    slopes = found[1:] / spread
    return Trend(names, functions, np.concatenate([[found[0] - slopes @ centre], slopes]))


def _most_likely(cells: NDArray, weights: NDArray, sums: NDArray) -> NDArray:
    """Coefficients b of the largest log likelihood sums . b - sum of weights exp(cells . b); sums[0] is a count."""

    def rate(b):
        return weights * np.exp(np.minimum(cells @ b, 700))

    def loss(b):
        return rate(b).sum() - sums @ b, cells.T @ rate(b) - sums

    def hessian(b):
        return (cells * rate(b)[:, None]).T @ cells

    start = np.zeros(cells.shape[1])
    start[0] = np.log(sums[0] / weights.sum())
    return minimize(loss, start, jac=True, hess=hessian, method="trust-exact", options={"gtol": 1e-8 * sums[0]}).x


def trend_grid(window: Window) -> Grid:
    """The grid of the integral of an intensity, over the box of the window."""
    return Grid.over(window.box, TREND_CELLS[window.dimension])


def _covariate(name: str, covariates, dimension: int) -> Callable[[NDArray], NDArray]:
    if covariates is not None and name in covariates:
        return covariates[name]
    if name in "xyz"[:dimension]:
        return partial(_coordinate, "xyz".index(name))
    known = ", ".join([*map(repr, covariates or ()), *map(repr, "xyz"[:dimension])])
    raise ValueError(f"there is no covariate {name!r}: the names are {known}")


def _coordinate(axis: int, points: NDArray) -> NDArray:
    return points[:, axis]


def _design(functions, names, points: NDArray) -> NDArray:
    columns = [np.asarray(function(points), dtype=float) for function in functions]
    for name, column in zip(names, columns, strict=True):
        if column.shape != (len(points),) or not np.isfinite(column).all():
            raise ValueError(f"the covariate {name!r} must be one finite number per point of the window: fill in gaps")
    return np.stack(columns, axis=1) if columns else np.empty((len(points), 0))


def _volumes(window: Window, grid: Grid) -> NDArray:
    """How much of each cell of a grid lies in the window. The grid must cover the window."""
    if (grid.window.low > window.low).any() or (grid.window.high < window.high).any():
        raise ValueError(
            f"the grid of the covariates covers {grid.window.sides}, but the window is {window.sides}: give covariates "
            "in all of the window"
        )
    return window.cell_volumes(grid.shape, grid.window).ravel()
