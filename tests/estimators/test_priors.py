"""Weights and shares of classes: an exact shift of prior probabilities."""

import numpy as np
import pytest

from coxfield import LGCPClassifier
from coxfield.datasets import load_synth

X, Y, *_ = load_synth(return_X_y=True)
UNEVEN = np.flatnonzero((Y == 0) | (np.arange(len(Y)) % 4 == 0))  # about 125 against 31
KINDS = [{}, {"selection": "loo_error"}, {"selection": "pseudo_likelihood"}, {"selection": None}]


def shifted(probabilities, factors):
    found = probabilities * factors
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_weights_multiply_the_odds(options):
    plain = LGCPClassifier(**options).fit(X, Y)
    weighed = LGCPClassifier(**options, class_weight={1: 5.0}).fit(X, Y)
    np.testing.assert_allclose(weighed.predict_proba(X), shifted(plain.predict_proba(X), [1, 5]), rtol=1e-9)
    loo = shifted(plain.loo_predict_proba(), [1, 5])
    np.testing.assert_allclose(weighed.loo_predict_proba(), loo, rtol=1e-9)
    if options.get("selection", "mixture") is not None:
        assert weighed.loo_error_ == pytest.approx(np.mean(loo.argmax(axis=1) != Y))
    if not options:
        assert weighed.loo_log_loss_ == pytest.approx(-np.log(loo[np.arange(len(Y)), Y]).mean())


def test_balanced_classes_are_equally_probable_beforehand():
    X_, y = X[UNEVEN], Y[UNEVEN]
    counts = np.bincount(y)
    plain, balanced = LGCPClassifier().fit(X_, y), LGCPClassifier(class_weight="balanced").fit(X_, y)
    np.testing.assert_allclose(
        balanced.predict_proba(X), shifted(plain.predict_proba(X), counts.sum() / (2 * counts)), rtol=1e-9
    )
    np.testing.assert_allclose(plain.with_priors([0.5, 0.5]).predict_proba(X), balanced.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(
        balanced.with_priors({0: 3, 1: 7}).predict_proba(X),
        plain.with_priors({0: 0.3, 1: 0.7}).predict_proba(X),
        rtol=1e-9,
    )


def test_new_shares_are_an_exact_shift_and_the_old_object_stays():
    clf = LGCPClassifier().fit(X[UNEVEN], Y[UNEVEN])
    before = clf.predict_proba(X)
    old = np.bincount(Y[UNEVEN]) / len(UNEVEN)
    rare = clf.with_priors({0: 0.99, 1: 0.01})
    np.testing.assert_allclose(rare.predict_proba(X), shifted(before, np.array([0.99, 0.01]) / old), rtol=1e-9)
    reasons = rare.contributions(X[:5], top=2)
    np.testing.assert_allclose(reasons.shares.sum(axis=2) + reasons.rest, rare.class_scores(X[:5]))
    assert rare.loo_error_ == pytest.approx(np.mean(rare.loo_predict() != Y[UNEVEN]))
    rare.forget([0, 1, 2])
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    same = clf.with_priors(old)
    np.testing.assert_allclose(same.predict_proba(X), before, rtol=1e-9)


def test_weights_outlive_rows_that_come_and_go():
    clf = LGCPClassifier(class_weight={1: 5.0}).fit(X[:200], Y[:200])
    plain = LGCPClassifier().fit(X[:200], Y[:200])
    for model in (clf, plain):
        model.partial_fit(X[200:], Y[200:]).forget(np.arange(40))  # so many that the weights of members follow
    np.testing.assert_allclose(clf.predict_proba(X), shifted(plain.predict_proba(X), [1, 5]), rtol=1e-7)


def test_a_class_that_arrives_has_its_weight():
    y = Y.astype(object)
    y[:] = np.where(Y == 0, "a", "b")
    clf = LGCPClassifier(class_weight={"a": 1.0}).fit(X, y.astype(str))
    late = LGCPClassifier(class_weight="balanced").fit(X, y.astype(str))
    for model in (clf, late):
        model.partial_fit(X[:3], ["c"] * 3, classes=["c"])  # among the others: rows far away would move all weights
    total = len(X) + 3
    assert clf.mean_[2] == pytest.approx(np.log(3 / total))
    assert late.mean_[2] == pytest.approx(np.log(1 / 3))


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("even", "class_weight must be None, 'balanced' or a mapping class -> weight, got 'even'"),
        ({7: 1.0}, r"class_weight names 7, which is not a class: the classes are \[0, 1\]"),
        ({1: 0.0}, "class_weight of 1 must be"),
    ],
)
def test_wrong_weights_are_refused(weight, words):
    with pytest.raises(ValueError, match=words):
        LGCPClassifier(class_weight=weight).fit(X, Y)


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ({0: 1.0}, r"priors must name all classes, \[0, 1\], got \[0\]"),
        ([1.0], "priors must have a share for each of 2 classes"),
        ([1.0, 0.0], "the prior of 1 must be"),
    ],
)
def test_wrong_shares_are_refused(priors, words):
    clf = LGCPClassifier(selection="loo_error").fit(X, Y)
    with pytest.raises(ValueError, match=words):
        clf.with_priors(priors)
