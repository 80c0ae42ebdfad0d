import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coxfield.utils.numbers import ORDINARY, ordinary, power_of_two, units_of


@given(st.floats(5e-324, 1.7e308))
def test_dividing_by_the_power_of_two_leaves_a_number_between_one_and_two(size):
    unit = power_of_two(size)
    assert np.frexp(unit)[0] == 0.5  # a power of two
    assert size / unit < 2
    assert size / unit >= 1 or unit == np.finfo(float).tiny  # of subnormal numbers, something smaller is left
    assert size / unit * unit == size


@pytest.mark.parametrize("size", [0.0, float("nan")])
def test_nothing_has_the_unit_one(size):
    assert power_of_two(size) == 1


def test_beyond_all_numbers_the_unit_is_the_largest():
    assert power_of_two(float("inf")) == 2.0**1023


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squares_of_squares_of_ordinary_numbers_are_normal_numbers(dtype):
    limit = dtype(ORDINARY[np.dtype(dtype)])
    assert ordinary(np.array([limit, 1 / limit]), dtype).all()
    assert not ordinary(np.array([2 * limit, 0.5 / limit]), dtype).any()
    assert np.isfinite(limit**4)
    assert (1 / limit) ** 4 >= np.finfo(dtype).tiny


def test_ordinary_sizes_have_the_unit_one():
    assert units_of(np.array([0.0, 1e-30, 1e30]), np.float64).tolist() == [1, 1, 1]
    assert units_of(np.array([1.0, 1e30]), np.float32).tolist() == [1, 2.0**99]
