import numpy as np
import pytest
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield.engine import weights as blocks
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import Labelled
from coxfield.kernels import radial
from coxfield.kernels.called import Called
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import rescale_length
from coxfield.selection.grid import default_factors, finer_factors, typical_distance
from coxfield.selection.loo import loo_log_sums, work_units
from tolerances import assert_same_decisions


def covariances(kernels, n_features):
    return PerClass.of(kernels).map(lambda kernel: recognise(kernel, n_features))


def one_by_one(labelled, kernels, factors):
    for factor in factors:
        scaled = [rescale_length(kernel, factor) for kernel in kernels]
        store = labelled.under(covariances(scaled, labelled.X.shape[1]))
        yield class_sums(store, labelled.X, leave_out=np.arange(len(labelled))).logs


CASES = {
    "squared exponential": [3.0 * RBF(0.9)] * 3,
    "ARD": [RBF([0.5, 1.0, 3.0, 0.2])] * 3,
    "Matern": [Matern(1.2, nu=1.5)] * 3,
    "called": [RBF(0.5) + RBF(3.0)] * 3,
    "a kernel per class": [RBF(0.4), 2.0 * Matern(1.0), RBF(2.0)],
}


@pytest.mark.parametrize("kernels", CASES.values(), ids=CASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_path_equals_leave_one_out_sums_one_length_scale_at_a_time(kernels, weighted, dtype, monkeypatch):
    monkeypatch.setattr(blocks, "ROWS", 13)
    monkeypatch.setattr(radial, "COLUMNS", 17)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)).astype(dtype), rng.permutation(np.arange(60) % 3)
    weights = rng.choice([0.5, 1.0, 2.5], size=60).astype(dtype) if weighted else None
    # Chains of squares, broken by steps of another ratio.
    falling = np.concatenate([[7.0], 4 * 2 ** (-np.arange(12) / 2), 0.07 * 2 ** (-np.arange(10) / 2), [0.001]])
    factors = np.concatenate([falling, finer_factors(1.0, kernels, bounded=False)])
    labelled = Labelled(X, y, 3, weights)
    found = list(loo_log_sums(labelled, covariances(kernels, 4), factors))
    for k, expected in enumerate(one_by_one(labelled, kernels, factors)):
        # Far below the largest sum of a row the path has a floor. Such small values do not matter.
        large = expected > expected.max(axis=1, keepdims=True) - 30
        if isinstance(recognise(kernels[0], 4), Called):  # below the normal numbers its values lose their digits
            large &= expected > np.log(np.finfo(float).tiny / np.finfo(float).eps)
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
    labelled, of = Labelled(X, y, 4), covariances([RBF(1.0)] * 4, 2)
    factors = default_factors(typical_distance(X))
    whole = np.array(list(loo_log_sums(labelled, of, factors)))
    heard = []
    with config_context(working_memory=0.1):
        assert work_units(labelled, of, 24) > 300
        parts = np.array(list(loo_log_sums(labelled, of, factors, done=heard.append)))
        assert sum(heard) == work_units(labelled, of, 24)
    large = whole > whole.max(axis=2, keepdims=True) - 30
    np.testing.assert_allclose(parts[large], whole[large], rtol=1e-9, atol=1e-12)


def test_a_covariance_with_negative_values_is_refused():
    X, y = np.random.default_rng(3).normal(size=(10, 2)), np.arange(10) % 2
    negative = RBF(1.0) * DotProduct(0.0)
    with pytest.raises(ValueError, match="takes negative values, such as"):
        list(loo_log_sums(Labelled(X, y, 2), covariances([negative] * 2, 2), np.ones(1)))


def test_fixed_length_scales_stay_along_the_path():
    X, y = np.random.default_rng(4).normal(size=(20, 2)), np.arange(20) % 2
    kernels = [RBF(1.0), RBF(0.7, "fixed")]
    found = list(loo_log_sums(Labelled(X, y, 2), covariances(kernels, 2), np.array([2.0, 0.5])))
    np.testing.assert_allclose(found[0][:, 1], found[1][:, 1])
    assert not np.allclose(found[0][:, 0], found[1][:, 0])
