"""What is measured for the table of few labels: errors, log losses, calibration and times of many methods."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.baselines import HarmonicFunctions
from coxfield.calibration import reliability
from coxfield.estimators.trivial import TrivialLabellingWarning
from coxfield_paper.studies.few_labels_sets import draw
from coxfield_paper.studies.paper_methods import paper_slgcp
from coxfield_paper.studies.reliability import sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

FLOOR = 1e-12  # least probability that a log loss counts
NEIGHBOURS = {"scikit-learn": 7, "GraphLearning": 10}  # of a point in the graphs: defaults, or what examples take
FOLDS = 5  # for the sigmoids of the support vector machine, if each class has as many labels
GRAPH_LEARNING = "graphlearning"  # the package; not needed for anything else
EXPECTED = (ConvergenceWarning, TrivialLabellingWarning)  # warnings about labellings that count as they are


@dataclass(frozen=True)
class Labelling:
    """What a method says about all points."""

    labels: NDArray
    distributions: NDArray | None
    """Probabilities of the classes, one row per point. None if the method gives labels only."""


def transduced(classifier: Any, X: NDArray, y: NDArray) -> Labelling:
    """The labelling of a classifier that sees all points."""
    fitted = classifier.fit(X, y)
    return Labelling(fitted.transduction_, fitted.label_distributions_)


def predicted(classifier: Any, X: NDArray, y: NDArray) -> Labelling:
    """The labelling of a classifier that sees the labelled points only."""
    fitted = classifier.fit(X[y >= 0], y[y >= 0])
    return Labelling(fitted.predict(X), fitted.predict_proba(X))


def labels_only(labelling: Labelling) -> Labelling:
    """The labelling without its distributions, which are zeros and ones."""
    return replace(labelling, distributions=None)


def neighbour_graph(kind: type, X: NDArray, y: NDArray, **how) -> Labelling:
    """The labelling by a method of scikit-learn on the graph of nearest neighbours."""
    return transduced(kind(kernel="knn", n_neighbors=NEIGHBOURS["scikit-learn"], max_iter=1000, **how), X, y)


def self_trained(X: NDArray, y: NDArray) -> Labelling | None:
    """A support vector machine that adds labels it is sure of to its own labels; None if a class has one label.

    The sigmoids that make probabilities of its scores need two labels per class.
    """
    folds = min(FOLDS, int(np.bincount(y[y >= 0]).min()))
    if folds < 2:
        return None
    Z = StandardScaler().fit_transform(X)
    fitted = SelfTrainingClassifier(CalibratedClassifierCV(SVC(), cv=folds, ensemble=False)).fit(Z, y)
    return Labelling(fitted.predict(Z), fitted.predict_proba(Z))


def graph_learning(kind: str, X: NDArray, y: NDArray) -> Labelling:
    """The labelling by a method of the package GraphLearning on its graph of nearest neighbours."""
    import graphlearning

    known = np.flatnonzero(y >= 0)
    count = NEIGHBOURS["GraphLearning"]
    # With many features its own search is approximate, and needs one more package.
    found = graphlearning.weightmatrix.knnsearch(X, count + 1, method="brute")
    model = getattr(graphlearning.ssl, kind)(graphlearning.weightmatrix.knn(X, count, knn_data=found))
    return Labelling(model.fit_predict(known, y[known]), model.prob)


OURS, PAPER, SPREADING = "SLGCP", "SLGCP of the paper", "LabelSpreading"
SPREADING_FAR, PROPAGATION = "LabelSpreading, alpha 0.99", "LabelPropagation"
HARMONIC, LAPLACE, POISSON = "harmonic functions", "Laplace learning", "Poisson learning"
SELF_TRAINING, SUPERVISED, NEAREST = "self-training SVC", "LGCP", "1-NN"
METHODS: dict[str, Callable[[NDArray, NDArray], Labelling | None]] = {
    OURS: lambda X, y: transduced(SLGCPClassifier(), X, y),
    PAPER: lambda X, y: labels_only(transduced(paper_slgcp(), X, y)),
    SPREADING: lambda X, y: neighbour_graph(LabelSpreading, X, y),
    SPREADING_FAR: lambda X, y: neighbour_graph(LabelSpreading, X, y, alpha=0.99),
    PROPAGATION: lambda X, y: neighbour_graph(LabelPropagation, X, y),
    HARMONIC: lambda X, y: transduced(HarmonicFunctions(), X, y),
    LAPLACE: lambda X, y: graph_learning("laplace", X, y),
    POISSON: lambda X, y: labels_only(graph_learning("poisson", X, y)),  # its scores are no probabilities
    SELF_TRAINING: self_trained,
    SUPERVISED: lambda X, y: predicted(LGCPClassifier(), X, y),
    NEAREST: lambda X, y: labels_only(predicted(KNeighborsClassifier(1), X, y)),
}
FROM_GRAPH_LEARNING = (LAPLACE, POISSON)


def has_graph_learning() -> bool:
    """Whether the package GraphLearning is installed."""
    return importlib.util.find_spec(GRAPH_LEARNING) is not None


def measure(data: str, labels: int, method: str, seed: int) -> dict[str, Any]:
    """Label the unlabelled points of one draw, and judge labels and probabilities.

    Returns
    -------
    dict
        "error" in per cent and "seconds". If the method gives probabilities: "log_loss" in nats, "ece" (expected
        calibration error) and "bins" of the reliability. Only "skipped" if the method cannot work with these labels.
    """
    X, truth, y = draw(data, labels, seed)
    if method in FROM_GRAPH_LEARNING:
        importlib.import_module(GRAPH_LEARNING)  # before the clock starts
    start = perf_counter()
    with warnings.catch_warnings():
        for kind in EXPECTED:
            warnings.simplefilter("ignore", kind)
        found = METHODS[method](X, y)
    taken = perf_counter() - start
    return {"skipped": "a class has one label"} if found is None else {"seconds": taken} | judge(found, truth, y < 0)


def judge(found: Labelling, truth: NDArray, unknown: NDArray) -> dict[str, Any]:
    """The error of the unlabelled points, and what their probabilities are worth."""
    error = {"error": 100 * float(np.mean(found.labels[unknown] != truth[unknown]))}
    if found.distributions is None:
        return error
    judged = reliability(truth[unknown], floored(found.distributions[unknown]), np.unique(truth))
    return error | {"ece": judged.expected_calibration_error} | sums(judged)


def floored(distributions: NDArray) -> NDArray:
    """Probabilities of at least 1e-12. Rows without any, of points that no label reaches, become uniform.

    Examples
    --------
    >>> floored(np.array([[0.0, 0.0], [3.0, 1.0]])).tolist()
    [[0.5, 0.5], [0.75, 0.25]]
    """
    held = np.maximum(np.asarray(distributions, dtype=float), FLOOR)
    return held / held.sum(axis=1, keepdims=True)
