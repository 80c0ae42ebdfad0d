"""The methods for MNIST in table results; each predicts from all 60,000 training points."""

from __future__ import annotations

from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from coxfield import LGCPClassifier
from coxfield.datasets import fetch_mnist

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

COSTS, GAMMAS = (1.0, 10.0), (0.01, 0.02, 0.04)  # of the SVM, for pixels in [0, 1]


def lgcp() -> dict[str, Any]:
    """LGCP with the length scale of least leave-one-out error on all training points."""
    return _outcome(LGCPClassifier(selection="loo_error"), *_images(np.float32))


def lgcp_from_subset(points: int, seed: int) -> dict[str, Any]:
    """LGCP with all training points, and the length scale of least leave-one-out error on a few, as in the paper."""
    X, y, X_test, y_test = _images(np.float32)
    rows = np.random.default_rng(seed).choice(len(y), points, replace=False)
    start = perf_counter()
    chosen = LGCPClassifier(selection="loo_error").fit(X[rows], y[rows])
    chosen_seconds = perf_counter() - start
    outcome = _outcome(LGCPClassifier(chosen.kernel_, selection=None), X, y, X_test, y_test)
    scales = {"length_scale": _length_scale(chosen), "loo_error": 100 * chosen.loo_error_}
    return outcome | scales | {"fit_seconds": chosen_seconds + outcome["fit_seconds"]}


def nearest_neighbour() -> dict[str, Any]:
    """The nearest neighbour by Euclidean distance."""
    return _outcome(KNeighborsClassifier(n_neighbors=1, algorithm="brute"), *_images(np.float32))


def logistic_regression() -> dict[str, Any]:
    """Multinomial logistic regression on pixels, until it converges."""
    classifier = LogisticRegression(max_iter=1000)
    outcome = _outcome(classifier, *_images(np.float64))
    return outcome | {"iterations": int(classifier.n_iter_[0])}


def svm(tuning: int, seed: int) -> dict[str, Any]:
    """A support vector machine with a squared exponential kernel, its parameters chosen within the training set."""
    X, y, X_test, y_test = _images(np.float64)
    rows = np.random.default_rng(seed).permutation(len(y))[: 2 * tuning]
    start = perf_counter()
    found = choose(X[rows], y[rows], COSTS, GAMMAS)
    chosen_seconds = perf_counter() - start
    outcome = _outcome(SVC(**found["chosen"], cache_size=2000), X, y, X_test, y_test)
    return outcome | found | {"fit_seconds": chosen_seconds + outcome["fit_seconds"]}


def choose(X: NDArray, y: NDArray, costs: Sequence[float], gammas: Sequence[float]) -> dict[str, Any]:
    """Parameters of the SVM that is fitted to the first half of the points and has the least error on the second half.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [0.1], [0.9]])
    >>> choose(X, np.array([0, 1, 0, 1]), costs=[1.0], gammas=[2.0])
    {'chosen': {'C': 1.0, 'gamma': 2.0}, 'held_out_error': 0.0}
    """
    half = len(y) // 2
    errors = {
        (cost, gamma): np.mean(SVC(C=cost, gamma=gamma).fit(X[:half], y[:half]).predict(X[half:]) != y[half:])
        for cost, gamma in product(costs, gammas)
    }
    cost, gamma = min(errors, key=errors.__getitem__)
    return {"chosen": {"C": cost, "gamma": gamma}, "held_out_error": 100 * float(errors[cost, gamma])}


def _images(dtype) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Training and test parts with pixels in [0, 1]."""
    data = fetch_mnist()
    X_train, X_test = (X.astype(dtype) / dtype(255) for X in (data.X_train, data.X_test))
    return X_train, data.y_train, X_test, data.y_test


def _outcome(classifier, X: NDArray, y: NDArray, X_test: NDArray, y_test: NDArray) -> dict[str, Any]:
    """Fit and predict: error in per cent, the test points that are wrong, the parameters chosen, and the seconds."""
    start = perf_counter()
    classifier.fit(X, y)
    fitted = perf_counter()
    wrong = np.flatnonzero(classifier.predict(X_test) != y_test)
    outcome = {
        "error": 100 * len(wrong) / len(y_test),
        "wrong": wrong.tolist(),
        "fit_seconds": fitted - start,
        "predict_seconds": perf_counter() - fitted,
    }
    if hasattr(classifier, "selection_path_"):
        outcome |= {"length_scale": _length_scale(classifier), "loo_error": 100 * classifier.loo_error_}
    return outcome


def _length_scale(classifier: LGCPClassifier) -> float:
    path = classifier.selection_path_
    return float(path["length_scale"][path["chosen"]].item())
