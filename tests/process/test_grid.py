"""Grids of cells, and intensities that are constant on them."""

import numpy as np
import pytest

from coxfield.process import Grid, Intensity, Window


@pytest.mark.parametrize(
    ("window", "resolution", "shape"),
    [
        ([(0, 4), (0, 1)], 8, (8, 2)),
        ([(0, 4), (0, 1)], (3, 5), (3, 5)),
        ([(0, 100), (0, 1)], 10, (10, 1)),
        ((0, 1), None, (1024,)),
        ([(0, 1e100), (0, 5e99)], 8, (8, 4)),
    ],
)
def test_resolution_is_of_the_longest_side_or_of_each(window, resolution, shape):
    assert Grid.over(window, resolution).shape == shape


@pytest.mark.parametrize("resolution", [0, -3, 2.5, (4, 4, 4), (4, 0), np.nan])
def test_resolutions_that_make_no_grid_are_refused(resolution):
    with pytest.raises(ValueError, match="resolution must be one positive whole number, or one per axis"):
        Grid.over([(0, 1), (0, 1)], resolution)


def test_fields_have_at_most_three_dimensions():
    with pytest.raises(ValueError, match="one, two or three dimensions, but the window has 4"):
        Grid.over([(0, 1)] * 4)


def test_the_last_axis_runs_fastest():
    grid = Grid.over([(0, 2), (0, 3)], (2, 3))
    assert grid.spacing.tolist() == [1, 1]
    assert grid.centres().tolist() == [[x, y] for x in (0.5, 1.5) for y in (0.5, 1.5, 2.5)]


def test_cells_hold_their_centres_and_their_corners():
    grid = Grid.over([(-1, 3), (2, 5)], (4, 3))
    np.testing.assert_array_equal(grid.cells_of(grid.centres()), np.arange(12))
    assert grid.cells_of([[3.0, 5.0]]) == [11]
    assert grid.cells_of([[-1.0, 2.0]]) == [0]
    with pytest.raises(ValueError, match="outside"):
        grid.cells_of([[0.0, 1.9]])


def test_an_intensity_is_looked_up_and_summed_cell_by_cell():
    rho = Intensity(Grid.over([(0, 2), (0, 1)], (2, 2)), np.array([[1.0, 2.0], [4.0, 8.0]]))
    assert rho([[0.1, 0.1], [0.1, 0.9], [1.9, 0.1], [1.9, 0.9]]).tolist() == [1, 2, 4, 8]
    assert rho.integral == 15 * 0.5
    assert rho.grid.window == Window([(0, 2), (0, 1)])


@pytest.mark.parametrize("values", [[1.0, -1.0], [1.0, np.nan], [np.inf, 1.0]])
def test_intensities_are_finite_and_not_negative(values):
    with pytest.raises(ValueError, match=r"finite and not negative anywhere, but it is (-1|nan|inf) in a cell: "):
        Intensity(Grid.over((0, 1), 2), np.array(values))


def test_intensities_have_a_value_per_cell():
    with pytest.raises(ValueError, match=r"needs one value per cell, got values of shape \(3,\)"):
        Intensity(Grid.over((0, 1), 2), np.ones(3))


def test_windows_whose_volume_may_be_no_number_are_refused():
    with pytest.raises(ValueError, match=r"the window is 2e.100 long, and fields are drawn on up to 1e.100: measure"):
        Grid.over([(0, 1), (-1e100, 1e100)])
