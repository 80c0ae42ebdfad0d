"""Patterns: what they hold and what they refuse."""

import numpy as np
import pytest

from coxfield.process import Pattern, Window


def test_points_outside_of_the_window_are_refused():
    with pytest.raises(ValueError, match=r"the point \[5.0, 5.0\] lies outside"):
        Pattern([[5.0, 5.0]], [(0, 4), (0, 4)])


def test_points_are_counted_in_parts_and_picked_by_mark():
    pattern = Pattern([[1.0], [2.0], [3.0]], (0, 4), marks=["cat", "dog", "cat"])
    assert (len(pattern), pattern.count(), pattern.count((0, 2))) == (3, 3, 2)
    assert pattern.marked("cat").points.tolist() == [[1.0], [3.0]]
    assert len(pattern.marked("bird")) == 0
    assert pattern.marked("cat").window == Window((0, 4))


def test_marks_belong_to_points():
    with pytest.raises(ValueError, match=r"2 points need one mark each, got marks of shape \(3,\)"):
        Pattern([[1.0], [2.0]], (0, 4), marks=[0, 1, 0])
    with pytest.raises(ValueError, match="no marks"):
        Pattern([[1.0]], (0, 4)).marked("cat")


def test_a_pattern_may_be_empty():
    assert len(Pattern([], [(0, 1), (0, 1)])) == 0
    assert Pattern(np.empty((0, 3)), [(0, 1)] * 3).count([(0, 0.5)] * 3) == 0
