"""The window of Janossy densities: from the user or from the data."""

import numpy as np
import pytest

from coxfield.geometry.window import Window
from coxfield.permanents.window import NODES, check_window, quadrature
from tolerances import assert_close

X = np.array([[0.0, 5.0], [2.0, 1.0], [1.0, 3.0]])


def test_the_window_of_the_data_is_a_gap_wider():
    assert_close(check_window(None, X), np.array([[-1.0, 3.0], [-1.0, 7.0]]))


def test_points_in_a_row_lie_a_gap_inside_of_their_window():
    box = check_window(None, np.linspace(0, 1, 11)[:, None])
    assert_close(box, np.array([[-0.1, 1.1]]))


def test_a_given_window_is_taken_as_it_is():
    np.testing.assert_array_equal(check_window(((0, 1), (2, 3)), X), [[0, 1], [2, 3]])
    assert check_window([[0, 1], [2, 3]], X).dtype == float


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ([[0, 1]], r"pair \(low, high\) for each of 2 features, got shape \(1, 2\)"),
        ((0, 1), r"pair \(low, high\) for each of 2 features, got shape \(2,\)"),
        ([[0, 1], [2, 2]], "empty: along axis 2"),
        ([[1, 0], [0, 1]], "inverted along axis 1"),
        ([[0, 1], [0, np.inf]], "must be finite"),
    ],
)
def test_other_windows_are_refused(window, message):
    with pytest.raises(ValueError, match=message):
        check_window(window, X)


def test_too_many_features_are_refused():
    with pytest.raises(ValueError, match='at most 3 dimensions, but the data have 4 features: give density="product"'):
        check_window(None, np.zeros((5, 4)))


def test_equal_points_have_no_window_of_their_own():
    with pytest.raises(ValueError, match="the window is empty"):
        check_window(None, np.ones((5, 1)))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_nodes_integrate_polynomials(d):
    box = np.stack([np.arange(d) - 0.5, np.arange(d) + 1.0], axis=1)
    rule = quadrature(box)
    values = np.prod(rule.nodes**3, axis=1)
    # NumPy computes the nodes of order n to within about n^2 units, and each axis has a power of three of them.
    assert_close(
        rule.weights @ values,
        np.prod((box[:, 1] ** 4 - box[:, 0] ** 4) / 4),
        terms=len(values),
        scale=rule.weights @ np.abs(values),
        condition=3 * d * NODES[d] ** 2,
    )


def test_a_share_of_the_nodes_per_axis():
    assert len(quadrature(Window([(0, 1), (0, 1)])).nodes) == 32**2
    assert len(quadrature([(0, 1), (0, 1)], 0.75).nodes) == 24**2


@pytest.mark.parametrize("size", [1e-290, 1e287])
def test_points_whose_volume_is_no_number_are_refused(size):
    with pytest.raises(ValueError, match=r"feature 0 has values from .* so that the volume of the window is beyond"):
        check_window(None, size * np.array([[1.0], [2.0]]))
