"""Integrals over windows against closed forms, and the warning when there is none."""

import numpy as np
import pytest
from scipy.integrate import dblquad

from coxfield.process import Window
from coxfield.process.integral import ORDER, TOLERANCE, IntegrationWarning, integrate
from tolerances import assert_close


@pytest.mark.parametrize("d", [1, 2, 3])
def test_polynomials_are_exact(d):
    window = Window([(-1, 2)] * d)
    found = integrate(lambda x: np.prod(x**2, axis=1), window)
    # NumPy computes the nodes of order n to within about n^2 units.
    assert_close(found, 3.0**d, terms=(2 * ORDER) ** d, condition=2 * d * ORDER**2)


def test_smooth_functions_settle():
    found = integrate(lambda x: np.exp(x.sum(axis=1)), Window([(0, 1)] * 3))
    np.testing.assert_allclose(found, (np.e - 1) ** 3, rtol=TOLERANCE)
    found = integrate(lambda x: np.exp(np.sin(3 * x[:, 0]) * x[:, 1]), Window([(0, 4), (0, 2)]))
    expected = dblquad(lambda v, u: np.exp(np.sin(3 * u) * v), 0, 4, 0, 2, epsabs=1e-10)[0]
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE)


def test_a_sharp_peak_needs_more_panels():
    found = integrate(lambda x: 1 / (1e-4 + x[:, 0] ** 2), Window((-1, 1)))
    np.testing.assert_allclose(found, 2e2 * np.arctan(1e2), rtol=TOLERANCE)


def test_an_integral_that_does_not_settle_says_so():
    with pytest.warns(IntegrationWarning, match=r"with an error of about .*: integrate smaller windows"):
        integrate(lambda x: np.exp(9.0 * (x.sum(axis=1) > 0.7712)), Window([(0, 1)] * 3))
