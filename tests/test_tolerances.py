"""The comparisons themselves: they pass what rounding does, and fail on anything more."""

import numpy as np
import pytest

from tolerances import assert_close, assert_same_decisions, assert_same_error, assert_same_minimum, precision, rounding


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_in_two_orders_agree_and_a_lost_summand_is_seen(dtype):
    values = np.random.default_rng(0).lognormal(size=3000).astype(dtype)
    total = np.cumsum(values)[-1]
    backwards = np.cumsum(values[::-1])[-1]
    assert total != backwards
    assert_close(total, backwards, terms=len(values))
    with pytest.raises(AssertionError, match="differ by more than rounding"):
        assert_close(total, backwards - values.max(), terms=len(values))


def test_the_tolerance_is_that_of_the_narrower_type():
    third = 1 / 3
    assert_close(np.float32(third), third)
    with pytest.raises(AssertionError, match="rounding allows"):
        assert_close(np.float64(np.float32(third)), third)
    assert_close(np.float64(np.float32(third)), third, dtype=np.float32)
    assert precision(np.float32(1), 1.0, 2) == np.finfo(np.float32).eps
    assert precision(1, 2) == np.finfo(float).eps


def test_one_last_digit_passes_and_a_hundred_do_not():
    x = np.linspace(1, 2, 11)
    assert_close(np.nextafter(x, 3), x)
    with pytest.raises(AssertionError, match="11 of 11"):
        assert_close(x * (1 + 100 * np.finfo(float).eps), x)


def test_cancellation_needs_the_size_of_the_summands():
    rest = (0.1 + 0.2) - 0.3
    assert rest != 0
    with pytest.raises(AssertionError, match="differ by more"):
        assert_close(rest, 0.0)
    assert_close(rest, 0.0, scale=0.6)
    with pytest.raises(AssertionError, match="differ by more"):
        assert_close(1e-12, 0.0, scale=0.6)


def test_condition_and_terms_multiply():
    assert rounding(2.0, terms=3, condition=5.0) == pytest.approx(np.finfo(float).eps * 19 * 10, rel=1e-15)
    assert_close(np.exp(-600 * (1 + 1e-15)), np.exp(-600.0), condition=600)
    with pytest.raises(AssertionError, match="differ by more"):
        assert_close(np.exp(-600 * (1 + 1e-15)), np.exp(-600.0))


def test_what_underflowed_is_nothing():
    assert_close(3e-310, 2e-310)
    assert_close(1e-320, 0.0)
    with pytest.raises(AssertionError, match="differ by more"):
        assert_close(1e-300, 0.0)


def test_what_is_not_finite_agrees_with_itself_only():
    assert_close([np.nan, np.inf, -np.inf, 1.0], [np.nan, np.inf, -np.inf, 1.0])
    for wrong in ([0.0], [np.inf], [-np.inf]):
        with pytest.raises(AssertionError, match="differ by more"):
            assert_close(wrong, [np.nan])
    with pytest.raises(AssertionError, match="differ by more"):
        assert_close([np.inf], [-np.inf])
    with pytest.raises(AssertionError, match="differ by more"):
        assert_close([1e308], [np.inf])


def test_shapes_are_compared_and_a_tolerance_without_end_is_refused():
    assert_close([2.0, 2.0], 2.0)
    assert_close(True, 1)
    with pytest.raises(AssertionError, match="shapes differ"):
        assert_close([1.0, 1.0], [[1.0, 1.0]])
    with pytest.raises(AssertionError, match="not finite"):
        assert_close([1.0], [2.0], scale=np.inf)
    with pytest.raises(AssertionError, match="not finite"):
        assert_close([1.0], [2.0], condition=np.nan)


