"""Simulated log Gaussian Cox processes against theory, within four standard errors.

The simulated intensity is constant on the cells of a grid, with the field at their centres. The theory is that of the
same thing: product densities at the centres of the cells, and sums over cells where there would be integrals. So there
is no bias to allow for, however coarse the grid, and the standard errors are all there is. Counts are taken from the
points, not from the intensity.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.process import Grid, LogGaussianCoxProcess

N = 4000
LINE, PLANE = "line", "plane"
KERNELS = {"squared exponential": 0.5 * RBF(0.5), "exponential": 0.5 * Matern(0.5, nu=0.5)}
WINDOWS = {LINE: ((0, 4),), PLANE: ((0, 2), (0, 1.5))}
SHAPES = {LINE: (32,), PLANE: (16, 12)}
MEANS = {LINE: 2.0, PLANE: 4.0}  # about one point a cell

every_process = pytest.mark.parametrize("where", [LINE, PLANE])
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@cache
def simulated(kernel, where):
    """A process, its grid, and counts of N patterns cell by cell: shape (N, *grid.shape)."""
    process = LogGaussianCoxProcess(KERNELS[kernel], MEANS[where])
    patterns = process.sample(WINDOWS[where], resolution=SHAPES[where], size=N, random_state=1)
    grid = Grid.over(WINDOWS[where], SHAPES[where])
    edges = [np.linspace(low, high, n + 1) for (low, high), n in zip(WINDOWS[where], SHAPES[where], strict=True)]
    return process, grid, np.stack([np.histogramdd(pattern.points, edges)[0] for pattern in patterns])


def agree(samples, truth):
    """Whether the mean of independent samples is the truth, to four standard errors."""
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    assert abs(samples.mean() - truth) < 4 * error, (samples.mean(), truth, error)
    # A test that anything passes is none: the error must be small beside the truth.
    assert error < 0.1 * truth
    return True


def covariance_of_counts(process, grid, cells):
    """Exact covariance of the counts of two cells, given the product densities at their centres."""
    centres = grid.centres()[cells]
    rho = process.intensity(centres) * grid.cell_volume
    return np.diag(rho) + np.outer(rho, rho) * (np.exp(process.kernel(centres)) - 1)


@every_kernel
@every_process
@pytest.mark.parametrize("part", ["all", "a corner", "one cell"])
def test_mean_and_variance_of_counts_in_parts_of_the_window(kernel, where, part):
    process, grid, counts = simulated(kernel, where)
    inside = np.zeros(grid.shape, bool)
    inside[tuple(slice({"all": n, "a corner": n // 3, "one cell": 1}[part]) for n in grid.shape)] = True
    number = counts[:, inside].sum(axis=1)
    covariance = covariance_of_counts(process, grid, np.flatnonzero(inside))
    mean = process.intensity(grid.centres()).ravel()[inside.ravel()].sum() * grid.cell_volume
    assert agree(number, mean)
    assert agree((number - mean) ** 2, covariance.sum())


def shifted(counts, lag):
    """Counts at all places x for which x + lag is on the grid, and counts at x + lag."""
    here = tuple(slice(0, n - step) for n, step in zip(counts.shape[1:], lag, strict=True))
    there = tuple(slice(step, n) for n, step in zip(counts.shape[1:], lag, strict=True))
    return counts[(slice(None), *here)], counts[(slice(None), *there)]


LAGS = {LINE: [(1,), (2,), (5,), (12,)], PLANE: [(1, 0), (0, 2), (2, 2), (6, 3)]}


@every_kernel
@every_process
@pytest.mark.parametrize("which", range(4))
def test_pair_correlation(kernel, where, which):
    process, grid, counts = simulated(kernel, where)
    lag = LAGS[where][which]
    a, b = shifted(counts, lag)
    rho = process.intensity(grid.centres()[:1])[0]
    pairs = (a * b).reshape(N, -1).mean(axis=1) / (rho * grid.cell_volume) ** 2
    assert agree(pairs, process.pair_correlation([np.array(lag) * grid.spacing])[0])


@every_kernel
@every_process
def test_pair_correlation_at_distance_zero(kernel, where):
    process, grid, counts = simulated(kernel, where)
    rho = process.intensity(grid.centres()[:1])[0]
    pairs = (counts * (counts - 1)).reshape(N, -1).mean(axis=1) / (rho * grid.cell_volume) ** 2
    assert agree(pairs, process.pair_correlation(np.zeros((1, len(grid.shape))))[0])


@every_kernel
@every_process
def test_two_point_product_density(kernel, where):
    process, grid, counts = simulated(kernel, where)
    flat, centres = counts.reshape(N, -1), grid.centres()
    rng = np.random.default_rng(0)
    for _ in range(5):
        i, j = rng.choice(len(centres), 2, replace=False)
        found = flat[:, i] * flat[:, j] / grid.cell_volume**2
        assert agree(found, np.exp(process.log_product_density(centres[[i, j]])))


TRIPLES = {LINE: [((1,), (3,)), ((2,), (9,))], PLANE: [((1, 0), (1, 1)), ((2, 0), (2, 4))]}


@every_kernel
@every_process
@pytest.mark.parametrize("which", range(2))
def test_three_point_product_density(kernel, where, which):
    process, grid, counts = simulated(kernel, where)
    second, third = TRIPLES[where][which]
    here, far = shifted(counts, third)
    middle = shifted(counts, second)[1][tuple(slice(n) for n in here.shape)]
    found = (here * middle * far).reshape(N, -1).mean(axis=1) / grid.cell_volume**3
    points = np.array([np.zeros(len(grid.shape)), second, third]) * grid.spacing
    assert agree(found, np.exp(process.log_product_density(points)))


def test_a_mean_function_shapes_the_counts():
    process = LogGaussianCoxProcess(0.5 * RBF(0.5), mean=lambda x: 1 + x[:, 0])
    patterns = process.sample((0, 2), resolution=256, size=N, random_state=2)
    # On cells of 1/128 the mean intensity differs from its values at the centres by 5e-6.
    for part in ((0, 1), (1, 2)):
        assert agree(np.array([pattern.count(part) for pattern in patterns]), process.expected_count(part))


def test_in_space():
    process = LogGaussianCoxProcess(0.4 * RBF(0.2), mean=3.0)
    window, shape = [(0, 1), (0, 1), (0, 0.5)], (6, 6, 3)
    patterns = process.sample(window, resolution=shape, size=2000, random_state=3)
    grid = Grid.over(window, shape)
    counts = np.array([len(pattern) for pattern in patterns])
    mean = process.expected_count(window)
    assert agree(counts, mean)
    assert agree((counts - mean) ** 2, covariance_of_counts(process, grid, np.arange(108)).sum())
