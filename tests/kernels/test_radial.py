"""Radial covariances: which kernels they are, their profiles, values at many length scales, and derivatives."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, kve
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic, WhiteKernel

from covariance_doubles import RowCovariance
from coxfield.kernels import distances as profiles
from coxfield.kernels.called import Called
from coxfield.kernels.distances import LOG_RANGE, diagonal_gradient, squared_differences
from coxfield.kernels.radial import Radial, RadialPoints, recognise
from derivatives import difference
from strategies import RECOGNISED, UNRECOGNISED
from tolerances import assert_close


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_have_vanished_are_zero_and_none_is_subnormal(dtype):
    tiny, near = np.finfo(dtype).tiny, np.array([[0.0]], dtype)
    for n in range(1, 70):  # processors may treat the last entries of an array differently
        points = recognise(RBF(1.0), 1).bind(np.full((n, 1), 500.0, dtype))
        assert not points.at(near).tile(points).any()
    points = recognise(RBF(1.0), 1).bind(np.linspace(0, 60, 700, dtype=dtype)[:, None])
    values = points.at(near).tile(points)
    assert ((values == 0) | (values >= tiny)).all()
    d2 = np.square(np.linspace(0, 60, 700, dtype=dtype), dtype=dtype)[:60]
    np.testing.assert_allclose(values[0, :60], np.exp(-d2 / 2), rtol=1e3 * np.finfo(dtype).eps)


def test_points_are_scaled_and_moved_without_touching_the_data():
    X = np.arange(12.0).reshape(4, 3)
    before = X.copy()
    bound = recognise(RBF([1.0, 2.0, 4.0]), 3).bind(X, np.array([2, 0]))
    np.testing.assert_allclose(bound.points.coordinates, (X[[2, 0]] - X.mean(axis=0)) / [1, 2, 4])
    np.testing.assert_array_equal(X, before)


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


CASES = [
    (profiles.SquaredExponential(), RBF(1.0)),
    (profiles.Matern(0.5), Matern(1.0, nu=0.5)),
    (profiles.Matern(1.5), Matern(1.0, nu=1.5)),
    (profiles.Matern(2.5), Matern(1.0, nu=2.5)),
    (profiles.Matern(0.8), Matern(1.0, nu=0.8)),
    (profiles.Matern(4.2), Matern(1.0, nu=4.2)),
    (profiles.RationalQuadratic(0.3), RationalQuadratic(1.0, alpha=0.3)),
]


@pytest.mark.parametrize(("profile", "kernel"), CASES, ids=str)
def test_profile_is_scikit_learns_kernel_as_a_function_of_distance(profile, kernel):
    distance = np.linspace(0, 6, 40)
    expected = kernel(np.zeros((1, 1)), distance[:, None])[0]
    # scikit-learn replaces distance 0 by eps in the Bessel form, so the last bits differ.
    np.testing.assert_allclose(np.exp(profile.log_of(distance**2)), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("profile", "kernel"), CASES, ids=str)
def test_log_profile_decreases_and_stays_finite_where_the_kernel_underflows(profile, kernel):
    logs = profile.log_of(np.logspace(-8, 12, 60))
    assert np.isfinite(logs).all()
    assert (np.diff(logs) <= 0).all()
    assert logs[0] <= 0


@pytest.mark.parametrize(("profile", "kernel"), CASES, ids=str)
def test_slope_is_minus_twice_the_derivative_by_the_squared_distance(profile, kernel):
    d2, h = np.linspace(0.05, 30, 40), 1e-3
    at = [np.exp(profile.log_of(d2 * (1 + k * h))) for k in (-2, -1, 1, 2)]
    derivative = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * h * d2)
    np.testing.assert_allclose(np.exp(profile.log_slope_of(d2.copy())), -2 * derivative, rtol=1e-6)


@pytest.mark.parametrize(("profile", "kernel"), CASES, ids=str)
def test_slope_times_squared_distance_vanishes_at_zero(profile, kernel):
    d2 = np.array([0.0, 1e-12])
    slope = np.exp(profile.log_slope_of(d2.copy()))
    assert np.isfinite(slope).all()
    assert (slope * d2 < 1e-5).all()


def test_derivative_by_alpha_is_a_finite_difference():
    d2, h = np.linspace(0, 30, 20), 1e-4
    high, low = (profiles.RationalQuadratic(0.7 * np.exp(s)).log_of(d2.copy()) for s in (h, -h))
    np.testing.assert_allclose(profiles.RationalQuadratic(0.7).by_log_alpha(d2), (high - low) / (2 * h), atol=1e-7)


def test_profiles_work_in_place():
    d2 = np.array([0.0, 1.0, 4.0])
    assert profiles.Matern(1.5).log_of(d2) is d2
    assert d2[0] == 0


@pytest.mark.parametrize("nu", [50.5, 60.0, 100.0])
def test_orders_that_bessel_functions_still_reach_agree_with_the_expansion(nu):
    d2 = np.linspace(0.01, 400, 500)
    t = np.sqrt(2 * nu * d2)
    exact = (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(t) + np.log(kve(nu, t)) - t
    # The terms are as large as nu log(nu) and cancel. The expansion itself is right to ten digits.
    np.testing.assert_allclose(profiles.Matern(nu).log_of(d2.copy()), exact, rtol=1e-10, atol=1e-10)
    lower = (1 - nu) * np.log(2) - gammaln(nu) + (nu - 1) * np.log(t) + np.log(kve(nu - 1, t)) - t + np.log(2 * nu)
    np.testing.assert_allclose(profiles.Matern(nu).log_slope_of(d2.copy()), lower, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nu", [1e8, 1e15, 1e300])
def test_at_very_large_orders_a_matern_is_a_squared_exponential(nu, dtype):
    d2 = np.linspace(0, 100, 50).astype(dtype)
    np.testing.assert_allclose(profiles.Matern(nu).log_of(d2.copy()), -d2 / 2, rtol=1e-6)
    np.testing.assert_allclose(profiles.Matern(nu).log_slope_of(d2.copy()), -d2 / 2, rtol=1e-6, atol=1e-6)


def test_a_large_order_is_between_a_smaller_one_and_the_limit():
    d2 = np.array([9.0])  # K_nu of order 1000 overflows here
    fifty, thousand, limit = (
        profile.log_of(d2.copy())[0]
        for profile in (profiles.Matern(50.0), profiles.Matern(1000.0), profiles.Matern(1e9))
    )
    assert limit < thousand < fifty


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rational_quadratics_have_their_limits(dtype):
    d2 = np.linspace(0, 100, 50).astype(dtype)
    np.testing.assert_allclose(profiles.RationalQuadratic(1e300).log_of(d2.copy()), -d2 / 2, rtol=1e-5)
    np.testing.assert_allclose(profiles.RationalQuadratic(1e-300).log_of(d2.copy()), 0, atol=1e-20)
    assert np.isfinite(profiles.RationalQuadratic(1e-300).by_log_alpha(d2)).all()
    assert np.isfinite(profiles.RationalQuadratic(1e-300).log_slope_of(np.full(3, np.finfo(dtype).max))).all()


SCALE = np.array([0.5, 2.0, 1.0])
FAR = np.random.default_rng(0).normal(10.0, 1.0, size=(8, 3))
ROWS = np.array([6, 1, 1, 4])


def bound_far(data):
    return recognise(RBF(SCALE), 3).bind(data)


@pytest.mark.parametrize("rows", [slice(1, 5), ROWS, np.zeros(0, int)], ids=["slice", "rows", "none"])
def test_some_of_the_points_are_those_rows_of_the_data(rows):
    points = bound_far(FAR)[rows]
    expected = np.arange(8)[rows]
    assert len(points) == len(expected)
    np.testing.assert_array_equal(points.X[points.rows], FAR[expected])
    assert isinstance(rows, slice) or len(points.X) == len(expected)  # nothing of the others
    assert_close(points.points.coordinates, (FAR[expected] - FAR.mean(axis=0)) / SCALE, terms=8, scale=2 * 13 / SCALE)


def test_rows_of_rows_are_rows_of_the_data():
    points = bound_far(FAR)[ROWS][[3, 0]]
    np.testing.assert_array_equal(points.X[points.rows], FAR[[4, 6]])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_double_precision_is_made_from_the_data_and_not_from_rounded_coordinates(form):
    single = FAR.astype(np.float32)
    points = bound_far(form(single))[ROWS]
    assert points.dtype == np.float32
    found = points.in_double()
    assert found.dtype == np.float64
    origin = 0 if points.origin is None else points.origin.astype(float)
    expected = (single[ROWS].astype(float) - origin) / SCALE
    coordinates = found.coordinates.toarray() if sparse.issparse(found.coordinates) else found.coordinates
    assert_close(coordinates, expected)
    assert_close(found.sq_norms, np.square(expected).sum(axis=1), terms=3)


def test_double_precision_stays_as_it_is():
    points = bound_far(FAR)
    assert points.in_double() is points.points


RNG = np.random.default_rng(0)
NEAR, OTHERS = RNG.normal(size=(8, 3)), RNG.normal(size=(6, 3))
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


def bound_pair(kernel, form=np.asarray):
    columns = recognise(kernel, 3).bind(form(OTHERS))
    return columns.at(form(NEAR)), columns


def rounded(kernel, rows, columns):
    """Distances and squared differences are made of products, so that rounding is relative to |x|^2 + |z|^2."""
    scale = recognise(kernel, 3).length_scale
    norms = 1 + 4 * max(np.square(points / scale).sum(axis=1).max() for points in (NEAR, OTHERS))
    nearest = np.square((NEAR[:, None] - OTHERS) / scale).sum(axis=2).min()  # of which rough kernels see the root
    return {"terms": rows * columns, "condition": norms**2 / min(1, nearest)}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_sums_and_gradients_are_those_of_a_double_loop(kernel, form):
    values, gradient = kernel(np.concatenate([NEAR, OTHERS]), eval_gradient=True)
    sums, by_theta = np.zeros(8), np.zeros(kernel.n_dims)
    for j in range(8):
        for k in range(6):
            if OWN[j] != k:
                sums[j] += WEIGHTS[k] * values[j, 8 + k]
                by_theta += RESIDUAL[j] * WEIGHTS[k] * gradient[j, 8 + k]
    found = RadialPoints.differentiate(*bound_pair(kernel, form), WEIGHTS, OWN)
    size = kernel.diag(NEAR[:1])[0] * WEIGHTS.sum()
    assert_close(found.sums, sums, scale=size, **rounded(kernel, 1, 6))
    size *= np.abs(RESIDUAL).sum()
    assert_close(found.gradient(RESIDUAL), by_theta, scale=size, **rounded(kernel, 8, 6))


@pytest.mark.parametrize("kernel", [Matern(0.9, nu=0.8), 0.5 * Matern([0.5, 1.0, 3.0], nu=3.1)], ids=str)
def test_of_any_smoothness_gradients_are_finite_differences(kernel):
    """Scikit-learn has no closed form to compare with. The difference is right to h^4 = 1e-12 and rounding / h."""

    def total(theta):
        return RESIDUAL @ (np.where(SEEN, kernel.clone_with_theta(theta)(NEAR, OTHERS), 0) @ WEIGHTS)

    steps = np.eye(kernel.n_dims)
    expected = [difference(lambda h, step=step: total(kernel.theta + h * step)) for step in steps]
    found = RadialPoints.differentiate(*bound_pair(kernel), WEIGHTS, OWN).gradient(RESIDUAL)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_single_precision_keeps_its_digits():
    kernel = 2.0 * RBF([0.5, 2.0, 1.0])
    single = RadialPoints.differentiate(*bound_pair(kernel, lambda points: points.astype(np.float32)), WEIGHTS, OWN)
    double = RadialPoints.differentiate(*bound_pair(kernel), WEIGHTS, OWN)
    how = {**rounded(kernel, 8, 6), "dtype": np.float32, "scale": 2 * WEIGHTS.sum() * np.abs(RESIDUAL).sum()}
    assert_close(single.sums, double.sums, **how)
    assert_close(single.gradient(RESIDUAL), double.gradient(RESIDUAL), **how)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("per_feature", [False, True], ids=["one", "per feature"])
@pytest.mark.parametrize("nu", [0.5, 1.5, np.inf])
def test_limits_of_the_length_scale_have_no_slope(scale, per_feature, nu):
    kernel = 3.0 * Matern(np.full(3, scale) if per_feature else scale, nu=nu)
    found = RadialPoints.differentiate(*bound_pair(kernel), WEIGHTS, np.full(8, -1))
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
                expected[d] += RESIDUAL[j] * tile[j, k] * WEIGHTS[k] * (NEAR[j, d] - OTHERS[k, d]) ** 2
                size[d] += abs(RESIDUAL[j] * tile[j, k] * WEIGHTS[k]) * (abs(NEAR[j, d]) + abs(OTHERS[k, d])) ** 2
    found = squared_differences(tile, RESIDUAL, WEIGHTS, form(NEAR), form(OTHERS))
    assert_close(found, expected, terms=48, scale=size)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_only_the_variance_moves_the_diagonal(kernel):
    _, gradient = kernel(NEAR, eval_gradient=True)
    expected = np.einsum("j,jjp->p", RESIDUAL, gradient)
    found = diagonal_gradient(recognise(kernel, 3), RESIDUAL)
    assert_close(found, expected, terms=8, scale=kernel.diag(NEAR[:1])[0] * np.abs(RESIDUAL).sum())
