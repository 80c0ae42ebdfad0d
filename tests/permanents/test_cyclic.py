import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from coxfield.apps.experiments.permanental_accuracy import accuracy
from coxfield.permanents import alpha_permanent, insertion_matrix, log_permanent_ratio_cyclic
from coxfield.permanents.calibration import calibrate
from coxfield.permanents.cyclic import expand


def covariances(n, length_scale, seed=0):
    return 2 * RBF(length_scale)(np.random.default_rng(seed).uniform(0, 2, size=(n, 2)))


def without_diagonal(A):
    return A - np.diag(np.diagonal(A))


@pytest.mark.parametrize("cycles", [2, 3, 4])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.3])
def test_of_ones_the_ratio_is_exact_for_any_number_of_points(cycles, alpha):
    for n in (1, 10, 100):
        ratio = np.exp(log_permanent_ratio_cyclic(np.ones((n, n)), np.ones((1, n)), [1.0], alpha, cycles=cycles))
        np.testing.assert_allclose(ratio, alpha + n, rtol=1e-8)
        loo = expand(np.ones((n, n)), alpha, cycles).leave_one_out(without_diagonal(np.ones((n, n))))
        np.testing.assert_allclose(alpha + loo, alpha + n - 1, rtol=1e-8)


def test_one_old_point_is_exact():
    A = covariances(2, 1.0)
    exact = np.log(alpha_permanent(A, 0.7) / alpha_permanent(A[:1, :1], 0.7))
    for cycles in (2, 3, 4):
        np.testing.assert_allclose(
            log_permanent_ratio_cyclic(A[:1, :1], A[1:, :1], A[1:, 1], 0.7, cycles=cycles), exact
        )


def test_two_old_points_far_from_each_other_are_exact():
    A = np.array([[2.0, 0.0], [0.0, 2.0]])
    rows, exact = np.array([[1.0, 0.5]]), insertion_matrix(A, 1.5)
    expected = np.log(1.5 * 2 + np.einsum("ij,jk,ik->i", rows, exact, rows))
    np.testing.assert_allclose(log_permanent_ratio_cyclic(A, rows, [2.0], 1.5), expected)


@pytest.mark.parametrize("n", [6, 14])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("length_scale", [0.5, 1.0])
def test_more_cycles_and_more_samples_come_closer_to_the_exact_ratio(n, alpha, length_scale):
    # Among points further apart all that is left is that they leave independently, the same for 3 and 4 cycles.
    error = accuracy(n, alpha, length_scale, patterns=4, seed=0)
    assert error["2 cycles"] > error["3 cycles"] > error["4 cycles"]
    assert error["100 drawn"] > error["10,000 drawn"]


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 30),
    alpha=st.floats(0.05, 20),
    length_scale=st.floats(0.01, 10),
    longest=st.sampled_from([1, 2, 3]),
    seed=st.integers(0, 2**20),
)
def test_the_probabilities_of_every_points_cycles_sum_to_one(n, alpha, length_scale, longest, seed):
    B = without_diagonal(covariances(n, length_scale, seed) / 2)
    w = np.exp(calibrate(B, alpha, longest).u)
    total = np.ones(n)
    if longest >= 2:
        total += B**2 @ w
    if longest >= 3:
        total += np.einsum("ij,jk,ki,j,k->i", B, B, B, w, w)
    np.testing.assert_allclose(alpha * w * total, 1, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**20), cycles=st.sampled_from([2, 3, 4]), factor=st.floats(0.01, 100))
def test_order_and_scale_of_the_old_points(seed, cycles, factor):
    K = covariances(9, 0.6, seed)
    order = np.random.default_rng(seed).permutation(8)
    ratio = log_permanent_ratio_cyclic(K[:8, :8], K[8:, :8], K[8:, 8], cycles=cycles)
    shuffled = log_permanent_ratio_cyclic(K[np.ix_(order, order)], K[8:, order], K[8:, 8], cycles=cycles)
    scaled = log_permanent_ratio_cyclic(factor * K[:8, :8], factor * K[8:, :8], factor * K[8:, 8], cycles=cycles)
    np.testing.assert_allclose(shuffled, ratio, rtol=1e-8)
    np.testing.assert_allclose(scaled, ratio + np.log(factor), rtol=1e-8, atol=1e-8)


def left_out(A, i, alpha, ratio):
    """Log ratio of point i from all the others."""
    others = np.arange(len(A)) != i
    return ratio(A[np.ix_(others, others)], A[i : i + 1, others], A[i : i + 1, i], alpha)


def exact_ratio(A, rows, diagonal, alpha):
    return np.log(alpha * diagonal + np.einsum("ij,jk,ik->i", rows, insertion_matrix(A, alpha), rows))


@pytest.mark.parametrize("length_scale", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_leaving_out_in_the_expansion_is_nearly_a_refit(length_scale, alpha):
    A = covariances(12, length_scale)
    distance = {}
    for cycles in (2, 3, 4):
        quick = np.log(alpha * 2 + expand(A, alpha, cycles).leave_one_out(without_diagonal(A)))
        refits = [
            left_out(A, i, alpha, lambda *args, c=cycles: log_permanent_ratio_cyclic(*args, cycles=c))
            for i in range(12)
        ]
        exact = np.ravel([left_out(A, i, alpha, exact_ratio) for i in range(12)])
        if cycles == 2:
            np.testing.assert_allclose(quick, np.ravel(refits), rtol=1e-12)
        distance[cycles] = np.abs(quick - exact).mean()
    assert distance[2] > distance[3] > distance[4]


def test_leaving_out_one_of_two_is_exact():
    A = covariances(2, 1.0)
    loo = expand(A, 0.8, 4).leave_one_out(without_diagonal(A))
    np.testing.assert_allclose(loo, A[0, 1] ** 2 / 2, rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": [[1.0, 0.5], [0.4, 1.0]]}, "must be symmetric"),
        ({"A": [[1.0, -0.5], [-0.5, 1.0]]}, "negative entries, got -0.5"),
        ({"A": [[1.0, 0.0], [0.0, 0.0]]}, "diagonal of A must be positive, got 0"),
        ({"rows": [[0.1, 0.2, 0.3]]}, r"2 covariances for each new point.*\(1, 3\)"),
        ({"rows": [[-0.1, 0.2]]}, "least entry -0.1"),
        ({"diagonal": [0.0]}, "variances from 0"),
        ({"alpha": 0.0}, "alpha must be a positive finite number, got 0.0"),
        ({"cycles": 5}, "cycles must be 2, 3 or 4, got 5"),
    ],
)
def test_bad_input_gets_a_sentence(change, message):
    arguments = {"A": np.eye(2), "rows": [[0.1, 0.2]], "diagonal": [1.0], "alpha": 1.0} | change
    with pytest.raises(ValueError, match=message):
        log_permanent_ratio_cyclic(**arguments)
