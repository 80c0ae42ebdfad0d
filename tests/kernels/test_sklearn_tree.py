"""Kernels of scikit-learn as trees: factors, values, and theorem 2, where no covariance is ever negative."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from coxfield.kernels import sklearn_tree as tree
from coxfield.kernels.called import hold
from coxfield.kernels.protocol import bind_precisely, values
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import check_nonnegative
from reference import kernel_value
from strategies import RECOGNISED, UNRECOGNISED
from tolerances import assert_close


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
    for each in (RBF(2.0), RBF(1.0) + RBF(2.0), RBF(2.0) * ConstantKernel(2.0)):
        np.testing.assert_allclose(tree.rescale_variance(each, 7.0)(X), 7 * each(X))
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


positive = st.floats(0.05, 20)
simple = st.one_of(
    st.builds(RBF, positive),
    st.builds(Matern, positive, nu=st.sampled_from([0.5, 0.8, 1.5, 2.5, np.inf])),
    st.builds(RationalQuadratic, positive, positive),
    st.builds(ExpSineSquared, positive, positive),
    st.builds(ConstantKernel, positive),
    st.builds(WhiteKernel, positive),
)
accepted = st.recursive(
    simple,
    lambda parts: st.one_of(
        st.builds(lambda a, b: a + b, parts, parts),
        st.builds(lambda a, b: a * b, parts, parts),
        st.builds(lambda a, p: a**p, parts, st.sampled_from([2, 3, 0.5])),
    ),
    max_leaves=4,
)
points = st.lists(st.floats(-10, 10), min_size=2, max_size=2).map(lambda x: np.array([x]))


def pair_energy(values, a, b):
    return -values[a] if a == b else 0.0


def slack(values):
    """The least of right side minus left side of eq. submodularInequality over all classes a, b, c."""
    return min(
        pair_energy(values, a, c) + pair_energy(values, b, a) - pair_energy(values, a, a) - pair_energy(values, b, c)
        for a, b, c in product(range(len(values)), repeat=3)
    )


@given(st.lists(accepted, min_size=3, max_size=3), points, points)
def test_the_inequality_holds_for_every_kernel_that_is_accepted(kernels, x, z):
    for kernel in kernels:
        check_nonnegative(kernel)
    assert slack([float(kernel(x, z)[0, 0]) for kernel in kernels]) >= 0


@pytest.mark.parametrize("kernel", [DotProduct(), PairwiseKernel(metric="linear"), RBF(1.0) * DotProduct(0.1)], ids=str)
def test_it_fails_for_kernels_that_are_refused(kernel):
    with pytest.raises(ValueError, match="may take negative values"):
        check_nonnegative(kernel)
    value = float(kernel(np.array([[2.0, 0.0]]), np.array([[-2.0, 0.0]]))[0, 0])
    assert slack([value] * 3) < 0


def test_a_subclass_may_compute_anything_and_is_refused():
    class Wave(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return np.cos(X - (X if Y is None else Y).T)

    with pytest.raises(ValueError, match="may take negative values"):
        check_nonnegative(Wave(1.0))
