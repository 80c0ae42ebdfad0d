"""What is measured for the table of mixtures: errors, log losses, calibration and times of many classifiers."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from coxfield import LGCPClassifier, threads
from coxfield.calibration import reliability
from coxfield_paper.studies.bins import in_double, sums
from coxfield_paper.studies.data_sets import MNIST, load
from coxfield_paper.studies.peers import (
    FINE,
    gaussian_process,
    grid_search,
    logistic_regression,
    nearest_neighbours,
    random_forest,
    support_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MIXTURE, PLAIN, SVM, NEAREST = "mixture", "loo_error", "calibrated SVC", "k-NN"
GRID = "SVC 5 x 5 grid"
# Each from the number of features and the seed.
METHODS: dict[str, Callable[[int, int], Any]] = {
    MIXTURE: lambda d, seed: LGCPClassifier(),
    PLAIN: lambda d, seed: LGCPClassifier(selection=PLAIN),
    "loo_log_loss": lambda d, seed: LGCPClassifier(selection="loo_log_loss"),
    "pseudo_likelihood": lambda d, seed: LGCPClassifier(selection="pseudo_likelihood"),
    SVM: lambda d, seed: support_vectors(d, FINE),
    "Gaussian process": lambda d, seed: gaussian_process(d),
    NEAREST: lambda d, seed: nearest_neighbours(),
    "logistic regression": lambda d, seed: logistic_regression(),
    "random forest": lambda d, seed: random_forest(seed),
}
TIMED: dict[str, Callable[[int], Any]] = {MIXTURE: lambda d: LGCPClassifier(), GRID: lambda d: grid_search(d, FINE)}


def build(data: str, method: str, n_features: int, seed: int) -> Any:
    """A classifier for a data set, not yet fitted."""
    if (data, method) == (MNIST, NEAREST):
        # Cross validation on 60,000 images takes hours, and standardised pixels at the border are noise.
        return KNeighborsClassifier(3, algorithm="brute")
    return METHODS[method](n_features, seed)


def measure(data: str, method: str, seed: int) -> dict[str, Any]:
    """Fit on one partition of a data set, and judge the probabilities of its test part.

    Returns
    -------
    dict
        "error" in per cent, "log_loss" in nats, "ece" (expected calibration error), "bins" of the reliability,
        "fit_seconds", "predict_seconds", "train" (training points), and "members" that survive in a mixture.
    """
    X_train, y_train, X_test, y_test = load(data, seed)
    classifier = build(data, method, X_train.shape[1], seed)
    start = perf_counter()
    classifier.fit(X_train, y_train)
    fitted = perf_counter()
    probabilities = classifier.predict_proba(X_test)
    predicted = perf_counter()
    judged = reliability(y_test, in_double(probabilities), classifier.classes_)
    measured = {
        "train": len(y_train),
        # Where probabilities are equal after rounding, LGCP still decides by its scores.
        "error": _error(classifier, X_test, y_test),
        "ece": judged.expected_calibration_error,
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
    }
    return measured | sums(judged) | _members(classifier)


def _error(classifier: Any, X: NDArray, y: NDArray) -> float:
    """Share of wrong decisions, in per cent."""
    return 100 * float(np.mean(classifier.predict(X) != y))


def _members(classifier: Any) -> dict[str, int]:
    """The number of members of a mixture that have a weight."""
    return {"members": len(classifier.mixture_["weight"])} if hasattr(classifier, "mixture_") else {}


def fit_seconds(data: str, method: str) -> dict[str, Any]:
    """The time of a fit to the first partition of a data set, on one thread, and the test error in per cent."""
    X_train, y_train, X_test, y_test = load(data)
    classifier = TIMED[method](X_train.shape[1])
    with threads.alone(), threads.limit(1, "openmp"):
        start = perf_counter()
        classifier.fit(X_train, y_train)
        taken = perf_counter() - start
        error = _error(classifier, X_test, y_test)
    return {"train": len(y_train), "fit_seconds": taken, "error": error} | _members(classifier)
