"""The default mixture on shards: every power gives what one machine does."""

from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss

import dask
from coxfield import LGCPClassifier
from coxfield.dask import DaskLGCPClassifier
from coxfield.dask import classifier as dask_classifier
from coxfield.dask.classifier import DaskLGCPClassifier as Classifier
from coxfield.kernels import Member
from coxfield.selection.mixture import learn
from shard_cases import N, chunked, points

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


def test_many_rows_are_learned_from_samples_as_on_one_machine(monkeypatch):
    for name, value in (("MANY", 500), ("PILOT", 300), ("LEFT_OUT", 400)):
        monkeypatch.setattr(learn, name, value)
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1200)
    X = rng.normal(size=(1200, 4)) + 1.3 * np.eye(3, 4)[y]
    Z, truth = X[900:], y[900:]
    X, y = X[:900], y[:900]
    here = LGCPClassifier(bank="simple", random_state=0).fit(X, y)
    there = DaskLGCPClassifier(random_state=0).fit(chunked(X, 200), chunked(y, 200))
    assert there.fit_report_ == here.fit_report_
    assert there.fit_report_["n_left_out"] > 0
    # The order of the rows in cells differs, so the points that stand for those that are far do too.
    found = (here.predict_proba(Z), there.predict_proba(chunked(Z, 100)).compute())
    losses = [log_loss(truth, each) for each in found]
    assert losses[1] == pytest.approx(losses[0], rel=0.01)
    exact = DaskLGCPClassifier(exact=True).fit(chunked(X, 200), chunked(y, 200))
    assert exact.fit_report_["n_pilot"] == 0
    here = LGCPClassifier(bank="simple", exact=True).fit(X, y)
    np.testing.assert_allclose(exact.predict_proba(chunked(Z, 100)).compute(), here.predict_proba(Z), atol=1e-6)


def test_densities_over_a_sample_of_shards_stand_for_all_rows(monkeypatch):
    for name, value in (("MANY", 500), ("PILOT", 300), ("LEFT_OUT", 400)):
        monkeypatch.setattr(learn, name, value)
    monkeypatch.setattr(dask_classifier, "SAMPLE", 600)
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=2400)
    X = rng.normal(size=(2400, 3)) + np.eye(2, 3)[y]
    Z, truth = X[1200:], y[1200:]
    X, y = chunked(X[:1200], 300), chunked(y[:1200], 300)
    fitted = (DaskLGCPClassifier(random_state=0, exact=exact).fit(X, y) for exact in (True, False))
    losses = [log_loss(truth, clf.predict_proba(chunked(Z, 400)).compute()) for clf in fitted]
    assert losses[1] < 1.03 * losses[0]
