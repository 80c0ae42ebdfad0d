"""The no-interference condition: Gaussian process classification meets it, Cox processes do not."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF

from coxfield.process import LogGaussianCoxProcess, gp_classifier_prior, interference, label_distribution
from tolerances import assert_close, rounding

INTEGRATED = 1e-8  # what SciPy's integral over an orthant is asked for


def test_gp_classifier_prior_is_the_probability_of_orthants():
    X = np.array([[0.0, 0.0], [0.5, 0.1], [0.2, 0.9]])
    kernel = 2.0 * RBF(0.8)
    found = gp_classifier_prior(kernel, X).probabilities
    for y in product(range(2), repeat=3):
        signs = 2 * np.array(y) - 1
        covariance = (kernel(X) + np.eye(3)) * np.outer(signs, signs)
        accuracy = {"abseps": INTEGRATED, "releps": INTEGRATED, "maxpts": 10**6}
        orthant = multivariate_normal.cdf(np.zeros(3), cov=covariance, **accuracy)
        # SciPy promises its accuracy for 99 of 100 integrals: ten times that for all eight.
        np.testing.assert_allclose(found[y], orthant, rtol=0, atol=10 * INTEGRATED)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_far_points_have_independent_fair_labels(n):
    found = gp_classifier_prior(RBF(1.0), 1000.0 * np.arange(n)[:, None])
    np.testing.assert_array_equal(found.probabilities, np.full((2,) * n, 0.5**n))


@pytest.mark.parametrize("n", [0, 4])
def test_other_numbers_of_points_have_no_closed_form(n):
    with pytest.raises(ValueError, match=f"one, two or three points, got {n}"):
        gp_classifier_prior(RBF(1.0), np.zeros((n, 2)))


@pytest.mark.parametrize("other", [0.3, 1.0, 2.5])
def test_no_interference_holds_for_a_gp_classifier_and_fails_for_cox_processes(other):
    points, others = [[0.0], [1.5]], [[other]]
    assert interference(partial(gp_classifier_prior, RBF(1.0)), points, others) < rounding(1.0, terms=8)
    twins = partial(label_distribution, [LogGaussianCoxProcess(RBF(1.0))] * 2)
    measured = interference(twins, points, others)
    # By hand: with a third point, equal labels of the first two gain by a factor of how it may join them.
    a, b, c = (np.exp(-(d**2) / 2) for d in (1.5, other, abs(other - 1.5)))
    joined, apart = np.exp(a) * (1 + np.exp(b + c)), np.exp(b) + np.exp(c)
    by_hand = abs(joined / (joined + apart) - np.exp(a) / (np.exp(a) + 1)) / 2
    # A difference of two probabilities, each from exponentials of at most 9/2.
    assert_close(measured, by_hand, terms=8 + 9, condition=5.5, scale=1.0)
    assert measured > 1e-3
