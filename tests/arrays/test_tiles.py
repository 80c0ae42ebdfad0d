"""Tiles stay within memory, and leave out what they must."""

import numpy as np
import pytest
from sklearn import config_context

from coxfield.arrays.library import to_numpy
from coxfield.arrays.points import COPIES, crossed_out, slices, tile_shape, whole_rows
from coxfield.kernels.protocol import cross_out


@pytest.mark.parametrize("memory", [1e-3, 1, 1024])
@pytest.mark.parametrize("n_columns", [1, 100, 10**6])
def test_tiles_fit_into_memory(memory, n_columns, library):
    with config_context(working_memory=memory):
        (rows, columns), whole = tile_shape(library, n_columns, 8), whole_rows(library, n_columns, 8)
    budget = memory * 2**20 / (8 * COPIES)
    assert rows >= 1
    assert 1 <= columns <= n_columns
    assert rows * columns <= budget
    assert whole == 1 or whole * n_columns <= budget


def test_slices_cover_everything_once():
    assert [list(range(10))[some] for some in slices(10, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(slices(0, 4)) == []


@pytest.mark.parametrize("own", [[5, 6, -1], [0, 9, 7], [5, 5, 5]])
def test_points_are_crossed_out_as_in_numpy(own, given, library):
    tile, own = np.arange(6.0).reshape(3, 2), np.array(own)
    found = to_numpy(crossed_out(given(tile), own, 5, -1.0, library))
    cross_out(tile, own, 5, -1.0)
    np.testing.assert_array_equal(found, tile)


def test_without_rows_to_leave_out_a_tile_stays(given, library):
    tile = given(np.ones((2, 2)))
    assert crossed_out(tile, None, 0, 0.0, library) is tile
    assert crossed_out(tile, np.array([-1, 7]), 0, 0.0, library) is tile
