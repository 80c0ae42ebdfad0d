import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coxfield.kernels.namespace import cross_out


@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    start=st.integers(0, 6),
    seed=st.integers(0, 2**20),
)
def test_only_where_a_row_meets_its_own_column_is_anything_written(shape, start, seed):
    rng = np.random.default_rng(seed)
    tile = rng.normal(size=shape)
    leave_out = rng.integers(-1, 12, size=shape[0])
    value = -7.0
    expected = tile.copy()
    for row in range(shape[0]):
        for column in range(shape[1]):
            if leave_out[row] == start + column:
                expected[row, column] = value
    assert cross_out(tile, leave_out, start, value) is tile
    np.testing.assert_array_equal(tile, expected)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 0])
def test_a_view_is_written_through(value):
    matrix = np.ones((3, 4))
    cross_out(matrix[:, 2:], np.array([2, 3, 0]), 2, value)
    assert matrix[0, 2] == matrix[1, 3] == value
    assert (np.delete(matrix.ravel(), [2, 7]) == 1).all()
