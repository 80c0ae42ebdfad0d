"""Rows that come and go on shards: what one machine says of the same rows, and nothing is left of rows that leave."""

import pickle

import dask.array as da
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.dask import DaskLGCPClassifier
from coxfield.kernels import Member
from shard_cases import N, chunked, points

BANK = [Member(RBF(1.0), alphas=(0.5, (1.0, 3.0))), Member(RBF(1.0), "whitened", alphas=(0.5,))]
MODELS = {
    "mixture": {"kernel": BANK},
    "kernel": {"kernel": RBF(0.8), "selection": None},
    "per class": {"kernel": {0: RBF(0.7), 1: RBF(1.1), 2: RBF(0.7)}, "selection": None},
}
SOLVED = 1e-6  # to which the weights of a mixture are solved for; sums in another order move them by less
X, Y, Q = points()


def fitted(name, n=N, weights=None, **options):
    here = LGCPClassifier(**MODELS[name], **options).fit(X[:n], Y[:n], weights)
    there = DaskLGCPClassifier(**MODELS[name], **options)
    return here, there.fit(chunked(X[:n], 25), chunked(Y[:n], 25), chunked(weights, 25))


def assert_same(here, there):
    np.testing.assert_array_equal(there.classes_, here.classes_)
    np.testing.assert_allclose(there.mean_, here.mean_, rtol=0, atol=SOLVED)
    pairs = (
        (there.predict_proba(chunked(Q, 15)).compute(), here.predict_proba(Q)),
        (there.loo_predict_proba().compute(), here.loo_predict_proba()),
    )
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=0, atol=SOLVED)


@pytest.mark.parametrize("name", MODELS)
def test_rows_arrive_and_leave_as_on_one_machine(name):
    here, there = fitted(name, 80)
    here.__dict__.pop("_n_chosen", None)  # on a cluster, weights follow and nothing is chosen again
    here.partial_fit(X[80:83], Y[80:83])
    assert there.partial_fit(chunked(X[80:83], 2), chunked(Y[80:83], 2)) is there
    assert_same(here, there)
    here.partial_fit(X[83:], Y[83:])  # so many that the weights of a mixture follow
    there.partial_fit(chunked(X[83:], 4), chunked(Y[83:], 4))
    assert_same(here, there)
    for gone in ([0, 26, 81], np.arange(60), np.arange(N - 63) == 3):
        here.forget(gone)
        there.forget(gone)
        assert_same(here, there)
        np.testing.assert_array_equal(there.X_fit_.compute(), here.X_fit_)


def test_weights_count_and_rows_of_weight_zero_are_rows_all_the_same():
    weights = np.arange(N) % 3.0
    here, there = fitted("mixture", 80, weights[:80])
    here.partial_fit(X[80:], Y[80:], sample_weight=weights[80:])
    there.partial_fit(chunked(X[80:], 4), chunked(Y[80:], 4), sample_weight=chunked(weights[80:], 4))
    assert_same(here, there)
    assert there.X_fit_.shape == (N, 3)
    kept = np.flatnonzero(weights)
    gone = [3, 4, 30, 85]  # two of them have weight zero
    there.forget(gone)
    here.forget(np.isin(kept, gone))
    assert_same(here, there)
    np.testing.assert_array_equal(there.X_fit_.compute(), np.delete(X, gone, axis=0))


@pytest.mark.parametrize("name", ["mixture", "kernel"])
def test_new_classes_are_announced_and_leave_with_their_last_row(name):
    here, there = fitted(name)
    with pytest.raises(ValueError, match="y holds the class 7, which is new: announce it"):
        there.partial_fit(X[:2], np.array([7, 1]))
    for clf in (here, there):
        clf.partial_fit(X[:2] + 0.1, np.array([7, 1]), classes=[7])
    assert_same(here, there)
    assert there.classes_.tolist() == [0, 1, 2, 7]
    both = LGCPClassifier(**MODELS[name]), DaskLGCPClassifier(**MODELS[name])
    for clf in both:
        clf.partial_fit(X, Y, classes=[0, 1, 2, 5])
    assert_same(*both)
    gone = np.flatnonzero(Y == 2)
    for clf in both:
        clf.forget(gone)
    assert_same(*both)
    assert both[1].classes_.tolist() == [0, 1, 2, 5]
    here, there = fitted(name)
    here.forget(gone)
    there.forget(gone)
    assert_same(here, there)
    assert there.classes_.tolist() == [0, 1]


