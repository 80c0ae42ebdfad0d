"""What the baselines share: length scales, units, and the checks of scikit-learn on every baseline."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from coxfield.baselines import HarmonicFunctions, ParzenClassifier, SVMClassifier, VariationalGPClassifier
from coxfield.baselines.base import candidates, check_length_scale, in_unit, log_kernel, unit_of
from coxfield.selection.grid import default_factors
from tolerances import assert_close

POINTS = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize("value", [2, 0.5, np.float32(0.25), np.int64(3)])
def test_a_positive_length_scale_is_taken(value):
    found = check_length_scale(value)
    assert found == value
    assert type(found) is float


@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, "long", [1.0], None])
def test_any_other_length_scale_is_refused(value):
    with pytest.raises(ValueError, match="length_scale must be a positive finite number, or None to choose it; got"):
        check_length_scale(value)


def test_the_default_is_the_grid_of_the_mean_squared_distance():
    mean_square = np.mean([np.sum((a - b) ** 2) for a in POINTS for b in POINTS])
    assert_close(candidates(POINTS, None), default_factors(np.sqrt(mean_square)), terms=20**2)


@given(st.floats(1e-6, 1e6))
def test_candidates_follow_the_units(unit):
    assert_close(candidates(unit * POINTS, None), unit * candidates(POINTS, None), terms=20, condition=10)


def test_candidates_do_not_follow_the_origin():
    # Rounding is relative to the size of the numbers, the spread to their differences: 1e3 to 1, squared.
    assert_close(candidates(POINTS + 1e3, None), candidates(POINTS, None), terms=20, condition=1e6)


def test_length_scales_that_the_user_gives_are_tried_longest_first():
    assert candidates(POINTS, [0.5, 2, 1]).tolist() == [2.0, 1.0, 0.5]
    assert candidates(np.ones((4, 2)), [3.0]).tolist() == [3.0]


@pytest.mark.parametrize("wrong", [[], [1.0, -1.0], [np.nan], [[1.0]]])
def test_length_scales_that_cannot_be_tried_are_refused(wrong):
    with pytest.raises(ValueError, match="length_scales must be a list of positive finite numbers"):
        candidates(POINTS, wrong)


def test_points_that_are_all_the_same_have_no_length_scale():
    with pytest.raises(ValueError, match=r"all points are the same.*give length_scale"):
        candidates(np.full((4, 2), 0.1), None)


def test_points_whose_range_is_no_number_have_length_scales():
    found = candidates(np.array([[-1.7e308], [1.7e308], [0.0]]), None)
    assert np.isfinite(found).all()
    assert (found > 0).all()


RNG = np.random.default_rng(0)
Y = np.arange(40) % 2
X = RNG.normal(size=(40, 2)) + 2 * Y[:, None]


def test_the_logarithm_is_half_the_squared_distance_in_units_of_the_length_scale():
    d2 = np.array([0.0, 1.0, 8.0])
    np.testing.assert_allclose(log_kernel(d2, 2.0), -d2 / 8)


@pytest.mark.parametrize(("length_scale", "expected"), [(1e-300, -np.inf), (1e300, 0.0), (5e-324, -np.inf)])
def test_length_scales_whose_squares_are_no_numbers(length_scale, expected):
    assert log_kernel(np.array([0.0, 3.0]), length_scale).tolist() == [0.0, expected]


def test_units_are_for_extreme_points_alone():
    assert unit_of(X) == 1
    assert in_unit(X, 1.0).tolist() == X.tolist()
    unit = unit_of(1e250 * X)
    assert np.abs(in_unit(1e250 * X, unit)).max() < 2
    assert np.isfinite(np.square(in_unit(np.full((1, 2), 1.7e308), 1e-300))).all()


@pytest.mark.parametrize("exponent", [-900, 900])
def test_units_change_nothing(exponent):
    few = np.where(np.arange(40) < 10, Y, -1)
    harmonic = [HarmonicFunctions().fit(u * X, few).predict_proba(u * X) for u in (1.0, 2.0**exponent)]
    np.testing.assert_allclose(*harmonic, rtol=0, atol=1e-9)
    machines = [SVMClassifier().fit(u * X, Y) for u in (1.0, 2.0**exponent)]
    assert machines[1].length_scale_ == 2.0**exponent * machines[0].length_scale_
    np.testing.assert_allclose(machines[1].decision_function(2.0**exponent * X), machines[0].decision_function(X))
    np.testing.assert_array_equal(machines[1].predict(2.0**exponent * X), machines[0].predict(X))


def test_queries_far_beyond_all_points_have_probabilities():
    clf = HarmonicFunctions().fit(X, Y)
    for far in (1e100, 1.7e308):
        found = clf.predict_proba(np.array([[far, -far]]))
        np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("length_scale", [1e-300, 1e300])
def test_machines_take_extreme_length_scales(length_scale):
    assert np.isfinite(SVMClassifier(length_scale).fit(X, Y).decision_function(X)).all()


FEW = (0.3, 1.0, 3.0)  # length scales: the checks fit hundreds of times
ESTIMATORS = [
    HarmonicFunctions(length_scales=FEW),
    HarmonicFunctions(1.0, class_mass_normalisation=True, missing_label=None),
    ParzenClassifier(),
    SVMClassifier(length_scales=FEW),
    VariationalGPClassifier(n_restarts=0),
]


def expected_failures(estimator):
    """Name of the check -> reason."""
    if isinstance(estimator, HarmonicFunctions) and estimator.missing_label == -1:
        reason = "it uses -1 as a class, but -1 means an unknown label; with missing_label=None the check passes"
        return {"check_classifiers_classes": reason}
    return {}


# Some checks warn that they are skipped. Their assertions still count.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
