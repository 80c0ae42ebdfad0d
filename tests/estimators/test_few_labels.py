import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_circles, make_double_helix
from coxfield.estimators import few_labels
from coxfield.graphs.experts import Opinion
from tolerances import assert_close, assert_same_decisions

MARGIN = 0.05  # of probabilities: far above what rounding of modes does to them, which is 1e-6


def blobs(n_classes=3, n=150, d=2):
    angle = 2 * np.pi * np.arange(n_classes) / n_classes
    on_circle = 4 * n_classes * np.column_stack([np.cos(angle), np.sin(angle)])
    centres = on_circle if d == 2 else 12 * np.eye(d)[:n_classes]
    X, truth = make_blobs(n, centers=centres, random_state=0)
    return X, truth, one_per_class(truth)


def rings():
    X, truth = make_circles(2, random_state=0)
    return X, truth, one_per_class(truth)


def one_per_class(truth):
    y = np.full(len(truth), -1)
    for c in np.unique(truth):
        y[np.flatnonzero(truth == c)[0]] = c
    return y


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_one_label_per_class_is_enough_for_blobs(n_classes):
    X, truth, y = blobs(n_classes)
    clf = SLGCPClassifier().fit(X, y)
    np.testing.assert_array_equal(clf.transduction_, truth)
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.label_distributions_[y >= 0], np.eye(n_classes)[y[y >= 0]])
    assert clf.voices_ == {"average": 1.0, "mixture": 0.0, "labelled points alone": 0.0, "minimum cut": 0.0}
    assert clf.inference_ == "mixture"


def test_one_label_per_ring_is_enough():
    X, truth, y = rings()
    assert np.mean(SLGCPClassifier().fit(X, y).transduction_ != truth) < 0.02


def test_the_cut_follows_thin_shapes_over_long_stretches_without_a_label():
    X, truth = make_double_helix(random_state=14)
    y = np.full(len(truth), -1)
    known = np.random.default_rng(14).choice(len(truth), 20, replace=False)
    y[known] = truth[known]
    clf = SLGCPClassifier().fit(X, y)
    assert clf.voices_["minimum cut"] > 0.3
    assert np.mean(clf.transduction_ != truth) < 0.02  # 0.03 without it
    assert np.mean(clf.transduction_ != clf.predict(X)) < 0.01
    assert np.mean(clf.predict(X + 1e-3) != truth) < 0.05


def test_blobs_in_many_dimensions_and_more_points_than_dense_modes():
    X, truth, y = blobs(4, n=400, d=20)
    np.testing.assert_array_equal(SLGCPClassifier().fit(X, y).transduction_, truth)


@pytest.mark.parametrize("container", [pd.DataFrame, lambda X: X.astype(np.float32), np.asfortranarray])
def test_containers_and_strings_give_the_same_labels(container):
    X, truth, y = blobs()
    names = np.array(["a", "b", "c", ""])
    X_ = container(X)
    if isinstance(X_, pd.DataFrame):
        X_.columns = ["u", "v"]
    clf = SLGCPClassifier(missing_label="").fit(X_, names[y])
    np.testing.assert_array_equal(clf.transduction_, names[truth])
    assert clf.predict(X_[:5]).tolist() == names[truth[:5]].tolist()


def test_new_rows_may_be_sparse_where_those_of_the_fit_were_not():
    X = np.random.default_rng(0).normal(size=(60, 3))
    clf = SLGCPClassifier().fit(X, np.where(np.arange(60) < 20, X[:, 0] > 0, -1))
    np.testing.assert_array_equal(clf.predict_proba(sparse.csr_array(X[:5])), clf.predict_proba(X[:5]))


def test_sparse_rows_are_labelled_by_angle():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 60)
    rates = np.full((3, 30), 0.1)
    for c in range(3):
        rates[c, 10 * c : 10 * c + 10] = 3.0
    X = sparse.csr_array(rng.poisson(rates[truth]).astype(float))
    clf = SLGCPClassifier().fit(X, one_per_class(truth))
    assert np.mean(clf.transduction_ != truth) < 0.05
    assert np.mean(clf.predict(5 * X) == clf.transduction_) > 0.97


