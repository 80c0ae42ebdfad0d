import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from coxfield.kernels.called import hold
from coxfield.kernels.protocol import bind_precisely, values
from coxfield.kernels.radial import recognise
from reference import kernel_value
from strategies import RECOGNISED, UNRECOGNISED
from tolerances import assert_close

X = np.random.default_rng(0).normal(size=(12, 3))
# (|x|^2 + |z|^2) / l^2, at most: the rounding of distances made of products is relative to that.
EXPONENTS = 4 * np.square(X).sum(axis=1).max() / 0.4**2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [*RECOGNISED, *UNRECOGNISED], ids=str)
def test_values_are_those_of_the_kernel_pair_by_pair(kernel, dtype):
    bound = recognise(kernel, 3).bind(X.astype(dtype))
    found = values(bound[:5], bound[5:])
    expected = np.array([[kernel_value(kernel, x, z) for z in X[5:]] for x in X[:5]])
    nearest = min(np.sum((x - z) ** 2) for x in X[:5] for z in X[5:])  # of which rough kernels take the root
    assert_close(found, expected, dtype=dtype, condition=EXPONENTS / min(1, nearest), scale=kernel.diag(X).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_has_vanished_is_zero_and_not_the_floor(dtype):
    bound = recognise(5.0 * RBF(1.0), 1).bind(np.array([[0.0], [1e3]], dtype))
    found = values(bound, bound)
    assert found[0, 1] == found[1, 0] == 0
    assert_close(np.diagonal(found), np.full(2, 5.0), dtype=dtype)


def test_a_signal_variance_beyond_single_precision():
    bound = recognise(1e278 * RBF(1.0), 3).bind(X.astype(np.float32))
    with np.errstate(all="raise", under="ignore"):
        found = values(bound, bound)
    assert_close(found, 1e278 * values(*[recognise(RBF(1.0), 3).bind(X)] * 2), dtype=np.float32, condition=EXPONENTS)


@pytest.mark.parametrize("length_scale", [1e-9, 1e9])
def test_limits_of_the_length_scale(length_scale):
    bound = recognise(2.0 * RBF(length_scale), 3).bind(X)
    found = values(bound, bound)
    if length_scale < 1:  # nobody has a neighbour
        np.testing.assert_array_equal(found[~np.eye(12, dtype=bool)], 0)
        assert_close(np.diagonal(found), np.full(12, 2.0))
    else:  # all points are one
        assert_close(found, np.full((12, 12), 2.0))


def test_noise_is_in_the_diagonal_and_not_in_the_values():
    bound = recognise(RBF(1.0) + WhiteKernel(0.5), 3).bind(X)
    assert_close(np.diagonal(values(bound, bound)), np.ones(12))
    assert_close(bound.diagonal(), np.full(12, 1.5))


def test_what_is_held_is_not_written_to():
    held = hold(recognise(RBF(1.0), 3).bind(X))
    before = held.matrix.copy()
    values(held, held)[...] = -1
    values(held[:3], held)[...] = -1
    np.testing.assert_array_equal(held.matrix, before)


def test_single_precision_that_is_too_coarse_is_left():
    far = np.concatenate([X, X + 1e4]).astype(np.float32)
    covariance = recognise(RBF(0.01), 3)
    assert covariance.bind(far).imprecise(covariance.bind(far)).any()
    assert bind_precisely(covariance, far).dtype == np.float64
    assert bind_precisely(recognise(RBF(1.0), 3), X.astype(np.float32)).dtype == np.float32


def test_double_precision_is_all_there_is():
    far = np.array([[0.0], [1e12]])
    bound = bind_precisely(recognise(RBF(1.0), 1), far)
    assert bound.dtype == np.float64
    assert bound.imprecise(bound).all()


def test_values_are_taken_again_where_rounding_would_spoil_them():
    near = np.array([[1e8], [1e8 + 1.0], [-1e8]])
    bound = recognise(RBF(1.0), 1).bind(near)
    assert bound.imprecise(bound).all()
    np.testing.assert_allclose(values(bound, bound)[:2, :2], [[1, np.exp(-0.5)], [np.exp(-0.5), 1]])
    thin = recognise(RBF(1.0), 1).bind(sparse.csr_array(near))
    np.testing.assert_allclose(values(thin, thin)[:2, :2], [[1, np.exp(-0.5)], [np.exp(-0.5), 1]])
