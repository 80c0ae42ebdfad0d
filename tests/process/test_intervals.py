"""Intervals by inverted tests: levels by simulation, ends in closed form, and what is fixed or not bounded."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from coxfield.process import FitWarning, LogGaussianCoxProcess, poisson_process
from coxfield.process.fitting import VALUES, Settings, ValueTests, _ends
from patterns import SQUARE, cox
from tolerances import assert_close

FIXED = Matern(0.1, "fixed", nu=1.5)


def drawn(v, n, rng, rate=80):
    return cox(rate, v * Matern(0.1, nu=1.5)).sample(SQUARE, resolution=32, size=n, random_state=rng)


def test_tests_without_a_nuisance_hold_their_level():
    rng, n, repeats = np.random.default_rng(0), 9, 100
    k, truth = 9, np.geomspace(0.01, 10, VALUES)[9]  # the truth is one of the values that are tried
    p = []
    for pattern in drawn(truth, repeats, rng):
        tests = ValueTests.of(pattern, Settings(FIXED, r_max=0.2), lambda v, _, size: drawn(v, size, rng), n)
        assert_close(tests.variances[k], truth, terms=20)
        p.append(tests._p_value(1, k)[0])
    for level in (0.1, 0.3, 0.5):  # exact: the pattern and those drawn are exchangeable
        bound = 4 * np.sqrt(level * (1 - level) / repeats)
        assert abs(np.mean(np.array(p) <= level + 1e-12) - level) <= bound


def test_ends_are_where_smoothed_p_values_cross():
    values = np.exp(np.arange(5.0))
    low, high = _ends(values, np.array([0.0, 0.0, 1.0, 0.4, 0.0]), 0.1)
    # Smoothed: 0, 0.25, 0.6, 0.45, 0.1. The last one is not above the bound.
    assert_close(np.log([low, high]), np.array([1 - 0.15 / 0.25, 4.0]), terms=8, scale=4.0)
    assert _ends(values, np.full(5, 0.5), 0.1) == (0.0, np.inf)


def test_a_clustered_pattern_bounds_its_parameters():
    pattern = cox(300, 2.0 * Matern(0.05, nu=1.5)).sample(SQUARE, resolution=64, random_state=3)
    fit = LogGaussianCoxProcess.fit(pattern, Matern(nu=1.5))
    found = fit.intervals(0.9, 19, random_state=0)
    assert list(found) == list(fit.estimates_)
    for name, (low, high) in found.items():
        assert low < fit.estimates_[name] < high
    assert found["variance"][0] > 0.2  # and so not a Poisson process


def test_a_poisson_pattern_does_not_bound_the_variance_from_below():
    pattern = poisson_process(60, SQUARE, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        fit = LogGaussianCoxProcess.fit(pattern, FIXED)
    found = fit.intervals(0.9, 19, random_state=0)
    assert found["variance"][0] == 0.0
    assert found["variance"][1] < 10
    assert found == fit.intervals(0.9, 19, random_state=0)
    assert found["correlation_length"] == (fit.correlation_length_,) * 2  # as it was given


def test_what_is_fixed_stays_and_a_trend_has_intervals():
    (pattern,) = drawn(1.0, 1, np.random.default_rng(1))
    both = LogGaussianCoxProcess.fit(pattern, ConstantKernel(0.7, "fixed") * FIXED)
    found = both.intervals(0.9, 19, random_state=0)
    assert found["variance"] == (both.variance_, both.variance_)
    assert found["mean"][0] < both.mean_ < found["mean"][1]
    trended = LogGaussianCoxProcess.fit(pattern, FIXED, trend="x")
    some = trended.intervals(0.9, 19, random_state=0)
    assert list(some) == ["variance", "correlation_length", "intercept", "x"]
    assert some["x"][0] < trended.estimates_["x"] < some["x"][1]
    with pytest.raises(ValueError, match="n must be a whole number of at least 19, got 9"):
        both.intervals(n=9)


def test_values_that_are_tried_cover_the_bounds():
    (pattern,) = drawn(1.0, 1, np.random.default_rng(2))
    tests = ValueTests.of(pattern, Settings(Matern(1.0, nu=0.5)), drawn, 9)
    assert tests.table.shape == (VALUES, VALUES)
    assert_close(tests.variances[[0, -1]], np.array([0.01, 10.0]), terms=20)
    assert_close(tests.factors[-1], 1.0, terms=20, condition=100)
