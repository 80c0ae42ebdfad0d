"""The process itself: its closed forms, its samples, and what it refuses."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from coxfield.geometry.window import TOLERANCE
from coxfield.process import CoarseGridWarning, LogGaussianCoxProcess, Pattern
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
