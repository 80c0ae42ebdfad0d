import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.datasets import make_circles
from coxfield.field import LabelField, map_labels
from coxfield.semi_supervised import TrivialLabellingWarning

KERNEL = 0.25 * RBF(1.0)


def rings(n_rings=2, every=15):
    X, truth = make_circles(n_rings, random_state=3)
    return X, truth, np.where(np.arange(len(truth)) % every == 0, truth, -1)


def test_transduction_is_the_map_of_the_field():
    X, _, y = rings()
    clf = SLGCPClassifier(KERNEL, mean={1: 0.1}, selection=None).fit(X, y)
    field = LabelField.from_points(X, KERNEL, y, mean=[0.0, 0.1])
    result = map_labels(field)
    np.testing.assert_array_equal(clf.transduction_[field.nodes], result.labels)
    np.testing.assert_array_equal(clf.transduction_[y >= 0], y[y >= 0])
    assert clf.energy_ == pytest.approx(field.energy(clf.transduction_[field.nodes]))
    assert clf.lower_bound_ <= clf.energy_
    assert clf.gap_ == pytest.approx(clf.energy_ - clf.lower_bound_, abs=1e-6)
    assert clf.certified_.all()


def test_new_points_are_classified_with_the_transduction_as_data():
    X, _, y = rings()
    clf = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    supervised = LGCPClassifier(KERNEL, selection=None).fit(X, clf.transduction_)
    new = np.random.default_rng(0).uniform(-7, 7, size=(50, 2))
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "class_scores"):
        np.testing.assert_array_equal(getattr(clf, method)(new), getattr(supervised, method)(new))


def test_unlabelled_points_help():
    X, truth, y = rings(every=30)
    clf = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    supervised = LGCPClassifier().fit(X[y >= 0], y[y >= 0])
    wrong, wrong_supervised = (np.mean(labels != truth) for labels in (clf.transduction_, supervised.predict(X)))
    assert wrong < wrong_supervised / 3


def test_fully_labelled_input_is_the_supervised_classifier():
    X, truth, _ = rings()
    new = np.random.default_rng(0).uniform(-7, 7, size=(50, 2))
    for params in ({}, {"kernel": KERNEL, "selection": None}):
        ours, supervised = SLGCPClassifier(**params).fit(X, truth), LGCPClassifier(**params).fit(X, truth)
        np.testing.assert_array_equal(ours.predict_proba(new), supervised.predict_proba(new))
        np.testing.assert_array_equal(ours.transduction_, truth)
        assert ours.certified_.all()
        assert ours.gap_ == 0


def test_three_rings_are_recovered_by_expansion():
    X, truth, y = rings(3)
    clf = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    assert np.mean(clf.transduction_ != truth) < 0.02
    assert clf.lower_bound_ <= clf.energy_
    field = LabelField.from_points(X, KERNEL, y)
    assert clf.energy_ <= field.energy(truth[field.nodes])


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["in", "out"], ""),
        (["in", "out"], None),
        ([1.0, 2.0], np.nan),
        ([True, False], None),
        ([0, 1], -1),
        ([-1, 1], 0),
    ],
)
def test_labels_and_blanks_of_many_kinds(names, missing):
    X, _, y = rings()
    spoken = np.array([*names, missing], dtype=object)[y]
    expected = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    clf = SLGCPClassifier(KERNEL, selection=None, missing_label=missing)
    for container in (spoken, spoken.tolist(), pd.Series(spoken)):
        clf.fit(X, container)
        numbers = expected.transduction_ if names == sorted(names) else 1 - expected.transduction_
        np.testing.assert_array_equal(clf.transduction_, np.array(sorted(names))[numbers])
        assert clf.classes_.tolist() == sorted(names)


def test_data_frames_and_sparse_rows_give_the_same_labels():
    X, _, y = rings()
    expected = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    for container in (pd.DataFrame(X, columns=["a", "b"]), sparse.csr_array(X)):
        clf = SLGCPClassifier(KERNEL, selection=None).fit(container, y)
        np.testing.assert_array_equal(clf.transduction_, expected.transduction_)
        np.testing.assert_allclose(clf.predict_proba(container), expected.predict_proba(X), rtol=1e-7)


