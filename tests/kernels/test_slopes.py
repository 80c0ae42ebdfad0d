"""Derivatives in closed form against scikit-learn's gradients, pair by pair."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

from coxfield.kernels.profiles import LOG_RANGE, diagonal_gradient, differentiate, squared_differences
from coxfield.kernels.radial import recognise
from derivatives import difference
from tolerances import assert_close

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(8, 3)), RNG.normal(size=(6, 3))
WEIGHTS, OWN, RESIDUAL = RNG.uniform(0.5, 2, 6), RNG.integers(-1, 6, 8), RNG.normal(size=8)
SEEN = OWN[:, None] != np.arange(6)
KERNELS = [
    RBF(0.7),
    RBF([0.5, 2.0, 1.0]),
    2.5 * RBF(1.3),
    RBF(1.3) * ConstantKernel(0.2),
    2.0 * (3.0 * Matern(0.8, nu=0.5)),
    Matern([0.5, 1.0, 3.0], nu=0.5),
    Matern(1.1, nu=1.5),
    Matern([0.5, 1.0, 3.0], nu=2.5),
    0.3 * RationalQuadratic(0.8, 1.7),
    0.3 * RationalQuadratic(0.8, 1.7, "fixed"),
    ConstantKernel(0.3, "fixed") * RationalQuadratic(0.8, 1.7, alpha_bounds="fixed"),
    ConstantKernel(2.0, "fixed") * RBF(1.0, "fixed"),
]


def bound(kernel, form=np.asarray):
    columns = recognise(kernel, 3).bind(form(Z))
    return columns.at(form(X)), columns


def rounded(kernel, rows, columns):
    """Distances and squared differences are made of products, so that rounding is relative to |x|^2 + |z|^2."""
    scale = recognise(kernel, 3).length_scale
    norms = 1 + 4 * max(np.square(points / scale).sum(axis=1).max() for points in (X, Z))
    nearest = np.square((X[:, None] - Z) / scale).sum(axis=2).min()  # of which rough kernels see the root
    return {"terms": rows * columns, "condition": norms**2 / min(1, nearest)}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_sums_and_gradients_are_those_of_a_double_loop(kernel, form):
    values, gradient = kernel(np.concatenate([X, Z]), eval_gradient=True)
    sums, by_theta = np.zeros(8), np.zeros(kernel.n_dims)
    for j in range(8):
        for k in range(6):
            if OWN[j] != k:
                sums[j] += WEIGHTS[k] * values[j, 8 + k]
                by_theta += RESIDUAL[j] * WEIGHTS[k] * gradient[j, 8 + k]
    found = differentiate(*bound(kernel, form), WEIGHTS, OWN)
    size = kernel.diag(X[:1])[0] * WEIGHTS.sum()
    assert_close(found.sums, sums, scale=size, **rounded(kernel, 1, 6))
    size *= np.abs(RESIDUAL).sum()
    assert_close(found.gradient(RESIDUAL), by_theta, scale=size, **rounded(kernel, 8, 6))


@pytest.mark.parametrize("kernel", [Matern(0.9, nu=0.8), 0.5 * Matern([0.5, 1.0, 3.0], nu=3.1)], ids=str)
def test_of_any_smoothness_gradients_are_finite_differences(kernel):
    """Scikit-learn has no closed form to compare with. The difference is right to h^4 = 1e-12 and rounding / h."""

    def total(theta):
        return RESIDUAL @ (np.where(SEEN, kernel.clone_with_theta(theta)(X, Z), 0) @ WEIGHTS)

    steps = np.eye(kernel.n_dims)
    expected = [difference(lambda h, step=step: total(kernel.theta + h * step)) for step in steps]
    found = differentiate(*bound(kernel), WEIGHTS, OWN).gradient(RESIDUAL)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_single_precision_keeps_its_digits():
    kernel = 2.0 * RBF([0.5, 2.0, 1.0])
    single = differentiate(*bound(kernel, lambda points: points.astype(np.float32)), WEIGHTS, OWN)
    double = differentiate(*bound(kernel), WEIGHTS, OWN)
    how = {**rounded(kernel, 8, 6), "dtype": np.float32, "scale": 2 * WEIGHTS.sum() * np.abs(RESIDUAL).sum()}
    assert_close(single.sums, double.sums, **how)
    assert_close(single.gradient(RESIDUAL), double.gradient(RESIDUAL), **how)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("per_feature", [False, True], ids=["one", "per feature"])
@pytest.mark.parametrize("nu", [0.5, 1.5, np.inf])
def test_limits_of_the_length_scale_have_no_slope(scale, per_feature, nu):
    kernel = 3.0 * Matern(np.full(3, scale) if per_feature else scale, nu=nu)
    found = differentiate(*bound(kernel), WEIGHTS, np.full(8, -1))
    by_variance, *by_length = found.gradient(np.ones(8))
    if scale < 1:  # nobody has a neighbour
        assert (found.sums <= 1.01 * WEIGHTS.sum() * np.exp(LOG_RANGE["float64"][0])).all()
    else:  # everybody is everybody's neighbour
        np.testing.assert_allclose(found.sums, 3.0 * WEIGHTS.sum(), rtol=1e-7)
    assert by_variance == pytest.approx(found.sums.sum(), rel=1e-12, abs=1e-200)
    np.testing.assert_allclose(by_length, 0, atol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_squared_differences_are_a_triple_loop(form):
    tile = RNG.normal(size=(8, 6))
    expected, size = np.zeros(3), np.zeros(3)
    for j in range(8):
        for k in range(6):
            for d in range(3):
                expected[d] += RESIDUAL[j] * tile[j, k] * WEIGHTS[k] * (X[j, d] - Z[k, d]) ** 2
                size[d] += abs(RESIDUAL[j] * tile[j, k] * WEIGHTS[k]) * (abs(X[j, d]) + abs(Z[k, d])) ** 2
    found = squared_differences(tile, RESIDUAL, WEIGHTS, form(X), form(Z))
    assert_close(found, expected, terms=48, scale=size)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_only_the_variance_moves_the_diagonal(kernel):
    _, gradient = kernel(X, eval_gradient=True)
    expected = np.einsum("j,jjp->p", RESIDUAL, gradient)
    found = diagonal_gradient(recognise(kernel, 3), RESIDUAL)
    assert_close(found, expected, terms=8, scale=kernel.diag(X[:1])[0] * np.abs(RESIDUAL).sum())
