"""Requirements: what holds passes, and what does not is said in a clause."""

import numpy as np
import pytest

from coxfield.io.model_data import (
    MOST_LETTERS,
    Unsound,
    is_integer,
    is_number,
    is_text,
    quoted,
    require,
    require_array,
    require_arrays,
)


def test_a_condition_that_does_not_hold_is_a_clause():
    require(True, "it is wrong")
    with pytest.raises(Unsound, match="it is wrong"):
        require(False, "it is wrong")


def test_quoted_values_are_short_and_on_one_line():
    assert "\n" not in quoted(np.arange(1000).reshape(50, 20))
    assert len(quoted("x" * 10**6)) <= MOST_LETTERS + 3


def test_quoted_values_can_be_written_everywhere():
    class Odd:
        def __repr__(self):
            return "\ud800\u2028 é"

    assert quoted(Odd()).isascii()


@pytest.mark.parametrize(
    ("value", "number", "integer", "text"),
    [
        (1, True, True, False),
        (2.5, True, False, False),
        (np.nan, False, False, False),
        (np.inf, False, False, False),
        (True, False, False, False),
        (None, False, False, False),
        ("a", False, False, True),
        ("\ud800", False, False, False),
        ([1], False, False, False),
    ],
)
def test_kinds_of_values(value, number, integer, text):
    assert (is_number(value), is_integer(value), is_text(value)) == (number, integer, text)


@pytest.mark.parametrize(
    ("value", "clause"),
    [
        ([1.0, 2.0], "it is not an array"),
        (np.ma.array([1.0, 2.0]), "it is not an array"),
        (np.array([1, 2]), "it is an array of type"),
        (np.array([1.0, 2.0], dtype=">f8"), "it is an array of type"),
        (np.array([1.0]), r"it has the shape \(1,\), not \(2\)"),
        (np.ones((2, 1)), r"it has the shape \(2, 1\), not \(2\)"),
        (np.array([1.0, np.nan]), "it holds numbers that are not finite"),
    ],
)
def test_arrays_are_of_a_type_and_shape_and_finite(value, clause):
    assert require_array(np.array([1.0, -2.0]), "it", (2,)).tolist() == [1, -2]
    assert require_array(np.ones((2, 7)), "it", (2, None)).shape == (2, 7)
    with pytest.raises(Unsound, match=clause):
        require_array(value, "it", (2,))


TABLE = {"a": "nm positive", "b": "m nonnegative", "c": "n codes m", "d": "n mask optional", "e": "k codes n ascending"}
RIGHT = {"a": np.ones((3, 2)), "b": np.zeros(2), "c": np.array([0, 1, 1]), "d": None, "e": np.array([0, 2])}


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"a": np.zeros((3, 2))}, "a of it holds numbers that are not positive"),
        ({"b": np.array([0.0, -1.0])}, "b of it holds negative numbers"),
        ({"b": np.zeros(3)}, r"b of it has the shape \(3,\), not \(2\)"),
        ({"b": None}, "b of it is not an array"),
        ({"c": np.array([0, 1, 2])}, "c of it holds numbers outside of 0 to 1"),
        ({"c": np.array([0, 1, -1])}, "c of it holds numbers outside of 0 to 1"),
        ({"c": np.array([0.0, 1.0, 1.0])}, "c of it is an array of type"),
        ({"d": np.ones(3)}, "d of it is an array of type"),
        ({"d": np.ones(2, bool)}, "d of it has the shape"),
        ({"e": np.array([2, 0])}, "e of it is not ascending"),
    ],
)
def test_arrays_of_a_table_fit_together(change, clause):
    assert require_arrays(RIGHT, TABLE, {"n": 3}, " of it") == {"n": 3, "m": 2, "k": 2}
    assert require_arrays({**RIGHT, "d": np.ones(3, bool), "e": np.array([], int)}, TABLE, {}, " of it")["k"] == 0
    with pytest.raises(Unsound, match=clause):
        require_arrays({**RIGHT, **change}, TABLE, {"n": 3}, " of it")
