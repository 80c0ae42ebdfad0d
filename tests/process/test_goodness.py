"""Envelopes, residuals and third-order statistics: levels by simulation, sums by loops."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.process import (
    LogGaussianCoxProcess,
    PointPattern,
    envelope,
    fit_permanental,
    pair_correlation,
    poisson_process,
    third_order,
)
from coxfield.process.goodness import global_envelope
from patterns import SQUARE, assert_mean, cox
from tolerances import assert_close

TRUTH = cox(150, 1.0 * RBF(0.08))
PATTERN = TRUTH.sample(SQUARE, resolution=64, random_state=2)
FIT = LogGaussianCoxProcess.fit(PATTERN, RBF(1.0))


def test_a_global_envelope_holds_its_level():
    rng, n, rejected = np.random.default_rng(0), 400, 0
    for _ in range(n):
        curves = np.cumsum(rng.normal(size=(40, 15)), axis=1)
        low, high, p, (least, most) = global_envelope(curves, 0.9)
        assert least <= p <= most
        out = ((curves[0] < low) | (curves[0] > high)).any()
        rejected += out
        assert out == (p <= 0.1)  # the envelope is the picture of the test
    assert abs(rejected / n - 0.1) <= 4 * np.sqrt(0.09 / n)


def test_ranks_are_counted_one_by_one():
    curves = np.random.default_rng(1).normal(size=(12, 5))
    ranks = np.minimum(
        *((compare(curves[:, None], curves)).sum(axis=1) for compare in (np.less_equal, np.greater_equal))
    )
    ordered = [tuple(sorted(row)) for row in ranks.tolist()]
    naive = sum(other <= ordered[0] for other in ordered) / 12
    assert_close(global_envelope(curves, 0.9)[2], naive)


@pytest.mark.parametrize("statistic", ["pcf", "K", "L", "J"])
def test_the_pattern_of_a_fit_lies_in_its_envelope_and_another_does_not(statistic):
    found = FIT.envelope(statistic, 39, random_state=0)
    assert found.p_value > 0.05
    assert (found.low <= found.central).all()
    assert len(found.outside) == 0
    again = FIT.envelope(statistic, 39, random_state=0)
    np.testing.assert_array_equal(found.low, again.low)


def test_clusters_are_no_poisson_process():
    class Poisson:
        pattern = PATTERN

        def simulate(self, size, random_state):
            return [poisson_process(PATTERN.rate, SQUARE, random_state=random_state) for _ in range(size)]

    found = envelope(Poisson(), "pcf", 39, random_state=0)
    assert found.p_value == 1 / 40
    assert len(found.outside) > 0


def test_residuals_add_up_to_nothing_and_have_the_right_size():
    found = FIT.residuals(0.1)
    assert found.values.shape == found.standard_errors.shape
    assert_close(found.values[32, 32], _centre(PATTERN) - len(PATTERN), terms=10**4, scale=1e3, condition=10**9)
    drawn = [_centre(pattern) for pattern in FIT.simulate(200, random_state=0)]
    # A standard deviation of n numbers with kurtosis k errs by sqrt((k - 1) / 4 n); k is about 6 for these sums.
    assert abs(np.std(drawn, ddof=1) / found.standard_errors[32, 32] - 1) <= 4 * np.sqrt(5 / 800)


def _centre(pattern, b=0.1):
    """Smoothed density of points at the centre of the square."""
    at = (32.5 / 64, 32.5 / 64)
    return np.exp(-((pattern.points - at) ** 2).sum(axis=1) / (2 * b**2)).sum() / (2 * np.pi * b**2)


def naive_third(pattern, g, t):
    points, n = pattern.points, len(pattern)
    total, inner = 0.0, 0
    for i in range(n):
        if min(points[i].min(), (1 - points[i]).min()) < t:
            continue
        inner += 1
        for j in range(n):
            for k in range(n):
                a, b = np.linalg.norm(points[i] - points[j]), np.linalg.norm(points[i] - points[k])
                if len({i, j, k}) == 3 and max(a, b) <= t:
                    total += 1 / (g(a) * g(b) * g(np.linalg.norm(points[j] - points[k])))
    return total / (inner * n * (n - 1) * (np.pi * t**2) ** 2)


def test_the_third_order_statistic_is_a_sum_over_triples():
    pattern = PointPattern(PATTERN.points[:40], SQUARE)
    g = lambda r: 1 + np.exp(-10 * r)  # noqa: E731
    found = third_order(pattern, g, [0.1, 0.2]).values
    assert_close(found, np.array([naive_third(pattern, g, t) for t in (0.1, 0.2)]), terms=40**3)


def test_the_third_order_statistic_of_a_cox_process_is_1():
    g = lambda r: TRUTH.pair_correlation(np.asarray(r))  # noqa: E731
    r, estimates = np.array([0.05, 0.1]), []
    for pattern in TRUTH.sample(SQUARE, resolution=64, size=40, random_state=0):
        n = len(pattern)
        inner = np.array([(SQUARE.boundary_distance(pattern.points) >= t).sum() for t in r])
        # With the true intensity in all places there is no ratio, and so no bias.
        factor = inner * n * (n - 1) / (150**3 * np.array([(1 - 2 * t) ** 2 for t in r]))
        estimates.append(np.nan_to_num(third_order(pattern, g, r).values) * factor)
    assert_mean(estimates, 1.0)


def test_a_permanental_process_has_its_pair_correlation():
    fit = fit_permanental(PATTERN, RBF(1.0))
    assert 1 <= fit.n_fields_ <= 12
    r, estimates = np.array([0.03, 0.06, 0.1]), []
    for pattern in fit.simulate(80, resolution=64, random_state=0):
        n = len(pattern)
        g = pair_correlation(pattern, r, bandwidth=0.01, correction="translation", divisor="d")
        estimates.append(g.values * n * (n - 1) / len(PATTERN) ** 2)
    # Smoothing over 0.01 changes a curve of curvature g'' by g'' h^2 / 10, below 0.01 here.
    assert_mean(estimates, fit.pair_correlation(r), 0.01)


def test_what_envelopes_refuse():
    with pytest.raises(ValueError, match="statistic must be one of pcf, K, L, J, or a function; got 'F'"):
        FIT.envelope("F")
    with pytest.raises(ValueError, match="n must be a whole number of at least 19, got 5"):
        FIT.envelope("pcf", 5)
