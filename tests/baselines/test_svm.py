"""The support vector machine: exact leave-one-out by few refits, and SVM-light's default C."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.svm import SVC

from coxfield.baselines import SVMClassifier
from coxfield.baselines.svm import CAUTION, default_C, loo_error
from coxfield.datasets import load_banana, load_synth
from tolerances import assert_same_error


def assert_error_of_refits(error, machine, X, y):
    """The error of leave-one-out refits, up to points nearer to a decision surface than the solver's own tolerance."""
    decisions = cross_val_predict(machine, X, y, cv=LeaveOneOut(), method="decision_function")
    clearest = np.abs(decisions) if decisions.ndim == 1 else np.abs(decisions).min(axis=1)
    labels = cross_val_predict(machine, X, y, cv=LeaveOneOut())
    assert_same_error(error, labels, y, clearest, CAUTION)


def banana(n):
    data = load_banana()
    return data.X[:n], data.y[:n]


@pytest.mark.parametrize("length_scale", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("C", [0.5, 5.0, 100.0])
def test_leave_one_out_is_that_of_all_refits(length_scale, C):
    X, y = banana(70)
    K = np.exp(-cdist(X, X, "sqeuclidean") / (2 * length_scale**2))
    assert_error_of_refits(loo_error(K, y, C), SVC(C=C, gamma=1 / (2 * length_scale**2)), X, y)


def test_leave_one_out_of_three_classes_is_that_of_all_refits():
    X, _ = banana(60)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.3, 0.6])
    K = np.exp(-cdist(X, X, "sqeuclidean") / 2)
    # The decisions of each pair of classes: rounding moves the vote only if it moves one of them.
    assert_error_of_refits(loo_error(K, y, 1.0), SVC(gamma=0.5, decision_function_shape="ovo"), X, y)


def test_a_point_alone_in_its_class_is_an_error():
    X = np.array([[0.0], [0.1], [0.2], [5.0]])
    assert loo_error(np.exp(-cdist(X, X, "sqeuclidean") / 2), np.array([0, 0, 0, 1]), 1.0) >= 0.25


def test_default_penalty_is_one_over_the_squared_mean_length_in_feature_space():
    X = np.random.default_rng(0).normal(size=(7, 3))
    k = np.exp(-np.sum(X**2, axis=1) / (2 * 0.8**2))
    lengths = [np.sqrt(1 - 2 * value + 1) for value in k]
    assert default_C(X, 0.8) == pytest.approx(np.mean(lengths) ** -2)
    assert default_C(X, 1e-3) == pytest.approx(0.5)
    # At long length scales the kernel is nearly linear in x / l, and so is the length.
    assert default_C(X, 1e4) == pytest.approx(1e8 * np.mean(np.linalg.norm(X, axis=1)) ** -2, rel=1e-6)
    assert np.isfinite(default_C(np.zeros((2, 1)), 1.0))


def test_the_longest_of_the_best_length_scales_is_taken_and_the_machine_is_svc():
    X, y = banana(80)
    names = np.array(["left", "right"])[y]
    clf = SVMClassifier(length_scales=[0.1, 0.5, 0.7, 1.0, 30.0]).fit(X, names)
    path = clf.selection_path_
    best = path["loo_error"] == path["loo_error"].min()
    assert clf.length_scale_ == path["length_scale"][best].max() == path["length_scale"][path["chosen"]].item()
    assert path["C"][path["chosen"]].item() == clf.C_ == default_C(X, clf.length_scale_)
    machine = SVC(C=clf.C_, gamma=clf.length_scale_**-2 / 2).fit(X, names)  # the same arithmetic, the same numbers
    np.testing.assert_array_equal(clf.predict(X), machine.predict(X))
    np.testing.assert_array_equal(clf.decision_function(X), machine.decision_function(X))


def test_threads_share_the_work_without_changing_it():
    X, y = banana(40)
    scales = [0.3, 1.0]
    one, two = (SVMClassifier(length_scales=scales, n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 2))
    np.testing.assert_array_equal(one.selection_path_["loo_error"], two.selection_path_["loo_error"])


def test_given_parameters_are_taken():
    X, y, X_test, y_test = load_synth(return_X_y=True)
    clf = SVMClassifier(0.3, C=2.0).fit(X, y)
    assert (clf.length_scale_, clf.C_) == (0.3, 2.0)
    assert not hasattr(clf, "selection_path_")
    assert clf.score(X_test, y_test) > 0.89


def test_wrong_arguments_are_named():
    X, y = banana(10)
    with pytest.raises(ValueError, match=r"C must be a positive finite number.*got -1"):
        SVMClassifier(C=-1).fit(X, y)
    with pytest.raises(ValueError, match="length_scale must be a positive finite number"):
        SVMClassifier(np.inf).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        SVMClassifier().fit(X, np.zeros(10))


@pytest.mark.parametrize("length_scale", [0.01, 1.0])
def test_shares_of_the_refits_are_told_of(length_scale):
    X, y = banana(40)
    told = []
    loo_error(np.exp(-cdist(X, X, "sqeuclidean") / (2 * length_scale**2)), y, 1.0, told.append)
    assert sum(told) == pytest.approx(1)
