"""Knowledge beside labels: class shares, a guess per row, weights of labels; and units that do not matter."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import cross_val_score

from coxfield import SLGCPClassifier
from coxfield.graphs.experts import SOFTNESS, meet_shares
from tolerances import assert_close

X, TRUTH = make_blobs([120, 60, 20], centers=[[0, 0], [3, 0], [0, 3]], random_state=0)
Y = np.full(200, -1)
Y[[0, 1, 120, 121, 180, 181]] = TRUTH[[0, 1, 120, 121, 180, 181]]
BLANK = Y < 0
PLAIN = SLGCPClassifier().fit(X, Y)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 5))
def test_shares_are_met_within_the_softness(seed, n_classes):
    rng = np.random.default_rng(seed)
    logs, shares = rng.normal(size=(50, n_classes)) * 3, rng.dirichlet(np.ones(n_classes))
    d = meet_shares(softmax(logs, axis=1), shares)
    np.testing.assert_allclose(softmax(logs + d, axis=1).mean(axis=0), shares - SOFTNESS * d, atol=1e-8)
    assert abs(d.sum()) < 1e-6  # nobody gains by a constant


def test_known_shares_are_those_of_all_points():
    clf = SLGCPClassifier(class_prior={0: 0.6, 1: 0.3, 2: 0.1}).fit(X, Y)
    found = clf.label_distributions_.mean(axis=0)
    assert np.abs(found - [0.6, 0.3, 0.1]).max() < SOFTNESS * 3
    assert (
        np.abs(found - [0.6, 0.3, 0.1]).max() < np.abs(PLAIN.label_distributions_.mean(axis=0) - [0.6, 0.3, 0.1]).max()
    )
    np.testing.assert_array_equal(clf.label_distributions_[~BLANK].argmax(axis=1), Y[~BLANK])
    counts = SLGCPClassifier(class_prior={0: 120, 1: 60, 2: 20}).fit(X, Y)
    assert_close(counts.label_distributions_, clf.label_distributions_, terms=100)
    assert clf.predict_proba(X[:3]).shape == (3, 3)


def test_balanced_means_equal_shares():
    balanced = SLGCPClassifier(class_prior="balanced").fit(X, Y)
    equal = SLGCPClassifier(class_prior=dict.fromkeys(range(3), 1.0)).fit(X, Y)
    assert_close(balanced.label_distributions_, equal.label_distributions_, terms=100)


def test_shares_that_points_contradict_are_told():
    y = np.where(np.arange(200) % 5 == 0, TRUTH, -1)
    with pytest.warns(UserWarning, match="class_prior leaves .* to class 0, but .* are nearly certain to be of it"):
        SLGCPClassifier(class_prior={0: 0.1, 1: 0.1, 2: 0.8}).fit(X, y)


@pytest.mark.parametrize(
    ("class_prior", "sentence"),
    [
        ("equal", "class_prior must be None, 'balanced', or a mapping"),
        ({0: 0.5, 1: 0.5}, "class_prior has no share for class 2"),
        ({0: 0.5, 1: 0.5, 2: 0.1, 7: 0.1}, "class_prior has a share for 7, not a class"),
        ({0: -1, 1: 1, 2: 1}, "class_prior must hold shares from 0 on, got -1 for class 0"),
        ({0: 0, 1: 0, 2: 0}, "class_prior is zero everywhere"),
    ],
)
def test_shares_that_cannot_be(class_prior, sentence):
    with pytest.raises(ValueError, match=sentence):
        SLGCPClassifier(class_prior=class_prior).fit(X, Y)


def test_a_uniform_or_blank_guess_changes_nothing():
    for guess in (np.full((200, 3), 1 / 3), np.full((200, 3), np.nan), np.zeros((200, 3)), np.full((200, 3), 7.0)):
        found = SLGCPClassifier().fit(X, Y, prior=guess)
        assert_close(found.label_distributions_, PLAIN.label_distributions_, terms=100)


def test_a_certain_guess_decides():
    certain = np.full((200, 3), np.nan)
    certain[BLANK] = np.eye(3)[(TRUTH[BLANK] + 1) % 3]  # another class at each point, and no guess at labels
    clf = SLGCPClassifier().fit(X, Y, prior=certain)
    np.testing.assert_array_equal(clf.transduction_[BLANK], (TRUTH[BLANK] + 1) % 3)
    np.testing.assert_array_equal(clf.transduction_[~BLANK], Y[~BLANK])


def test_labels_say_how_far_to_trust_a_guess():
    y = np.where(np.arange(200) % 5 == 0, TRUTH, -1)
    right = np.eye(3)[TRUTH] * 0.5 + 0.5 / 3
    wrong = right[:, [1, 2, 0]]
    plain, good, bad = (
        np.mean(SLGCPClassifier().fit(X, y, prior=guess).transduction_ != TRUTH) for guess in (None, right, wrong)
    )
    assert good < plain
    assert bad < plain + 0.03


def test_a_guess_needs_no_label():
    guess = np.eye(3)[TRUTH] * 0.5 + 0.5 / 3
    clf = SLGCPClassifier(classes=[0, 1, 2]).fit(X, np.full(200, -1), prior=guess)
    np.testing.assert_array_equal(clf.transduction_, TRUTH)


def test_a_guess_may_be_a_table_with_a_column_per_class():
    guess = np.random.default_rng(0).dirichlet(np.ones(3), size=200)
    array = SLGCPClassifier().fit(X, Y, prior=guess)
    table = SLGCPClassifier().fit(X, Y, prior=pd.DataFrame(guess[:, ::-1], columns=[2, 1, 0]))
    mapping = SLGCPClassifier().fit(X, Y).relabel(Y, prior={k: guess[:, k] for k in range(3)})
    for other in (table, mapping):
        assert_close(other.label_distributions_, array.label_distributions_, terms=100)


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        (np.ones((200, 2)), "prior must have a row per point and a column per class"),
        (-np.ones((200, 3)), "prior must hold probabilities, got"),
        ({0: np.ones(200), 1: np.ones(200)}, "prior has no column 2"),
    ],
)
def test_guesses_that_cannot_be(prior, sentence):
    with pytest.raises(ValueError, match=sentence):
        SLGCPClassifier().fit(X, Y, prior=prior)


def test_weights_of_one_change_nothing_and_labels_of_weight_0_are_unknown():
    ones = SLGCPClassifier().fit(X, Y, sample_weight=np.ones(200))
    assert_close(ones.label_distributions_, PLAIN.label_distributions_, terms=100)
    weights = np.ones(200)
    weights[[1, 121]] = 0
    without = Y.copy()
    without[[1, 121]] = -1
    assert_close(
        SLGCPClassifier().fit(X, Y, weights).label_distributions_,
        SLGCPClassifier().fit(X, without).label_distributions_,
        terms=100,
    )


def test_a_label_of_more_weight_speaks_louder():
    heavy = np.ones(200)
    heavy[120] = 50.0
    y = Y.copy()
    y[121] = 0  # a wrong label beside it
    plain, weighted = (SLGCPClassifier().fit(X, y, w).label_distributions_[122:180, 1].mean() for w in (None, heavy))
    assert weighted > plain


def test_label_fields_take_neither():
    clf = SLGCPClassifier(RBF(1.0), selection=None)
    with pytest.raises(ValueError, match="prior needs inference='mixture', but the inference is 'map'"):
        clf.fit(X, Y, prior=np.ones((200, 3)))
    with pytest.raises(ValueError, match="sample_weight with different weights needs inference='mixture'"):
        clf.fit(X, Y, np.arange(200.0))


WINE, KIND = load_wine(return_X_y=True)
SOME = np.where(np.arange(178) % 12 == 0, KIND, -1)


def wrong(points, y=SOME, truth=KIND):
    return np.mean(SLGCPClassifier().fit(points, y).transduction_ != truth)


def test_units_of_a_table_do_not_matter():
    plain = SLGCPClassifier().fit(WINE, SOME)
    assert np.mean(plain.transduction_ != KIND) < 0.06
    for column in (0, 12):
        other = WINE.copy()
        other[:, column] *= 1e6
        np.testing.assert_array_equal(SLGCPClassifier().fit(other, SOME).transduction_, plain.transduction_)
    new = plain.predict_proba(WINE[:20] + 0.0)
    assert_close(new.sum(axis=1), 1.0, terms=4)


def test_the_order_of_columns_does_not_matter():
    turned = SLGCPClassifier().fit(WINE[:, ::-1], SOME)
    np.testing.assert_array_equal(turned.transduction_, SLGCPClassifier().fit(WINE, SOME).transduction_)


def test_outliers_constant_columns_and_duplicates():
    outlier = WINE.copy()
    outlier[100, 3] = 1e6
    assert wrong(outlier) < 0.08
    assert wrong(np.column_stack([WINE, np.full(178, 3.0)])) == wrong(WINE)
    twice = np.concatenate([WINE, WINE])
    assert wrong(twice, np.concatenate([SOME, np.full(178, -1)]), np.concatenate([KIND, KIND])) < 0.08
    same = np.concatenate([WINE, np.repeat(WINE[:1], 1600, axis=0)])
    found = SLGCPClassifier().fit(same, np.concatenate([SOME, np.full(1600, -1)])).transduction_
    assert np.mean(found[:178] != KIND) < 0.15
    assert (found[178:] == KIND[0]).all()


def test_a_ruined_unit_of_a_picture_costs_little():
    pixels, digit = (part[:500] for part in load_digits(return_X_y=True))
    y = np.where(np.arange(500) < 100, digit, -1)
    ruined = pixels.copy()
    ruined[:, 20] *= 1e6
    assert wrong(ruined, y, digit) < wrong(pixels, y, digit) + 0.04


def test_one_label_per_class_is_not_far_too_modest():
    """The number of errors to expect was four times the number of errors."""
    pixels, digit = (part[:600] for part in load_digits(return_X_y=True))
    expected, found = 0.0, 0
    clf = None
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = np.full(600, -1)
        for k in range(10):
            y[rng.choice(np.flatnonzero(digit == k))] = k
        clf = SLGCPClassifier().fit(pixels, y) if clf is None else clf.relabel(y)
        expected += float((1 - clf.label_distributions_.max(axis=1)).sum())
        found += int(np.sum(clf.transduction_ != digit))
    assert 0.5 < expected / found < 2.5


def test_no_warning_where_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SLGCPClassifier(class_prior={0: 0.6, 1: 0.3, 2: 0.1}).fit(X, Y)


def test_rows_without_a_label_are_not_scored():
    y = np.where(np.arange(200) % 5 == 0, TRUTH, -1)
    known = y >= 0
    assert PLAIN.score(X, y) == np.mean(PLAIN.predict(X[known]) == TRUTH[known])
    assert cross_val_score(SLGCPClassifier(), X, y, cv=3).mean() > 0.7
    with pytest.raises(ValueError, match="no label is known, so there is nothing to score: all are -1"):
        PLAIN.score(X, np.full(200, -1))


def test_an_empty_text_is_not_a_class():
    y = np.where(BLANK, "", np.array(["a", "b", "c"])[TRUTH])
    with pytest.raises(ValueError, match="y holds '' in row 2, which names no class: give missing_label=''"):
        SLGCPClassifier().fit(X, y)
    np.testing.assert_array_equal(SLGCPClassifier(missing_label="").fit(X, y).classes_, ["a", "b", "c"])
