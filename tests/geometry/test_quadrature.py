"""Quadrature over windows against integrals in closed form, and the warning when an integral does not settle."""

import numpy as np
import pytest
from scipy.integrate import dblquad

from coxfield.geometry.window import ORDER, TOLERANCE, IntegrationWarning, Window, gauss_legendre, integrate
from tolerances import assert_close

BOXES = [Window((-0.5, 1.0)), Window([(-0.5, 1.0), (0.5, 2.0)]), Window([(0, 1), (-1, 1), (1, 3)])]


def monomial(window, powers):
    """Integral of x_1^p_1 ... x_d^p_d in closed form, and of the absolute value of the monomial's bound."""
    p = np.array(powers) + 1
    return np.prod((window.high**p - window.low**p) / p)


@pytest.mark.parametrize("window", BOXES, ids=["line", "plane", "space"])
@pytest.mark.parametrize("panels", [1, 3])
@pytest.mark.parametrize("order", [2, 4])
def test_polynomials_of_degree_up_to_twice_the_order_less_one_are_exact(window, panels, order):
    rule = gauss_legendre(window, order, panels)
    assert len(rule.nodes) == (order * panels) ** window.dimension
    for degree in range(2 * order):
        values = np.prod(rule.nodes**degree, axis=1)
        # NumPy computes the nodes of order n to within about n^2 units, and a power multiplies that by its degree.
        assert_close(
            rule.weights @ values,
            monomial(window, [degree] * window.dimension),
            terms=len(rule.nodes),
            scale=rule.weights @ np.abs(values),
            condition=order**2 * (1 + degree) * window.dimension,
        )


def test_one_degree_more_is_not_exact():
    rule = gauss_legendre(Window((-1, 1)), 2)
    assert abs(rule.weights @ rule.nodes[:, 0] ** 4 - 2 / 5) > 0.1  # the rule gives 2/9


def test_axes_may_have_different_powers():
    window = Window([(0, 2), (1, 3)])
    rule = gauss_legendre(window, 3)
    values = rule.nodes[:, 0] ** 3 * rule.nodes[:, 1]
    assert_close(rule.weights @ values, monomial(window, [3, 1]), terms=9, condition=36)


def test_panels_are_the_rule_on_each_part():
    whole = gauss_legendre(Window((0, 2)), 5, panels=2)
    parts = [gauss_legendre(Window(side), 5) for side in ((0, 1), (1, 2))]
    assert_close(whole.nodes, np.concatenate([part.nodes for part in parts]), scale=2.0)
    assert_close(whole.weights, np.concatenate([part.weights for part in parts]))


def test_nodes_lie_inside_and_weights_are_positive():
    window = Window([(0, 1), (5, 6)])
    rule = gauss_legendre(window, 32)
    assert window.contains(rule.nodes).all()
    assert (rule.weights > 0).all()
    assert_close(rule.roots**2, rule.weights)


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
