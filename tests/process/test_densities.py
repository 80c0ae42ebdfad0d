"""Product densities, term by term, and those of all subsets."""

import itertools

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from coxfield.process import log_product_density
from coxfield.process.densities import subset_log_densities, subsets
from tolerances import assert_close

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
