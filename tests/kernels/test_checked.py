"""Calls of a user's kernel: what it returns is either right, or one sentence says what is wrong."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import RBF, DotProduct, Kernel, RationalQuadratic, WhiteKernel

from coxfield.kernels.sklearn_tree import LARGEST, diagonal_of, gradient_of, name_of, values_of
from misbehaving import FaultError, Spoiled
from strategies import UNRECOGNISED

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(5, 2)), RNG.normal(size=(3, 2))


@pytest.mark.parametrize("kernel", [*UNRECOGNISED, Spoiled(), RBF(1.0) + WhiteKernel(0.5)], ids=str)
def test_what_is_right_is_returned_as_it_is(kernel):
    np.testing.assert_array_equal(values_of(kernel, X, Y), kernel(X, Y))
    np.testing.assert_array_equal(values_of(kernel, X), kernel(X))
    np.testing.assert_array_equal(diagonal_of(kernel, X), kernel.diag(X))
    for found, expected in zip(gradient_of(kernel, X), kernel(X, eval_gradient=True), strict=True):
        np.testing.assert_array_equal(found, expected)


class Returns(Kernel):
    """A kernel that returns what it was given."""

    def __init__(self, found):
        self.found = found

    def __call__(self, X, Y=None, eval_gradient=False):
        return self.found

    def diag(self, X):
        return self.found

    def is_stationary(self):
        return False

    def __repr__(self):
        return "Returns()"


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, bool, list])
def test_all_real_numbers_become_double_precision(kind):
    found = [[1, 0], [0, 1]] if kind is list else np.eye(2, dtype=kind)
    values = values_of(Returns(found), X[:2], Y[:2])
    assert values.dtype == float
    np.testing.assert_array_equal(values, np.eye(2))


def test_the_array_of_the_kernel_is_not_the_one_that_is_returned():
    own = np.eye(2)
    values_of(Returns(own), X[:2], Y[:2])[:] = 7
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
        values_of(Spoiled(fault), X, Y)


def test_sparse_values_are_refused():
    with pytest.raises(ValueError, match=r"Returns\(\) returned a sparse matrix for 5 and 3 points"):
        values_of(Returns(sparse.csr_array((5, 3))), X, Y)


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
        diagonal_of(Spoiled(fault), X)


@pytest.mark.parametrize("fault", ["scalar", "raises"])
def test_a_right_diagonal_is_returned_even_if_calls_fail(fault):
    np.testing.assert_array_equal(diagonal_of(Spoiled(fault), X), np.ones(5))


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
        gradient_of(Spoiled(fault), X)


def test_where_a_value_of_scikit_learn_underflows_its_gradient_is_zero():
    far = np.array([[0.0], [1e3]])
    with np.errstate(all="ignore"):
        assert np.isnan((RBF(1.0) ** 0.5)(far, eval_gradient=True)[1][0, 1, 0])
    assert gradient_of(RBF(1.0) ** 0.5, far)[1][0, 1, 0] == 0


@pytest.mark.parametrize("fault", ["raises", "diag raises"])
def test_an_exception_of_the_kernel_passes_with_a_note(fault):
    call = diagonal_of if fault == "diag raises" else values_of
    with pytest.raises(FaultError, match="mine") as caught:
        call(Spoiled(fault), X)
    assert caught.value.__notes__ == ["(raised by Spoiled(0), called on 5 points)"]


def test_one_point_is_not_called_points():
    with pytest.raises(ValueError, match="for 1 and 1 point: "):
        values_of(Spoiled("flat"), X[:1], Y[:1])


def test_a_kernel_that_writes_to_the_points_writes_to_a_copy():
    before = X.copy()
    values_of(Spoiled("writes"), X, Y)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kernel", [RBF(0.01) ** -1, DotProduct(10.0) ** 300], ids=str)
def test_numpy_is_silent_and_the_sentence_speaks(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=re.escape(f"{kernel!r} is inf for the points")):
            values_of(kernel, X, Y)


def test_the_largest_values_are_allowed():
    np.testing.assert_array_equal(values_of(Returns([[LARGEST, -LARGEST]]), X[:1], Y[:2]), [[LARGEST, -LARGEST]])


def test_no_points_have_no_wrong_values():
    assert values_of(RBF(1.0), X, Y[:0]).shape == (5, 0)


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
