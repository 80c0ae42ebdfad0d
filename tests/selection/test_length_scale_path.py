import numpy as np
import pytest
from coxfield.kernels.covariance import recognise, rescale_length
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield.engine import tiles as blocks
from coxfield.engine.class_sums import arrange, class_sums
from coxfield.selection import length_scale_path as path
from tolerances import assert_same_decisions


def training(X, y, kernels, weights=None):
    described = {id(kernel): recognise(kernel, X.shape[1]) for kernel in kernels}
    return arrange(X, y, [described[id(kernel)] for kernel in kernels], weights)


def one_by_one(X, y, kernels, factors, weights):
    for factor in factors:
        scaled = {id(kernel): rescale_length(kernel, factor) for kernel in kernels}
        points = training(X, y, [scaled[id(kernel)] for kernel in kernels], weights)
        yield class_sums(points, X, leave_out=np.arange(len(y))).logs


CASES = {
    "squared exponential": [3.0 * RBF(0.9)] * 3,
    "ARD": [RBF([0.5, 1.0, 3.0, 0.2])] * 3,
    "Matern": [Matern(1.2, nu=1.5)] * 3,
    "called": [RBF(0.5) + RBF(3.0)] * 3,
    "a kernel a class": [RBF(0.4), 2.0 * Matern(1.0), RBF(2.0)],
}


@pytest.mark.parametrize("kernels", CASES.values(), ids=CASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_path_equals_leave_one_out_sums_one_length_scale_at_a_time(kernels, weighted, dtype, monkeypatch):
    monkeypatch.setattr(blocks, "ROWS", 13)
    monkeypatch.setattr(blocks, "COLUMNS", 17)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)).astype(dtype), rng.permutation(np.arange(60) % 3)
    weights = rng.choice([0.5, 1.0, 2.5], size=60).astype(dtype) if weighted else None
    # Chains of squares, broken by steps of another ratio.
    falling = np.concatenate([[7.0], 4 * 2 ** (-np.arange(12) / 2), 0.07 * 2 ** (-np.arange(10) / 2), [0.001]])
    factors = np.concatenate([falling, path.finer_factors(1.0, kernels, bounded=False)])
    found = list(path.loo_log_sums(training(X, y, kernels, weights), factors))
    for k, expected in enumerate(one_by_one(X, y, kernels, factors, weights)):
        # Far below the largest sum of a row the path keeps a floor; nothing there can matter.
        large = expected > expected.max(axis=1, keepdims=True) - 30
        tolerance = 1e-9 if dtype == np.float64 else 2e-4
        scale = np.abs(expected[large]).max(initial=1)
        assert np.abs(found[k][large] - expected[large]).max(initial=0) < tolerance * scale, factors[k]
        told = np.isfinite(expected.max(axis=1))  # a covariance that can only be called underflows
        decisions = found[k].argmax(axis=1)[told], expected.argmax(axis=1)[told]
        if told.any():
            assert_same_decisions(*decisions, expected[told], 2 * tolerance * scale, at_least=0.8)


def test_little_working_memory_means_more_passes_and_the_same_path():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 4
    points = training(X, y, [RBF(1.0)] * 4)
    factors = path.default_factors(points)
    whole = np.array(list(path.loo_log_sums(points, factors)))
    heard = []
    with config_context(working_memory=0.1):
        assert path.passes(points, 24) > 1
        parts = np.array(list(path.loo_log_sums(points, factors, done=heard.append)))
        assert sum(heard) == 300 * path.passes(points, 24)
    large = whole > whole.max(axis=2, keepdims=True) - 30
    np.testing.assert_allclose(parts[large], whole[large], rtol=1e-9, atol=1e-12)


def test_default_grid_follows_units_and_ignores_repeats_and_order():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    grid = path.default_factors(training(X, y, [RBF(1.0)] * 2))
    rms = np.sqrt(np.mean([np.sum((a - b) ** 2) for a in X for b in X]))
    np.testing.assert_allclose(grid, 2 * rms * 2 ** (-np.arange(24) / 2))
    np.testing.assert_allclose(path.default_factors(training(7 * X, y, [RBF(1.0)] * 2)), 7 * grid)
    np.testing.assert_allclose(path.default_factors(training(X, y, [RBF(7.0)] * 2)), grid / 7)
    shuffled = rng.permutation(np.tile(np.arange(40), 3))
    np.testing.assert_allclose(path.default_factors(training(X[shuffled], y[shuffled], [RBF(1.0)] * 2)), grid)
    weights = np.full(40, 3.0)
    np.testing.assert_allclose(path.default_factors(training(X, y, [RBF(1.0)] * 2, weights)), grid)
    called = path.default_factors(training(X, y, [RBF(1.0) + RBF(4.0)] * 2))
    np.testing.assert_allclose(called, grid / 2)


def test_what_cannot_be_tried_is_refused():
    X, y = np.random.default_rng(3).normal(size=(10, 2)), np.arange(10) % 2
    points = training(X, y, [RBF(1.0)] * 2)
    with pytest.raises(ValueError, match="no length scale to choose: RBF"):
        path.candidate_factors(points, [RBF(1.0, "fixed")], None, bounded=True)
    with pytest.raises(ValueError, match=r"positive finite numbers, got \[1, -2\]"):
        path.candidate_factors(points, [RBF(1.0)], [1, -2], bounded=True)
    with pytest.raises(ValueError, match="widen length_scale_bounds"):
        path.candidate_factors(points, [RBF(1.0, (1e3, 1e4))], None, bounded=True)
    with pytest.raises(ValueError, match="all points are the same"):
        path.default_factors(training(np.ones((4, 2)), np.arange(4) % 2, [RBF(1.0)] * 2))
    negative = training(X, y, [RBF(1.0) * DotProduct(0.0)] * 2)
    with pytest.raises(ValueError, match="covariance without negative values"):
        list(path.loo_log_sums(negative, [1.0]))


def test_finer_factors_lie_between_the_neighbours_in_pairs_of_ratio_sqrt_2():
    finer = path.finer_factors(3.0, [RBF(1.0)], bounded=False)
    np.testing.assert_allclose(np.sort(finer) / 3, 2 ** (np.array([-3, -2, -1, 1, 2, 3]) / 8))
    np.testing.assert_allclose(finer[::2] / finer[1::2], np.sqrt(2))


def test_bounds_of_the_kernel_cut_the_grid():
    X, y = np.random.default_rng(3).normal(size=(10, 2)), np.arange(10) % 2
    points = training(X, y, [RBF(2.0, (0.5, 4.0))] * 2)
    factors = path.candidate_factors(points, [RBF(2.0, (0.5, 4.0))], None, bounded=True)
    assert 0.25 <= factors.min() < factors.max() <= 2
