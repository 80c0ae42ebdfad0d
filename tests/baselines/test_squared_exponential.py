import numpy as np
import pytest

from coxfield.baselines import HarmonicFunctions, SVMClassifier
from coxfield.baselines.squared_exponential import in_unit, log_kernel, unit_of

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


def test_queries_far_beyond_all_points_have_probabilities():
    clf = HarmonicFunctions().fit(X, Y)
    for far in (1e100, 1.7e308):
        found = clf.predict_proba(np.array([[far, -far]]))
        np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("length_scale", [1e-300, 1e300])
def test_machines_take_extreme_length_scales(length_scale):
    assert np.isfinite(SVMClassifier(length_scale).fit(X, Y).decision_function(X)).all()
