import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coxfield.engine.training_rows import GONE, TrainingRows

X = np.arange(1.0, 25.0).reshape(8, 3)
Y = np.arange(8) % 2


def rows_of(points=X, weights=None, own=True):
    return TrainingRows.of(points.copy(), Y, weights, None, own=own)


def test_rows_are_the_array_that_was_given():
    rows = TrainingRows.of(X, Y, None, None, own=False)
    assert rows.X is X
    assert rows.numbers.tolist() == list(range(8))
    assert rows.chosen_from.all()
    assert rows.counts.tolist() == [1.0] * 8


def test_soft_labels_count_with_the_sum_of_their_weights():
    assert rows_of(weights=np.full((8, 2), 0.25)).counts.tolist() == [0.5] * 8


def test_a_row_that_is_overwritten_leaves_zeros_and_no_number():
    rows = rows_of()
    held = rows.blocks[0].X
    left = rows.without(np.array([2]), np.array([2]), overwrite=True)
    assert left.blocks[0].X is held
    assert held[2].tolist() == [0, 0, 0]
    assert left.blocks[0].numbers.tolist() == [0, 1, GONE, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal(left.X, np.delete(X, 2, axis=0))
    assert left.numbers.tolist() == [0, 1, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("own", [True, False])
def test_an_array_of_somebody_else_is_not_overwritten(own):
    rows = rows_of(own=own)
    held = rows.blocks[0].X
    assert rows.can_be_overwritten == own
    left = rows.without(np.array([2]), np.array([2]), overwrite=own)
    assert (held[2] == 0).all() == own
    assert len(left) == 7


def test_half_of_a_block_is_not_overwritten_but_the_rest_is_copied():
    rows = rows_of()
    gone = np.arange(4)
    left = rows.without(gone, gone, overwrite=True)
    assert left.blocks[0].X.shape == (4, 3)


def test_sparse_rows_cannot_be_overwritten():
    assert not rows_of(sparse.csr_array(X)).can_be_overwritten


def test_weights_of_both_or_of_one_side():
    more = rows_of().appended(X[:2].copy(), Y[:2], np.array([2.0, 3.0]), 8)
    assert more.weights.tolist() == [1.0] * 8 + [2.0, 3.0]
    assert more.chosen_from.tolist() == [True] * 8 + [False] * 2
    more = rows_of(weights=np.full(8, 2.0)).appended(X[:1].copy(), Y[:1], None, 8)
    assert more.weights.tolist() == [2.0] * 8 + [1.0]


@given(st.lists(st.integers(1, 5), max_size=30))
def test_blocks_are_joined_and_their_number_stays_small(sizes):
    rows = rows_of()
    for size in sizes:
        rows = rows.appended(np.full((size, 3), len(rows), float), np.zeros(size, int), None, len(rows))
        count = min(rows.to_join(), len(rows.blocks) - 1)
        rows = rows.joined(count) if count > 1 else rows
    assert rows.X.shape == (8 + sum(sizes), 3)
    assert rows.numbers.tolist() == list(range(8 + sum(sizes)))
    assert len(rows.blocks) <= 2 + 8 * np.log2(1 + sum(sizes))


def test_new_numbers():
    left = rows_of().without(np.array([0]), np.array([0]), overwrite=True)
    new = np.array([GONE, 0, 1, 2, 3, 4, 5, 6, GONE])
    assert left.renumbered(new).numbers.tolist() == list(range(7))
