import numpy as np
import pytest
from scipy.special import gammaln, kve
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from coxfield.kernels import profiles

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
