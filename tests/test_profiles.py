import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from coxfield import profiles

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
    # sklearn replaces distance 0 by eps in the Bessel form, hence not to the last bit.
    np.testing.assert_allclose(np.exp(profile.log_of(distance**2)), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("profile", "kernel"), CASES, ids=str)
def test_log_profile_decreases_and_stays_finite_where_the_kernel_underflows(profile, kernel):
    logs = profile.log_of(np.logspace(-8, 12, 60))
    assert np.isfinite(logs).all()
    assert (np.diff(logs) <= 0).all()
    assert logs[0] <= 0


def test_profiles_work_in_place():
    d2 = np.array([0.0, 1.0, 4.0])
    assert profiles.Matern(1.5).log_of(d2) is d2
    assert d2[0] == 0
