import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from coxfield.kernels import covariance
from strategies import RECOGNISED, UNRECOGNISED


@pytest.mark.parametrize("kernel", RECOGNISED, ids=str)
def test_a_recognised_kernel_is_variance_times_profile_of_scaled_distance(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 3))
    found = covariance.recognise(kernel, 3)
    assert found.recognised
    difference = (X[:, None] - X[None]) / found.length_scale
    value = found.variance * np.exp(found.log_profile((difference**2).sum(axis=-1)))
    np.testing.assert_allclose(value, kernel(X), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.diagonal(X), kernel.diag(X)[:1])


@pytest.mark.parametrize("kernel", [*UNRECOGNISED, DotProduct(), WhiteKernel() + RBF(), ConstantKernel(2.0)], ids=str)
def test_other_kernels_are_left_to_be_called(kernel):
    X = np.random.default_rng(1).normal(size=(5, 2))
    found = covariance.recognise(kernel, 2)
    assert not found.recognised
    np.testing.assert_array_equal(found.diagonal(X), kernel.diag(X))


def test_a_subclass_is_not_taken_for_its_parent():
    class Shifted(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return super().__call__(X, Y) + 1

    assert not covariance.recognise(Shifted(1.0), 2).recognised


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (RBF(0.0), "length_scale of the covariance must be positive and finite, got 0.0"),
        (RBF(np.inf), "length_scale of the covariance must be positive and finite, got inf"),
        (RBF(-1.0), "got -1.0"),
        (RBF([1.0, np.nan]), "nan"),
        (ConstantKernel(-2.0) * RBF(), "k1__constant_value of the covariance must be positive and finite, got -2.0"),
        (Matern(1.0, nu=0), "nu of the covariance must be positive"),
        (RBF([1.0, 2.0, 3.0]), "length_scale has 3 entries but the data have 2 features"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_impossible_parameters_are_refused_by_name_and_value(kernel, words):
    with pytest.raises(ValueError, match=words):
        covariance.recognise(kernel, 2)


def test_something_that_is_no_kernel_is_refused():
    with pytest.raises(TypeError, match=r"kernel of sklearn.gaussian_process.kernels.*got 'rbf'"):
        covariance.recognise("rbf", 2)


def test_length_scales_are_rescaled_wherever_they_stand_unless_fixed():
    kernel = 2.0 * RBF([1.0, 3.0]) + Matern(4.0, length_scale_bounds="fixed")
    rescaled = covariance.rescale_length(kernel, 0.5)
    np.testing.assert_array_equal(rescaled.k1.k2.length_scale, [0.5, 1.5])
    assert rescaled.k2.length_scale == 4.0
    assert kernel.k1.k2.length_scale[1] == 3.0
    assert covariance.free_length_scales(kernel) == ["k1__k2__length_scale"]
    assert covariance.length_scale_bounds(RBF([1.0, 2.0], (0.1, 8.0))) == (0.1, 4.0)


def test_variance_is_folded_into_a_leading_constant():
    kernel = covariance.rescale_variance(ConstantKernel(3.0) * RBF(2.0), 5.0)
    assert (kernel.k1.constant_value, kernel.k2) == (15.0, RBF(2.0))
    X = np.random.default_rng(0).normal(size=(4, 2))
    for given in (RBF(2.0), RBF(1.0) + RBF(2.0), RBF(2.0) * ConstantKernel(2.0)):
        np.testing.assert_allclose(covariance.rescale_variance(given, 7.0)(X), 7 * given(X))
    assert not covariance.variance_is_free(ConstantKernel(3.0, "fixed") * RBF())
    assert covariance.variance_is_free(ConstantKernel(3.0) * RBF())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vanishing_values_stay_normal_numbers_and_are_known(dtype):
    found, tiny = covariance.recognise(RBF(1.0), 1), np.finfo(dtype).tiny
    for n in range(1, 70):  # whatever the processor does with the last few of an array
        values = found.floored_profile(np.full(n, 1e5, dtype))
        np.testing.assert_array_equal(values, dtype(covariance.profile_floor(np.dtype(dtype).name)))
        assert (values >= tiny).all()
    d2 = np.array([0.0, 1.0, 50.0], dtype)
    np.testing.assert_allclose(found.floored_profile(d2.copy()), np.exp(-d2 / 2))
