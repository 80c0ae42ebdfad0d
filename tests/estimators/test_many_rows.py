"""`LGCPClassifier` where rows are many: what it says of its samples, and what stays exact."""

import pickle
from copy import copy

import numpy as np
import pytest

from coxfield import LGCPClassifier
from coxfield.engine import near_sums
from coxfield.estimators import supervised
from coxfield.io.model_file import load, save
from coxfield.selection.mixture import learn

N = 900


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(learn, "MANY", 500)
    monkeypatch.setattr(learn, "PILOT", 300)
    monkeypatch.setattr(learn, "LEFT_OUT", 400)


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 1.3 * np.eye(3, 4)[y], y


X, Y = rows()
Z, TRUTH = rows(200, 1)


@pytest.fixture(scope="module")
def fitted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn, "MANY", 500)
        patch.setattr(learn, "PILOT", 300)
        patch.setattr(learn, "LEFT_OUT", 400)
        yield LGCPClassifier(random_state=0).fit(X, Y)


def test_the_report_says_what_was_sampled(fitted):
    report = fitted.fit_report_
    assert report["n_rows"] == N
    assert 300 <= report["n_pilot"] < 320
    assert 0 < report["n_left_out"] <= N
    assert report["n_candidates"] > 0


def test_few_rows_and_exact_fits_sample_nothing(monkeypatch):
    nothing = {"n_pilot": 0, "n_left_out": 0, "n_candidates": 0, "near_cells": 0}
    exact = LGCPClassifier(exact=True).fit(X, Y)
    assert exact.fit_report_ == {"n_rows": N, **nothing}
    assert LGCPClassifier().fit(X[:400], Y[:400]).fit_report_ == {"n_rows": 400, **nothing}
    monkeypatch.setattr(learn, "MANY", N)
    np.testing.assert_array_equal(LGCPClassifier().fit(X, Y).predict_proba(Z), exact.predict_proba(Z))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_seed_gives_the_same_model_on_any_number_of_threads(fitted, n_jobs):
    again = LGCPClassifier(random_state=0, n_jobs=n_jobs).fit(X, Y)
    # The rows that are drawn are the same. Sums are cut into other tiles, so their last bits differ.
    assert again.fit_report_ == fitted.fit_report_
    rounding = 16 * np.finfo(np.float32).eps
    np.testing.assert_allclose(again.mixture_["weight"], fitted.mixture_["weight"], rtol=rounding)
    largest = np.abs(fitted.class_scores(Z)).max()
    np.testing.assert_allclose(again.predict_proba(Z), fitted.predict_proba(Z), rtol=0, atol=rounding * largest)


def exactly(fitted):
    """The same model, whose sums are in double precision."""
    return copy(fitted).set_params(exact=True)


def test_predictions_in_single_precision_are_near_exact_ones(fitted):
    found, expected = fitted.predict_proba(Z), exactly(fitted).predict_proba(Z)
    assert (found != expected).any()  # otherwise this test compares nothing
    # A class score is a sum of positive terms, so its error is a few roundings of it; probabilities follow scores.
    largest = np.abs(fitted.class_scores(Z)).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=16 * np.finfo(np.float32).eps * largest)


def test_pickles_and_files_keep_the_report_and_the_predictions(fitted, tmp_path):
    expected = fitted.predict_proba(Z)
    save(fitted, tmp_path / "model.skops", target="y", features=list("abcd"))
    for again in (pickle.loads(pickle.dumps(fitted)), load(tmp_path / "model.skops").model):
        assert again.fit_report_ == fitted.fit_report_
        np.testing.assert_allclose(again.predict_proba(Z), expected, rtol=0, atol=1e-6)


def test_rows_that_leave_are_gone_from_the_sums_in_single_precision(fitted):
    clf = LGCPClassifier(random_state=0).fit(X, Y)
    clf.predict_proba(Z)  # holds the sums in single precision
    clf.forget([3, 5])
    exact = clf.predict_proba(Z)
    clf.set_params(exact=True)
    np.testing.assert_allclose(exact, clf.predict_proba(Z), rtol=0, atol=1e-5)


def with_near_cells(visible):
    """A model whose predictions may visit near cells only, if that changes the log loss by so small a share."""
    with pytest.MonkeyPatch.context() as patch:
        small = {"NEAR_FROM": N, "CELL": 10, "JUDGED": 200, "VISIBLE": visible}
        for name, value in {**small, "NEAR_SHARES": np.array([0.02, 0.1, 0.3])}.items():
            patch.setattr(supervised, name, value)
        patch.setattr(near_sums, "CELL", 10)
        patch.setattr(near_sums, "LEAST", 20)
        clf = LGCPClassifier(random_state=0).fit(X, Y)
        clf.predict_proba(Z[:1])  # the points are in cells of this size from now on
        return clf


@pytest.fixture(scope="module")
def near(fitted):
    return with_near_cells(0.02)


def divergence(exact, found):
    """The mean of what the log loss grows by, if labels are drawn with the exact probabilities."""
    return np.mean(np.sum(exact * np.log(exact / found), axis=1))


def test_predictions_from_near_cells_are_as_near_as_was_asked_for(near):
    assert 0 < near.fit_report_["near_cells"] <= 0.3 * N / 10
    found, exact = near.predict_proba(Z), exactly(near).predict_proba(Z)
    assert np.abs(found - exact).max() > 1e-4  # otherwise this test compares nothing
    loss = -np.log(exact[np.arange(len(Z)), TRUTH]).mean()
    # Chosen by rows that were left out, so other rows may differ a little more.
    assert divergence(exact, found) < 2 * 0.02 * loss


def test_smaller_changes_need_more_cells_and_none_needs_all(near):
    assert with_near_cells(0.5).fit_report_["near_cells"] < near.fit_report_["near_cells"]
    assert with_near_cells(0.0).fit_report_["near_cells"] == 0


def test_files_keep_the_number_of_near_cells(near, tmp_path):
    save(near, tmp_path / "model.skops", target="y", features=list("abcd"))
    for again in (pickle.loads(pickle.dumps(near)), load(tmp_path / "model.skops").model):
        assert again.fit_report_ == near.fit_report_


def test_one_row_is_predicted_as_among_others(near):
    one = np.vstack([near.predict_proba(row[None]) for row in Z[:5]])
    largest = np.abs(near.class_scores(Z)).max()
    np.testing.assert_allclose(one, near.predict_proba(Z)[:5], rtol=0, atol=256 * np.finfo(np.float32).eps * largest)


def test_contributions_are_exact(fitted):
    found, exact = fitted.contributions(Z[:5], top=3), exactly(fitted)
    sums = found.shares.sum(axis=2) + found.rest
    np.testing.assert_allclose(sums, exact.class_scores(Z[:5]), rtol=1e-10)


def test_a_rare_class_is_found():
    rng = np.random.default_rng(0)
    n, rare = 4000, 4
    X, y = rng.normal(size=(n, 5)), np.zeros(n, int)
    y[:rare], X[:rare] = 1, rng.normal(size=(rare, 5)) + 6
    clf = LGCPClassifier(random_state=0).fit(X, y)
    exact = LGCPClassifier(exact=True).fit(X, y)
    asked = rng.normal(size=(100, 5)) + 6
    assert abs(np.mean(clf.predict(asked)) - np.mean(exact.predict(asked))) <= 0.05
    assert clf.predict(rng.normal(size=(100, 5))).sum() == 0
