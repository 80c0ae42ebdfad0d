"""Rows and store change together: class sums are always those of the rows that are there."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_labels
from coxfield.engine.training import Training
from coxfield.engine.training_rows import TrainingRows
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise
from tolerances import assert_close

RNG = np.random.default_rng(0)
X, Y, NEW = RNG.normal(size=(20, 3)), np.arange(20) % 3, RNG.normal(size=(4, 3))
COVARIANCES = PerClass.shared_by(recognise(RBF(0.7), 3), 3)


def training(points=X, weights=None):
    return Training.of(TrainingRows.of(points, Y, weights, None, own=False), COVARIANCES, learned=False)


def assert_consistent(found, points, y):
    expected = class_sums(store_labels(points, y, COVARIANCES), NEW).values
    assert_close(class_sums(found.store, NEW).values, expected, terms=200)
    np.testing.assert_array_equal(found.rows.y, y)


def test_rows_come():
    found = training().appended(X[:3] + 1, Y[:3], None)
    assert_consistent(found, np.concatenate([X, X[:3] + 1]), np.concatenate([Y, Y[:3]]))


def test_rows_leave_and_the_array_of_the_user_stays():
    points = X.copy()
    found = training(points).without(np.array([0, 7]))
    assert_consistent(found, np.delete(X, [0, 7], axis=0), np.delete(Y, [0, 7]))
    np.testing.assert_array_equal(points, X)


def test_many_small_additions_are_joined():
    found = training()
    for row in range(12):
        found = found.appended(X[row : row + 1] + 1, Y[row : row + 1], None)
    assert_consistent(found, np.concatenate([X, X[:12] + 1]), np.concatenate([Y, Y[:12]]))
    assert len(found.rows.blocks) < 12
    assert len(found.store.groups[0].parts) == len(found.rows.blocks)


def test_soft_labels_and_sparse_rows_are_arranged_too():
    soft = training(weights=np.full((20, 3), 1 / 3))
    assert_close(class_sums(soft.store, NEW).values.std(axis=1), np.zeros(4), terms=20, scale=1.0)
    thin = training(sparse.csr_array(X))
    assert_close(
        class_sums(thin.store, sparse.csr_array(NEW)).values, class_sums(training().store, NEW).values, terms=99
    )


@pytest.mark.parametrize(("selection", "learned"), [("mixture", True), ("loo_error", False)])
def test_it_is_known_whether_the_covariance_needs_rows(selection, learned):
    assert LGCPClassifier(selection=selection).fit(X, Y)._training.learned_from_rows == learned


def test_classes_get_other_numbers():
    found = training().with_classes(np.array([1, 0, 2]), COVARIANCES)
    expected = class_sums(training().store, NEW).values[:, [1, 0, 2]]
    assert_close(class_sums(found.store, NEW).values, expected, terms=20)
