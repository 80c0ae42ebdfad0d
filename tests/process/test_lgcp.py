"""The process itself: closed forms, samples within four standard errors of theory, and what it refuses."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from coxfield.geometry.window import TOLERANCE
from coxfield.process import CoarseGridWarning, Grid, LogGaussianCoxProcess, Pattern
from tolerances import assert_close, rounding

RNG = np.random.default_rng(5)
PLANE = [(0, 4), (0, 2)]


def test_far_points_are_independent_and_pairs_are_as_the_pair_correlation_says():
    process = LogGaussianCoxProcess(0.5 * RBF(1.0), mean=1.0)
    x, z = np.array([[0.0, 0.0]]), np.array([[0.6, 0.8]])
    one, two = process.log_product_density(x), process.log_product_density(np.concatenate([x, z]))
    assert_close(np.exp(two - 2 * one), process.pair_correlation(z - x)[0], terms=6, condition=1 + abs(two))
    assert_close(process.pair_correlation(z - x), np.exp(0.5 * np.exp([-0.5])), condition=1.5)
    assert_close(process.pair_correlation([1.0]), process.pair_correlation(z - x), condition=1.5)
    far = process.log_product_density(np.concatenate([x, x + 100]))
    assert_close(far, 2 * one, terms=6)


def test_intensity_is_the_first_product_density():
    process = LogGaussianCoxProcess(1.5 * Matern(1.0, nu=1.5), mean=lambda x: x[:, 0] - 1)
    points = RNG.normal(size=(4, 2))
    logs = np.array([process.log_product_density([x]) for x in points])
    assert_close(process.intensity(points), np.exp(logs), terms=2, condition=1 + np.abs(logs))


def test_expected_count():
    process = LogGaussianCoxProcess(RBF(1.0), mean=0.3)
    assert_close(process.expected_count(PLANE), 8 * np.exp(0.8), terms=2)
    space = LogGaussianCoxProcess(RBF(1.0), mean=lambda x: x.sum(axis=1))
    np.testing.assert_allclose(space.expected_count([(0, 1)] * 3), np.exp(0.5) * (np.e - 1) ** 3, rtol=TOLERANCE)


@pytest.mark.parametrize("window", [(0, 4), PLANE, [(0, 1), (0, 1), (0, 2)]])
def test_a_sample_carries_its_window_and_its_intensity(window):
    process = LogGaussianCoxProcess(RBF(1.0), mean=2.0)
    pattern = process.sample(window, resolution=16, random_state=0)
    assert isinstance(pattern, Pattern)
    assert pattern.window.contains(pattern.points).all()
    assert pattern.intensity.grid.window == pattern.window
    # Given the intensity the number is Poisson.
    expected = pattern.intensity.integral
    assert abs(len(pattern) - expected) < 4 * np.sqrt(expected)


def test_samples_follow_the_random_state():
    process = LogGaussianCoxProcess(RBF(1.0), mean=2.0)
    first, second = (process.sample(PLANE, resolution=16, random_state=9) for _ in range(2))
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_array_equal(first.intensity.values, second.intensity.values)
    rng = np.random.default_rng(9)
    third, fourth = process.sample(PLANE, resolution=16, size=2, random_state=rng)
    assert third.intensity.values[0, 0] != fourth.intensity.values[0, 0]


def test_a_constant_kernel_is_a_mixed_poisson_process():
    pattern = LogGaussianCoxProcess(ConstantKernel(1.0), mean=3.0).sample((0, 4), resolution=8, random_state=0)
    # Eigenvalues that should be 0 are rounding, and the field varies by their square root: ten standard deviations.
    spread = 10 * np.sqrt(rounding(1.0, terms=16))
    np.testing.assert_allclose(pattern.intensity.values, pattern.intensity.values[0], rtol=spread)


def test_coarse_cells_are_warned_of():
    process = LogGaussianCoxProcess(RBF(0.1))
    with pytest.warns(CoarseGridWarning, match=r"correlation of only 0.0\d+, .* raise the resolution"):
        process.sample((0, 2), resolution=8, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        process.sample((0, 2), resolution=40, random_state=0)


def test_covariance_and_mean_are_checked_at_once():
    with pytest.raises(ValueError, match="is not stationary"):
        LogGaussianCoxProcess(DotProduct())
    with pytest.raises(ValueError, match="mean must be finite, got nan"):
        LogGaussianCoxProcess(RBF(1.0), np.nan)


@pytest.mark.parametrize(
    ("mean", "sentence"),
    [
        (lambda x: x, r"gave an array of shape \(\d+, 2\) for \d+ points"),
        (lambda x: np.log(x[:, 0] - 2.5), "must be finite in the window, but it is not at"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_mean_functions_give_a_finite_number_per_point(mean, sentence):
    process = LogGaussianCoxProcess(RBF(1.0), mean)
    with pytest.raises(ValueError, match=sentence):
        process.sample(PLANE, resolution=16)
    with pytest.raises(ValueError, match=sentence):
        process.log_product_density([[0.0, 0.0], [3.0, 1.0]])


@pytest.mark.parametrize(
    ("window", "sentence"),
    [([(0, 0), (0, 1)], "empty"), ([(2, 1)], "inverted"), ([(0, 1)] * 4, "one, two or three dimensions")],
)
def test_windows_that_cannot_be_drawn_in_are_refused(window, sentence):
    with pytest.raises(ValueError, match=sentence):
        LogGaussianCoxProcess(RBF(1.0)).sample(window)


def test_kernel_and_window_of_different_dimensions():
    with pytest.raises(ValueError, match="length_scale has 2 entries but the data have 1 features"):
        LogGaussianCoxProcess(RBF([1.0, 2.0])).sample((0, 4))


def test_more_points_than_can_be_held_are_refused():
    with pytest.raises(ValueError, match="points are to be expected, more than"):
        LogGaussianCoxProcess(RBF(1.0), mean=40.0).sample((0, 4), resolution=16, random_state=0)
    with pytest.raises(ValueError, match="intensity must be finite"):
        LogGaussianCoxProcess(RBF(1.0), mean=1e4).sample((0, 4), resolution=16, random_state=0)


N = 4000
ON_LINE, IN_PLANE = "line", "plane"
KERNELS = {"squared exponential": 0.5 * RBF(0.5), "exponential": 0.5 * Matern(0.5, nu=0.5)}
WINDOWS = {ON_LINE: ((0, 4),), IN_PLANE: ((0, 2), (0, 1.5))}
SHAPES = {ON_LINE: (32,), IN_PLANE: (16, 12)}
MEANS = {ON_LINE: 2.0, IN_PLANE: 4.0}  # about one point a cell

every_process = pytest.mark.parametrize("where", [ON_LINE, IN_PLANE])
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


LAGS = {ON_LINE: [(1,), (2,), (5,), (12,)], IN_PLANE: [(1, 0), (0, 2), (2, 2), (6, 3)]}


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


TRIPLES = {ON_LINE: [((1,), (3,)), ((2,), (9,))], IN_PLANE: [((1, 0), (1, 1)), ((2, 0), (2, 4))]}


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