def test_decisions_may_differ_at_a_tie_only():
    scores = np.tile([[3.0, 1.0, 2.0]], (20, 1))
    scores[4] = [1.0, 0.3, 0.1 + 0.2 + 0.7]  # a tie up to rounding
    labels = np.zeros(20, dtype=int)
    other = labels.copy()
    other[4] = 2
    assert_same_decisions(labels, other, scores)
    other[5] = 2
    with pytest.raises(AssertionError, match=r"1 of 19 decisions differ.*row 5"):
        assert_same_decisions(labels, other, scores)


def test_decisions_that_are_mostly_ties_show_nothing():
    with pytest.raises(AssertionError, match="only 0 of 4 rows"):
        assert_same_decisions([0] * 4, [0] * 4, np.ones((4, 2)))
    with pytest.raises(AssertionError, match="only 0 of 0 rows"):
        assert_same_decisions([], [], np.ones((0, 2)))
    half = [[1.0, 1.0], [2.0, 1.0]]
    with pytest.raises(AssertionError, match="at least 90%"):
        assert_same_decisions([0, 0], [1, 0], half)
    assert_same_decisions([0, 0], [1, 0], half, at_least=0.5)


def test_scores_that_underflowed_are_ties_among_themselves_and_below_all_others():
    scores = np.array([[-np.inf, -np.inf], [-np.inf, -800.0]])
    assert_same_decisions(["a", "b"], ["b", "b"], scores, at_least=0.5)
    with pytest.raises(AssertionError, match="decisions differ"):
        assert_same_decisions(["a", "b"], ["b", "a"], scores, at_least=0.5)


def test_a_difference_of_two_scores_needs_their_size():
    difference = np.array([0.5, -0.5, 1e-17])
    with pytest.raises(AssertionError, match="give margin or scale"):
        assert_same_decisions([1, 0, 1], [1, 0, 0], difference)
    assert_same_decisions([1, 0, 1], [1, 0, 0], difference, scale=1.0, at_least=0.6)
    assert_same_decisions([1, 0, 1], [1, 0, 0], difference, margin=0.1, at_least=0.6)
    with pytest.raises(AssertionError, match="decisions differ"):
        assert_same_decisions([1, 1, 1], [1, 0, 0], difference, scale=1.0, at_least=0.6)


def test_labellings_of_least_energy_may_differ_if_they_tie():
    energy = {(0, 0): 0.3, (0, 1): 0.1 + 0.2, (1, 1): 0.31}
    assert_same_minimum(lambda labels: energy[tuple(labels)], [0, 0], [0, 1], terms=2)
    assert_same_minimum(lambda labels: energy[tuple(labels)], [1, 1], [1, 1], terms=2)
    with pytest.raises(AssertionError, match="differ by more"):
        assert_same_minimum(lambda labels: energy[tuple(labels)], [0, 0], [1, 1], terms=2)


def test_decisions_of_other_lengths_are_refused():
    with pytest.raises(AssertionError, match="shapes differ"):
        assert_same_decisions([0, 1], [0], [[0.0, 1.0]])


def test_an_error_is_that_of_the_labels_but_for_the_ties():
    scores = np.tile([[3.0, 1.0]], (20, 1))
    scores[4] = [0.3, 0.1 + 0.2]  # a tie up to rounding
    labels, truth = np.zeros(20, dtype=int), np.r_[1, 1, np.zeros(18, dtype=int)]
    for error in (2 / 20, 3 / 20, np.nextafter(2 / 20, 0)):
        assert_same_error(error, labels, truth, scores)
    for error in (1 / 20, 4 / 20, np.nan):
        with pytest.raises(AssertionError, match="the error is"):
            assert_same_error(error, labels, truth, scores)
    weights = np.r_[np.full(4, 5.0), 1.0, np.full(15, 2.0)]
    assert_same_error(10 / 51, labels, truth, scores, weights=weights)
    with pytest.raises(AssertionError, match="the error is"):
        assert_same_error(2 / 20, labels, truth, scores, weights=weights)
    with pytest.raises(AssertionError, match="only 0 of 20 rows"):
        assert_same_error(0.1, labels, truth, np.ones((20, 2)))
