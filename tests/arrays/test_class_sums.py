"""Class sums in array libraries against the double loop and against NumPy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from coxfield.arrays.class_sums import class_sums
from coxfield.arrays.library import to_numpy
from coxfield.arrays.store import store_arrays
from coxfield.engine import class_sums as in_numpy
from coxfield.engine.store import Labelled, store_labels
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise
from reference import class_scores
from strategies import labelled_points
from tolerances import assert_close

POOL = [2.0 * RBF(0.8), Matern(1.1, nu=0.5), Matern([0.5, 1.0, 2.0], nu=1.5), 0.5 * RationalQuadratic(0.9, alpha=0.4)]


def covariances(kernels, d):
    return PerClass.of(kernels).map(lambda kernel: recognise(kernel, d))


def both(make, library, X, y, kernels, queries, weights=None, leave_out=None):
    """Class sums in the library and in NumPy."""
    per_class = covariances(kernels, X.shape[1])
    with np.errstate(all="ignore"):
        store = store_arrays(Labelled(make(X), y, len(kernels), weights), per_class, library)
        found = class_sums(store, make(queries), leave_out)
    return found, in_numpy.class_sums(store_labels(X, y, per_class, weights), queries, leave_out)


def conditions(X, queries, scale):
    """How much rounding of squared distances, which are computed from |x|^2 and |z|^2, moves a covariance."""
    points = np.vstack([X, queries]).astype(float)
    return 1 + 2 * (8 + np.sqrt(X.shape[1])) * np.square((points - X.mean(axis=0)) / scale).sum(axis=1).max()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=labelled_points(), seed=st.integers(0, 2**20), weighted=st.booleans())
def test_class_sums_equal_the_double_loop(data, seed, weighted, library):
    X, y = data
    rng = np.random.default_rng(seed)
    kernels = [POOL[k] for k in rng.integers(len(POOL), size=y.max() + 1)]
    weights = rng.uniform(0.1, 3, size=len(y)) if weighted else None
    queries = rng.normal(size=(5, 3)) * X.std()
    found, _ = both(library.array, library, X, y, kernels, queries, weights)
    means = np.zeros(len(kernels))
    nothing = class_scores(X, np.full(len(y), -1), kernels, means, queries)
    expected = class_scores(X, y, kernels, means, queries, weights) - nothing
    np.testing.assert_allclose(to_numpy(found.values), expected, rtol=1e-9, atol=1e-13)  # as for NumPy
    np.testing.assert_allclose(np.exp(to_numpy(found.logs)), expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("memory", [1e-2, 1024])
def test_tiles_and_many_classes_do_not_change_the_sums(dtype, memory, request, library):
    make = request.getfixturevalue("given")
    rng = np.random.default_rng(3)
    X, queries = rng.normal(size=(300, 4)).astype(dtype), rng.normal(size=(30, 4)).astype(dtype)
    y = np.concatenate([np.arange(90), rng.integers(90, size=210)])
    with config_context(working_memory=memory):
        found, expected = both(make, library, X, y, [RBF(1.5)] * 90, queries)
    condition = conditions(X, queries, 1.5)
    assert_close(to_numpy(found.values), expected.values, terms=300, condition=condition, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernels", [[RBF(0.7)] * 3, [RBF(0.7), Matern(0.5, nu=2.5), RBF(0.7)]], ids=["one", "two"])
def test_a_point_that_is_left_out_does_not_count(dtype, kernels, request, library):
    make = request.getfixturevalue("given")
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(50, 2)).astype(dtype), rng.permutation(np.arange(50) % 3)
    weights = rng.uniform(0.5, 2.0, size=50).astype(dtype)
    rows = rng.permutation(50)[:20]
    found, expected = both(make, library, X, y, kernels, X[rows], weights, rows)
    condition = conditions(X, X, 0.5)
    assert_close(to_numpy(found.values), expected.values, terms=50, condition=condition, dtype=dtype)


@pytest.mark.parametrize("kernel", [RBF(1e-3), Matern(1e-5, nu=1.5), RBF([1e-3, 2e-3, 1e-3])], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_are_right_where_every_value_underflows(kernel, dtype, request, library):
    make = request.getfixturevalue("given")
    rng = np.random.default_rng(4)
    X, queries = rng.normal(size=(40, 3)).astype(dtype), rng.normal(size=(9, 3)).astype(dtype)
    y = rng.permutation(np.arange(40) % 3)
    found, expected = both(make, library, X, y, [kernel] * 3, queries)
    assert (to_numpy(found.values) == 0).all()
    # Both are relative to the nearest point of the class. NEGLIGIBLE is an absolute error of the logarithm.
    np.testing.assert_allclose(to_numpy(found.logs), expected.logs, rtol=1e-12, atol=2e-6)
    assert (to_numpy(found.logs).argmax(axis=1) == expected.logs.argmax(axis=1)).all()


def test_rows_that_rounding_has_spoilt_are_taken_again(request, library):
    make = request.getfixturevalue("given")
    rng = np.random.default_rng(6)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 1e4]).astype(np.float32)
    y = np.arange(40) % 2
    found, _ = both(make, library, X, y, [RBF(1.0)] * 2, X[20:] + np.float32(0.5))
    kernel = RBF(1.0)((X[20:] + np.float32(0.5)).astype(float), X.astype(float))
    expected = np.stack([kernel[:, y == label].sum(axis=1) for label in (0, 1)], axis=1)
    np.testing.assert_allclose(to_numpy(found.values), expected, rtol=2e-6)  # NEGLIGIBLE, in each logarithm
