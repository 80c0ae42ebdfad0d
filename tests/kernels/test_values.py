import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.recognise import recognise
from coxfield.kernels.values import bind_precisely, values

X = np.random.default_rng(0).normal(size=(12, 3))


def test_single_precision_that_is_too_coarse_is_left():
    far = np.concatenate([X, X + 1e4]).astype(np.float32)
    covariance = recognise(RBF(0.01), 3)
    assert covariance.bind(far).imprecise(covariance.bind(far)).any()
    assert bind_precisely(covariance, far).dtype == np.float64
    assert bind_precisely(recognise(RBF(1.0), 3), X.astype(np.float32)).dtype == np.float32


def test_values_are_taken_again_where_rounding_would_spoil_them():
    near = np.array([[1e8], [1e8 + 1.0], [-1e8]])
    bound = recognise(RBF(1.0), 1).bind(near)
    assert bound.imprecise(bound).all()
    np.testing.assert_allclose(values(bound, bound)[:2, :2], [[1, np.exp(-0.5)], [np.exp(-0.5), 1]])
    thin = recognise(RBF(1.0), 1).bind(sparse.csr_array(near))
    np.testing.assert_allclose(values(thin, thin)[:2, :2], [[1, np.exp(-0.5)], [np.exp(-0.5), 1]])
