"""Rows and the store that sums over them stay together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import GONE, store_labels
from coxfield.engine.training import ALIKE, Training, TrainingRows
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.radial import recognise
from tolerances import assert_close

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(80, 3)), RNG.normal(size=(6, 3))
Y = np.arange(80) % 3
WEIGHTS = RNG.uniform(0.5, 2.0, size=80)
KERNELS = {"shared": [RBF(0.8)] * 3, "per class": [RBF(0.8), Matern(1.0), RBF(0.8)]}


def covariances(kernels):
    return PerClass.of(kernels).map(lambda kernel: recognise(kernel, 3))


def begun(kernels, n=20):
    rows = TrainingRows.of(X[:n], Y[:n], WEIGHTS[:n], None)
    return Training.of(rows, covariances(kernels), learned=False)


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(1, 6), max_size=10), seed=st.integers(0, 2**32 - 1))
def test_sums_are_those_of_the_rows_that_are_there(name, sizes, seed):
    rng, training, there, next_row = np.random.default_rng(seed), begun(KERNELS[name]), list(range(20)), 20
    for size in sizes:
        some = slice(next_row, next_row + size)
        training = training.appended(X[some].copy(), Y[some], WEIGHTS[some])
        there, next_row = there + list(range(next_row, next_row + size)), next_row + size
        places = rng.choice(len(there), 2, replace=False)
        training = training.without(np.sort(places))
        there = np.delete(there, places).tolist()
    np.testing.assert_array_equal(training.rows.X, X[there])
    assert training.rows.numbers.tolist() == there
    expected = class_sums(store_labels(X[there], Y[there], covariances(KERNELS[name]), WEIGHTS[there]), NEW).values
    assert_close(class_sums(training.store, NEW).values, expected, terms=200, condition=10)


def test_parts_of_the_store_are_joined_with_the_blocks():
    training = begun(KERNELS["shared"])
    for row in range(20, 20 + ALIKE):
        training = training.appended(X[row : row + 1].copy(), Y[row : row + 1], WEIGHTS[row : row + 1])
    assert [len(block.numbers) for block in training.rows.blocks] == [20, ALIKE]
    assert [len(part.rows) for part in training.store.groups[0].parts] == [20, ALIKE]


def test_rows_that_leave_are_overwritten_once_somebody_has_taken_over_what_is_left():
    training = Training.of(
        TrainingRows.of(X[:20].copy(), Y[:20], None, None), covariances([RBF(0.8)] * 3), learned=False
    )
    held = training.rows.blocks[0].X
    left = training.without(np.array([4]))
    assert left.rows.blocks[0].X is held
    assert left.store.groups[0].parts[0].points.X is held
    assert held[4].any()  # until somebody has taken over what is left
    left.erase()
    assert not held[4].any()
    assert not left.store.groups[0].parts[0].points.points.coordinates[left.store.groups[0].parts[0].rows == GONE].any()


def test_classes_get_other_numbers():
    training = begun(KERNELS["shared"]).without(np.flatnonzero(Y[:20] == 1))
    fewer = training.with_classes(np.array([0, -1, 1]), covariances([RBF(0.8)] * 2))
    assert set(fewer.rows.y.tolist()) == {0, 1}
    sums = class_sums(fewer.store, NEW).values
    assert_close(sums, class_sums(training.store, NEW).values[:, [0, 2]], terms=100)
