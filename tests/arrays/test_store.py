"""Labelled points arranged by class and covariance."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.arrays.library import to_numpy
from coxfield.arrays.store import store_arrays
from coxfield.engine.store import Labelled
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise

RNG = np.random.default_rng(0)
Y = RNG.permutation(np.arange(23) % 5)
X = RNG.normal(size=(23, 2))
WEIGHTS = RNG.uniform(0.5, 2, size=23)


def stored(given, library, kernels, weights=WEIGHTS):
    covariances = PerClass.of(kernels).map(lambda kernel: recognise(kernel, 2))
    return store_arrays(Labelled(given(X), Y, 5, weights), covariances, library)


@pytest.mark.parametrize("width", [1, 4, 100])
def test_blocks_hold_every_weight_once(width, given, library):
    (group,) = stored(given, library, [RBF(1.0)] * 5).groups
    matrix = np.zeros((23, 5))
    for block in group.blocks(width):
        assert block.columns.stop - block.columns.start <= width
        matrix[block.columns, block.classes] += to_numpy(block.weights)
    expected = np.zeros((23, 5))
    expected[np.arange(23), Y] = WEIGHTS
    np.testing.assert_array_equal(matrix, expected[group.rows])
    np.testing.assert_array_equal(to_numpy(group.points.X), X[group.rows])
    for label, columns in enumerate(group.segments):
        assert (Y[group.rows[columns]] == label).all()
        assert columns.stop - columns.start == np.count_nonzero(label == Y)


def test_groups_hold_the_classes_of_their_covariance_and_join_in_order(given, library):
    store = stored(given, library, [RBF(1.0), Matern(1.0, nu=0.5), RBF(1.0), RBF(2.0), Matern(1.0, nu=0.5)])
    assert [group.classes.tolist() for group in store.groups] == [[0, 2], [1, 4], [3]]
    parts = [given(np.tile(group.classes, (2, 1))) for group in store.groups]
    np.testing.assert_array_equal(to_numpy(store.in_order(parts)), [[0, 1, 2, 3, 4]] * 2)
    for group in store.groups:
        columns = group.columns_of(np.arange(23), 23)
        assert (columns >= 0).tolist() == np.isin(Y, group.classes).tolist()
        np.testing.assert_array_equal(columns[group.rows], np.arange(len(group.rows)))
