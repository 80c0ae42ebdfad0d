from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.dask.chunks import Form
from coxfield.dask.pair_sums import (
    Block,
    Model,
    joined,
    pair_sums,
    scores,
)
from coxfield.dask.shards import read
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_labels
from coxfield.kernels.protocol import LogSums, PerClass
from coxfield.kernels.radial import recognise
from shard_cases import N, points
from tolerances import assert_close

X, Y, Q = points()
FORM = Form(np.dtype(float), 3, sparse=False)


def model(length):
    covariances = PerClass.shared_by(recognise(RBF(length), 3), 3)
    return Model(FORM, np.arange(3), covariances, np.zeros(3), 1, np.array([0, 30, 70]))


def in_three(model, block):
    """Sums over three shards, joined."""
    shards = [(k, X[rows], Y[rows], None) for k, rows in enumerate((slice(0, 30), slice(30, 70), slice(70, N)))]
    return scores(model, block, joined([pair_sums(model, block, *shard) for shard in shards])).sums


@pytest.mark.parametrize("length", [1.0, 0.05, 0.01])
def test_sums_over_shards_are_those_of_one_machine(length):
    of = model(length)
    points = np.concatenate([Q, X[:5] + 1e-3])  # some are near a point, others are near none
    found = in_three(of, Block(points))
    here = class_sums(store_labels(X, Y, of.covariances), points)
    condition = 8 * np.square(np.concatenate([X, points]) / length).sum(axis=1).max()
    assert_close(found.values, here.values, terms=N, condition=condition, scale=np.maximum(here.values, 1e-290))
    vanished = here.values.max(axis=1) == 0
    assert_close(found.logs[vanished], here.logs[vanished], terms=N)
    assert vanished.any() == (length == 0.01)


def test_sums_of_kernels_that_may_be_negative():
    parts = [np.array([[3.0, -1.0, -2.0]]), np.array([[-1.0, 4.0, -2.0]])]
    one, other = (LogSums(np.zeros((1, 1, 1)), values[None, None]) for values in parts)
    assert_close((one + other).logs[0, 0], np.array([[np.log(2.0), np.log(3.0), -np.inf]]))
    assert_close((one + other).values[0, 0], np.array([[2.0, 3.0, -4.0]]))


def test_logarithms_add_where_values_vanish():
    one = LogSums(np.full((1, 1, 1), -1e5), np.ones((1, 1, 1, 1)))
    assert_close((one + one).logs, np.full((1, 1, 1, 1), -1e5 + np.log(2)))


def test_a_shard_without_any_term_does_not_hide_another():
    nothing = LogSums(np.zeros((1, 1, 1)), np.zeros((1, 1, 1, 2)))
    far = LogSums(np.full((1, 1, 1), -1e5), np.ones((1, 1, 1, 2)))
    for both in (nothing + far, far + nothing):
        assert_close(both.logs, np.full((1, 1, 1, 2), -1e5))
    assert np.isneginf((nothing + nothing).logs).all()


def test_a_block_leaves_out_its_own_rows():
    shard = read(FORM, np.arange(3), 1, X[:4], Y[:4], np.array([1.0, 0.0, 2.0, 1.0]))
    block = Block(X[:3], np.array([1, 0, 1]), np.array([3, 3, 2]))
    assert block.leave_out(1, shard).tolist() == [2, -1, 1]  # without the row of weight zero
    assert Block(X).leave_out(1, shard) is None


def test_bounds_of_errors_hold_for_joined_sums():
    """In single precision, beside the sums of the same points in double precision."""
    points, new = X.astype(np.float32), Q.astype(np.float32)
    rough = replace(model(0.5), form=replace(FORM, precision=np.dtype(np.float32)))
    cuts = slice(0, 30), slice(30, 30), slice(30, N)
    parts = [pair_sums(rough, Block(new), k, points[cut], Y[cut], None, bounded=True) for k, cut in enumerate(cuts)]
    found = joined(parts)
    exact = class_sums(store_labels(points.astype(float), Y, rough.covariances), new.astype(float)).values
    assert (
        np.abs(scores(rough, Block(new), found).sums.values - exact).max(axis=1) <= found.errors * exact.max(axis=1)
    ).all()
    assert found.errors.max() < 0.01
    assert (found.errors > np.max([part.errors for part in parts], axis=0)).all()  # additions round as well
    assert pair_sums(rough, Block(new), 0, points, Y, None).errors is None
    assert joined([replace(part, errors=None) for part in parts]).errors is None
