"""The Gauss-Legendre rule against integrals in closed form."""

import numpy as np
import pytest

from coxfield.geometry.quadrature import gauss_legendre
from coxfield.geometry.window import Window
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
