"""Kernels in a model file: those that fit accepts pass, and what no fit would accept is refused."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from coxfield.io.kernel_content import TERMS, check_kernel
from coxfield.io.requirements import Unsound


class OwnKernel(RBF):
    """A kernel that another program knows nothing of."""


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        RBF(2, "fixed"),
        RBF(np.float32(2.0), (1e-300, 1e300)),
        RBF([1.0, 2.0], [(1, 2), (3, 4)]),
        RBF(np.array([1.0, 2.0]), np.array([[1, 2], [3, 4]])),
        RBF(np.array([1.0])),
        Matern(1.0, nu=np.inf),
        2.0 * RationalQuadratic(1.0, 0.5) ** 2 + WhiteKernel(0),
        RBF() ** -1,
        ExpSineSquared() + DotProduct(0) * ConstantKernel(3),
        PairwiseKernel(gamma=-1.0, metric="sigmoid", pairwise_kernels_kwargs={"coef0": 1.0}),
    ],
    ids=repr,
)
def test_kernels_that_can_be_fitted_pass(kernel):
    check_kernel(kernel, 2)
    check_kernel(kernel)


def changed(kernel, **parameters):
    vars(kernel).update(parameters)
    return kernel


def without(kernel, name):
    del vars(kernel)[name]
    return kernel


@pytest.mark.parametrize(
    ("kernel", "clause"),
    [
        (None, "a kernel is a NoneType"),
        ("RBF", "a kernel is a str"),
        (OwnKernel(), "a kernel is a OwnKernel, which is no kernel of scikit-learn"),
        (RBF(np.nan), "length_scale of RBF is nan"),
        (RBF(-1.0), r"length_scale of RBF is -1\.0, which is not positive"),
        (RBF(0), "length_scale of RBF is 0, which is not positive"),
        (RBF("1"), "length_scale of RBF is '1', which is no finite number"),
        (RBF(True), "length_scale of RBF is True"),
        (RBF([1.0, "2"]), "length_scale of RBF holds"),
        (RBF(np.array([1.0, np.inf])), "which is not positive"),
        (RBF(np.array(["a", "b"])), "which is no finite number"),
        (RBF(np.ones(3)), "length_scale of RBF has 3 entries for 2 features"),
        (RBF(np.ones(0)), "length_scale of RBF has 0 entries"),
        (RBF(np.ones((2, 2))), "which is no finite number"),
        (RBF(1.0, "free"), "length_scale_bounds of RBF is neither 'fixed' nor pairs of numbers"),
        (RBF(1.0, np.array(["a"])), "length_scale_bounds of RBF"),
        (RBF(1.0, (1, 2, 3)), "length_scale_bounds of RBF"),
        (Matern(nu=-1.0), "nu of Matern is negative"),
        (Matern(nu=0), "nu of Matern is 0"),
        (Matern(nu=np.nan), "nu of Matern is nan"),
        (RationalQuadratic(alpha=-np.inf), "alpha of RationalQuadratic is -inf"),
        (ConstantKernel(0.0) * RBF(), "constant_value of ConstantKernel is 0"),
        (RBF() + ConstantKernel(None), "constant_value of ConstantKernel is None"),
        (RBF() ** np.nan, "exponent of Exponentiation is nan"),
        (DotProduct([1]), "sigma_0 of DotProduct is"),
        (CompoundKernel([RBF()]), "which is no covariance"),
        (PairwiseKernel(metric=np.exp), "metric of PairwiseKernel is no name"),
        (PairwiseKernel(pairwise_kernels_kwargs={"a": np.exp}), "does not hold numbers"),
        (changed(RBF(), diag=np.exp), "a kernel does not have the parameters of RBF"),
        (without(RBF(), "length_scale"), "a kernel does not have the parameters of RBF"),
        (changed(RBF() + RBF(), k2=3), "a kernel is a int"),
    ],
)
def test_kernels_that_no_fit_accepts_are_refused(kernel, clause):
    with pytest.raises(Unsound, match=clause):
        check_kernel(kernel, 2)


def test_a_kernel_has_not_too_many_parts():
    many = RBF()
    for _ in range(TERMS):
        many = many + RBF()
    with pytest.raises(Unsound, match=f"a kernel has more than {TERMS} parts"):
        check_kernel(many, 2)
