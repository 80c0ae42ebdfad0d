"""The methods of table results, on scikit-learn's small digits in place of MNIST."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from coxfield_paper.studies import mnist_methods as methods


@pytest.fixture(autouse=True)
def digits(monkeypatch):
    """500 training and 300 test images of 8 x 8 pixels."""
    X, y = load_digits(return_X_y=True)
    X = np.rint(X * 255 / 16).astype(np.uint8)
    data = Bunch(X_train=X[:500], y_train=y[:500], X_test=X[500:800], y_test=y[500:800])
    monkeypatch.setattr(methods, "fetch_mnist", lambda: data)
    return data


@pytest.mark.parametrize(
    ("run", "arguments"),
    [
        (methods.lgcp, {}),
        (methods.lgcp_from_subset, {"points": 200, "seed": 0}),
        (methods.nearest_neighbour, {}),
        (methods.logistic_regression, {}),
        (methods.svm, {"tuning": 100, "seed": 0}),
    ],
)
def test_every_method_says_which_test_points_are_wrong(run, arguments):
    result = run(**arguments)
    assert len(set(result["wrong"])) == len(result["wrong"])
    assert result["error"] == pytest.approx(100 * len(result["wrong"]) / 300)
    assert result["error"] < 20
    assert result["fit_seconds"] > 0
    assert result["predict_seconds"] > 0


def test_the_nearest_neighbour_is_the_nearest(digits):
    distances = ((digits.X_test[:, None].astype(int) - digits.X_train.astype(int)) ** 2).sum(axis=2)
    first, second = np.sort(distances, axis=1)[:, :2].T
    clear = second > first * (1 + 1e-3)  # single precision cannot mistake these
    assert clear.mean() > 0.9
    wrong = np.flatnonzero(clear & (digits.y_train[distances.argmin(axis=1)] != digits.y_test))
    assert set(methods.nearest_neighbour()["wrong"]) & set(np.flatnonzero(clear)) == set(wrong)


def test_a_subset_of_all_points_chooses_what_all_points_do():
    whole, drawn = methods.lgcp(), methods.lgcp_from_subset(points=500, seed=0)
    assert drawn["length_scale"] == pytest.approx(whole["length_scale"], rel=1e-4)
    # The order of the points, and so the rounding, differs: a tie may go the other way, here and there.
    assert drawn["loo_error"] == pytest.approx(whole["loo_error"], abs=100 / 500)
    assert len(set(drawn["wrong"]) ^ set(whole["wrong"])) <= 1


def test_the_svms_parameters_are_those_of_least_held_out_error():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 20, size=200))[rng.permutation(200), None]
    y = (np.floor(X[:, 0]) % 2).astype(int)  # stripes, which a wide kernel cannot tell apart
    found = methods.choose(X, y, costs=[1.0, 10.0], gammas=[1e-4, 10.0])
    assert found["chosen"]["gamma"] == 10
    assert found["held_out_error"] < 20
