"""The process itself: its closed forms, and what it refuses."""

import warnings

import numpy as np
import pytest
from scipy.integrate import dblquad
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from coxfield.process import CoarseGridWarning, LogGaussianCoxProcess, Pattern, log_product_density
from coxfield.process.integral import IntegrationWarning

RNG = np.random.default_rng(5)
PLANE = [(0, 4), (0, 2)]


def naive_log_product_density(points, C, mu):
    """Eq. LGCPproductDensity, letter by letter."""
    total = sum(mu(x) for x in points)
    for x in points:
        for z in points:
            total += C(x, z) / 2
    return total


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_product_density_is_the_papers(n, d):
    points = RNG.normal(size=(n, d))
    squared = LogGaussianCoxProcess(0.7 * RBF(1.3), mean=-0.4)
    expected = naive_log_product_density(
        points, lambda x, z: 0.7 * np.exp(-np.sum((x - z) ** 2) / (2 * 1.3**2)), lambda x: -0.4
    )
    np.testing.assert_allclose(squared.log_product_density(points), expected, rtol=1e-12)
    exponential = LogGaussianCoxProcess(2.0 * Matern(0.5, nu=0.5), mean=lambda x: np.sin(x[:, 0]))
    expected = naive_log_product_density(
        points, lambda x, z: 2 * np.exp(-np.linalg.norm(x - z) / 0.5), lambda x: np.sin(x[0])
    )
    np.testing.assert_allclose(exponential.log_product_density(points), expected, rtol=1e-12)


def test_product_density_of_no_points_is_one():
    assert log_product_density(np.empty((0, 2)), RBF(1.0), 3.0) == 0


def test_far_points_are_independent_and_pairs_are_as_the_pair_correlation_says():
    process = LogGaussianCoxProcess(0.5 * RBF(1.0), mean=1.0)
    x, z = np.array([[0.0, 0.0]]), np.array([[0.6, 0.8]])
    one, two = process.log_product_density(x), process.log_product_density(np.concatenate([x, z]))
    np.testing.assert_allclose(np.exp(two - 2 * one), process.pair_correlation(z - x)[0], rtol=1e-12)
    np.testing.assert_allclose(process.pair_correlation(z - x), np.exp(0.5 * np.exp(-0.5)), rtol=1e-12)
    np.testing.assert_allclose(process.pair_correlation([1.0]), process.pair_correlation(z - x), rtol=1e-12)
    far = process.log_product_density(np.concatenate([x, x + 100]))
    np.testing.assert_allclose(far, 2 * one, rtol=1e-12)


def test_intensity_is_the_first_product_density():
    process = LogGaussianCoxProcess(1.5 * Matern(1.0, nu=1.5), mean=lambda x: x[:, 0] - 1)
    points = RNG.normal(size=(4, 2))
    expected = [np.exp(process.log_product_density([x])) for x in points]
    np.testing.assert_allclose(process.intensity(points), expected, rtol=1e-12)


def test_expected_count():
    process = LogGaussianCoxProcess(RBF(1.0), mean=0.3)
    np.testing.assert_allclose(process.expected_count(PLANE), 8 * np.exp(0.8), rtol=1e-12)
    wavy = LogGaussianCoxProcess(RBF(1.0), mean=lambda x: np.sin(3 * x[:, 0]) * x[:, 1])
    expected = dblquad(lambda v, u: np.exp(np.sin(3 * u) * v + 0.5), 0, 4, 0, 2, epsabs=1e-10)[0]
    np.testing.assert_allclose(wavy.expected_count(PLANE), expected, rtol=1e-8)
    space = LogGaussianCoxProcess(RBF(1.0), mean=lambda x: x.sum(axis=1))
    np.testing.assert_allclose(space.expected_count([(0, 1)] * 3), np.exp(0.5) * (np.e - 1) ** 3, rtol=1e-8)


def test_an_integral_that_does_not_settle_says_so():
    edge = LogGaussianCoxProcess(RBF(1.0), mean=lambda x: 9.0 * (x.sum(axis=1) > 0.7712))
    with pytest.warns(IntegrationWarning, match="with an error of about .*: integrate smaller windows"):
        edge.expected_count([(0, 1)] * 3)


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
    np.testing.assert_allclose(pattern.intensity.values, pattern.intensity.values[0], rtol=1e-8)


def test_coarse_cells_are_warned_of():
    process = LogGaussianCoxProcess(RBF(0.1))
    with pytest.warns(CoarseGridWarning, match=r"correlation of only 0.0\d+, .* raise the resolution"):
        process.sample((0, 2), resolution=8, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        process.sample((0, 2), resolution=40, random_state=0)


@pytest.mark.parametrize("kernel", [DotProduct(), RBF(1.0) * DotProduct()])
def test_kernels_that_are_not_stationary_are_refused(kernel):
    with pytest.raises(ValueError, match="is not stationary"):
        LogGaussianCoxProcess(kernel)


def test_kernels_that_jump_are_refused_by_densities_too():
    with pytest.raises(ValueError, match="leave WhiteKernel out"):
        LogGaussianCoxProcess(RBF(1.0) + WhiteKernel()).log_product_density([[0.0], [1.0]])


@pytest.mark.parametrize("mean", [np.nan, np.inf])
def test_means_are_finite(mean):
    with pytest.raises(ValueError, match=f"mean must be finite, got {mean}"):
        LogGaussianCoxProcess(RBF(1.0), mean)


def test_means_are_numbers_or_functions():
    with pytest.raises(TypeError, match="a number or a function"):
        LogGaussianCoxProcess(RBF(1.0), "zero")


@pytest.mark.parametrize(
    ("mean", "sentence"),
    [
        (lambda x: x, r"gave an array of shape \(\d+, 2\) for \d+ points"),
        (lambda x: np.log(x[:, 0] - 2.5), "must be finite in the window, but it is not at"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_mean_functions_give_a_finite_number_a_point(mean, sentence):
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


def test_nan_points_are_refused():
    with pytest.raises(ValueError, match="row 1 is"):
        LogGaussianCoxProcess(RBF(1.0)).log_product_density([[0.0, 0.0], [np.nan, 1.0]])
