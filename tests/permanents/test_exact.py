from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coxfield.permanents import alpha_permanent, insertion_matrix

ALPHAS = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.7)


def n_cycles(sigma):
    seen, count = set(), 0
    for start in range(len(sigma)):
        count += start not in seen
        while start not in seen:
            seen.add(start)
            start = sigma[start]
    return count


def by_permutations(A, alpha):
    rows = np.arange(len(A))
    return sum(alpha ** n_cycles(sigma) * np.prod(A[rows, list(sigma)]) for sigma in permutations(range(len(A))))


@st.composite
def matrices(draw, smallest=1, largest=5):
    n = draw(st.integers(smallest, largest))
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(n, n))


alphas = st.integers(-300, 300).map(lambda hundredths: hundredths / 100)  # no subnormal numbers


@pytest.mark.parametrize("n", range(8))
@pytest.mark.parametrize("alpha", ALPHAS)
def test_it_is_the_sum_over_permutations(n, alpha):
    A = np.random.default_rng(n).normal(size=(n, n))
    rounding = 1e-14 * by_permutations(np.abs(A), abs(alpha))
    assert abs(alpha_permanent(A, alpha) - by_permutations(A, alpha)) <= rounding


@pytest.mark.parametrize("n", [1, 4, 7, 12])
def test_alpha_minus_one_is_the_signed_determinant_and_its_gradient_the_inverse(n):
    A = np.eye(n) + np.random.default_rng(n).normal(size=(n, n)) / 8
    assert alpha_permanent(A, -1) == pytest.approx((-1) ** n * np.linalg.det(A), rel=1e-10)
    np.testing.assert_allclose(insertion_matrix(A, -1), np.linalg.inv(A).T, atol=1e-9)


@pytest.mark.parametrize("n", [0, 1, 5, 13])
def test_of_ones_it_is_the_rising_factorial(n):
    assert alpha_permanent(np.ones((n, n)), 0.7) == pytest.approx(np.prod(0.7 + np.arange(n)), rel=1e-13)


@settings(max_examples=50, deadline=None)
@given(A=matrices(), alpha=alphas, seed=st.integers(0, 2**20))
def test_the_order_of_the_points_does_not_matter(A, alpha, seed):
    order = np.random.default_rng(seed).permutation(len(A))
    bound = 1e-13 * alpha_permanent(np.abs(A), abs(alpha))
    assert abs(alpha_permanent(A[np.ix_(order, order)], alpha) - alpha_permanent(A, alpha)) <= bound


@settings(max_examples=50, deadline=None)
@given(A=matrices(), alpha=alphas, factor=st.floats(0.01, 100))
def test_a_factor_comes_out_to_the_power_n(A, alpha, factor):
    bound = 1e-12 * factor ** len(A) * alpha_permanent(np.abs(A), abs(alpha))
    assert abs(alpha_permanent(factor * A, alpha) - factor ** len(A) * alpha_permanent(A, alpha)) <= bound


@settings(max_examples=50, deadline=None)
@given(A=matrices(), B=matrices(), alpha=alphas)
def test_blocks_multiply(A, B, alpha):
    both = np.block([[A, np.zeros((len(A), len(B)))], [np.zeros((len(B), len(A))), B]])
    bound = 1e-12 * alpha_permanent(np.abs(both), abs(alpha))
    assert abs(alpha_permanent(both, alpha) - alpha_permanent(A, alpha) * alpha_permanent(B, alpha)) <= bound


@settings(max_examples=30, deadline=None)
@given(A=matrices(), alpha=alphas, beta=alphas)
def test_superposed_processes_add_their_alphas(A, alpha, beta):
    """Per of alpha + beta sums over who belongs to which process: the family is closed under superposition."""
    n, total, size = len(A), 0.0, 0.0
    for subset in range(2**n):
        inside = np.array([subset >> k & 1 == 1 for k in range(n)])
        parts = A[np.ix_(inside, inside)], A[np.ix_(~inside, ~inside)]
        total += alpha_permanent(parts[0], alpha) * alpha_permanent(parts[1], beta)
        size += alpha_permanent(np.abs(parts[0]), abs(alpha)) * alpha_permanent(np.abs(parts[1]), abs(beta))
    assert abs(alpha_permanent(A, alpha + beta) - total) <= 1e-12 * size


@settings(max_examples=50, deadline=None)
@given(A=matrices(2, 6), alpha=st.floats(0.1, 3))
def test_insertion_gives_the_ratio_of_the_larger_matrix(A, alpha):
    A = np.abs(A)
    old, t = A[:-1, :-1], len(A) - 1
    ratio = alpha * A[t, t] + A[:t, t] @ insertion_matrix(old, alpha) @ A[t, :t]
    assert ratio == pytest.approx(alpha_permanent(A, alpha) / alpha_permanent(old, alpha), rel=1e-10)


def test_scale_does_not_overflow_the_gradient():
    A = np.exp(-np.square(np.subtract.outer(np.arange(12.0), np.arange(12.0))))
    np.testing.assert_allclose(insertion_matrix(1e40 * A) * 1e40, insertion_matrix(A), rtol=1e-12)


@pytest.mark.parametrize(
    ("A", "alpha", "message"),
    [
        (np.ones((2, 3)), 1.0, r"square matrix, got shape \(2, 3\)"),
        ([[1.0, np.nan], [0.0, 1.0]], 1.0, "NaN"),
        (np.ones((21, 21)), 1.0, "21 rows.*importance_permanent"),
        (np.ones((2, 2)), np.inf, "alpha must be a finite number, got inf"),
    ],
)
def test_bad_input_gets_a_sentence(A, alpha, message):
    with pytest.raises(ValueError, match=message):
        alpha_permanent(A, alpha)


def test_there_is_no_ratio_to_zero():
    with pytest.raises(ValueError, match="alpha-permanent of A is zero"):
        insertion_matrix(np.zeros((2, 2)))
