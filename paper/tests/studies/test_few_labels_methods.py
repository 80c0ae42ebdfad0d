import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import log_loss
from sklearn.semi_supervised import LabelSpreading

from coxfield_paper.studies import few_labels_methods as methods
from coxfield_paper.studies.few_labels_methods import Labelling, floored, judge, measure
from coxfield_paper.studies.reliability import pooled

LABELS_ONLY = {methods.PAPER, methods.POISSON, methods.NEAREST}


@pytest.fixture(autouse=True)
def blobs(monkeypatch):
    """Three classes in the plane: 90 points, of which 12 have labels."""
    X, truth = make_blobs(90, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)
    y = np.full(90, -1)
    for label in range(3):
        rows = np.flatnonzero(truth == label)[:4]
        y[rows] = label
    monkeypatch.setattr(methods, "draw", lambda data, labels, seed: (X, truth, y))
    return X, truth, y


@pytest.mark.parametrize("method", methods.METHODS)
def test_every_method_is_measured_in_what_json_can_hold(method):
    if method in methods.FROM_GRAPH_LEARNING:
        pytest.importorskip(methods.GRAPH_LEARNING)
    found = measure("blobs", 4, method, 0)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["error"] < 20
    assert found["seconds"] > 0
    assert ("log_loss" in found) == ("ece" in found) == ("bins" in found) == (method not in LABELS_ONLY)


def test_figures_are_those_of_the_unlabelled_points(blobs):
    X, truth, y = blobs
    unknown = y < 0
    found = measure("blobs", 4, methods.SPREADING, 0)
    fitted = LabelSpreading(kernel="knn", n_neighbors=7, max_iter=1000).fit(X, y)
    probabilities = floored(fitted.label_distributions_[unknown])
    assert found["error"] == pytest.approx(100 * np.mean(fitted.transduction_[unknown] != truth[unknown]))
    assert found["log_loss"] == pytest.approx(log_loss(truth[unknown], probabilities))
    judged = pooled([found])
    assert judged.counts.sum() == unknown.sum()
    assert found["ece"] == pytest.approx(judged.expected_calibration_error)


def test_one_label_of_a_class_is_too_few_for_self_training(monkeypatch, blobs):
    X, truth, y = blobs
    few = y.copy()
    few[np.flatnonzero(few == 2)[1:]] = -1
    monkeypatch.setattr(methods, "draw", lambda data, labels, seed: (X, truth, few))
    assert measure("blobs", 4, methods.SELF_TRAINING, 0) == {"skipped": "a class has one label"}


def test_methods_that_do_not_converge_give_no_warning(monkeypatch):
    monkeypatch.setattr(methods, "LabelPropagation", lambda **how: LabelSpreading(**how | {"max_iter": 1}))
    assert measure("blobs", 4, methods.PROPAGATION, 0)["error"] <= 100


def test_a_point_that_is_wrong_and_sure_costs_the_log_of_the_floor():
    truth = np.array([0, 1, 0])
    labelling = Labelling(np.array([0, 0, 0]), np.array([[1.0, 0.0]] * 3))
    found = judge(labelling, truth, np.array([False, True, True]))
    assert found["error"] == 50
    assert found["log_loss"] == pytest.approx(-np.log(1e-12) / 2)
    assert found["ece"] == pytest.approx(0.5)


def test_points_without_a_label_are_judged_alone():
    truth = np.array([0, 1, 1])
    labelling = Labelling(np.array([1, 1, 0]), None)
    assert judge(labelling, truth, np.array([False, True, True])) == {"error": 50.0}


def test_rows_without_any_probability_become_uniform():
    np.testing.assert_allclose(floored(np.array([[0.0, 0.0, 0.0]])), 1 / 3)
    np.testing.assert_allclose(floored(np.array([[0.2, 0.8]])), [[0.2, 0.8]])


def test_whether_a_package_is_there_is_known_without_importing_it(monkeypatch):
    monkeypatch.setattr(methods, "GRAPH_LEARNING", "no_such_package")
    assert not methods.has_graph_learning()
    monkeypatch.setattr(methods, "GRAPH_LEARNING", "json")
    assert methods.has_graph_learning()
