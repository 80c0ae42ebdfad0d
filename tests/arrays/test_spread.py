"""The typical distance of points in array libraries is that of NumPy."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.arrays.store import class_distance
from coxfield.engine.store import Labelled
from coxfield.kernels.per_class import PerClass
from coxfield.selection import grid
from tolerances import assert_close

RNG = np.random.default_rng(2)
Y = np.arange(90) % 3
X = RNG.normal(size=(90, 4)) * [1.0, 10.0, 0.1, 0.0]


@pytest.mark.parametrize("unit", [1.0, 2.0**-600, 2.0**700])
@pytest.mark.parametrize("weights", [None, np.linspace(1, 2, 90)], ids=["once", "weighted"])
@pytest.mark.parametrize("kernels", [[RBF(0.5)] * 3, [RBF(0.5), RBF([1.0, 2.0, 0.1, 1.0]), RBF(0.5)]], ids=["1", "2"])
def test_the_distance_is_that_of_numpy(kernels, weights, unit, given, monkeypatch):
    monkeypatch.setattr("coxfield.arrays.store.ROWS", 32)
    labelled = Labelled(unit * X, Y, 3, weights)
    found = class_distance(Labelled(given(unit * X), Y, 3, weights), PerClass.of(kernels))
    assert_close(found, grid.class_distance(labelled, PerClass.of(kernels)), terms=90, condition=10.0)


def test_equal_points_have_no_distance(given):
    same = Labelled(given(np.full((6, 2), 0.1)), np.arange(6) % 2, 2)
    assert class_distance(same, PerClass.of([RBF(1.0)] * 2)) == 0