def test_new_points_near_old_ones_get_their_label():
    X, _, y = rings()
    clf = SLGCPClassifier().fit(X, y)
    new = X + 1e-6
    p = clf.predict_proba(new)
    assert_same_decisions(clf.predict(new), clf.transduction_, p, margin=0.5, at_least=0.6)
    assert_close(p.sum(axis=1), 1.0, terms=4)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(new)), p)
    far = clf.predict_proba(np.array([[1e6, 0.0], [0.0, -1e12]]))
    assert np.isfinite(far).all()


def test_pickles_predict_the_same():
    X, _, y = rings()
    clf = SLGCPClassifier().fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X[:20] + 0.01), clf.predict_proba(X[:20] + 0.01))


def test_threads_change_nothing_and_steps_are_shown(capsys):
    X, _, y = rings()
    one, two = (SLGCPClassifier(n_jobs=n).fit(X, y).label_distributions_ for n in (1, 2))
    np.testing.assert_allclose(one, two, atol=1e-6)
    SLGCPClassifier(verbose=1).fit(X, y)
    shown = capsys.readouterr().err
    for step in ("nearest neighbours of", "modes of the graph", "class sums", "weights of the members"):
        assert step in shown


def test_members_say_who_speaks():
    X, _, y = rings()
    members = SLGCPClassifier().fit(X, y).members_
    assert set(members) == {"covariance", "effective_rank", "without_mode_0", "share"}
    assert_close(members["share"].sum(), 1.0, terms=len(members["share"]))
    assert (np.diff(members["share"]) <= 0).all()
    assert (members["effective_rank"] >= 1).all()


def test_many_labels_ask_the_classifier_of_the_labelled_points():
    X, truth = make_blobs(400, centers=[[0, 0], [2.5, 0]], random_state=0)
    for known, asked in ((11, False), (12, True), (128, True)):
        y = np.where(np.arange(400) < known, truth, -1)
        clf = SLGCPClassifier().fit(X, y)
        assert (clf._few_labels.alone is not None) == asked
        assert_close(clf.predict_proba(X[:9]).sum(axis=1), 1.0, terms=4)
    assert np.mean(clf.transduction_ != truth) < 0.15


@pytest.mark.parametrize("right", [False, True])
def test_the_classifier_of_the_labelled_points_speaks_about_all_only_if_labels_do_not_refute_it(right, monkeypatch):
    X, truth = make_blobs(400, centers=[[0, 0], [9, 0]], random_state=0)
    y = np.where(np.arange(400) < 40, truth, -1)
    asked = []

    def everywhere():
        asked.append(1)
        return np.full((400, 2), 0.5)

    left_out = np.where(np.eye(2)[truth[:40]] == right, 0.999, 0.001)
    monkeypatch.setattr(few_labels, "_alone", lambda *_: (None, Opinion(everywhere, left_out)))
    clf = SLGCPClassifier().fit(X, y)
    assert len(asked) == (clf.voices_["labelled points alone"] > 0) == right
    np.testing.assert_array_equal(clf.transduction_, truth)


def test_the_mean_speaks_in_all_voices():
    X, truth = make_blobs(400, centers=[[0, 0], [2.5, 0]], random_state=0)
    y = np.where(np.arange(400) < 150, truth, -1)
    plain, raised = (SLGCPClassifier(mean={1: mean}).fit(X, y) for mean in (0.0, 1.0))
    one, other = (clf._few_labels.alone.mean_[1] for clf in (plain, raised))
    assert other > one
    assert raised.label_distributions_[:, 1].mean() > plain.label_distributions_[:, 1].mean()


