"""Windows, grids and patterns: what they hold and what they refuse."""

import numpy as np
import pytest

from coxfield.process import Grid, Intensity, Pattern, Window


@pytest.mark.parametrize(
    ("sides", "sentence"),
    [
        ([(0, 10), (3, 3)], "the window is empty: along axis 2 it begins and ends at 3"),
        ([(10, 0)], "inverted along axis 1, from 10 to 0"),
        ([(0, np.nan)], "must be finite, got 0 to nan along axis 1"),
        ([(0, np.inf)], "must be finite, got 0 to inf along axis 1"),
        ([0, 10, 0, 10], r"one \(low, high\) pair an axis"),
        ([], r"one \(low, high\) pair an axis"),
        ([(0, 1, 2)], r"one \(low, high\) pair an axis"),
    ],
)
def test_windows_that_are_none_are_refused(sides, sentence):
    with pytest.raises(ValueError, match=sentence):
        Window(sides)


def test_two_numbers_are_an_interval():
    assert Window((0, 10)) == Window([(0, 10)]) == Window(np.array([[0.0, 10.0]]))


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ([[1.0, np.nan]], r"points must be finite, but row 0 is \[1.0, nan\]"),
        ([[1.0, 2.0, 3.0]], "points have 3 coordinates where 2 are needed"),
        ([1.0, 2.0], "points have 1 coordinates where 2 are needed"),
        (np.zeros((1, 2, 2)), r"shape \(1, 2, 2\)"),
        ([[5.0, 5.0]], r"the point \[5.0, 5.0\] lies outside"),
    ],
)
def test_points_that_fit_no_window_are_refused(points, sentence):
    with pytest.raises(ValueError, match=sentence):
        Pattern(points, [(0, 4), (0, 4)])


def test_marks_belong_to_points():
    with pytest.raises(ValueError, match=r"2 points need one mark each, got marks of shape \(3,\)"):
        Pattern([[1.0], [2.0]], (0, 4), marks=[0, 1, 0])
    with pytest.raises(ValueError, match="no marks"):
        Pattern([[1.0]], (0, 4)).marked("cat")


def test_a_pattern_may_be_empty():
    assert len(Pattern([], [(0, 1), (0, 1)])) == 0
    assert Pattern(np.empty((0, 3)), [(0, 1)] * 3).count([(0, 0.5)] * 3) == 0


@pytest.mark.parametrize(
    ("window", "resolution", "shape"),
    [
        ([(0, 4), (0, 1)], 8, (8, 2)),
        ([(0, 4), (0, 1)], (3, 5), (3, 5)),
        ([(0, 100), (0, 1)], 10, (10, 1)),
        ((0, 1), None, (1024,)),
    ],
)
def test_resolution_is_of_the_longest_side_or_of_each(window, resolution, shape):
    assert Grid.over(window, resolution).shape == shape


@pytest.mark.parametrize("resolution", [0, -3, 2.5, (4, 4, 4), (4, 0), np.nan])
def test_resolutions_that_make_no_grid_are_refused(resolution):
    with pytest.raises(ValueError, match="resolution must be"):
        Grid.over([(0, 1), (0, 1)], resolution)


def test_fields_have_at_most_three_dimensions():
    with pytest.raises(ValueError, match="one, two or three dimensions, but the window has 4"):
        Grid.over([(0, 1)] * 4)


def test_cells_hold_their_centres_and_their_corners():
    grid = Grid.over([(-1, 3), (2, 5)], (4, 3))
    np.testing.assert_array_equal(grid.cells_of(grid.centres()), np.arange(12))
    assert grid.cells_of([[3.0, 5.0]]) == [11]
    assert grid.cells_of([[-1.0, 2.0]]) == [0]
    with pytest.raises(ValueError, match="outside"):
        grid.cells_of([[0.0, 1.9]])


@pytest.mark.parametrize("values", [[1.0, -1.0], [1.0, np.nan], [np.inf, 1.0]])
def test_intensities_are_finite_and_not_negative(values):
    with pytest.raises(ValueError, match=r"finite and not negative anywhere, got (-1|nan|inf)"):
        Intensity(Grid.over((0, 1), 2), np.array(values))


def test_intensities_have_a_value_a_cell():
    with pytest.raises(ValueError, match="needs as many values"):
        Intensity(Grid.over((0, 1), 2), np.ones(3))
