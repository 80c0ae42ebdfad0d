"""Importance sampling against exact alpha-permanents, within its own standard errors."""

import numpy as np
import pytest

from coxfield.permanents import alpha_permanent, importance_permanent, insertion_matrix
from permanents.random_matrices import covariances
from tolerances import assert_close, rounding


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [1, 5, 11])
def test_the_exact_value_is_within_four_standard_errors(n, alpha):
    A = covariances(n)
    estimate = importance_permanent(A, alpha, n_samples=4000, random_state=0)
    exact = alpha_permanent(A, alpha)
    slack = rounding(1.0, terms=4000 + n**2, condition=1 + abs(estimate.log_value))
    assert abs(estimate.value - exact) <= 4 * estimate.standard_error + slack * exact
    assert 0 < estimate.effective_samples <= 4000 * (1 + slack)


def test_the_standard_error_is_the_spread_of_independent_estimates():
    A = covariances(8)
    estimates = [importance_permanent(A, n_samples=200, random_state=seed) for seed in range(200)]
    spread = np.std([estimate.value for estimate in estimates], ddof=1)
    claimed = np.sqrt(np.mean([estimate.standard_error**2 for estimate in estimates]))
    assert spread == pytest.approx(claimed, rel=4 / np.sqrt(2 * 200))  # four standard errors of a standard deviation


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_of_ones_every_permutation_weighs_the_same(alpha):
    estimate = importance_permanent(np.ones((9, 9)), alpha, n_samples=50, random_state=0)
    # A weight is the exponential of a sum of 3 x 9 logarithms, and each of them comes from a sum of nine numbers.
    how = {"terms": 50 + 27 * 9, "condition": 1 + abs(estimate.log_value)}
    assert_close(estimate.value, np.prod(alpha + np.arange(9)), **how)
    assert estimate.relative_error < rounding(1.0, **how)


@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1e300, 1.7e308])
def test_of_ones_extreme_alpha_gives_the_rising_factorial(alpha):
    estimate = importance_permanent(np.ones((9, 9)), alpha, n_samples=50, random_state=0)
    expected = np.log(alpha) + np.log(np.maximum(alpha, np.arange(1, 9))).sum()  # the smaller summand is lost
    assert_close(estimate.log_value, expected, terms=50 + 27 * 9, scale=9 * abs(np.log(alpha)))
    assert_close((estimate.insertion).sum(), 9.0, terms=50 + 9**2)


def test_points_that_are_far_apart_are_alone_however_small_alpha_is():
    estimate = importance_permanent(np.eye(5), 1e-300, n_samples=10, random_state=0)
    assert_close(estimate.log_value, 5 * np.log(1e-300), terms=15)
    assert_close(estimate.insertion, np.eye(5), terms=10)


def test_the_insertion_matrix_is_the_gradient():
    A = covariances(6)
    exact = insertion_matrix(A, 0.7)
    errors = []
    for n_samples in (300, 30_000):
        Q = importance_permanent(A, 0.7, n_samples=n_samples, random_state=1).insertion
        np.testing.assert_array_equal(Q, Q.T)
        assert_close((Q * A).sum(), 6.0, terms=n_samples, condition=10)  # every point has one image
        errors.append(np.abs((Q - exact) * A).max())
    assert errors[1] < 0.02  # four standard errors of a share of 30,000, at an efficiency of a third
    assert errors[1] < errors[0] / 2


def test_walks_that_cannot_come_back_weigh_nothing():
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])  # from 0 to 1 to 2, and then nowhere
    estimate = importance_permanent(A, 0.5, n_samples=2000, random_state=0)
    exact = 0.5**3 + 2 * 0.5**2
    assert_close(alpha_permanent(A, 0.5), exact, terms=6)
    assert 0 < estimate.standard_error < 0.1 * exact
    assert abs(estimate.value - exact) <= 4 * estimate.standard_error


def test_large_scales_do_not_overflow():
    estimate = importance_permanent(1e200 * covariances(20), n_samples=50, random_state=0)
    plain = importance_permanent(covariances(20), n_samples=50, random_state=0)
    assert_close(estimate.log_value, plain.log_value + 20 * np.log(1e200), terms=3 * 20 * 20)


@pytest.mark.parametrize("n_samples", [1, 2.5, "many"])
def test_bad_numbers_of_samples_get_a_sentence(n_samples):
    with pytest.raises(ValueError, match=f"n_samples must be a whole number of at least 2, got {n_samples!r}"):
        importance_permanent(np.eye(2), n_samples=n_samples)


def test_every_kind_of_random_state_is_welcome():
    A = covariances(5)
    legacy = importance_permanent(A, n_samples=50, random_state=np.random.RandomState(3))
    assert importance_permanent(A, n_samples=50, random_state=3).log_value == legacy.log_value
    rng = np.random.default_rng(3)
    first, second = (importance_permanent(A, n_samples=50, random_state=rng).log_value for _ in range(2))
    assert first != second
    assert importance_permanent(A, n_samples=50, random_state=np.random.default_rng(3)).log_value == first