def test_if_all_points_are_labelled_it_is_the_supervised_classifier():
    X, truth, _ = blobs()
    clf = SLGCPClassifier().fit(X, truth)
    assert clf.inference_ == "supervised"
    supervised = LGCPClassifier().fit(X, truth)
    np.testing.assert_allclose(clf.predict_proba(X + 0.1), supervised.predict_proba(X + 0.1), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(clf.transduction_, truth)


def test_a_new_fit_forgets_the_old_one():
    X, truth, y = blobs()
    clf = SLGCPClassifier().fit(X, y)
    assert hasattr(clf, "members_")
    clf.fit(X, truth)
    assert not hasattr(clf, "members_")
    assert not hasattr(clf, "voices_")
    clf.fit(X, y)
    assert not hasattr(clf, "classifier_")
    assert not hasattr(clf, "kernel_")


@pytest.mark.parametrize("n", [200, 400])
def test_order_and_unit_of_the_points_do_not_matter(n):
    X, truth = make_blobs(n, centers=[[0, 0], [4, 0], [0, 4]], random_state=2)
    y = np.where(np.arange(n) < 12, truth, -1)
    clf = SLGCPClassifier().fit(X, y)
    p = clf.label_distributions_
    order = np.random.default_rng(0).permutation(n)
    shuffled = SLGCPClassifier().fit(X[order], y[order])
    assert_same_decisions(shuffled.transduction_, clf.transduction_[order], p[order], margin=MARGIN, at_least=0.8)
    scaled = SLGCPClassifier().fit(X * 2.0**7, y)
    assert_same_decisions(scaled.transduction_, clf.transduction_, p, margin=MARGIN, at_least=0.8)
    np.testing.assert_allclose(scaled.label_distributions_, p, atol=1e-3)


@pytest.mark.parametrize("d", [2, 12])
def test_points_far_from_the_origin_are_told_apart(d):
    X, truth, y = blobs(3, d=d)
    np.testing.assert_array_equal(SLGCPClassifier().fit(X + 1e9, y).transduction_, truth)


@pytest.mark.parametrize(
    "X",
    [
        np.ones((6, 2)),
        np.full((400, 2), 0.1),
        np.repeat(np.random.default_rng(0).normal(size=(40, 20)), 10, axis=0),
        np.concatenate([np.random.default_rng(0).normal(size=(350, 2)), [[1e6, 0], [1e8, 0]]]),
        np.random.default_rng(0).standard_cauchy(size=(350, 2)),
        np.random.default_rng(0).normal(size=(350, 2)) * 1e-170,
        np.random.default_rng(0).normal(size=(350, 2)) * 1e170,
        np.array([[0.0], [1.0], [0.2]]),
    ],
    ids=["equal", "many equal", "twins", "outliers", "heavy tails", "tiny", "huge", "three points"],
)
def test_degenerate_points_have_probabilities(X):
    y = np.full(len(X), -1)
    y[[0, 1]] = [0, 1]
    p = SLGCPClassifier().fit(X, y).label_distributions_
    assert_close(p.sum(axis=1), 1.0, terms=4)


def test_equal_points_leave_it_open():
    y = np.full(50, -1)
    y[:2] = [0, 1]
    p = SLGCPClassifier().fit(np.full((50, 3), 0.1), y).label_distributions_[2:]
    assert np.isfinite(p).all()


@pytest.mark.parametrize("richer", [1, 2, 5])
def test_more_labels_of_some_classes_do_not_take_points_from_the_others(richer):
    """One label per digit, and then five more of some digits. If numbers spoke, 13 to 22 % more were wrong."""
    X, truth = (part[:600] for part in load_digits(return_X_y=True))
    rng, before, after = np.random.default_rng(0), [], []
    for _ in range(5):
        y = np.full(600, -1)
        for digit in range(10):
            y[rng.choice(np.flatnonzero(truth == digit))] = digit
        before.append(np.mean(SLGCPClassifier().fit(X, y).transduction_ != truth))
        for digit in rng.choice(10, richer, replace=False):
            y[rng.choice(np.flatnonzero((truth == digit) & (y < 0)), 5, replace=False)] = digit
        after.append(np.mean(SLGCPClassifier().fit(X, y).transduction_ != truth))
    assert np.mean(after) < np.mean(before) + 0.06
