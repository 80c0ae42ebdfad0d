"""Windows: what they hold and what they refuse; quadrature over them against integrals in closed form."""

import json

import numpy as np
import pytest
from scipy.integrate import dblquad

from coxfield.geometry.window import (
    EXACT,
    NODES,
    ORDER,
    TOLERANCE,
    IntegrationWarning,
    PolygonWindow,
    Window,
    check_points,
    gauss_legendre,
    integrate,
)
from patterns import CORNERS, ELL
from tolerances import assert_close


@pytest.mark.parametrize(
    ("sides", "sentence"),
    [
        ([(0, 10), (3, 3)], "the window is empty: along axis 2 it begins and ends at 3; give"),
        ([(10, 0)], "inverted along axis 1, from 10 to 0: give"),
        ([(0, 1), (-1e308, 1e308)], "longer than any number along axis 2, from -1e.308 to 1e.308: give"),
        ([(0, np.nan)], "must be finite, got 0 to nan along axis 1: give"),
        ([(0, np.inf)], "must be finite, got 0 to inf along axis 1: give"),
        ([0, 10, 0, 10], r"one \(low, high\) pair per axis, such as .*got \[0, 10, 0, 10\]"),
        ([], r"one \(low, high\) pair per axis"),
        ([(0, 1, 2)], r"one \(low, high\) pair per axis"),
    ],
)
def test_windows_that_are_none_are_refused(sides, sentence):
    with pytest.raises(ValueError, match=sentence):
        Window(sides)


def test_two_numbers_are_an_interval():
    assert Window((0, 10)) == Window([(0, 10)]) == Window(np.array([[0.0, 10.0]]))


def test_a_window_is_itself():
    window = Window((0, 1))
    assert Window.of(window) is window
    assert Window.of((0, 1)) == window


def test_corners_lengths_and_volume():
    window = Window([(-1, 3), (2, 4.5)])
    assert window.low.tolist() == [-1, 2]
    assert window.high.tolist() == [3, 4.5]
    assert window.lengths.tolist() == [4, 2.5]
    assert (window.dimension, window.volume) == (2, 10.0)


