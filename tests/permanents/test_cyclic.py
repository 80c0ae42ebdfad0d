"""The cyclic approximation against exact ratios, and its leave-one-out against refits.

The weights of the approximation solve their equations to within TOLERANCE. Where an approximation is exact, that is the
error that remains: a few times TOLERANCE, since a ratio is a polynomial of degree three in the weights.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coxfield.permanents import alpha_permanent, cyclic, insertion_matrix, log_permanent_ratio_cyclic
from coxfield.permanents.cyclic import TOLERANCE, CyclicExpansion, balanced_weights, expand, weights_at
from permanents.random_matrices import correlations, covariances, without_diagonal
from tolerances import assert_close, rounding


def naive_totals(B, alpha, w, longest):
    """Sum of the probabilities of the cycles of each point."""
    total = np.ones(len(B))
    if longest >= 2:
        total += B**2 @ w
    if longest >= 3:
        total += np.einsum("ij,jk,ki,j,k->i", B, B, B, w, w)
    return alpha * w * total


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 30),
    alpha=st.floats(0.05, 20),
    length_scale=st.floats(0.01, 10),
    longest=st.sampled_from([1, 2, 3]),
    seed=st.integers(0, 2**20),
)
def test_the_probabilities_of_every_points_cycles_sum_to_one(n, alpha, length_scale, longest, seed):
    B = without_diagonal(correlations(n, length_scale, seed))
    w = np.exp(balanced_weights(B, alpha, longest).u)
    error = np.abs(naive_totals(B, alpha, w, longest) - 1)
    assert (error <= TOLERANCE + rounding(1.0, terms=n**2)).all()


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_evaluation_is_the_equations_at_any_weights(longest):
    B, u = without_diagonal(correlations(7, 0.8)), np.linspace(-1, 0.5, 7)
    found = weights_at(B, 1.3, u, longest)
    assert_close(found.totals, naive_totals(B, 1.3, np.exp(u), longest), terms=7**2)
    for i in range(7):
        for j in range(7):
            cycles = B[i, j] ** 2 if longest >= 2 else 0.0
            if longest >= 3:
                cycles += 2 * sum(B[i, j] * B[j, k] * B[k, i] * np.exp(u[k]) for k in range(7))
            assert_close(found.pairs[i, j], 1.3 * np.exp(u[i] + u[j]) * cycles, terms=7)


@pytest.mark.parametrize("longest", [2, 3])
def test_the_matrix_of_newtons_method_is_the_derivative_of_the_totals(longest):
    """Central differences of step h err by h^2 times a third derivative, and by rounding over h."""
    B, u, h = without_diagonal(correlations(5, 0.8)), np.linspace(-1, 0.2, 5), 1e-4
    state = weights_at(B, 0.7, u, longest)
    for j in range(5):
        step = h * np.eye(5)[j]
        slope = (weights_at(B, 0.7, u + step, longest).totals - weights_at(B, 0.7, u - step, longest).totals) / (2 * h)
        # Every term is an exponential of at most three times u, so that its third derivative is below 27 times it.
        bound = 27 / 6 * h**2 * state.totals.max() * np.exp(3 * h) + rounding(state.totals.max(), terms=25) / h
        assert (np.abs(slope - (state.pairs + np.diag(state.totals))[:, j]) < bound).all()


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_without_longer_cycles_the_weight_is_one_over_alpha(alpha):
    assert_close(
        np.exp(balanced_weights(without_diagonal(correlations(6, 1.0)), alpha, 1).u),
        np.full(6, 1 / alpha),
        condition=1.4,
    )
    for longest in (2, 3):  # points far from each other are alone in their cycles
        assert_close(np.exp(balanced_weights(np.zeros((6, 6)), alpha, longest).u), np.full(6, 1 / alpha), condition=1.4)


@pytest.mark.parametrize("n", [2, 5, 40])
def test_of_ones_with_two_cycles_the_weight_solves_a_quadratic_equation(n):
    # 0.8 w (1 + (n - 1) w) = 1
    w = (-1 + np.sqrt(1 + 4 * (n - 1) / 0.8)) / (2 * (n - 1))
    found = np.exp(balanced_weights(np.ones((n, n)) - np.eye(n), 0.8, 2).u)
    np.testing.assert_allclose(found, w, rtol=2 * TOLERANCE)


def test_no_points_have_no_weights():
    assert balanced_weights(np.zeros((0, 0)), 1.0, 3).u.shape == (0,)


def test_weights_that_do_not_settle_get_a_sentence(monkeypatch):
    monkeypatch.setattr(cyclic, "MOST", 1)
    with pytest.raises(
        ValueError, match=r"did not settle in 1 iterations: try fewer cycles, or .* nearer to 1 than 0\.1"
    ):
        balanced_weights(without_diagonal(correlations(20, 2.0)), 0.1, 3)


def test_what_is_left_without_a_point_is_one_minus_what_it_shares():
    weights = balanced_weights(without_diagonal(correlations(8, 0.8)), 0.7, 3)
    off = ~np.eye(8, dtype=bool)
    np.testing.assert_allclose(weights.without()[off], (1 - weights.pairs)[off], rtol=0, atol=10 * TOLERANCE)


def test_without_the_only_neighbour_a_point_is_alone():
    """One minus the share of the pair would be rounding only: the weights solve alpha w (1 + B^2 w) = 1."""
    B, alpha = np.array([[0.0, 0.5], [0.5, 0.0]]), 1e-12
    weights = balanced_weights(B, alpha, 3)
    w = (-1 + np.sqrt(1 + 4 * 0.25 / alpha)) / (2 * 0.25)
    np.testing.assert_allclose(weights.without()[0, 1], alpha * w, rtol=10 * TOLERANCE)


@pytest.mark.parametrize("alpha", [1e-300, 1e300])
def test_any_alpha_gives_weights_of_single_points(alpha):
    weights = balanced_weights(without_diagonal(correlations(6, 1.0)), alpha, 1)
    assert_close(weights.totals, np.ones(6), condition=1 + abs(np.log(alpha)))


@pytest.mark.parametrize("longest", [2, 3])
def test_with_large_alpha_all_points_are_alone(longest):
    weights = balanced_weights(without_diagonal(correlations(6, 1.0)), 1e300, longest)
    assert_close(weights.fixed, np.ones(6), condition=1 + np.log(1e300))


@pytest.mark.parametrize("length_scale", [0.03, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [1e-12, 1e-4])
def test_weights_settle_for_small_alpha(alpha, length_scale):
    for seed in range(3):
        assert balanced_weights(without_diagonal(correlations(40, length_scale, seed)), alpha, 3).residual < TOLERANCE


SETTLED = 10 * TOLERANCE


@pytest.mark.parametrize("cycles", [2, 3, 4])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.3])
def test_of_ones_the_ratio_is_exact_for_any_number_of_points(cycles, alpha):
    for n in (1, 10, 100):
        ratio = np.exp(log_permanent_ratio_cyclic(np.ones((n, n)), np.ones((1, n)), [1.0], alpha, cycles=cycles))
        np.testing.assert_allclose(ratio, alpha + n, rtol=SETTLED)
        loo = expand(np.ones((n, n)), alpha, cycles).leave_one_out(without_diagonal(np.ones((n, n))))
        np.testing.assert_allclose(alpha + loo, alpha + n - 1, rtol=SETTLED)


def test_one_old_point_is_exact():
    A = covariances(2, 1.0)
    exact = alpha_permanent(A, 0.7) / alpha_permanent(A[:1, :1], 0.7)
    for cycles in (2, 3, 4):
        log_ratio = log_permanent_ratio_cyclic(A[:1, :1], A[1:, :1], A[1:, 1], 0.7, cycles=cycles)
        np.testing.assert_allclose(np.exp(log_ratio), exact, rtol=SETTLED)


def test_two_old_points_far_from_each_other_are_exact():
    A = np.array([[2.0, 0.0], [0.0, 2.0]])
    rows, exact = np.array([[1.0, 0.5]]), insertion_matrix(A, 1.5)
    expected = 1.5 * 2 + np.einsum("ij,jk,ik->i", rows, exact, rows)
    np.testing.assert_allclose(np.exp(log_permanent_ratio_cyclic(A, rows, [2.0], 1.5)), expected, rtol=SETTLED)


@pytest.mark.parametrize("n", [6, 14])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("length_scale", [0.5, 1.0])
def test_more_cycles_come_closer_to_the_exact_ratio(n, alpha, length_scale):
    # Among points further apart, all that is left is that they leave independently, which is the same for 3 and 4.
    distance = dict.fromkeys((2, 3, 4), 0.0)
    for seed in range(4):
        K = covariances(n + 10, length_scale, seed)
        old = K[:n, :n], K[n:, :n], np.diagonal(K)[n:], alpha
        for cycles in distance:
            error = log_permanent_ratio_cyclic(*old, cycles=cycles) - exact_ratio(*old)
            distance[cycles] += np.square(error).sum()
    assert distance[2] > 1.1 * distance[3] > 1.1**2 * distance[4]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**20), cycles=st.sampled_from([2, 3, 4]), factor=st.floats(0.01, 100))
def test_order_and_scale_of_the_old_points(seed, cycles, factor):
    K = covariances(9, 0.6, seed)
    order = np.random.default_rng(seed).permutation(8)
    ratio = log_permanent_ratio_cyclic(K[:8, :8], K[8:, :8], K[8:, 8], cycles=cycles)
    shuffled = log_permanent_ratio_cyclic(K[np.ix_(order, order)], K[8:, order], K[8:, 8], cycles=cycles)
    scaled = log_permanent_ratio_cyclic(factor * K[:8, :8], factor * K[8:, :8], factor * K[8:, 8], cycles=cycles)
    # The convex function curves by at least alpha w, the probability that a point is alone, which is at least 1/n. So
    # two solutions to within TOLERANCE differ by at most 2 sqrt(n) n TOLERANCE in log w, and cycles multiply that.
    moved = (cycles - 1) * 2 * np.sqrt(8) * 8 * TOLERANCE
    np.testing.assert_allclose(np.exp(shuffled - ratio), 1, rtol=moved)
    np.testing.assert_allclose(np.exp(scaled - ratio) / factor, 1, rtol=moved)


def left_out(A, i, alpha, ratio):
    """Log ratio of point i from all the others."""
    others = np.arange(len(A)) != i
    return ratio(A[np.ix_(others, others)], A[i : i + 1, others], A[i : i + 1, i], alpha)


def exact_ratio(A, rows, diagonal, alpha):
    return np.log(alpha * diagonal + np.einsum("ij,jk,ik->i", rows, insertion_matrix(A, alpha), rows))


@pytest.mark.parametrize("length_scale", [0.3, 0.5, 1.0])
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
        if cycles == 2:  # the weights are 1 / alpha, without iterations
            assert_close(np.exp(quick), np.exp(np.ravel(refits)), terms=12, condition=1 + np.abs(quick))
        assert np.abs(quick - np.ravel(refits)).max() < 0.1  # docs/permanental.md says so
        distance[cycles] = np.abs(quick - exact).mean()
    assert distance[2] > 1.01 * distance[3] > 1.01**2 * distance[4]


def test_leaving_out_one_of_two_is_exact():
    A = covariances(2, 1.0)
    loo = expand(A, 0.8, 4).leave_one_out(without_diagonal(A))
    np.testing.assert_allclose(loo, A[0, 1] ** 2 / 2, rtol=SETTLED)


@pytest.mark.parametrize(("alpha", "cycles"), [(1e-300, 2), (1e300, 2), (1e300, 3), (1e300, 4)])
def test_extreme_alpha_gives_the_ratio_of_points_that_are_alone(alpha, cycles):
    """Two cycles always, and more in the limit of large alpha: alpha A_tt + sum_j A_tj^2 / A_jj."""
    K = covariances(9, 0.5)
    found = log_permanent_ratio_cyclic(K[:8, :8], K[8:, :8], K[8:, 8], alpha, cycles=cycles)
    expected = np.logaddexp(np.log(alpha) + np.log(K[8, 8]), np.log(np.square(K[8, :8]).sum() / 2))
    assert_close(found, [expected], terms=8, scale=1 + abs(np.log(alpha)))


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_extreme_variances_are_units_only(factor):
    K = covariances(9, 0.5)
    plain = log_permanent_ratio_cyclic(K[:8, :8], K[8:, :8], K[8:, 8])
    scaled = log_permanent_ratio_cyclic(factor * K[:8, :8], factor * K[8:, :8], factor * K[8:, 8])
    np.testing.assert_allclose(scaled - np.log(factor), plain, rtol=0, atol=1000 * TOLERANCE)


def test_leaving_out_one_of_two_is_exact_for_small_alpha():
    A = covariances(2, 1.0)
    loo = expand(A, 1e-12, 4).leave_one_out(without_diagonal(A))
    np.testing.assert_allclose(loo, A[0, 1] ** 2 / 2, rtol=SETTLED)


def naive_form(expansion: CyclicExpansion, a):
    """alpha times the sum over paths j, (k, (l)) of distinct old points, term by term."""
    B, w, n, total = expansion.B, expansion.w, len(expansion.w), 0.0
    a = a / expansion.scale
    for j in range(n):
        total += a[j] * w[j] * a[j]
        for k in range(n):
            if expansion.cycles >= 3 and k != j:
                total += a[j] * w[j] * B[j, k] * w[k] * a[k]
            for last in range(n):
                if expansion.cycles >= 4 and len({j, k, last}) == 3:
                    total += a[j] * w[j] * B[j, k] * w[k] * B[k, last] * w[last] * a[last]
    return expansion.alpha * total


@pytest.mark.parametrize("cycles", [2, 3, 4])
def test_the_insertion_matrix_sums_over_paths_of_distinct_points(cycles):
    K = covariances(6, 0.8)
    expansion = expand(3 * K[:5, :5], 1.3, cycles)
    assert_close(K[5, :5] @ expansion.insertion() @ K[5, :5], naive_form(expansion, K[5, :5]), terms=5**3)


def test_correlations_without_effect_are_dropped():
    A = np.array([[1.0, 1e-200], [1e-200, 1.0]])
    assert expand(A, 1.0, 4).B[0, 1] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": [[1.0, 0.5], [0.4, 1.0]]}, "must be symmetric"),
        ({"rows": [[0.1, 0.2, 0.3]]}, r"2 covariances for each new point.*\(1, 3\)"),
        ({"rows": [[-0.1, 0.2]]}, "smallest entry -0.1"),
        ({"diagonal": [0.0]}, "smallest variance 0"),
        ({"alpha": 0.0}, "alpha must be a positive finite number, got 0.0"),
        ({"cycles": 5}, "cycles must be 2, 3 or 4, got 5"),
        (
            {"alpha": 1e-300},
            "alpha=1e-300 is too small for the approximation by 4 cycles: give at least 1e-12",
        ),
    ],
)
def test_bad_input_gets_a_sentence(change, message):
    arguments = {"A": np.eye(2), "rows": [[0.1, 0.2]], "diagonal": [1.0], "alpha": 1.0} | change
    with pytest.raises(ValueError, match=message):
        log_permanent_ratio_cyclic(**arguments)
