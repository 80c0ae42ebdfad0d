"""What a process takes as its covariance and its mean; product densities, term by term, and those of all subsets."""

import itertools

import numpy as np
import pytest
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from coxfield.process import log_product_density
from coxfield.process.densities import (
    check_in_dimension,
    check_kernel,
    check_mean,
    mean_at,
    subset_log_densities,
    subsets,
    variance,
)
from tolerances import assert_close


class Drifting(kernels.StationaryKernelMixin, kernels.Kernel):
    """Says that it is stationary, and is not."""

    def __init__(self):  # scikit-learn reads its signature
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        return np.exp(-np.abs(X[:, :1] ** 2 - Y[:, :1].T ** 2))

    def diag(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize("kernel", [RBF(1.0), 0.5 * Matern([1.0, 2.0], nu=1.5), RBF(0.3) + RBF(2.0), RBF(1.0) ** 2])
def test_stationary_kernels_are_welcome(kernel):
    check_kernel(kernel)
    check_in_dimension(kernel, 2)


@pytest.mark.parametrize(
    "kernel", [kernels.DotProduct(), RBF(1.0) + kernels.DotProduct(), RBF(1.0) * kernels.DotProduct()]
)
def test_kernels_that_are_not_stationary_are_refused(kernel):
    with pytest.raises(ValueError, match=r"is not stationary, .*: use RBF"):
        check_kernel(kernel)


def test_what_is_no_kernel_is_refused():
    with pytest.raises(TypeError, match=r"such as RBF\(1.0\); got 'rbf'"):
        check_kernel("rbf")


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (RBF(1.0) + kernels.WhiteKernel(0.1), "jumps at distance zero.*leave WhiteKernel out"),
        (Drifting(), "calls itself stationary, but its values change"),
        (kernels.CompoundKernel([RBF(1.0), RBF(2.0)]), r"CompoundKernel.* returned an array of shape \(1, 5, 2\)"),
        (RBF([1.0, 2.0, 3.0]), "length_scale has 3 entries but the data have 2 features"),
        (RBF(-1.0), "length_scale of the covariance must be positive"),
        (RBF(np.nan), "length_scale of the covariance must be positive"),
    ],
)
def test_kernels_that_make_no_field_in_the_plane_are_refused(kernel, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_in_dimension(kernel, 2)


def test_the_variance_is_the_covariance_at_distance_zero():
    assert variance(2.5 * RBF(1.0), 3) == 2.5


@pytest.mark.parametrize("mean", [np.nan, np.inf])
def test_means_are_finite(mean):
    with pytest.raises(ValueError, match=f"mean must be finite, got {mean}: give a finite number"):
        check_mean(mean)


def test_means_are_numbers_or_functions():
    with pytest.raises(TypeError, match="a number or a function"):
        check_mean("zero")
    check_mean(np.float32(1.5))
    check_mean(lambda x: x[:, 0])


def test_a_mean_is_evaluated_at_points():
    points = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert mean_at(1.5, points).tolist() == [1.5, 1.5]
    assert mean_at(lambda x: x[:, 0] - x[:, 1], points).tolist() == [-1.0, -1.0]


@pytest.mark.parametrize(
    ("mean", "sentence"),
    [
        (lambda x: x, r"gave an array of shape \(2, 2\) for 2 points"),
        (lambda x: np.where(x[:, 0] > 2, np.inf, 0.0), r"must be finite in the window, but it is not at \[3.0, 1.0\]"),
    ],
)
def test_mean_functions_give_a_finite_number_per_point(mean, sentence):
    with pytest.raises(ValueError, match=sentence):
        mean_at(mean, np.array([[0.0, 0.0], [3.0, 1.0]]))


RNG = np.random.default_rng(5)


def naive(points, C, mu):
    """Eq. LGCPproductDensity letter by letter, and the sum of the absolute values of its terms."""
    terms = [mu(x) for x in points] + [C(x, z) / 2 for x in points for z in points]
    return sum(terms), sum(map(abs, terms))


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_product_density_is_the_papers(n, d):
    points = RNG.normal(size=(n, d))
    largest = np.square(points[:, None] - points).sum(axis=2).max()
    expected, scale = naive(points, lambda x, z: 0.7 * np.exp(-np.sum((x - z) ** 2) / (2 * 1.3**2)), lambda x: -0.4)
    found = log_product_density(points, 0.7 * RBF(1.3), -0.4)
    # An exponential multiplies the relative error of its argument, a sum of d squares, by the argument.
    assert_close(found, expected, terms=n**2 + n + d, scale=scale, condition=1 + largest / (2 * 1.3**2))
    expected, scale = naive(points, lambda x, z: 2 * np.exp(-np.linalg.norm(x - z) / 0.5), lambda x: np.sin(x[0]))
    found = log_product_density(points, 2.0 * Matern(0.5, nu=0.5), lambda x: np.sin(x[:, 0]))
    assert_close(found, expected, terms=n**2 + n + d, scale=scale, condition=1 + np.sqrt(largest) / 0.5)


def test_product_density_of_no_points_is_one():
    assert log_product_density(np.empty((0, 2)), RBF(1.0), 3.0) == 0


def test_every_subset_has_its_product_density():
    points, kernel = RNG.normal(size=(4, 2)), 0.6 * Matern(0.9, nu=1.5)
    mean = lambda x: x[:, 0] - 0.3  # noqa: E731
    found = subset_log_densities(points, kernel, mean)
    for position, members in enumerate(itertools.product([False, True], repeat=4)):
        chosen = points[list(members[::-1])]  # the lowest bit is the first point
        scale = np.abs(mean(points)).sum() + kernel(points).sum() / 2
        assert_close(found[position], log_product_density(chosen, kernel, mean), terms=20, scale=scale)


def test_subsets_count_like_binary_numbers():
    assert subsets(2).tolist() == [[False, False], [True, False], [False, True], [True, True]]
    assert subsets(0).shape == (1, 0)
    with pytest.raises(ValueError, match="17 points have too many subsets to enumerate: give at most 16 points"):
        subsets(17)


def test_kernels_that_jump_are_refused():
    with pytest.raises(ValueError, match="leave WhiteKernel out"):
        log_product_density([[0.0], [1.0]], RBF(1.0) + WhiteKernel())


def test_nan_points_are_refused():
    with pytest.raises(ValueError, match="row 1 is"):
        log_product_density([[0.0, 0.0], [np.nan, 1.0]], RBF(1.0))
