import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coxfield.baselines.length_scales import candidates, check_length_scale
from coxfield.selection.grid import default_factors
from tolerances import assert_close

X = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize("value", [2, 0.5, np.float32(0.25), np.int64(3)])
def test_a_positive_number_is_taken(value):
    found = check_length_scale(value)
    assert found == value
    assert type(found) is float


@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, "long", [1.0], None])
def test_anything_else_is_refused(value):
    with pytest.raises(ValueError, match="length_scale must be a positive finite number, or None to choose it; got"):
        check_length_scale(value)


def test_the_default_is_the_grid_of_the_mean_squared_distance():
    mean_square = np.mean([np.sum((a - b) ** 2) for a in X for b in X])
    assert_close(candidates(X, None), default_factors(np.sqrt(mean_square)), terms=20**2)


@given(st.floats(1e-6, 1e6))
def test_candidates_follow_the_units(unit):
    assert_close(candidates(unit * X, None), unit * candidates(X, None), terms=20, condition=10)


def test_candidates_do_not_follow_the_origin():
    # Rounding is relative to the size of the numbers, the spread to their differences: 1e3 to 1, squared.
    assert_close(candidates(X + 1e3, None), candidates(X, None), terms=20, condition=1e6)


def test_what_the_user_asks_for_is_tried_longest_first():
    assert candidates(X, [0.5, 2, 1]).tolist() == [2.0, 1.0, 0.5]
    assert candidates(np.ones((4, 2)), [3.0]).tolist() == [3.0]


@pytest.mark.parametrize("wrong", [[], [1.0, -1.0], [np.nan], [[1.0]]])
def test_what_cannot_be_tried_is_refused(wrong):
    with pytest.raises(ValueError, match="length_scales must be a list of positive finite numbers"):
        candidates(X, wrong)


def test_points_that_are_all_the_same_have_no_length_scale():
    with pytest.raises(ValueError, match=r"all points are the same.*give length_scale"):
        candidates(np.full((4, 2), 0.1), None)


def test_points_whose_range_is_no_number_have_length_scales():
    found = candidates(np.array([[-1.7e308], [1.7e308], [0.0]]), None)
    assert np.isfinite(found).all()
    assert (found > 0).all()
