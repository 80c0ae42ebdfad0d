"""Requirements: what holds passes, and what does not is said in a clause."""

from dataclasses import dataclass

import numpy as np
import pytest

from coxfield.io.requirements import (
    MOST_LETTERS,
    Unsound,
    is_integer,
    is_number,
    is_text,
    quoted,
    require,
    require_array,
    require_codes,
    require_fields,
    require_keys,
    require_letters,
    require_positive,
)


@dataclass(frozen=True)
class Pair:
    first: int
    second: int


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
        (np.int64(3), True, True, False),
        (2.5, True, False, False),
        (np.nan, False, False, False),
        (np.inf, False, False, False),
        (True, False, False, False),
        (np.True_, False, False, False),
        (None, False, False, False),
        ("a", False, False, True),
        ("\ud800", False, False, False),
        ([1], False, False, False),
    ],
)
def test_kinds_of_values(value, number, integer, text):
    assert (is_number(value), is_integer(value), is_text(value)) == (number, integer, text)


@pytest.mark.parametrize(
    ("mapping", "clause"),
    [([], "no mapping"), ({1: 2}, "no mapping"), ({"a": 1}, "it has no b"), ({"c": 1}, "it has no a, b")],
)
def test_mappings_have_their_keys(mapping, clause):
    require_keys({"a": 1, "b": 2, "c": 3}, ("a", "b"), "it")
    with pytest.raises(Unsound, match=clause):
        require_keys(mapping, ("a", "b"), "it")


def test_objects_have_their_fields_and_no_others():
    require_fields(Pair(1, 2), Pair, "it")
    more, less = Pair(1, 2), Pair(1, 2)
    more.__dict__["hash"] = 3
    del less.__dict__["first"]
    for wrong in (more, less):
        with pytest.raises(Unsound, match="it does not have the parts of a Pair"):
            require_fields(wrong, Pair, "it")
    with pytest.raises(Unsound, match="it is a tuple, not a Pair"):
        require_fields((1, 2), Pair, "it")


@pytest.mark.parametrize(
    ("value", "clause"),
    [
        ([1.0, 2.0], "it is no array"),
        (np.ma.array([1.0, 2.0]), "it is no array"),
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


def test_positive_arrays():
    require_positive(np.array([1.0, 2.0]), "it", (2,))
    require_positive(np.array([1.0, 0.0]), "it", (2,), zero=True)
    with pytest.raises(Unsound, match="it holds numbers that are not positive"):
        require_positive(np.array([1.0, 0.0]), "it", (2,))
    with pytest.raises(Unsound, match="it holds negative numbers"):
        require_positive(np.array([1.0, -1.0]), "it", (2,), zero=True)


def test_text_is_made_of_letters():
    require_letters(np.array(["a", "", "é𝄞"]), "it")
    require_letters(np.array([["a", "b"], ["c", "d"]]).T, "it")
    with pytest.raises(Unsound, match="it holds text that cannot be read"):
        require_letters(np.full(6, 0x110000, np.uint32).view("<U3"), "it")


@pytest.mark.parametrize("codes", [[0, 2], [-1, 0]])
def test_codes_are_numbers_of_classes(codes):
    require_codes(np.array([0, 1]), "it", 2, 2)
    require_codes(np.array([], dtype=int), "it", 0, 2)
    with pytest.raises(Unsound, match="it holds numbers outside of 0 to 1"):
        require_codes(np.array(codes), "it", 2, 2)
