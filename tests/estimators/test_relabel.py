"""`relabel`: other labels for the same rows; classes that are announced; suggestions before any label."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs
from sklearn.gaussian_process.kernels import RBF
from sklearn.neighbors import kneighbors_graph

from coxfield import SLGCPClassifier
from tolerances import assert_close

X, TRUTH = make_blobs(150, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
NOTHING = np.full(150, -1)
DIGITS, DIGIT = (part[:500] for part in load_digits(return_X_y=True))


def some(n, truth=TRUTH):
    return np.where(np.arange(len(truth)) < n, truth, -1)


def assert_same_fit(one, other):
    np.testing.assert_array_equal(one.classes_, other.classes_)
    assert_close(one.label_distributions_, other.label_distributions_, terms=100)
    np.testing.assert_array_equal(one.transduction_, other.transduction_)
    assert_close(list(one.voices_.values()), list(other.voices_.values()), terms=100)
    np.testing.assert_array_equal(one.members_["covariance"], other.members_["covariance"])


@pytest.mark.parametrize(
    "before", [some(40, DIGIT), some(140, DIGIT), some(500, DIGIT), np.where(DIGIT < 3, DIGIT, -1)]
)
@pytest.mark.parametrize("after", [some(41, DIGIT), some(150, DIGIT), np.where(np.arange(500) % 50 < 2, DIGIT % 5, -1)])
def test_relabel_is_a_fit_with_these_labels(before, after):
    again = SLGCPClassifier().fit(DIGITS, before).relabel(after)
    fresh = SLGCPClassifier().fit(DIGITS, after)
    assert_same_fit(again, fresh)
    assert_close(again.predict_proba(DIGITS[::9]), fresh.predict_proba(DIGITS[::9]), terms=100)
    assert_close(again.map_, fresh.map_, terms=100, scale=10)


def test_more_classes_than_the_modes_were_made_for():
    rng = np.random.default_rng(0)
    points, many = make_blobs(400, centers=rng.normal(size=(20, 5)) * 9, random_state=0)
    again = SLGCPClassifier().fit(points, some(30, many % 2)).relabel(some(100, many))
    np.testing.assert_allclose(  # ARPACK looks for fewer modes first
        again.label_distributions_, SLGCPClassifier().fit(points, some(100, many)).label_distributions_, atol=1e-9
    )
    back = again.relabel(some(30, many % 2))
    np.testing.assert_allclose(
        back.label_distributions_, SLGCPClassifier().fit(points, some(30, many % 2)).label_distributions_, atol=1e-9
    )


@pytest.mark.parametrize("kernel", ["precomputed", "precomputed_distances"])
def test_graphs_are_kept_too(kernel):
    mode = "connectivity" if kernel == "precomputed" else "distance"
    graph = sparse.csr_array(kneighbors_graph(X, 10, mode=mode))
    graph = graph.maximum(graph.T)
    again = SLGCPClassifier(kernel).fit(graph, some(9)).relabel(some(12))
    assert_same_fit(again, SLGCPClassifier(kernel).fit(graph, some(12)))


def test_all_rows_labelled_and_back():
    clf = SLGCPClassifier().fit(X, some(9))
    clf.relabel(TRUTH)
    assert clf.inference_ == "supervised"
    assert not hasattr(clf, "members_")
    assert_same_fit(clf.relabel(some(12)), SLGCPClassifier().fit(X, some(12)))


def test_a_copy_from_a_file_can_be_relabelled():
    clf = pickle.loads(pickle.dumps(SLGCPClassifier().fit(X, some(9))))
    assert_same_fit(clf.relabel(some(12)), SLGCPClassifier().fit(X, some(12)))


def test_labels_that_are_refused_change_nothing():
    clf = SLGCPClassifier().fit(X, some(9))
    before = clf.label_distributions_
    for y, sentence in (
        (NOTHING, "no point is labelled"),
        (TRUTH[:10], "inconsistent numbers of samples"),
        (np.zeros(150), "at least two classes"),
    ):
        with pytest.raises(ValueError, match=sentence):
            clf.relabel(y)
    assert clf.label_distributions_ is before
    assert clf.predict(X[:1]) == TRUTH[:1]


def test_a_label_field_is_fitted_again():
    clf = SLGCPClassifier(RBF(1.0), selection=None).fit(X, some(9))
    with pytest.raises(ValueError, match="relabel needs what inference='mixture' keeps, but this was fitted by 'map'"):
        clf.relabel(some(12))


@pytest.mark.parametrize("y", [NOTHING, some(1)], ids=["no label", "one class"])
def test_before_the_second_class_only_questions_can_be_asked(y):
    clf = SLGCPClassifier(classes=[], random_state=0).fit(X, y)
    assert not hasattr(clf, "transduction_")
    rows = clf.suggest(3)
    assert len(set(TRUTH[rows].tolist()) | set(y[y >= 0].tolist())) == 3
    with pytest.raises(ValueError, match="ask for labels by suggest, and give them to relabel"):
        clf.predict(X)
    answered = y.copy()
    answered[rows] = TRUTH[rows]
    np.testing.assert_array_equal(clf.relabel(answered).transduction_, TRUTH)


def test_a_class_that_is_announced_has_the_rest():
    clf = SLGCPClassifier(classes=[7, 0, 1], random_state=0).fit(X, np.where(np.arange(150) < 20, TRUTH % 2, -1))
    assert clf.classes_.tolist() == [0, 1, 7]
    assert_close(clf.label_distributions_.sum(axis=1), 1.0, terms=3)
    far = TRUTH == 2
    y = np.where(np.arange(150) < 20, np.where(TRUTH == 2, -1, TRUTH), -1)
    shares = clf.relabel(y).label_distributions_[:, 2]
    assert shares[far].mean() > 3 * shares[~far].mean()
    assert (TRUTH[clf.suggest(1)] == 2).all()


def test_announced_classes_need_no_label():
    clf = SLGCPClassifier(classes=["a", "b"], missing_label=None, random_state=0).fit(X, [None] * 150)
    assert clf.classes_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="no training point is labelled yet"):
        clf.predict_proba(X)
    assert clf.suggest(2).shape == (2,)
    y = [None] * 150
    y[4], y[7] = "c", "a"
    assert clf.relabel(y).classes_.tolist() == ["a", "b", "c"]
    assert clf.label_distributions_[4].tolist() == [0, 0, 1]


def test_announced_classes_that_have_labels_change_nothing():
    assert_same_fit(
        SLGCPClassifier(classes=[2, 1, 0]).fit(X, some(9)),
        SLGCPClassifier().fit(X, some(9)),
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"classes": [0, -1]}, "classes holds missing_label=-1, which marks unknown labels"),
        ({"classes": ["a"]}, "classes holds 'a', but the known classes are such as 0"),
        ({"classes": [0, None]}, "classes holds a blank value"),
        ({"classes": [0, 1], "kernel": RBF(1.0)}, "classes are announced, but inference='map' needs a label of every"),
    ],
)
def test_classes_that_cannot_be(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        SLGCPClassifier(**options).fit(X, some(9))
