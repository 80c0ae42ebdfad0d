"""Rows and the store that sums over them stay together."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import GONE, store_labels
from coxfield.engine.training import ALIKE, Block, Training, TrainingRows
from coxfield.kernels.protocol import PerClass
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


ROWS = RNG.normal(size=(20, 3))


def rows_of(sizes):
    """Blocks of some sizes, one after the other."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    data = RNG.normal(size=(starts[-1], 2))
    blocks = (Block(data[a:b].copy(), np.arange(a, b)) for a, b in pairwise(starts))
    n = starts[-1]
    return TrainingRows(tuple(blocks), np.arange(n) % 2, None, np.ones(n, bool)), data


def test_blocks_of_similar_size_are_joined_when_there_are_enough():
    assert rows_of([1] * (ALIKE - 1))[0].to_join() == 1
    assert rows_of([1] * ALIKE)[0].to_join() == ALIKE
    assert rows_of([1000, *[1] * ALIKE])[0].to_join() == ALIKE
    # The joined block completes the next power.
    assert rows_of([1000, *[ALIKE] * (ALIKE - 1), *[1] * ALIKE])[0].to_join() == 2 * ALIKE - 1
    assert rows_of([1] * (ALIKE - 1) + [1000])[0].to_join() == ALIKE


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 7, 60]), min_size=1, max_size=120))
def test_blocks_stay_few_and_rows_are_seldom_moved(sizes):
    rows, data = rows_of([50])
    moved = np.zeros(50 + sum(sizes))
    for size in sizes:
        new, n = RNG.normal(size=(size, 2)), len(rows)
        data = np.concatenate([data, new])
        rows = rows.appended(new, np.zeros(size, int), None, n)
        count = min(rows.to_join(), len(rows.blocks) - 1)  # the first block stays
        if count > 1:
            rows = rows.joined(count)
            moved[rows.blocks[-1].numbers] += 1
    powers = 1 + np.floor(np.log(max(ALIKE, sum(sizes))) / np.log(ALIKE))
    assert len(rows.blocks) <= 1 + 2 * (ALIKE - 1) * (powers + 1)
    assert moved.max() <= powers + 1
    np.testing.assert_array_equal(rows.X, data)
    assert rows.numbers.tolist() == list(range(len(data)))


@pytest.mark.parametrize("overwrite", [False, True])
def test_rows_that_leave_are_gone_and_others_keep_their_order(overwrite):
    rows, data = rows_of([10, 4, 3])
    held = [block.X for block in rows.blocks]
    places = np.array([2, 5, 10, 11, 12])
    left = rows.without(places, places, overwrite=overwrite)
    kept = np.setdiff1d(np.arange(17), places)
    np.testing.assert_array_equal(left.X, data[kept])
    assert left.numbers.tolist() == kept.tolist()
    assert left.y.tolist() == (kept % 2).tolist()
    for block in left.blocks:
        block.erase(np.flatnonzero(block.numbers == GONE))
    assert not np.isin(data[places], np.concatenate([block.X for block in left.blocks])).any()
    # Few rows of a block are overwritten where they are; a block that loses half of its rows is copied.
    first, second, _ = left.blocks
    assert (first.X is held[0]) == overwrite
    assert second.X is not held[1]
    assert overwrite == bool((first.numbers == GONE).any())


def test_a_block_without_rows_is_dropped():
    rows, _ = rows_of([4, 3])
    left = rows.without(np.arange(4), np.arange(4), overwrite=True)
    assert [block.numbers.tolist() for block in left.blocks] == [[4, 5, 6]]


def test_sparse_rows_are_copied_and_not_overwritten():
    rows = TrainingRows.of(sparse.csr_array(ROWS), np.zeros(20, int), None, None)
    assert not rows.dense
    left = rows.without(np.array([3]), np.array([3]), overwrite=rows.dense)
    np.testing.assert_array_equal(left.X.toarray(), np.delete(ROWS, 3, axis=0))


def test_weights_of_rows_without_weights_are_1():
    rows = TrainingRows.of(ROWS[:2], np.zeros(2, int), None, None)
    assert rows.appended(ROWS[2:4], np.zeros(2, int), None, 2).weights is None
    both = rows.appended(ROWS[2:4], np.zeros(2, int), np.array([2.0, 3.0]), 2)
    assert both.weights.tolist() == [1.0, 1.0, 2.0, 3.0]
    assert both.appended(ROWS[4:5], np.zeros(1, int), None, 4).counts.tolist() == [1.0, 1.0, 2.0, 3.0, 1.0]
    assert both.chosen_from.tolist() == [True, True, False, False]


def test_rows_get_other_numbers():
    rows = TrainingRows.of(np.ones((4, 2)), np.zeros(4, int), None, None)
    left = rows.without(np.array([0]), np.array([0]), overwrite=True)
    assert left.numbers.tolist() == [1, 2, 3]
    assert left.renumbered(np.array([GONE, 0, 1, 2, GONE])).numbers.tolist() == [0, 1, 2]
