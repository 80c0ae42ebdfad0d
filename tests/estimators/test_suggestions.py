"""`SLGCPClassifier.suggest`: which labels to ask for next."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from coxfield import SLGCPClassifier

TRUTH = np.arange(90) % 3
X = np.random.default_rng(0).normal(size=(90, 2)) + 8 * np.array([[0, 0], [1, 0], [0, 1]])[TRUTH]
Y = np.where(np.arange(90) < 2, TRUTH, -1)  # no label in the third cloud


def fitted(y=Y, **options):
    return SLGCPClassifier(**{"random_state": 0} | options).fit(X, y)


def test_the_first_question_is_about_the_cloud_without_a_label():
    rows = fitted().suggest()
    assert rows.shape == (1,)
    assert TRUTH[rows[0]] == 2


def test_questions_are_about_rows_without_a_label_each_once():
    clf = fitted(np.array([None if known < 0 else "abc"[known] for known in Y], dtype=object), missing_label=None)
    rows = clf.suggest(88)
    assert sorted(rows.tolist()) == list(range(2, 90))


def test_the_same_random_state_asks_the_same_in_each_call_and_after_pickling():
    clf = fitted()
    rows = clf.suggest(4)
    np.testing.assert_array_equal(clf.suggest(4), rows)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).suggest(4), rows)
    np.testing.assert_array_equal(clf.suggest(np.int64(2)), rows[:2])


def test_asking_changes_nothing_in_the_classifier():
    clf = fitted()
    before = clf.predict_proba(X)
    clf.suggest(3)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_graphs_and_listed_distances_can_be_asked_about():
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    for kernel, matrix in (("precomputed", np.exp(-(distances**2))), ("precomputed_distances", distances)):
        clf = SLGCPClassifier(kernel, random_state=0).fit(matrix, Y)
        assert TRUTH[clf.suggest()[0]] == 2


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", None, True])
def test_a_number_that_is_none_is_refused(n):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got"):
        fitted().suggest(n)


def test_more_questions_than_points_without_a_label_are_refused():
    with pytest.raises(ValueError, match="n=89 labels are asked for, but only 88 training points have none"):
        fitted().suggest(89)


def test_a_classifier_that_is_not_fitted_cannot_ask():
    with pytest.raises(NotFittedError):
        SLGCPClassifier().suggest()


def test_there_is_nothing_to_ask_if_all_labels_are_known():
    with pytest.raises(ValueError, match="every training point is labelled, so there is no label to ask for"):
        fitted(TRUTH).suggest()


def test_other_inferences_do_not_ask():
    with pytest.raises(ValueError, match=r"inference='mixture', but this was fitted by 'map'"):
        fitted(kernel=0.2 * RBF(1.0), selection=None, y=np.where(np.arange(90) < 9, TRUTH, -1)).suggest()
