"""Theorem 2: the pair energies are pairwise graph representable when no covariance is ever negative."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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

from coxfield.kernels.sklearn_tree import check_nonnegative

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
