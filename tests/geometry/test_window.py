"""Windows: what they hold and what they refuse."""

import numpy as np
import pytest

from coxfield.geometry.window import Window, check_points


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
