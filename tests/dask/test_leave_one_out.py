import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF

import dask
from coxfield.dask.chunks import Form
from coxfield.dask.leave_one_out import (
    LabelledBlock,
    PathBlock,
    SomewhereElse,
    gathered,
    joined_paths,
    path_sums,
    training_block,
)
from coxfield.dask.pair_sums import Block, Model
from coxfield.engine.store import Labelled
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.selection.loo import loo_log_sums
from shard_cases import N, points
from tolerances import assert_close

X, Y, _ = points()
FACTORS = np.array([2.0, 1.0, 0.5, 0.01])
COVARIANCES = PerClass.shared_by(recognise(RBF(1.0), 3), 3)
MODEL = Model(Form(np.dtype(float), 3, sparse=False), np.arange(3), COVARIANCES, np.zeros(3), 1, np.array([0, 50]))
SHARDS = [(0, X[:50], Y[:50], None), (1, X[50:], Y[50:], None)]


def test_all_pairs_of_chunks_are_leave_one_out():
    here = np.stack(list(loo_log_sums(Labelled(X, Y, 3), COVARIANCES, FACTORS)))
    found = []
    for shard in SHARDS:
        asked = training_block(MODEL, None, *shard)
        found.append(joined_paths([path_sums(MODEL, FACTORS, asked, *other) for other in SHARDS]))
    condition = 8 * np.square(X).sum(axis=1).max() / FACTORS.min() ** 2
    # Far behind the best class, one machine puts a floor under the sums: 1e-38 = exp(-87) times the value of the
    # nearest point. At exp(-60) times the best class, the floors of 90 points are 90 exp(-27) < 2e-10 of a sum. That is
    # below the rounding of distances by products.
    near = here > here.max(axis=2, keepdims=True) - 60
    assert near[:3].mean() > 0.9
    assert_close(np.concatenate(found, axis=1)[near], here[near], terms=N, scale=1.0, condition=condition)


def test_some_rows_of_several_shards_in_one_block():
    parts = [training_block(MODEL, np.array(rows), *shard) for rows, shard in zip([[3, 7], [1]], SHARDS, strict=True)]
    block = gathered(parts)
    np.testing.assert_array_equal(block.block.X, X[[3, 7, 51]])
    assert block.block.shards.tolist() == [0, 0, 1]
    assert block.block.rows.tolist() == [3, 7, 1]
    assert block.y.tolist() == Y[[3, 7, 51]].tolist()


def test_sparse_rows_are_gathered():
    part = LabelledBlock(Block(sparse.csr_array(X[:2]), *np.zeros((3, 2), int)), Y[:2], np.ones(2))
    np.testing.assert_array_equal(gathered([part, part]).block.X.toarray(), X[[0, 1, 0, 1]])


def test_no_points_and_no_rows():
    asked = training_block(MODEL, np.zeros(0, int), *SHARDS[0])
    assert path_sums(MODEL, FACTORS, asked, *SHARDS[1]).shape == (4, 0, 3)
    asked = training_block(MODEL, None, *SHARDS[0])
    assert np.isneginf(path_sums(MODEL, FACTORS, asked, 1, X[:0], Y[:0], None)).all()


@pytest.mark.parametrize("k", [0, 2])
def test_what_is_asked_of_blocks_elsewhere_is_that_of_all_rows(k):
    logs, weights = np.random.default_rng(0).normal(size=(3, N, 3)), np.random.default_rng(1).random(N)
    whole = PathBlock(logs, np.full((1, 3), -np.inf), Y, weights)
    cuts = slice(0, 20), slice(20, 20), slice(20, N)
    parts = [PathBlock(logs[:, cut], whole.log_half, Y[cut], weights[cut]) for cut in cuts]
    there, here = SomewhereElse([dask.delayed(part, traverse=False) for part in parts], k), whole.at(k)
    mean = np.array([0.0, 0.1, 0.2])
    assert_close(there.total_weight, here.total_weight, terms=N)
    assert there.largest == here.largest
    arguments = mean, here.largest, here.total_weight, 0.5
    assert_close(there.slope(*arguments), here.slope(*arguments), terms=N, scale=here.total_weight)
    assert_close(there.losses(mean, 0.5), here.losses(mean, 0.5), terms=N)
