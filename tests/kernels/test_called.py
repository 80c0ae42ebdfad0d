import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from coxfield.kernels import called as module
from coxfield.kernels.called import Called
from reference import kernel_value
from strategies import UNRECOGNISED
from tolerances import assert_close

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(9, 3)), RNG.normal(size=(7, 3))
KERNELS = [
    *UNRECOGNISED,
    DotProduct(0.7),
    RBF([0.5, 1.0, 2.0]) + ConstantKernel(0.3) * Matern(1.0, nu=1.5),
    RationalQuadratic(0.8, 1.7) + RBF(1.0),  # it falls with alpha
]


def sizes(kernel):
    """By how much rounding may be multiplied: scikit-learn takes distances by subtraction and inner products."""
    return 1 + 2 * max(np.square(X).sum(axis=1).max(), np.square(Z).sum(axis=1).max()) / 0.5**2


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_tiles_and_the_diagonal_are_calls_of_the_kernel(kernel):
    bound = Called(kernel).bind(X)
    expected = np.array([[kernel_value(kernel, x, z) for z in Z] for x in X])
    assert_close(bound.tile(bound.at(Z)), expected, condition=sizes(kernel))
    assert_close(bound[[4, 2]].tile(bound.at(Z[1:3])), expected[np.ix_([4, 2], [1, 2])], condition=sizes(kernel))
    assert_close(Called(kernel).bind(X, np.array([5, 0])).diagonal(), kernel.diag(X[[5, 0]]))


@settings(max_examples=30, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 6)), max_size=25),
    kernel=st.sampled_from(KERNELS),
    at_once=st.sampled_from([1, 2, 64]),
)
def test_listed_pairs_are_values_one_by_one_however_many_rows_a_call_takes(pairs, kernel, at_once):
    bound = Called(kernel).bind(X)
    rows, columns = np.array(pairs, dtype=int).reshape(-1, 2).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS_PER_CALL", at_once)
        found = bound.pairs(rows, bound.at(Z), columns)
    expected = np.array([kernel_value(kernel, X[i], Z[j]) for i, j in pairs])
    assert_close(found, expected, condition=sizes(kernel))


class Table(Kernel):
    """A kernel that hands out one and the same array."""

    def __init__(self):
        self.matrix = np.ones((2, 2))

    def __call__(self, X, Y=None, eval_gradient=False):
        return self.matrix

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return False


def test_what_the_kernel_returned_is_not_written_to():
    bound = Called(Table()).bind(X[:2])
    logs = bound.log_tile(bound, leave_out=np.array([0, 1]))
    assert np.isneginf(np.diagonal(logs)).all()
    bound.tile(bound)[...] = 5
    np.testing.assert_array_equal(bound.covariance.kernel.matrix, 1)


def test_negative_values_have_no_logarithm_unless_they_are_left_out():
    bound = Called(DotProduct(0.0)).bind(np.array([[1.0], [-2.0]]))
    with pytest.raises(ValueError, match=r"DotProduct.* takes negative values, such as -2, .*try RBF"):
        bound.log_tile(bound)
    logs = bound[:1].log_tile(bound, leave_out=np.array([1]))
    np.testing.assert_array_equal(logs, [[0.0, -np.inf]])


def test_a_value_of_zero_has_an_infinite_logarithm_and_no_warning():
    bound = Called(WhiteKernel(2.0)).bind(X)
    assert np.isneginf(bound.log_tile(bound.at(Z))).all()


def gradients(kernel):
    """dC(x, z) / d theta for all pairs, from scikit-learn's gradient on the union of both sets."""
    values, gradient = kernel(np.concatenate([X, Z]), eval_gradient=True)
    return values[:9, 9:], gradient[:9, 9:]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_sums_and_derivatives_are_those_of_a_double_loop(kernel):
    values, gradient = gradients(kernel)
    weights, own, residual = RNG.uniform(0.5, 2, 7), RNG.integers(-1, 7, 9), RNG.normal(size=9)
    sums, by_theta, size = np.zeros(9), np.zeros(kernel.n_dims), np.zeros(kernel.n_dims)
    for j in range(9):
        for k in range(7):
            if own[j] != k:
                sums[j] += weights[k] * values[j, k]
                by_theta += residual[j] * weights[k] * gradient[j, k]
                size += np.abs(residual[j] * weights[k] * gradient[j, k])
    bound = Called(kernel).bind(X)
    found = bound.differentiate(bound.at(Z), weights, own)
    assert_close(found.sums, sums, terms=7, scale=np.abs(values) @ weights)
    assert_close(found.gradient(residual), by_theta, terms=63, scale=size)


@pytest.mark.parametrize("kernel", [*KERNELS, RBF(1.0) + WhiteKernel(0.5)], ids=str)
def test_derivatives_of_the_diagonal(kernel):
    weights = RNG.normal(size=9)
    _, gradient = kernel(X, eval_gradient=True)
    expected = sum(weights[j] * gradient[j, j] for j in range(9))
    size = sum(np.abs(weights[j] * gradient[j, j]) for j in range(9))
    assert_close(Called(kernel).bind(X).diagonal_gradient(weights), expected, terms=9, scale=size)


def test_rescaling_keeps_the_points_and_what_is_fixed():
    kernel = RBF(0.5) + Matern(2.0, "fixed")
    bound = Called(kernel).bind(X)
    scaled = bound.rescaled(length=3.0, variance=2.0)
    expected = 2.0 * (RBF(1.5)(X, Z) + Matern(2.0)(X, Z))
    assert_close(scaled.tile(scaled.at(Z)), expected, condition=sizes(kernel))
    assert scaled.X is X
    assert bound.covariance.kernel == kernel


def test_negative_kernels_are_refused_where_a_cut_needs_none():
    Called(RBF(1.0) ** 2).check_nonnegative()
    with pytest.raises(ValueError, match=r"DotProduct.* may take negative values"):
        Called(DotProduct() * RBF(1.0)).check_nonnegative()


def test_there_is_no_better_way_so_nothing_is_taken_again():
    bound = Called(UNRECOGNISED[0]).bind(1e12 * X)
    assert not bound.imprecise(bound).any()
