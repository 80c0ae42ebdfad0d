"""Calls of a user's kernel: what it returns is either right, or one sentence says what is wrong."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process import kernels
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
from coxfield.kernels.namespace import cross_out
from coxfield.kernels.sklearn_tree import LARGEST, diagonal_of, gradient_of, name_of, values_of
from misbehaving import FaultError, Spoiled
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
    logs = cross_out(bound.log_tile(bound), np.array([0, 1]), 0, -np.inf)
    assert np.isneginf(np.diagonal(logs)).all()
    bound.tile(bound)[...] = 5
    np.testing.assert_array_equal(bound.covariance.kernel.matrix, 1)


def test_negative_values_have_no_logarithm():
    bound = Called(DotProduct(0.0)).bind(np.array([[1.0], [-2.0]]))
    with pytest.raises(ValueError, match=r"DotProduct.* takes negative values, such as -2, .*try RBF"):
        bound.log_tile(bound)


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


FEW, FEWER = RNG.normal(size=(5, 2)), RNG.normal(size=(3, 2))


@pytest.mark.parametrize("kernel", [*UNRECOGNISED, Spoiled(), RBF(1.0) + WhiteKernel(0.5)], ids=str)
def test_what_is_right_is_returned_as_it_is(kernel):
    np.testing.assert_array_equal(values_of(kernel, FEW, FEWER), kernel(FEW, FEWER))
    np.testing.assert_array_equal(values_of(kernel, FEW), kernel(FEW))
    np.testing.assert_array_equal(diagonal_of(kernel, FEW), kernel.diag(FEW))
    for found, expected in zip(gradient_of(kernel, FEW), kernel(FEW, eval_gradient=True), strict=True):
        np.testing.assert_array_equal(found, expected)


class Returns(Kernel):
    """A kernel that returns what it was given."""

    def __init__(self, found):
        self.found = found

    def __call__(self, FEW, Y=None, eval_gradient=False):
        return self.found

    def diag(self, FEW):
        return self.found

    def is_stationary(self):
        return False

    def __repr__(self):
        return "Returns()"


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, bool, list])
def test_all_real_numbers_become_double_precision(kind):
    found = [[1, 0], [0, 1]] if kind is list else np.eye(2, dtype=kind)
    values = values_of(Returns(found), FEW[:2], FEWER[:2])
    assert values.dtype == float
    np.testing.assert_array_equal(values, np.eye(2))


def test_the_array_of_the_kernel_is_not_the_one_that_is_returned():
    own = np.eye(2)
    values_of(Returns(own), FEW[:2], FEWER[:2])[:] = 7
    np.testing.assert_array_equal(own, np.eye(2))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("inf", r"Spoiled\(0\) is inf for the points \([^)]+\) and \([^)]+\): it must be finite, and at most 1e\+290"),
        ("nan", r"Spoiled\(0\) is nan for the points"),
        ("huge", r"Spoiled\(0\) is \d.*e\+29\d for the points"),
        ("wide", r"returned an array of shape \(5, 4\) for 5 and 3 points: it must have the shape \(5, 3\)"),
        ("flat", r"returned an array of shape \(15,\) for 5 and 3 points"),
        ("scalar", r"returned an array of shape \(\) for 5 and 3 points"),
        ("none", r"returned NoneType for 5 and 3 points: it must return real numbers"),
        ("ragged", r"returned values of type object for 5 and 3 points"),
        ("text", r"returned text for 5 and 3 points"),
        ("object", r"returned values of type object for"),
        ("complex", r"returned complex numbers for"),
    ],
)
def test_wrong_values_are_one_sentence(fault, sentence):
    with pytest.raises(ValueError, match=sentence):
        values_of(Spoiled(fault), FEW, FEWER)


def test_sparse_values_are_refused():
    with pytest.raises(ValueError, match=r"Returns\(\) returned a sparse matrix for 5 and 3 points"):
        values_of(Returns(sparse.csr_array((5, 3))), FEW, FEWER)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("diag nan", r"the variance of Spoiled\(0\) is nan for the point \("),
        ("diag negative", r"the variance of Spoiled\(0\) is -1 for the point .*: it must be finite, not negative"),
        ("diag shape", r"Spoiled\(0\) returned a diagonal of shape \(5, 1\) for 5 points: it must have the shape \(5,"),
        (
            "diag differs",
            r"the variance of Spoiled\(0\) is 2 by its diag, but 1 by a call, for .* must agree",
        ),
    ],
)
def test_a_wrong_diagonal_is_one_sentence(fault, sentence):
    with pytest.raises(ValueError, match=sentence):
        diagonal_of(Spoiled(fault), FEW)


@pytest.mark.parametrize("fault", ["scalar", "raises"])
def test_a_right_diagonal_is_returned_even_if_calls_fail(fault):
    np.testing.assert_array_equal(diagonal_of(Spoiled(fault), FEW), np.ones(5))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("gradient nan", r"the gradient of Spoiled\(0\) is nan for the points"),
        ("gradient shape", r"a gradient of shape \(5, 5\) for 5 points and 1 free parameters: .* shape \(5, 5, 1\)"),
        ("gradient missing", r"Spoiled\(0\) returned one ndarray with eval_gradient=True: it must return two arrays"),
        ("wide", r"an array of shape \(5, 6\) for 5 points"),
    ],
)
def test_a_wrong_gradient_is_one_sentence(fault, sentence):
    with pytest.raises(ValueError, match=sentence):
        gradient_of(Spoiled(fault), FEW)


def test_where_a_value_of_scikit_learn_underflows_its_gradient_is_zero():
    far = np.array([[0.0], [1e3]])
    with np.errstate(all="ignore"):
        assert np.isnan((RBF(1.0) ** 0.5)(far, eval_gradient=True)[1][0, 1, 0])
    assert gradient_of(RBF(1.0) ** 0.5, far)[1][0, 1, 0] == 0


@pytest.mark.parametrize("fault", ["raises", "diag raises"])
def test_an_exception_of_the_kernel_passes_with_a_note(fault):
    call = diagonal_of if fault == "diag raises" else values_of
    with pytest.raises(FaultError, match="mine") as caught:
        call(Spoiled(fault), FEW)
    assert caught.value.__notes__ == ["(raised by Spoiled(0), called on 5 points)"]


def test_one_point_is_not_called_points():
    with pytest.raises(ValueError, match="for 1 and 1 point: "):
        values_of(Spoiled("flat"), FEW[:1], FEWER[:1])


def test_a_kernel_that_writes_to_the_points_writes_to_a_copy():
    before = FEW.copy()
    values_of(Spoiled("writes"), FEW, FEWER)
    np.testing.assert_array_equal(FEW, before)


@pytest.mark.parametrize("kernel", [RBF(0.01) ** -1, DotProduct(10.0) ** 300], ids=str)
def test_numpy_is_silent_and_the_sentence_speaks(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=re.escape(f"{kernel!r} is inf for the points")):
            values_of(kernel, FEW, FEWER)


def test_the_largest_values_are_allowed():
    np.testing.assert_array_equal(values_of(Returns([[LARGEST, -LARGEST]]), FEW[:1], FEWER[:2]), [[LARGEST, -LARGEST]])


def test_no_points_have_no_wrong_values():
    assert values_of(RBF(1.0), FEW, FEWER[:0]).shape == (5, 0)


class Nameless(Spoiled):
    def __repr__(self):
        raise FaultError("no name")


def test_a_kernel_without_a_name_goes_by_its_type():
    assert name_of(Nameless()) == "Nameless()"
    assert name_of(kernels.RBF(2.0)) == "RBF(length_scale=2)"


def test_a_wrong_parameter_of_a_kernel_of_scikit_learn_is_a_sentence():
    with pytest.raises(ValueError, match=r"RationalQuadratic\(.*\) cannot be computed for these points \(\w+Error: "):
        values_of(RationalQuadratic(length_scale="long"), np.zeros((2, 1)))


def test_a_kernel_that_takes_no_sparse_points_says_so():
    kernel = kernels.PairwiseKernel(metric="laplacian")
    with pytest.raises(ValueError, match=r"PairwiseKernel.*laplacian.* takes no sparse points: give dense ones"):
        values_of(kernel, sparse.csr_array([[0.0], [-4096.0]]), sparse.csr_array([[2048.0]]))
