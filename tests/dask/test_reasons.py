import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import dask
from coxfield import LGCPClassifier
from coxfield.dask import DaskLGCPClassifier
from shard_cases import N, case, chunked, points
from tolerances import assert_close, assert_same_decisions


def both(name):
    of = case(name)
    here = LGCPClassifier(of.kernel, selection=None).fit(of.X, of.y, of.weights)
    there = DaskLGCPClassifier(of.kernel, selection=None)
    return of, here, there.fit(chunked(of.X, 25), chunked(of.y, 25), chunked(of.weights, 25))


@pytest.mark.parametrize("name", ["dense", "per class", "text"])
def test_contributions_are_those_of_one_machine(name):
    of, here, there = both(name)
    (found,) = dask.compute(there.contributions(chunked(of.Q, 15), top=4))
    expected = here.contributions(of.Q, top=4)
    how = {"terms": N, "condition": of.condition}
    assert_close(found.shares, expected.shares, **how)
    assert_close(found.rest, expected.rest, scale=np.abs(here.class_scores(of.Q)), **how)
    assert_close(found.prior, expected.prior)
    clear = np.abs(np.diff(expected.shares, axis=2)).min(axis=2) > 1e-9  # of equal shares, either may come first
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(found.rows[clear], expected.rows[clear])
    assert set(found.table()) == {"query", "class", "rank", "row", "share"}


def test_classes_with_few_rows_name_no_others():
    X, y, Q = points()
    y = np.where(np.arange(N) == 60, 7, np.minimum(y, 1))
    there = DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(X, 25), chunked(y, 25))
    (found,) = dask.compute(there.contributions(chunked(Q, 15), top=2))
    np.testing.assert_array_equal(found.rows[:, 2], np.tile([60, -1], (len(Q), 1)))
    assert (found.shares[:, 2, 1] == 0).all()


@pytest.mark.parametrize("name", ["dense", "weights"])
def test_label_quality_is_that_of_one_machine(name):
    of, here, there = both(name)
    (found,) = dask.compute(there.label_quality())
    expected = here.label_quality()
    kept = np.arange(N) if of.weights is None else np.flatnonzero(of.weights)
    np.testing.assert_array_equal(found["row"], kept)
    np.testing.assert_array_equal(found["label"], expected["label"])
    how = {"terms": N, "condition": of.condition}
    for column in ("probability", "suggested_probability"):
        assert_close(found[column], expected[column], **how, scale=1.0)
    scores = here.loo_class_scores()
    assert_same_decisions(found["suggested"], expected["suggested"], scores, **how)
    order = np.argsort(found["margin"], kind="stable")
    assert np.abs(expected["rank"][order] - np.arange(len(order))).max() <= 2  # but for ties
    assert_close(there.loo_predict_proba().compute(), here.loo_predict_proba(), **how, scale=1.0)
    np.testing.assert_array_equal(there.loo_predict().compute(), found["suggested"])
