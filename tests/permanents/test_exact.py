"""Exact alpha-permanents against the sum over permutations, determinants and other closed forms; what is refused."""

from itertools import permutations
from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coxfield.permanents import alpha_permanent, insertion_matrix
from coxfield.permanents.permanent import Signed, check_alpha, check_covariances, check_square, log_gradient, log_sweep
from permanents.random_matrices import correlations
from rational import excess, n_cycles, permanent
from tolerances import assert_close

ALPHAS = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.7)


def by_permutations(A, alpha):
    rows = np.arange(len(A))
    return fsum(alpha ** n_cycles(sigma) * np.prod(A[rows, list(sigma)]) for sigma in permutations(range(len(A))))


def size(A, alpha):
    """The sum of the absolute values of all terms."""
    return alpha_permanent(np.abs(A), abs(alpha))


@st.composite
def matrices(draw, smallest=1, largest=5):
    n = draw(st.integers(smallest, largest))
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(n, n))


alphas = st.integers(-300, 300).map(lambda hundredths: hundredths / 100)  # no subnormal numbers


@pytest.mark.parametrize("n", range(8))
@pytest.mark.parametrize("alpha", ALPHAS)
def test_it_is_the_sum_over_permutations(n, alpha):
    A = np.random.default_rng(n).normal(size=(n, n))
    terms = by_permutations(np.abs(A), abs(alpha))
    assert_close(alpha_permanent(A, alpha), by_permutations(A, alpha), terms=n**2, scale=terms)


@pytest.mark.parametrize("n", [1, 4, 7, 12])
def test_alpha_minus_one_is_the_signed_determinant_and_its_gradient_the_inverse(n):
    A = np.eye(n) + np.random.default_rng(n).normal(size=(n, n)) / 8
    determinant, inverse = np.linalg.det(A), np.linalg.inv(A)
    assert_close(alpha_permanent(A, -1), (-1) ** n * determinant, terms=n**2, scale=size(A, 1))
    # The gradient's terms are those of |A|; LAPACK errs by the condition number times the largest entry.
    scale = insertion_matrix(np.abs(A), 1) * size(A, 1) / abs(determinant)
    scale = scale + np.linalg.cond(A) * np.abs(inverse).max()
    assert_close(insertion_matrix(A, -1), inverse.T, terms=2 * n**2, scale=scale)


@pytest.mark.parametrize("n", [0, 1, 5, 13])
def test_of_ones_it_is_the_rising_factorial(n):
    assert_close(alpha_permanent(np.ones((n, n)), 0.7), np.prod(0.7 + np.arange(n)), terms=n**2)


@settings(max_examples=50, deadline=None)
@given(A=matrices(), alpha=alphas, seed=st.integers(0, 2**20))
def test_the_order_of_the_points_does_not_matter(A, alpha, seed):
    order = np.random.default_rng(seed).permutation(len(A))
    shuffled = alpha_permanent(A[np.ix_(order, order)], alpha)
    assert_close(shuffled, alpha_permanent(A, alpha), terms=len(A) ** 2, scale=size(A, alpha))


@settings(max_examples=50, deadline=None)
@given(A=matrices(), alpha=alphas, factor=st.floats(0.01, 100))
def test_a_factor_comes_out_to_the_power_n(A, alpha, factor):
    power = factor ** len(A)
    scaled = alpha_permanent(factor * A, alpha)
    assert_close(scaled, power * alpha_permanent(A, alpha), terms=2 * len(A) ** 2, scale=power * size(A, alpha))


@settings(max_examples=50, deadline=None)
@given(A=matrices(), B=matrices(), alpha=alphas)
def test_blocks_multiply(A, B, alpha):
    both = np.block([[A, np.zeros((len(A), len(B)))], [np.zeros((len(B), len(A))), B]])
    product = alpha_permanent(A, alpha) * alpha_permanent(B, alpha)
    assert_close(alpha_permanent(both, alpha), product, terms=2 * len(both) ** 2, scale=size(both, alpha))


@settings(max_examples=30, deadline=None)
@given(A=matrices(), alpha=alphas, beta=alphas)
def test_superposed_processes_add_their_alphas(A, alpha, beta):
    """Per of alpha + beta sums over who belongs to which process: the family is closed under superposition."""
    n, total, absolute = len(A), 0.0, 0.0
    for subset in range(2**n):
        inside = np.array([subset >> k & 1 == 1 for k in range(n)])
        parts = A[np.ix_(inside, inside)], A[np.ix_(~inside, ~inside)]
        total += alpha_permanent(parts[0], alpha) * alpha_permanent(parts[1], beta)
        absolute += size(parts[0], alpha) * size(parts[1], beta)
    assert_close(alpha_permanent(A, alpha + beta), total, terms=2 * n**2 + 2**n, scale=absolute)


@settings(max_examples=50, deadline=None)
@given(A=matrices(2, 6), alpha=st.floats(0.1, 3))
def test_insertion_gives_the_ratio_of_the_larger_matrix(A, alpha):
    A = np.abs(A)
    old, t = A[:-1, :-1], len(A) - 1
    ratio = alpha * A[t, t] + A[:t, t] @ insertion_matrix(old, alpha) @ A[t, :t]
    assert_close(ratio, alpha_permanent(A, alpha) / alpha_permanent(old, alpha), terms=4 * len(A) ** 2)


def test_scale_does_not_overflow_the_gradient():
    A = np.exp(-np.square(np.subtract.outer(np.arange(12.0), np.arange(12.0))))
    assert_close(insertion_matrix(1e40 * A) * 1e40, insertion_matrix(A), terms=4 * 12**2)


