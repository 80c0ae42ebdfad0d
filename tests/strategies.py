"""Hypothesis strategies and lists of kernels shared by the tests."""

import numpy as np
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

RECOGNISED = [
    RBF(0.7),
    RBF([0.5, 2.0, 1.0]),
    ConstantKernel(2.5) * RBF(1.3),
    RBF(1.3) * ConstantKernel(0.2),
    2.0 * (3.0 * Matern(0.8, nu=0.5)),
    Matern(1.1, nu=1.5),
    Matern([0.4, 1.0, 3.0], nu=2.5),
    Matern(0.9, nu=0.8),
    Matern(0.9, nu=np.inf),
    0.3 * RationalQuadratic(length_scale=0.8, alpha=1.7),
]
UNRECOGNISED = [RBF(0.5) + RBF(2.0), RBF(0.5) * Matern(1.0), RBF(1.0) ** 2]


@st.composite
def labelled_points(draw, max_n=14, d=3, max_classes=4):
    """Points in general position with every class present, as (X, y)."""
    n_classes = draw(st.integers(2, max_classes))
    n = draw(st.integers(n_classes, max_n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) * draw(st.sampled_from([0.3, 1.0, 5.0]))
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    return X, rng.permutation(y)
