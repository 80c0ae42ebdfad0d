import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

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
