"""Leave-one-out class sums along a path of length scales: against n refits, and against NumPy."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from coxfield.arrays.class_sums import loo_log_sums
from coxfield.engine.store import Labelled
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import rescale
from coxfield.selection import loo
from reference import refit_scores
from tolerances import assert_close

RNG = np.random.default_rng(1)
Y = RNG.permutation(np.arange(60) % 3)
X = RNG.normal(size=(60, 2)) + Y[:, None]
WEIGHTS = RNG.uniform(0.5, 2.0, size=60)
PATH = 4 * np.sqrt(2.0) ** -np.arange(12)
KERNELS = {
    "squared exponential": [RBF(1.0)] * 3,
    "Matern": [2.0 * Matern(0.7, nu=1.5)] * 3,
    "rational quadratic": [RationalQuadratic(0.7, alpha=0.5)] * 3,
    "per class": [RBF(1.0), Matern(1.0, nu=0.5), RBF(1.0)],
    "fixed": [RBF(0.5, "fixed")] * 3,
}


def paths(given, kernels, factors, dtype=float, weights=None, points=X):
    """Log sums of all factors in the library and in NumPy, and how many rows were told of."""
    covariances, told = PerClass.of(kernels).map(lambda kernel: recognise(kernel, 2)), []
    weights = None if weights is None else weights.astype(dtype)
    points = points.astype(dtype)
    with np.errstate(all="ignore"):
        arrays = Labelled(given(points), Y, 3, weights)
        found = np.array(list(loo_log_sums(arrays, covariances, factors, told.append)))
    labelled = Labelled(points, Y, 3, weights)
    assert sum(told) == loo.work_units(labelled, covariances, len(factors))
    return found, np.array(list(loo.loo_log_sums(labelled, covariances, factors)))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["once", "weighted"])
@pytest.mark.parametrize("name", KERNELS)
def test_sums_are_those_of_refits(name, weights, given):
    factors = np.array([2.0, 1.0])
    found, _ = paths(given, KERNELS[name], factors, weights=weights)
    for factor, logs in zip(factors, found, strict=True):
        kernels = [rescale(kernel, factor, 1.0) for kernel in KERNELS[name]]
        halves = np.array([kernel.diag(X[:1])[0] / 2 for kernel in kernels])
        expected = refit_scores(X, Y, kernels, -halves, weights)
        # Squares double the relative error; distances are computed from |x|^2 + |z|^2, up to 100 here.
        assert_close(np.exp(logs), expected, terms=60, condition=2000.0)


@pytest.mark.parametrize("memory", [1e-2, 1024])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", KERNELS)
def test_the_path_is_that_of_numpy(name, dtype, memory, given):
    with config_context(working_memory=memory):
        found, expected = paths(given, KERNELS[name], PATH, dtype, WEIGHTS)
    assert found.shape == (12, 60, 3)
    # The logarithm grows like d2 / factor^2, and so does its rounding; 16 squares in a chain multiply it again.
    scale = 1 + 100 / np.square(PATH)[:, None, None] + np.abs(expected)
    assert_close(found, expected, terms=60, scale=scale, condition=16.0, dtype=dtype)


@pytest.mark.parametrize("exponent", [-900, -300, 300, 900])
def test_units_change_nothing(exponent, given):
    unit = 2.0**exponent
    plain, _ = paths(given, KERNELS["squared exponential"], PATH)
    found, expected = paths(given, KERNELS["squared exponential"], unit * PATH, points=unit * X)
    assert_close(found, plain, terms=60, scale=1 + 100 / np.square(PATH)[:, None, None] + np.abs(plain))
    assert_close(expected, plain, terms=60, scale=1 + 100 / np.square(PATH)[:, None, None] + np.abs(plain))
