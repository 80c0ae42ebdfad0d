"""Ratios of alpha-permanents against fractions, and leave-one-out against refits."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.radial import recognise
from coxfield.permanents.cyclic import TOLERANCE
from coxfield.permanents.ratios import (
    ProductKernel,
    ScaledRows,
    Units,
    excess_sums,
    fit_class,
    log_ratios,
    loo_log_ratios,
    loo_path,
)
from rational import excess
from tolerances import assert_close

OF_CLASS, NEW = np.random.default_rng(0).uniform(0, 2, size=(5, 2)), np.array([[0.3, 0.9]])


def process(variance, alpha, method, length_scale=0.4):
    kernel = ProductKernel(recognise(variance * RBF(length_scale), 2))
    return fit_class(kernel, OF_CLASS, alpha, method, cycles=4, n_samples=50, rng=np.random.default_rng(0))


@pytest.mark.parametrize("alpha", [1e-300, 1e-30, 1e300])
@pytest.mark.parametrize("length_scale", [0.1, 0.4])
def test_exact_ratios_of_extreme_alpha_are_those_of_fractions(alpha, length_scale):
    one = process(1.0, alpha, "exact", length_scale)
    A = one.kernel.matrix(np.vstack([OF_CLASS, NEW]))
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


RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(9, 2)), np.arange(9) % 2
ALPHA = np.array([0.7, 1.6])


def kernels(length_scale=0.8):
    return [ProductKernel(recognise(kernel, 2)) for kernel in (RBF(length_scale), 0.5 * RBF(0.6 * length_scale))]


def refitted(left_out, cycles):
    """Log ratios of one point from processes that were fitted without it."""
    kept = np.arange(9) != left_out
    parts = [(kernel, X[kept & (c == Y)], ALPHA[c]) for c, kernel in enumerate(kernels())]
    processes = [fit_class(*part, "cyclic", cycles=cycles, n_samples=0, rng=None) for part in parts]
    return log_ratios(processes, X[left_out : left_out + 1]).values[0]


def test_two_cycles_are_refits():
    found = loo_log_ratios(X, Y, kernels(), ALPHA, 2).values
    # Ratios are sums over at most five points. Distances come from products of coordinates.
    condition = 4 * np.square(X / 0.48).sum(axis=1).max()
    for i in range(9):
        assert_close(np.exp(found[i]), np.exp(refitted(i, 2)), terms=5, condition=condition)


@pytest.mark.parametrize("cycles", [3, 4])
def test_to_other_classes_a_point_is_new(cycles):
    found = loo_log_ratios(X, Y, kernels(), ALPHA, cycles).values
    for i in range(9):
        # The same equations, solved to within TOLERANCE from the same start.
        np.testing.assert_allclose(found[i, 1 - Y[i]], refitted(i, cycles)[1 - Y[i]], rtol=0, atol=10 * TOLERANCE)
        assert abs(found[i, Y[i]] - refitted(i, cycles)[Y[i]]) < 0.1


def test_the_path_has_the_losses_of_each_length_scale_and_ends_where_there_is_none():
    tried = []

    def at(factor):
        tried.append(factor)
        return kernels(factor) if factor > 0.3 else None

    path = loo_path(X, Y, ALPHA, 4, np.array([1.6, 0.8, 0.2, 0.1]), at, ("loo_error", "loo_log_loss"))
    assert tried == [1.6, 0.8, 0.2]
    assert path["factor"].tolist() == [1.6, 0.8]
    assert path["variance"].tolist() == [1.0, 1.0]
    for k, factor in enumerate(path["factor"]):
        scores = loo_log_ratios(X, Y, kernels(factor), ALPHA, 4)
        assert path["loo_error"][k] == np.mean(scores.decisions != Y)
        naive = -np.log([p[y] / p.sum() for p, y in zip(np.exp(scores.values), Y, strict=True)]).mean()
        assert_close(path["loo_log_loss"][k], naive, terms=9, scale=1.0, condition=10)


def test_classes_are_told_of_by_their_size():
    told = []
    loo_log_ratios(X, Y, kernels(), ALPHA, 3, told.append)
    assert told == pytest.approx([5 / 9, 4 / 9])
