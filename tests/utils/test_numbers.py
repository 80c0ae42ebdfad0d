"""Single numbers: what is taken, and the sentence for the rest; powers of two as units; random states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coxfield.utils.numbers import (
    ORDINARY,
    check_folds,
    generator,
    number_from_zero,
    ordinary,
    positive_number,
    power_of_two,
    units_of,
    whole_number,
)


@pytest.mark.parametrize("value", [3, np.int64(3)])
def test_whole_numbers(value):
    found = whole_number("n", value, least=3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [2, 3.0, "3", True, None, np.nan])
def test_what_is_no_whole_number_of_at_least_three(value):
    with pytest.raises(ValueError, match=f"n must be a whole number of at least 3, got {value!r}"):
        whole_number("n", value, least=3)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2)])
def test_numbers(value):
    for check in (positive_number, number_from_zero):
        found = check("x", value)
        assert found == 2.0
        assert type(found) is float


def test_zero_is_not_positive():
    assert number_from_zero("x", 0) == 0.0
    with pytest.raises(ValueError, match="x must be a finite number above 0, got 0"):
        positive_number("x", 0)


@pytest.mark.parametrize("value", [-1.0, np.inf, np.nan, "2", None])
@pytest.mark.parametrize("check", [positive_number, number_from_zero])
def test_what_is_no_such_number(check, value):
    with pytest.raises(ValueError, match=rf"x must be a finite number .*, got {value!r}"):
        check("x", value)


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


@pytest.mark.parametrize("seed", [0, 7, np.int64(7), 2**70])
def test_an_integer_is_the_seed_of_default_rng(seed):
    np.testing.assert_array_equal(generator(seed).random(5), np.random.default_rng(seed).random(5))


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(0)
    assert generator(rng) is rng


def test_none_differs_every_time():
    assert generator().random() != generator(None).random()


def test_a_random_state_is_drawn_from():
    legacy = np.random.RandomState(3)
    first, second = generator(legacy).random(), generator(legacy).random()
    assert first != second
    assert generator(np.random.RandomState(3)).random() == first


def test_the_module_stands_for_the_global_random_state():
    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(5)  # noqa: NPY002
        first = generator(np.random).random()
        np.random.seed(5)  # noqa: NPY002
        assert generator(np.random).random() == first
    finally:
        np.random.set_state(before)  # noqa: NPY002


@pytest.mark.parametrize("wrong", ["seed", 1.5, True, [1, 2]])
def test_anything_else_is_refused(wrong):
    with pytest.raises(ValueError, match=r"must be None, an integer, a RandomState or a numpy\.random\.Generator"):
        generator(wrong)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match=r"random_state=-1 is negative; pass a seed of at least 0\."):
        generator(-1)


@pytest.mark.parametrize("n_folds", [1, 2.0, "ten", None])
def test_wrong_numbers_of_folds_are_refused(n_folds):
    with pytest.raises(ValueError, match="n_folds must be an integer of at least 2, got"):
        check_folds(n_folds)
