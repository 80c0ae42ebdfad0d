"""Alpha-permanents of extreme alpha and extreme entries, against exact fractions and closed forms."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.permanents import alpha_permanent, insertion_matrix
from coxfield.permanents.exact_logs import Signed, log_gradient, log_sweep
from rational import excess, permanent
from tolerances import assert_close

EXTREMES = (5e-324, 1e-300, 1e-100, 1e100, 1e300, 1.7e308)


def covariances(n, length_scale, seed=0):
    return RBF(length_scale)(np.random.default_rng(seed).uniform(0, 2, size=(n, 2)))


def how(A, alpha):
    """A sum of n logarithms errs by their size, which an exponential then multiplies."""
    size = len(A) * (abs(np.log(abs(alpha))) + np.abs(np.log(np.abs(A[A != 0]))).max())
    return {"terms": 4 * len(A) ** 2, "condition": 1 + size}


def with_signs(A, seed=0):
    """Some of the couplings negative, as C-tilde has them."""
    signs = np.triu(np.where(np.random.default_rng(seed).random(A.shape) < 0.15, -1.0, 1.0), 1)
    return A * (signs + signs.T + np.eye(len(A)))


@pytest.mark.parametrize("alpha", EXTREMES)
@pytest.mark.parametrize("length_scale", [0.03, 0.1, 0.3, 1.0, 10.0])
def test_ratios_of_extreme_alpha_are_those_of_fractions(length_scale, alpha):
    """Points that are far apart are alone or in pairs, so that the leading power of alpha is not the first."""
    A = covariances(6, length_scale)
    found = A[5, :5] @ insertion_matrix(A[:5, :5], alpha) @ A[5, :5]
    assert_close(found, excess(A, alpha), **how(A, alpha))


@pytest.mark.parametrize("alpha", EXTREMES)
def test_negative_entries_keep_their_sign(alpha):
    A = with_signs(covariances(6, 0.3))
    found = A[5, :5] @ insertion_matrix(A[:5, :5], alpha) @ A[5, :5]
    scale = insertion_matrix(np.abs(A[:5, :5]), alpha)
    cancelled = np.abs(A[5, :5]) @ scale @ np.abs(A[5, :5])
    assert (A < 0).any()
    assert_close(found, excess(A, alpha), scale=cancelled, **how(A, alpha))


def test_with_large_alpha_every_point_is_a_cycle_of_its_own():
    A = covariances(12, 0.5)
    assert_close(np.diagonal(insertion_matrix(A, 1e300)), np.ones(12), **how(A, 1e300))
    assert np.abs(insertion_matrix(A, 1e300) - np.eye(12)).max() < 1e-9


def test_with_small_alpha_all_points_of_one_clump_are_one_cycle():
    """Per_alpha of ones is the rising factorial, alpha (n - 1)! in the limit, and the ratio to it is n."""
    ones = np.ones((13, 13))
    assert_close(insertion_matrix(ones, 1e-300).sum(), 13.0, terms=13**2, condition=1 + 13 * np.log(1e300))


@pytest.mark.parametrize("alpha", [-1.5, 0.4, 2.0])
def test_the_sweep_of_logarithms_is_the_plain_sweep(alpha):
    A = with_signs(covariances(7, 0.7))
    closed, opened = log_sweep(A, alpha)
    plain, size = alpha_permanent(A, alpha), alpha_permanent(np.abs(A), abs(alpha))
    assert_close(closed.signs * np.exp(closed.logs), plain, scale=size, **how(A, alpha))
    gradient = log_gradient(A, alpha, opened)
    scale = insertion_matrix(np.abs(A), abs(alpha)) * size
    expected = insertion_matrix(A, alpha) * plain
    assert_close(gradient.signs * np.exp(gradient.logs), expected, scale=scale, **how(A, alpha))


def test_signed_numbers_add_and_cancel():
    one = Signed.of(np.array([[3.0, -3.0], [2.0, 0.0], [0.0, 0.0], [-1.0, 0.5]]))
    sums = one.sum(axis=1)
    assert sums.signs.tolist() == [0, 1, 0, -1]
    assert_close(sums.logs, [-np.inf, np.log(2), -np.inf, np.log(0.5)])
    total = one[:, 0] + one[:, 1] * Signed.of(np.array(2.0))
    assert_close(total.signs * np.exp(total.logs), [-3.0, 2.0, 0.0, 0.0])


def test_sums_may_be_larger_than_any_floating_point_number():
    huge = Signed(np.array([1.0, 1.0, -1.0]), np.array([9000.0, 9000.0, 8000.0]))
    assert_close(huge.sum(axis=0).logs, 9000 + np.log(2))


@pytest.mark.parametrize(("scale", "alpha"), [(1e-70, 1.0), (1e60, 1e-100), (1.0, 1e-60)])
def test_permanents_that_floating_point_can_hold_are_right(scale, alpha):
    A = scale * covariances(5, 0.5)
    assert_close(alpha_permanent(A, alpha), float(permanent(A, alpha)), **how(A, alpha))
