import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.dask.chunks import Form
from coxfield.dask.pair_sums import Block, Counts, Fits, Model, Partial, fits, joined_counts, pair_counts
from coxfield.engine.class_sums import ClassSums, Scores
from coxfield.engine.conformal import odds_against, slack
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from shard_cases import N, points

X, Y, Q = points()
KERNELS = [RBF(0.8), 0.5 * Matern(1.2), RBF(2.0)]
RNG = np.random.default_rng(0)
LOGS = -RNG.exponential(size=(N, 3))
LOGS -= np.log(np.exp(LOGS).sum(axis=1, keepdims=True))
ASKED = Fits(LOGS[:40] + 1e-3, np.zeros(40))


def model(*kernels):
    covariances = PerClass.of([recognise(kernel, 3) for kernel in kernels])
    return Model(Form(np.dtype(float), 3, sparse=False), np.arange(3), covariances, np.zeros(3), 1, np.zeros(3, int))


def counted(of, cut, number=0, per_class=False):
    known = Fits(LOGS[cut], np.full(N, 1e-12)[cut])
    return pair_counts(of, Block(Q), ASKED, per_class, known, number, X[cut], Y[cut], None)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("kernels", [KERNELS[:1] * 3, KERNELS])
def test_counts_add_over_shards(kernels, per_class):
    of = model(*kernels)
    by_class = np.argsort(Y, kind="stable")  # so that a shard has none of the points of a kernel
    cuts = by_class[:20], by_class[20:20], by_class[20:]
    found = joined_counts([counted(of, cut, k, per_class) for k, cut in enumerate(cuts)])
    whole = counted(of, np.arange(N), per_class=per_class)
    np.testing.assert_array_equal(found.worse, whole.worse)
    np.testing.assert_array_equal(found.calibrating, whole.calibrating)
    assert whole.calibrating.tolist() == (np.bincount(Y).tolist() if per_class else [N] * 3)
    assert len(np.unique(whole.worse)) > 10


def test_ranks_and_p_values_have_the_query_among_the_points():
    found = Counts(np.array([[0, 4, 0]]), np.array([9, 4, 0]))
    assert found.ranks.tolist() == [[1, 5, 1]]
    assert found.p_values.tolist() == [[0.1, 1.0, 1.0]]


def test_no_points_and_no_queries():
    of = model(*KERNELS)
    none = counted(of, np.arange(0))
    assert not none.worse.any()
    assert none.calibrating.tolist() == [0, 0, 0]
    nobody = Fits(LOGS[:0], np.zeros(0))
    found = pair_counts(of, Block(Q[:0]), nobody, False, Fits(LOGS, np.zeros(N)), 0, X, Y, None)
    assert found.worse.shape == (0, 3)
    assert found.calibrating.tolist() == [N] * 3


def test_fits_are_lowered_by_what_rounding_can_do():
    values = RNG.random((5, 3))
    scores, errors = Scores(np.zeros((1, 3)), ClassSums(values, np.log(values))), np.full(5, 1e-3)
    found = fits(model(KERNELS[0]), scores, Partial([None], errors))
    np.testing.assert_array_equal(found.slack, slack(scores, errors))
    assert (found.slack > 1e-3 * values.max(axis=1)).all()
    np.testing.assert_array_equal(found.least, odds_against(scores.log_probabilities) - found.slack[:, None])
