"""The default mixture on shards: every power gives what one machine does."""

from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import dask
from coxfield import LGCPClassifier
from coxfield.dask import DaskLGCPClassifier
from coxfield.dask import classifier as dask_classifier
from coxfield.dask.classifier import DaskLGCPClassifier as Classifier
from coxfield.kernels import Member
from shard_cases import N, points

BANK = [
    Member(RBF(1.0), alphas=(0.5, (1.0, 3.0))),
    Member(RBF(1.0), "whitened", alphas=(0.5,)),
    Member(RBF(1.0) * 2.0, "standardised", alphas=(0.0,)),
]
# The weights solve the concave problem to a gradient of 1e-6 nats; sums in another order move them by less.
SOLVED = 1e-6
CASES = ("plain", "weights", "float32", "many classes", "empty chunk")


def data(name):
    X, y, Q = points(dtype=np.float32 if name == "float32" else float)
    Q = np.concatenate([Q, 50 * Q[:5], 1e4 * Q[:3]])  # some are far from all points
    if name == "many classes":
        y = np.arange(N) % 36
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float) if name == "weights" else None
    return X, y, Q, weights


@cache
def both(name):
    import dask.array as da

    X, y, Q, weights = data(name)
    chunks = (40, 0, 50) if name == "empty chunk" else (40, 40, 10)
    cut = [None if each is None else da.from_array(each, chunks=(chunks, *each.shape[1:])) for each in (X, y, weights)]
    here = LGCPClassifier(BANK).fit(X, y, weights)
    return here, DaskLGCPClassifier(BANK).fit(*cut), Q, da.from_array(Q, chunks=(20, 3))


def assert_same(found, expected, name):
    tolerance = 2e-4 if name == "float32" else SOLVED
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", CASES)
def test_what_is_learned_and_predicted(name):
    here, there, Q, chunked = both(name)
    assert_same(there.mixture_["weight"], here.mixture_["weight"], name)
    assert_same(there.mean_, here.mean_, name)
    assert_same([there.loo_error_, there.loo_log_loss_], [here.loo_error_, here.loo_log_loss_], name)
    assert_same(there.predict_proba(chunked).compute(), here.predict_proba(Q), name)
    assert_same(there.class_scores(chunked).compute(), here.class_scores(Q), name)
    assert (there.predict(chunked).compute() == here.predict(Q)).mean() > 0.97


@pytest.mark.parametrize("name", CASES)
def test_what_the_points_say_about_each_other(name):
    here, there, _, _ = both(name)
    assert_same(there.loo_predict_proba().compute(), here.loo_predict_proba(), name)
    assert_same(there.label_quality()["probability"].compute(), here.label_quality()["probability"], name)


@pytest.mark.parametrize("name", ["plain", "weights", "empty chunk"])
@pytest.mark.parametrize("per_class", [False, True])
def test_sets_with_a_guarantee(name, per_class):
    here, there, Q, chunked = both(name)
    found = there.set_p_values(chunked, per_class=per_class).compute()
    np.testing.assert_allclose(found, here.set_p_values(Q, per_class=per_class), atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_reasons(name):
    here, there, Q, chunked = both(name)
    (found,), expected = dask.compute(there.contributions(chunked, top=3)), here.contributions(Q, top=3)
    assert_same(found.shares, expected.shares, name)
    assert_same(found.shares.sum(axis=2) + found.rest, here.class_scores(Q), name)


def test_the_default_is_the_mixture():
    assert Classifier().selection == LGCPClassifier().selection == "mixture"


def test_representations_of_a_sample_are_learned_from_the_sample(monkeypatch):
    """All points are in the sums. Of whitening, the rows that it has not seen need no correction."""
    import dask.array as da

    monkeypatch.setattr(dask_classifier, "SAMPLE", 60)
    X, y, Q, _ = data("plain")
    there = DaskLGCPClassifier(BANK, random_state=0).fit(da.from_array(X, chunks=(30, 3)), da.from_array(y, chunks=30))
    rows = np.sort(np.random.default_rng(0).choice(N, 60, replace=False))
    seen = there.kernel_.ladders
    whitened = [ladder.transform for ladder in seen if ladder.name == "whitened"]
    for transform in whitened:
        np.testing.assert_array_equal(np.flatnonzero(transform.labels_ >= 0), rows)
    here = LGCPClassifier(BANK).fit(X, y)
    found, expected = (clf.predict_proba(Q) for clf in (there, here))
    assert np.abs(found - expected).mean() < 0.1