def test_scale_and_alpha_together_do_not_overflow_the_gradient():
    A = np.exp(-np.square(np.subtract.outer(np.arange(6.0), np.arange(6.0))))
    assert_close(insertion_matrix(1e280 * A, 1e6) * 1e280, insertion_matrix(A, 1e6), terms=4 * 6**2)


def test_permanents_beyond_floating_point_get_a_sentence_or_are_zero():
    with pytest.raises(ValueError, match=r"is about 1e\+1502, too large .*: divide A by some c, .* it by c\*\*5"):
        alpha_permanent(np.full((5, 5), 1e300))
    assert alpha_permanent(np.full((5, 5), 1e-300)) == 0.0


def test_a_ratio_beyond_floating_point_gets_a_sentence():
    """The only cycle of all points has the weight 0 = 1 - 1, so that the ratio grows like 1 / alpha."""
    A = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [-1.0, 1.0, 1.0]])
    with pytest.raises(ValueError, match=r"for alpha=1e-310 the ratio .* too large .*: give an alpha"):
        insertion_matrix(A, 1e-310)


@pytest.mark.parametrize(
    ("A", "alpha", "message"),
    [
        (np.ones((2, 3)), 1.0, r"square matrix, got shape \(2, 3\)"),
        (np.ones((21, 21)), 1.0, "21 rows.*importance_permanent"),
        (np.ones((2, 2)), np.inf, "alpha must be a finite number, got inf"),
    ],
)
def test_bad_input_gets_a_sentence(A, alpha, message):
    with pytest.raises(ValueError, match=message):
        alpha_permanent(A, alpha)


def test_there_is_no_ratio_to_zero():
    with pytest.raises(ValueError, match=r"alpha-permanent of A is zero.*: give another A or alpha"):
        insertion_matrix(np.zeros((2, 2)))


EXTREMES = (5e-324, 1e-300, 1e-100, 1e100, 1e300, 1.7e308)


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
    A = correlations(6, length_scale)
    found = A[5, :5] @ insertion_matrix(A[:5, :5], alpha) @ A[5, :5]
    assert_close(found, excess(A, alpha), **how(A, alpha))


@pytest.mark.parametrize("alpha", EXTREMES)
def test_negative_entries_keep_their_sign(alpha):
    A = with_signs(correlations(6, 0.3))
    found = A[5, :5] @ insertion_matrix(A[:5, :5], alpha) @ A[5, :5]
    scale = insertion_matrix(np.abs(A[:5, :5]), alpha)
    cancelled = np.abs(A[5, :5]) @ scale @ np.abs(A[5, :5])
    assert (A < 0).any()
    assert_close(found, excess(A, alpha), scale=cancelled, **how(A, alpha))


def test_with_large_alpha_every_point_is_a_cycle_of_its_own():
    A = correlations(12, 0.5)
    assert_close(np.diagonal(insertion_matrix(A, 1e300)), np.ones(12), **how(A, 1e300))
    assert np.abs(insertion_matrix(A, 1e300) - np.eye(12)).max() < 1e-9


def test_with_small_alpha_all_points_of_one_clump_are_one_cycle():
    """Per_alpha of ones is the rising factorial, alpha (n - 1)! in the limit, and the ratio to it is n."""
    ones = np.ones((13, 13))
    assert_close(insertion_matrix(ones, 1e-300).sum(), 13.0, terms=13**2, condition=1 + 13 * np.log(1e300))


@pytest.mark.parametrize("alpha", [-1.5, 0.4, 2.0])
def test_the_sweep_of_logarithms_is_the_plain_sweep(alpha):
    A = with_signs(correlations(7, 0.7))
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
    A = scale * correlations(5, 0.5)
    assert_close(alpha_permanent(A, alpha), float(permanent(A, alpha)), **how(A, alpha))


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.ones((2, 3)), r"square matrix, got shape \(2, 3\): give"),
        (np.ones((0, 3)), r"square matrix, got shape \(0, 3\): give"),
        ([[1.0, np.nan], [0.0, 1.0]], "A contains NaN"),
        ([1.0, 2.0], "2D array"),
    ],
)
def test_what_is_no_square_matrix_is_refused(A, message):
    with pytest.raises(ValueError, match=message):
        check_square(A)


def test_a_matrix_may_have_no_rows():
    assert check_square([]).shape == (0, 0)
    assert check_square(np.empty((0, 0))).shape == (0, 0)
    assert check_square([[1, 2], [3, 4]]).dtype == float


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "must be symmetric.*: give"),
        ([[1.0, -0.5], [-0.5, 1.0]], "negative entries, got -0.5: use alpha_permanent"),
        ([[1.0, 0.0], [0.0, 0.0]], "diagonal of A must be positive, got 0: leave out"),
    ],
)
def test_what_is_no_matrix_of_covariances_is_refused(A, message):
    with pytest.raises(ValueError, match=message):
        check_covariances(A)


def test_rounding_does_not_spoil_symmetry():
    A = np.array([[1.0, 0.5], [0.5 * (1 + 4e-16), 1.0]])
    np.testing.assert_array_equal(check_covariances(A), A)


def test_alpha_is_finite_and_positive_if_it_must_be():
    assert check_alpha(-1, positive=False) == -1.0
    assert check_alpha(np.float32(0.5), positive=True) == 0.5
    with pytest.raises(ValueError, match=r"alpha must be a positive finite number, got -1"):
        check_alpha(-1, positive=True)
    with pytest.raises(ValueError, match=r"alpha must be a finite number, got inf"):
        check_alpha(np.inf, positive=False)
