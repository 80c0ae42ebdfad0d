"""Gaussian fields: circulant embedding of 512 x 512 cells beside a dense Cholesky factor of 64 x 64 points."""

import numpy as np
from scipy.linalg import cholesky
from sklearn.gaussian_process.kernels import RBF, Matern

from benchmarks.harness import Row, seconds, show
from coxfield.process import Grid
from coxfield.process.fields import embed

LAGS = ((0, 0), (1, 0), (0, 2), (3, 3), (6, 0), (0, 10), (10, 10), (20, 5), (0, 40), (60, 60))  # in cells


def lagged_products(field):
    """Mean of f(x) f(x + h) over the places x of a field, for each lag h."""
    n, m = field.shape
    return [(field[: n - a, : m - b] * field[a:, b:]).mean() for a, b in LAGS]


def deviations(kernel, grid, n_fields, rng):
    """Deviation of the empirical covariance from the kernel at each lag, in standard errors over fields."""
    embedding = embed(kernel, grid)
    products = np.array([lagged_products(embedding.draw(1, rng)[0]) for _ in range(n_fields)])
    truth = kernel(np.zeros((1, 2)), np.array(LAGS) * grid.spacing)[0]
    return (products.mean(axis=0) - truth) / (products.std(axis=0, ddof=1) / np.sqrt(n_fields))


def dense_factor(kernel, grid):
    covariance = kernel(grid.centres())
    covariance[np.diag_indices_from(covariance)] += 1e-8  # smooth kernels need it; embeddings do not
    return cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)


def run(quick=False):
    cells, points, n_fields = (128, 24, 40) if quick else (512, 64, 100)
    grid, small = Grid.over([(0, cells), (0, cells)], cells), Grid.over([(0, points), (0, points)], points)
    kernels = {"squared exponential": RBF(10.0), "exponential": Matern(10.0, nu=0.5)}
    rng = np.random.default_rng(0)
    rows = []
    for name, kernel in kernels.items():
        worst, error = np.abs(deviations(kernel, grid, n_fields, rng)).max(), embed(kernel, grid).error
        rows.append(Row(f"{name}: {len(LAGS)} lags, largest deviation", f"{worst:.1f} s.e.", "below 4"))
        rows.append(Row(f"{name}: bound on the covariance error", f"{error:.0e} C(0)", "below 1e-9"))
    kernel = kernels["squared exponential"]
    embedding, factor = embed(kernel, grid), dense_factor(kernel, small)
    find = seconds(lambda: embed(kernel, grid))
    draw = seconds(lambda: embedding.draw(2, rng), repeats=3) / 2
    factorise = seconds(lambda: dense_factor(kernel, small))
    multiply = seconds(lambda: factor @ rng.standard_normal(len(factor)), repeats=3)
    rows += [
        Row(f"{cells} x {cells}: embedding, once", f"{find:.3f} s"),
        Row(f"{cells} x {cells}: each field", f"{draw:.3f} s"),
        Row(f"{points} x {points}: covariance and Cholesky factor, once", f"{factorise:.3f} s"),
        Row(f"{points} x {points}: each field", f"{multiply:.3f} s"),
        Row("Cholesky / (embedding and one field)", f"{factorise / (find + draw):.1f}", "above 1"),
        Row("cells of the one / points of the other", f"{cells**2 / points**2:.0f}"),
    ]
    show(f"Gaussian fields, {cells} x {cells} by circulant embedding, {n_fields} fields for the covariance", rows)


if __name__ == "__main__":
    run()
