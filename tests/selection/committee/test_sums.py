import numpy as np
import pytest

from coxfield.selection.committee.sums import Given, member_sums
from tolerances import assert_close

GIVEN = Given(np.array([2, 5, 7, 8, 11, 13]), np.array([0, 1, 0, 2, 1, 0]), 3)


def unit_features(dtype=float, n=15, d=4):
    features = np.random.default_rng(0).normal(size=(n, d))
    return (features / np.linalg.norm(features, axis=1, keepdims=True)).astype(dtype)


def reference(features, x, rows, y, *, means):
    """Class sums divided by the root of the number of points, or means, at one point by double loop."""
    found = []
    for c in range(3):
        values = [float(x @ features[row]) for row, label in zip(rows, y, strict=True) if label == c]
        number = max(len(values), 1)
        found.append(sum(values) / (number if means else np.sqrt(number)))
    return found


@pytest.mark.parametrize("means", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_a_double_loop_and_leave_one_out_is_a_refit(means, dtype):
    features = unit_features(dtype)
    sums = member_sums(features, GIVEN, means=means)
    whole = [reference(features, x, GIVEN.rows, GIVEN.y, means=means) for x in features]
    assert_close(sums.whole, whole, terms=24, scale=3, dtype=dtype)
    left_out = [
        reference(features, features[row], np.delete(GIVEN.rows, j), np.delete(GIVEN.y, j), means=means)
        for j, row in enumerate(GIVEN.rows)
    ]
    assert_close(sums.left_out, left_out, terms=24, scale=3, dtype=dtype)
    assert_close(features @ sums.directions, sums.whole, terms=24, scale=3, dtype=dtype)


def test_a_point_that_no_mode_reaches_counts_for_nothing():
    features = unit_features()
    features[GIVEN.rows[0]] = 0
    sums = member_sums(features, GIVEN, means=False)
    assert (sums.left_out[0] == 0).all()
    assert (sums.whole[GIVEN.rows[0]] == 0).all()


def test_labels_of_classes_with_several_labels_are_judged_among_these_classes():
    assert GIVEN.counts.tolist() == [3, 2, 1]
    np.testing.assert_array_equal(GIVEN.indicators.argmax(axis=1), GIVEN.y)
    judged = GIVEN.judged
    assert judged.rows.tolist() == [0, 1, 2, 4, 5]
    assert judged.classes.tolist() == [0, 1]
    assert judged.y.tolist() == [0, 1, 0, 1, 0]
    left_out = np.arange(18.0).reshape(6, 3)
    np.testing.assert_array_equal(judged.among(left_out), left_out[[0, 1, 2, 4, 5], :2])
    p = np.tile([0.3, 0.2, 0.5], (6, 1))
    assert_close(judged.own(p), np.array([0.6, 0.4, 0.6, 0.4, 0.6]))


@pytest.mark.parametrize("y", [[0, 1, 2], [0, 1, 2, 0, 0, 0]], ids=["one each", "one class has several"])
def test_with_fewer_than_two_such_classes_nothing_is_judged(y):
    assert len(Given(np.arange(len(y)), np.array(y), 3).judged) == 0
