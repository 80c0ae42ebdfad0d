"""Single numbers: what is taken, and the sentence for the rest."""

import numpy as np
import pytest

from coxfield.utils.numbers import number_from_zero, positive_number, whole_number


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