def test_the_boundary_belongs_to_the_window():
    window = Window([(0, 1), (0, 2)])
    points = [[0, 0], [1, 2], [0.5, 2], [1, np.nextafter(2, 3)], [-0.1, 1]]
    assert window.contains(points).tolist() == [True, True, True, False, False]
    np.testing.assert_array_equal(window.check_inside(points[:3]), points[:3])
    with pytest.raises(ValueError, match=r"the point \[-0.1, 1.0\] lies outside of the window .*: leave it out"):
        window.check_inside([[0.5, 1], [-0.1, 1]])


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ([[1.0, np.nan]], r"points must be finite, but row 0 is \[1.0, nan\]: leave"),
        ([[1.0, 2.0, 3.0]], "points have 3 coordinates, but the window has 2 axes"),
        ([1.0, 2.0], "points have 1 coordinates, but the window has 2 axes"),
        (np.zeros((1, 2, 2)), r"one row per point, but the shape is \(1, 2, 2\): reshape"),
    ],
)
def test_points_that_fit_no_plane_are_refused(points, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_points(points, 2)


def test_a_flat_array_is_points_on_the_line():
    assert check_points([1, 2, 3]).shape == (3, 1)
    assert check_points([1, 2, 3], 1).shape == (3, 1)
    assert check_points([], 2).shape == (0, 2)
    assert check_points([[1, 2]]).dtype == float


def cut_ell(h):
    """|A ∩ (A + h)| of the ell without its hole, as three unit squares that meet three unit squares."""
    corners = np.array([(0, 0), (1, 0), (0, 1)])
    return sum(np.prod(np.maximum(1 - np.abs(a - b - h), 0)) for a in corners for b in corners)


def test_a_polygon_with_a_hole_has_an_area_a_boundary_and_an_inside():
    assert_close(ELL.volume, 2.84, terms=20, scale=4.0)
    assert ELL.contains([[0.5, 1.5], [1.5, 1.5], [0.4, 0.4], [2.0, 1.0]]).tolist() == [True, False, False, True]
    assert_close(ELL.boundary_distance([[1.5, 0.5], [0.1, 0.4]]), np.array([0.5, 0.1]), scale=1.0)
    assert not ELL.is_box
    assert ELL.box == Window([(0, 2), (0, 2)])
    assert PolygonWindow(ELL.geometry) == ELL
    with pytest.raises(ValueError, match=r"the point \[0.4, 0.4\] and 1 more of 3 points lie outside of the window of"):
        ELL.check_inside([[0.4, 0.4], [1.0, 0.5], [1.5, 1.5]])


@pytest.mark.parametrize("count", [50, EXACT + 1])
def test_the_set_covariance_of_a_polygon(count):
    lags = np.random.default_rng(0).uniform(-0.5, 0.5, (count, 2))
    found = PolygonWindow(CORNERS).set_covariance(lags)
    naive = np.array([cut_ell(h) for h in lags])
    if count <= EXACT:
        assert_close(found, naive, terms=100, scale=4.0)
    else:
        # Linear interpolation: an eighth of the squared step, twice (lags of 5/4 the reach), times the mixed derivative
        # of products of two sides, which is at most the number of squares.
        step = 1.25 * 0.5 / (NODES - 1)
        assert np.abs(found - naive).max() <= 3 * step**2


@pytest.mark.parametrize("window", [Window([(0, 2), (-1, 1)]), ELL, Window((0, 3)), Window([(0, 1), (0, 2), (0, 1)])])
def test_the_set_covariance_is_even_and_at_zero_the_volume(window):
    lags = np.random.default_rng(1).uniform(-0.6, 0.6, (40, window.dimension))
    assert_close(window.set_covariance(-lags), window.set_covariance(lags), terms=100, scale=window.volume)
    assert_close(window.set_covariance(np.zeros((1, window.dimension))), np.array([window.volume]), terms=100)


def test_the_mean_set_covariance_of_a_rectangle_has_a_closed_form():
    r = np.array([0.0, 0.1, 0.5, 1.0])
    closed = 2 - 2 * r * (1 + 2) / np.pi + r**2 / np.pi
    # The midpoint rule over 256 angles errs where |sin| and |cos| have their kinks.
    np.testing.assert_allclose(Window([(0, 2), (0, 1)]).mean_set_covariance(r), closed, atol=4 / 256**2)
    assert_close(Window((0, 3)).mean_set_covariance([0.5]), np.array([2.5]))


@pytest.mark.parametrize("window", [ELL, Window([(0, 2), (0, 1)])])
def test_points_are_drawn_evenly_and_cells_add_up(window):
    points = window.sample(4000, np.random.default_rng(0))
    assert points.shape == (4000, 2)
    assert window.contains(points).all()
    shape = (8, 8)
    shares = window.cell_volumes(shape) / window.volume
    assert_close(shares.sum(), 1.0, terms=200)
    index = np.minimum(((points - window.low) / (window.lengths / shape)).astype(int), 7)
    counts = np.bincount(np.ravel_multi_index(tuple(index.T), shape), minlength=64)
    errors = np.sqrt(4000 * shares.ravel() * (1 - shares.ravel()))
    assert (np.abs(counts - 4000 * shares.ravel()) <= 4 * errors).all()


def test_windows_are_made_of_what_people_have(tmp_path):
    import shapely

    box = shapely.box(0, 0, 2, 1)
    assert isinstance(Window.of(box), PolygonWindow)
    assert Window.of(ELL) is ELL

    class Frame:
        def union_all(self):
            return box

    assert Window.of(Frame()).volume == 2.0
    feature = {"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(ELL.geometry)}
    (tmp_path / "area.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    assert_close(PolygonWindow.from_geojson(tmp_path / "area.geojson").volume, ELL.volume, terms=20)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("no json", "cannot be read as GeoJSON"),
        ('{"type": "Point", "coordinates": [0, 1]}', "has no polygon: draw the window as a Polygon"),
    ],
)
def test_files_that_are_no_window(tmp_path, content, sentence):
    (tmp_path / "area.geojson").write_text(content)
    with pytest.raises(ValueError, match=sentence):
        PolygonWindow.from_geojson(tmp_path / "area.geojson")
    with pytest.raises(ValueError, match="There is no file"):
        PolygonWindow.from_geojson(tmp_path / "other.geojson")


def test_polygons_that_are_no_window():
    with pytest.raises(ValueError, match=r"is not valid \(Self-intersection.*make_valid"):
        PolygonWindow([(0, 0), (1, 1), (1, 0), (0, 1)])
    import shapely

    with pytest.raises(ValueError, match="must be a polygon or several, got a Point"):
        PolygonWindow(shapely.Point(0, 0))


def test_the_window_around_points():
    assert Window.around([[0.0], [1.0], [4.0]]).sides == ((-2.0, 6.0),)
    with pytest.raises(ValueError, match=r"2 points that lie on one line parallel to an axis.*give a window"):
        Window.around([[0.0, 1.0], [2.0, 1.0]])


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
