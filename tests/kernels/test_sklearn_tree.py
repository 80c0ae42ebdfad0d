import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, ExpSineSquared, Matern, WhiteKernel

from coxfield.kernels import sklearn_tree as tree


def test_all_free_length_scales_are_rescaled():
    kernel = 2.0 * RBF([1.0, 3.0]) + Matern(4.0, length_scale_bounds="fixed")
    rescaled = tree.rescale_length(kernel, 0.5)
    np.testing.assert_array_equal(rescaled.k1.k2.length_scale, [0.5, 1.5])
    assert rescaled.k2.length_scale == 4.0
    assert kernel.k1.k2.length_scale[1] == 3.0
    assert tree.free_length_scales(kernel) == ["k1__k2__length_scale"]
    assert tree.length_scale_bounds(RBF([1.0, 2.0], (0.1, 8.0))) == (0.1, 4.0)


def test_variance_is_folded_into_a_leading_constant():
    kernel = tree.rescale_variance(ConstantKernel(3.0) * RBF(2.0), 5.0)
    assert (kernel.k1.constant_value, kernel.k2) == (15.0, RBF(2.0))
    X = np.random.default_rng(0).normal(size=(4, 2))
    for given in (RBF(2.0), RBF(1.0) + RBF(2.0), RBF(2.0) * ConstantKernel(2.0)):
        np.testing.assert_allclose(tree.rescale_variance(given, 7.0)(X), 7 * given(X))
    assert not tree.variance_is_free(ConstantKernel(3.0, "fixed") * RBF())
    assert tree.variance_is_free(ConstantKernel(3.0) * RBF())


def test_the_unit_of_distances_is_the_length_scale_or_a_typical_one():
    assert tree.length_unit(3.0 * RBF(2.0)) == 2.0
    np.testing.assert_array_equal(tree.length_unit(RBF([2.0, 3.0])), [2.0, 3.0])
    np.testing.assert_allclose(tree.length_unit(RBF(1.0) + RBF(4.0)), 2.0)
    assert tree.length_unit(ConstantKernel(2.0)) == 1.0


@pytest.mark.parametrize(
    ("kernel", "parameter"),
    [
        (RBF(0.0), "length_scale"),
        (ConstantKernel(0.0) * RBF(1.0), "k1__constant_value"),
        (RBF(1.0) + WhiteKernel(0.0), "k2__noise_level"),
        (ExpSineSquared(1.0, -2.0), "periodicity"),
        (Matern(1.0, nu=-0.5) ** 2, "kernel__nu"),
    ],
    ids=str,
)
def test_parameters_that_must_be_positive_are_named(kernel, parameter):
    with pytest.raises(ValueError, match=f"^{parameter} of the covariance must be positive and finite, got "):
        tree.check_hyperparameters(kernel, 1)


def test_names_that_only_end_like_a_parameter_are_not_checked():
    class Menu(RBF):
        def __init__(self, length_scale=1.0, menu=-1.0):
            super().__init__(length_scale)
            self.menu = menu

    tree.check_hyperparameters(Menu(), 1)


def test_a_length_scale_without_bounds_may_be_multiplied_by_anything():
    class Plain(RBF):
        def __init__(self, length_scale=1.0):
            super().__init__(length_scale)

    assert tree.length_scale_bounds(Plain()) == (0.0, np.inf)
    assert tree.length_scale_bounds(RBF(2.0, (1.0, 8.0))) == (0.5, 4.0)


def test_parameters_of_zero_have_no_logarithm_and_move_to_their_lower_bounds():
    assert tree.with_logarithms(DotProduct(0.0, (1e-3, 1e3))).sigma_0 == pytest.approx(1e-3)
    kernel = DotProduct(2.0) + RBF(1.0)
    assert tree.with_logarithms(kernel) is kernel
