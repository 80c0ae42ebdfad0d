import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.recognise import recognise
from coxfield.permanents.kernels import ProductKernel, ScaledRows
from coxfield.permanents.ratios import Units, excess_sums, fit_class, log_ratios
from rational import excess
from tolerances import assert_close

X, NEW = np.random.default_rng(0).uniform(0, 2, size=(5, 2)), np.array([[0.3, 0.9]])


def process(variance, alpha, method, length_scale=0.4):
    kernel = ProductKernel(recognise(variance * RBF(length_scale), 2))
    return fit_class(kernel, X, alpha, method, cycles=4, n_samples=50, rng=np.random.default_rng(0))


@pytest.mark.parametrize("alpha", [1e-300, 1e-30, 1e300])
@pytest.mark.parametrize("length_scale", [0.1, 0.4])
def test_exact_ratios_of_extreme_alpha_are_those_of_fractions(alpha, length_scale):
    one = process(1.0, alpha, "exact", length_scale)
    A = one.kernel.matrix(np.vstack([X, NEW]))
    expected = np.logaddexp(np.log(alpha) + np.log(2), np.log(excess(A, alpha)))
    # Logarithms of up to five powers of alpha, and distances computed by products, relative to the length scale.
    scale = 1 + 5 * abs(np.log(alpha)) + 16 / length_scale**2
    assert_close(log_ratios([one], NEW).values, [[expected]], terms=36, scale=scale)


@pytest.mark.parametrize("method", ["exact", "cyclic", "importance"])
@pytest.mark.parametrize("factor", [1e-280, 1e280])
def test_a_factor_of_all_variances_comes_out_of_the_ratio(method, factor):
    plain, scaled = (log_ratios([process(variance, 1.5, method)], NEW).values for variance in (1.0, factor))
    np.testing.assert_allclose(scaled - np.log(factor), plain, rtol=0, atol=1e-7)


def test_units_make_covariances_correlations():
    deviations = np.array([1e-120, 3.0, 1e120])
    A = np.outer(deviations, deviations) * (0.5 + 0.5 * np.eye(3))
    units = Units.of(A)
    assert_close(units.matrix(A), 0.5 + 0.5 * np.eye(3))
    assert_close(units.relative * np.exp(units.log_largest), deviations, condition=1 + units.log_largest)
    rows = units.rows(ScaledRows.of(np.array([2e-7 * deviations]), leave_out=False))
    assert_close(rows.values, np.ones((1, 3)))
    assert_close(np.exp(rows.log_scale), [2e-7], condition=1 + 2 * units.log_largest)


def test_an_excess_may_exceed_the_prior_by_more_than_floating_point_can_say():
    sums = excess_sums(np.array([[-1000.0, -1000.0, 1000.0]]), np.ones((1, 3)), np.zeros((1, 3)))
    assert_close(sums.values, [[1000.0, 1000.0, 0.0]])


def test_the_excess_may_be_negative_as_long_as_the_ratio_is_positive():
    prior = np.log([[2.0, 2.0]])
    sums = excess_sums(prior, np.array([[1.0, -1.0]]), np.log([[3.0, 0.5]]))
    np.testing.assert_allclose(np.exp(prior + sums.values), [[5.0, 1.5]])
    assert_close(sums.logs, [[np.log(3.0), -np.inf]])


def test_a_ratio_that_is_not_positive_gets_a_sentence():
    with pytest.raises(ValueError, match="no permanental process for this alpha and covariance"):
        excess_sums(np.zeros((1, 1)), -np.ones((1, 1)), np.zeros((1, 1)))
