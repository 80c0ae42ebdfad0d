from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield.dask.checks import Form
from coxfield.dask.pair_sums import (
    Block,
    Model,
    Partial,
    added,
    faint_rows,
    joined,
    joined_logs,
    pair_logs,
    pair_sums,
    scores,
)
from coxfield.dask.shards import read
from coxfield.engine.class_sums import ClassSums, class_sums
from coxfield.engine.store import store_labels
from coxfield.kernels.per_class import PerClass
from coxfield.kernels.recognise import recognise
from shard_cases import N, points
from tolerances import assert_close

X, Y, Q = points()
FORM = Form(np.dtype(float), 3, sparse=False)


def model(length):
    covariances = PerClass.shared_by(recognise(RBF(length), 3), 3)
    return Model(FORM, np.arange(3), covariances, np.zeros(3), 1)


def in_three(model, block):
    """Sums over three shards, joined, and taken again where they are faint."""
    shards = [(k, X[rows], Y[rows], None) for k, rows in enumerate((slice(0, 30), slice(30, 70), slice(70, N)))]
    partial = joined([pair_sums(model, block, *shard) for shard in shards])
    again = faint_rows(partial)
    logs = joined_logs([pair_logs(model, block, again, *shard) for shard in shards])
    return partial, again, scores(model, block, partial, again, logs).sums


@pytest.mark.parametrize("length", [1.0, 0.05, 0.01])
def test_sums_over_shards_are_those_of_one_machine(length):
    of = model(length)
    points = np.concatenate([Q, X[:5] + 1e-3])  # some are near a point, others are near none
    _, again, found = in_three(of, Block(points))
    here = class_sums(store_labels(X, Y, of.covariances), points)
    condition = 8 * np.square(np.concatenate([X, points]) / length).sum(axis=1).max()
    assert_close(found.values, here.values, terms=N, condition=condition, scale=np.maximum(here.values, 1e-290))
    careful = np.isin(np.arange(len(points)), again)
    assert_close(found.logs[careful], here.logs[careful], terms=N)
    assert careful.any() == (length == 0.01)


def test_a_row_is_taken_again_only_if_it_is_faint_for_all_shards():
    one = Partial(ClassSums(np.zeros((2, 1)), np.full((2, 1), -np.inf)), np.array([True, True]))
    other = Partial(ClassSums(np.ones((2, 1)), np.zeros((2, 1))), np.array([True, False]))
    assert faint_rows(joined([one, other])).tolist() == [0]
    assert pair_logs(model(1.0), Block(Q), np.zeros(0, int), 0, None, None, None) is None  # the shard is not read
    assert joined_logs([None, None]) is None


def test_sums_of_kernels_that_may_be_negative():
    parts = [np.array([[3.0, -1.0, -2.0]]), np.array([[-1.0, 4.0, -2.0]])]
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = (ClassSums(v, np.where(v > 0, np.log(v), -np.inf)) for v in parts)
    both = added(one, other)
    assert_close(both.logs, np.array([[np.log(2.0), np.log(3.0), -np.inf]]))


def test_logarithms_add_where_values_vanish():
    one, other = ClassSums.of_logs(np.array([[-1e5]])), ClassSums.of_logs(np.array([[-1e5]]))
    assert_close(added(one, other).logs, np.array([[-1e5 + np.log(2)]]))


def test_a_block_leaves_out_its_own_rows():
    shard = read(FORM, np.arange(3), 1, X[:4], Y[:4], np.array([1.0, 0.0, 2.0, 1.0]))
    block = Block(X[:3], np.array([1, 0, 1]), np.array([3, 3, 2]))
    assert block.leave_out(1, shard).tolist() == [2, -1, 1]  # without the row of weight zero
    assert block[np.array([2])].leave_out(1, shard).tolist() == [1]
    assert Block(X).leave_out(1, shard) is None
    assert len(Block(X)[np.array([0, 1])]) == 2


def test_bounds_of_errors_hold_for_joined_sums():
    """In single precision, beside the sums of the same points in double precision."""
    points, new = X.astype(np.float32), Q.astype(np.float32)
    rough = replace(model(0.5), form=replace(FORM, precision=np.dtype(np.float32)))
    cuts = slice(0, 30), slice(30, 30), slice(30, N)
    parts = [pair_sums(rough, Block(new), k, points[cut], Y[cut], None, bounded=True) for k, cut in enumerate(cuts)]
    found = joined(parts)
    exact = class_sums(store_labels(points.astype(float), Y, rough.covariances), new.astype(float)).values
    assert (np.abs(found.sums.values - exact).max(axis=1) <= found.errors * exact.max(axis=1)).all()
    assert found.errors.max() < 0.01
    assert (found.errors > np.max([part.errors for part in parts], axis=0)).all()  # additions round as well
    assert pair_sums(rough, Block(new), 0, points, Y, None).errors is None
    assert joined([replace(part, errors=None) for part in parts]).errors is None
