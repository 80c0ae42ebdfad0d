import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import log_loss

from coxfield import LGCPClassifier
from coxfield_paper.studies import mixture_methods as methods
from coxfield_paper.studies.bins import pooled
from coxfield_paper.studies.data_sets import MNIST
from coxfield_paper.studies.peers import SVCGrid


@pytest.fixture(autouse=True)
def blobs(monkeypatch):
    """Three classes in the plane, with 80 training and 60 test points, and a small grid for support vectors."""
    X, y = make_blobs(140, centers=[[0, 0], [3, 0], [0, 3]], random_state=0)
    parts = X[:80], y[:80], X[80:], y[80:]
    monkeypatch.setattr(methods, "load", lambda data, seed=0: parts)
    monkeypatch.setattr(methods, "FINE", SVCGrid((1.0,), (1.0,), folds=2))
    return parts


@pytest.mark.parametrize("method", [method for method in methods.METHODS if method != "random forest"])
def test_every_method_is_measured_in_what_json_can_hold(method):
    found = methods.measure("blobs", method, 0)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["train"] == 80
    assert found["error"] < 20
    assert found["log_loss"] < 2
    assert min(found["fit_seconds"], found["predict_seconds"]) > 0
    assert ("members" in found) == (method == methods.MIXTURE)


def test_figures_are_those_of_the_probabilities(blobs):
    X_train, y_train, X_test, y_test = blobs
    found = methods.measure("blobs", methods.MIXTURE, 0)
    fitted = LGCPClassifier().fit(X_train, y_train)
    probabilities = fitted.predict_proba(X_test)
    assert found["log_loss"] == pytest.approx(log_loss(y_test, probabilities))
    assert found["error"] == pytest.approx(100 * np.mean(fitted.predict(X_test) != y_test))
    assert found["members"] == np.sum(fitted.mixture_["weight"] > 0)
    judged = pooled([found])
    assert judged.counts.sum() == len(y_test)
    assert found["ece"] == pytest.approx(judged.expected_calibration_error)


@pytest.mark.filterwarnings("error")
def test_probabilities_in_single_precision_are_judged_in_double(monkeypatch, blobs):
    in_double = methods.measure("blobs", methods.PLAIN, 0)["log_loss"]
    single = tuple(part.astype(np.float32) if part.ndim == 2 else part for part in blobs)
    monkeypatch.setattr(methods, "load", lambda data, seed=0: single)
    assert methods.measure("blobs", methods.PLAIN, 0)["log_loss"] == pytest.approx(in_double, rel=1e-3)


def test_the_forest_depends_on_the_seed_of_the_partition():
    assert [methods.build("wine", "random forest", 2, seed).random_state for seed in (0, 7)] == [0, 7]


def test_neighbours_on_mnist_are_three_and_not_tuned():
    assert methods.build(MNIST, methods.NEAREST, 784, 0).n_neighbors == 3
    assert hasattr(methods.build("digits", methods.NEAREST, 64, 0), "param_grid")


@pytest.mark.parametrize("method", methods.TIMED)
def test_fits_are_timed_with_their_error(method):
    found = methods.fit_seconds("blobs", method)
    assert found["fit_seconds"] > 0
    assert found["error"] < 20
    assert ("members" in found) == (method == methods.MIXTURE)
