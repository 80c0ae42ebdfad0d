"""The no-interference condition: Gaussian process classification meets it, Cox processes do not."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.process import LogGaussianCoxProcess, gp_classifier_prior, interference, label_distribution
from tolerances import assert_close, rounding


def orthant_probability(covariance):
    """P(x < 0) of three normal variables: the solid angle of a cone, by the formula of Van Oosterom and Strackee."""
    edges = np.linalg.inv(np.linalg.cholesky(covariance))
    a, b, c = (edges / np.linalg.norm(edges, axis=0)).T
    angle = 2 * np.arctan2(abs(a @ np.cross(b, c)), 1 + a @ b + b @ c + c @ a)
    return angle / (4 * np.pi)


def test_gp_classifier_prior_is_the_probability_of_orthants():
    X = np.array([[0.0, 0.0], [0.5, 0.1], [0.2, 0.9]])
    kernel = 2.0 * RBF(0.8)
    found = gp_classifier_prior(kernel, X).probabilities
    for y in product(range(2), repeat=3):
        signs = 2 * np.array(y) - 1
        covariance = (kernel(X) + np.eye(3)) * np.outer(signs, signs)
        assert_close(found[y], orthant_probability(covariance), terms=9, condition=np.linalg.cond(covariance))


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