def test_too_few_classes_are_refused_and_nothing_changes():
    _, there = fitted("mixture")
    before = there.predict_proba(Q)
    with pytest.raises(ValueError, match="training rows of 1 classes would be left"):
        there.forget(Y > 0)
    bad = X[:3].copy()
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN: column 2 in row 1 of chunk 0"):
        there.partial_fit(bad, Y[:3])
    with pytest.raises(ValueError, match="there is no training row 90"):
        there.forget([N])
    np.testing.assert_array_equal(there.predict_proba(Q), before)
    assert there.forget([]) is there


@pytest.mark.parametrize("size", [25, N], ids=["chunks", "one chunk"])
def test_a_row_that_has_left_is_in_no_pickle(size):
    secret = X.copy()
    secret[7] = [123.0625, -321.0625, 77.0625]
    there = DaskLGCPClassifier(BANK).fit(chunked(secret, size), chunked(Y, size))
    there.partial_fit(X[:4], Y[:4])
    assert secret[7].tobytes() in pickle.dumps(there)
    there.forget([7])
    assert secret[7, :1].tobytes() not in pickle.dumps(there)


def test_a_shard_that_is_read_when_needed_leaves_the_row_out_each_time():
    lazy = da.random.default_rng(0).normal(size=(2000, 2), chunks=(1000, 2))
    y = (lazy[:, 0] > 0).astype(int)
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(lazy, y)
    clf.forget([5, 1500])
    left = np.delete(lazy.compute(), [5, 1500], axis=0)
    np.testing.assert_array_equal(clf.X_fit_.compute(), left)
    assert all(hasattr(chunk, "make") for _, chunk, *_ in clf._shards.references)


def test_what_is_chosen_again_is_what_fit_chooses():
    here, there = fitted("mixture", 80)
    for clf in (here, there):
        clf.partial_fit(X[80:], Y[80:]).forget([0, 1]).reselect()
    assert_same(here, there)
    assert_same(LGCPClassifier(BANK).fit(X[2:], Y[2:]), there)


@pytest.mark.parametrize("name", ["mixture", "kernel"])
def test_other_shares_of_the_classes(name):
    here, there = fitted(name)
    assert_same(here.with_priors([0.2, 0.3, 0.5]), there.with_priors({0: 2, 1: 3, 2: 5}))
    assert_same(here, there)
    with pytest.raises(ValueError, match="priors must have a share for each of 3 classes"):
        there.with_priors([1, 2])


@pytest.mark.parametrize("name", ["mixture", "kernel"])
def test_the_worth_of_columns(name):
    here, there = fitted(name, weights=1.0 + np.arange(N) % 2)
    found, expected = (clf.feature_importance(40, random_state=3) for clf in (there, here))
    np.testing.assert_array_equal(found["column"], expected["column"])
    for column in ("importance", "standard_error"):
        np.testing.assert_allclose(found[column], expected[column], rtol=0, atol=SOLVED)
    sparse = DaskLGCPClassifier(RBF(1.0), selection=None)
    sparse.fit(chunked(csr_array(X), 25), chunked(Y, 25))
    with pytest.raises(ValueError, match="feature_importance needs dense points"):
        sparse.feature_importance()


@pytest.mark.parametrize("name", MODELS)
def test_who_speaks_for_training_rows(name):
    weights = np.where(np.arange(N) == 2, 0.0, 1.0)
    here, there = fitted(name, weights=weights)
    rows = np.array([60, 3, 28])
    found, expected = there.loo_contributions(rows, top=2), here.loo_contributions(rows - 1, top=2)
    np.testing.assert_allclose(found.shares.compute(), expected.shares, rtol=0, atol=SOLVED)
    np.testing.assert_array_equal(found.rows.compute(), np.where(expected.rows < 2, expected.rows, expected.rows + 1))
    with pytest.raises(ValueError, match="row 2 of chunk 0 has weight 0"):
        there.loo_contributions([2]).shares.compute()
    with pytest.raises(ValueError, match="rows names no training row"):
        there.loo_contributions([])
