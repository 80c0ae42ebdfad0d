import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from covariance_doubles import RowCovariance
from coxfield.kernels.called import Called
from coxfield.kernels.radial import Radial, recognise
from strategies import RECOGNISED, UNRECOGNISED


@pytest.mark.parametrize("kernel", RECOGNISED, ids=str)
def test_a_radial_kernel_is_variance_times_profile_of_scaled_distance(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 3))
    found = recognise(kernel, 3)
    assert isinstance(found, Radial)
    difference = (X[:, None] - X[None]) / found.length_scale
    value = found.variance * np.exp(found.profile.log_of((difference**2).sum(axis=-1)))
    np.testing.assert_allclose(value, kernel(X), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.diagonal(X), kernel.diag(X)[:1])


@pytest.mark.parametrize("kernel", [*UNRECOGNISED, DotProduct(), WhiteKernel() + RBF(), ConstantKernel(2.0)], ids=str)
def test_other_kernels_are_called(kernel):
    X = np.random.default_rng(1).normal(size=(5, 2))
    found = recognise(kernel, 2)
    assert isinstance(found, Called)
    np.testing.assert_array_equal(found.diagonal(X), kernel.diag(X))


def test_a_subclass_is_not_taken_for_its_parent():
    class Shifted(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return super().__call__(X, Y) + 1

    assert isinstance(recognise(Shifted(1.0), 2), Called)


def test_a_covariance_stays_as_it_is():
    covariance = RowCovariance(np.eye(3))
    assert recognise(covariance, 1) is covariance


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
        recognise(kernel, 2)


def test_objects_that_are_not_kernels_are_refused():
    with pytest.raises(TypeError, match=r"kernel of sklearn.gaussian_process.kernels.*got 'rbf'"):
        recognise("rbf", 2)