def test_selection_keeps_what_was_tried_and_the_temperature_changes_no_label():
    X, truth, y = rings()
    clf = SLGCPClassifier(mean=0.3).fit(X, y)
    path = clf.selection_path_
    assert path["chosen"].sum() == 1
    assert clf.kernel_.k2.length_scale == path["length_scale"][path["chosen"]]
    tempered = LabelField.from_points(X, clf.kernel_, y, mean=0.3)
    assert clf.energy_ == pytest.approx(tempered.energy(clf.transduction_[y < 0]))
    assert clf.gap_ == pytest.approx(clf.energy_ - clf.lower_bound_, abs=1e-6)
    unit = SLGCPClassifier(clf.kernel_.k2, selection=None).fit(X, y)
    np.testing.assert_array_equal(clf.transduction_, unit.transduction_)
    assert np.mean(clf.transduction_ != truth) < 0.05
    probability = clf.predict_proba(X)[y >= 0, y[y >= 0]]
    assert -np.log(probability).mean() < np.log(2)


def test_selection_may_be_given_its_candidates_and_folds(capsys):
    X, _, y = rings()
    clf = SLGCPClassifier(Matern(2.0, nu=0.5), length_scales=[1.0, 0.25], n_folds=3, verbose=1).fit(X, y)
    assert clf.selection_path_["length_scale"].tolist() == [2.0, 0.5]
    assert "cross validation, 2 length scales" in capsys.readouterr().err
    assert clf.kernel_.nu == 0.5


def test_a_labelling_of_one_class_is_said_with_what_helps():
    X, _, y = rings(every=60)
    with pytest.warns(
        TrivialLabellingWarning, match="all .* unlabelled points to class .*shorter length scale"
    ) as caught:
        clf = SLGCPClassifier(RBF(30.0), selection=None).fit(X, y)
    assert caught[0].filename == __file__
    assert len(np.unique(clf.transduction_[y < 0])) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SLGCPClassifier(KERNEL, selection=None).fit(*rings()[::2])


def test_duplicates_follow_their_labelled_twin_and_far_points_the_mean():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1e6]])
    y = np.array([0, -1, 1, -1, -1])
    clf = SLGCPClassifier(RBF(0.1), mean={1: 0.3}, selection=None).fit(X, y)
    assert clf.transduction_.tolist() == [0, 0, 1, 1, 1]
    assert clf.certified_.all()


def test_pickle_and_clone_keep_the_model():
    X, _, y = rings()
    clf = SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert clone(clf).missing_label == -1


@pytest.mark.parametrize(
    ("params", "y", "words"),
    [
        ({}, [-1] * 6, "no point is labelled: every entry of y is missing_label=-1"),
        ({}, [1, -1, -1, 1, -1, -1], "at least two classes, got only one class: .*1"),
        ({"selection": "loo_error"}, None, "selection must be one of 'cv_error', None; got 'loo_error'"),
        ({"n_folds": 1}, None, "n_folds must be an integer of at least 2, got 1"),
        ({"kernel": DotProduct(), "selection": None}, None, "negative"),
        ({"kernel": RBF(0.0)}, None, "length_scale of the covariance must be positive and finite, got 0.0"),
        ({"mean": {7: 1.0}}, None, "mean names the class 7"),
        ({}, [0, 1, np.nan, -1, -1, -1], "y holds NaN or None in row 2, but missing_label is -1"),
        ({}, [0, 1, -1], "inconsistent numbers of samples"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_input_gets_one_clear_sentence(params, y, words):
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match=words):
        SLGCPClassifier(**params).fit(X, [0, 1, -1, -1, 0, 1] if y is None else y)


def test_asking_before_fitting_is_refused():
    with pytest.raises(NotFittedError):
        SLGCPClassifier().predict([[0.0]])


def test_the_callers_arrays_are_not_edited():
    X, _, y = rings()
    before = X.copy(), y.copy()
    SLGCPClassifier(KERNEL, selection=None).fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
