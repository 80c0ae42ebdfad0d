"""Log class sums where everything underflows, against distances taken one pair at a time."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from coxfield.arrays.class_sums import careful_log_sums
from coxfield.arrays.library import to_numpy
from coxfield.arrays.store import store_arrays
from coxfield.engine.store import Labelled
from coxfield.kernels.ladder import NEGLIGIBLE
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise
from tolerances import rounding

RNG = np.random.default_rng(4)
Y = RNG.permutation(np.arange(40) % 3)
X, NEW = RNG.normal(size=(40, 3)), RNG.normal(size=(9, 3))
WEIGHTS = RNG.uniform(0.5, 2.0, size=40)
KERNELS = [RBF(1e-3), 3.0 * Matern(1e-4, nu=1.5), RBF([1e-3, 2e-3, 1e-3]), RationalQuadratic(1e-3, alpha=50.0)]


def exact(covariance, rows, columns, y, own=None):
    """Log class sums, from the numbers as given, in double precision."""
    d2 = (((rows[:, None].astype(float) - columns[None].astype(float)) / covariance.length_scale) ** 2).sum(axis=-1)
    logs = covariance.profile.log_of(d2) + np.log(covariance.variance) + np.log(WEIGHTS)
    if own is not None:
        logs[np.arange(len(rows)), own] = -np.inf
    return np.stack([np.logaddexp.reduce(logs[:, y == label], axis=1) for label in range(3)], axis=1)


def careful(given, library, kernel, X, rows, own=None):
    covariance = recognise(kernel, 3)
    store = store_arrays(Labelled(given(X), Y, 3, WEIGHTS), PerClass.shared_by(covariance, 3), library)
    (group,) = store.groups
    columns = None if own is None else group.columns_of(own, 40)
    with np.errstate(all="ignore"):
        return to_numpy(careful_log_sums(group, group.points.at(given(rows)), columns))


def assert_right(found, expected):
    """Right but for rounding of the weights and distances, and for what counts as negligible."""
    np.testing.assert_array_less(np.abs(found - expected), NEGLIGIBLE + rounding(np.abs(expected), terms=40))


@pytest.mark.parametrize("memory", [1e-2, 1024])
@pytest.mark.parametrize("far", [0.0, 1e6])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_log_sums_are_right_where_every_value_underflows(kernel, far, memory, given, library):
    X_far, new = X + far, NEW + far
    with config_context(working_memory=memory):
        found = careful(given, library, kernel, X_far, new)
    assert_right(found, exact(recognise(kernel, 3), new, X_far, Y))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_point_that_is_left_out_does_not_count(kernel, given, library):
    rows = np.array([3, 17, 39])
    found = careful(given, library, kernel, X, X[rows], rows)
    assert_right(found, exact(recognise(kernel, 3), X[rows], X, Y, rows))


def test_single_precision_points_are_compared_in_double_precision(given, library):
    single = (1e3 + X).astype(np.float32)
    found = careful(given, library, RBF(1e-3), single, single[:9] + np.float32(0.25))
    expected = exact(recognise(RBF(1e-3), 3), single[:9] + np.float32(0.25), single, Y)
    weights = np.finfo(np.float32).eps  # weights are held in the precision of the points
    np.testing.assert_array_less(np.abs(found - expected), NEGLIGIBLE + weights + rounding(abs(expected), terms=40))
