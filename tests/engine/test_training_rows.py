from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from coxfield.engine.store import GONE
from coxfield.engine.training import ALIKE, Block, TrainingRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))


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
    rows = TrainingRows.of(sparse.csr_array(X), np.zeros(20, int), None, None)
    assert not rows.dense
    left = rows.without(np.array([3]), np.array([3]), overwrite=rows.dense)
    np.testing.assert_array_equal(left.X.toarray(), np.delete(X, 3, axis=0))


def test_weights_of_rows_without_weights_are_1():
    rows = TrainingRows.of(X[:2], np.zeros(2, int), None, None)
    assert rows.appended(X[2:4], np.zeros(2, int), None, 2).weights is None
    both = rows.appended(X[2:4], np.zeros(2, int), np.array([2.0, 3.0]), 2)
    assert both.weights.tolist() == [1.0, 1.0, 2.0, 3.0]
    assert both.appended(X[4:5], np.zeros(1, int), None, 4).counts.tolist() == [1.0, 1.0, 2.0, 3.0, 1.0]
    assert both.chosen_from.tolist() == [True, True, False, False]


def test_rows_get_other_numbers():
    rows = TrainingRows.of(np.ones((4, 2)), np.zeros(4, int), None, None)
    left = rows.without(np.array([0]), np.array([0]), overwrite=True)
    assert left.numbers.tolist() == [1, 2, 3]
    assert left.renumbered(np.array([GONE, 0, 1, 2, GONE])).numbers.tolist() == [0, 1, 2]
