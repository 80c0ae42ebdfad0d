from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

from coxfield import SLGCPClassifier
from coxfield.estimators.few_labels import Prepared, View, learn_few_labels
from coxfield.graphs.bank import EDGE_RULES, n_modes
from coxfield.graphs.spectrum import spectrum_of_points
from coxfield.graphs.units import AsGiven
from tolerances import assert_close

X, TRUTH = make_blobs(120, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
Y = np.where(np.arange(120) < 9, TRUTH, -1)


def test_a_given_graph_is_the_graph_computed_inside():
    ties = EDGE_RULES[1:2]
    inside = spectrum_of_points(X, ties, n_modes(120, 3))
    graph = ties[0].graph(inside.join.search.of_all(ties[0].neighbours))
    clf = SLGCPClassifier("precomputed").fit(graph, Y)
    few = learn_few_labels(Prepared(graph, "precomputed"), Y, np.zeros(3))
    np.testing.assert_allclose(clf.label_distributions_, few.distributions, atol=1e-9)
    np.testing.assert_array_equal(clf.transduction_, TRUTH)
    dense = SLGCPClassifier("precomputed").fit(graph.toarray(), Y)
    np.testing.assert_allclose(dense.label_distributions_, clf.label_distributions_, atol=1e-9)
    assert np.mean(clf.predict(graph) == TRUTH) > 0.9  # here a point is not its own neighbour
    assert set(clf.members_["covariance"]) == {"the given graph"}


@pytest.mark.parametrize("dense", [False, True])
def test_given_distances_are_those_computed_inside(dense):
    distances = pairwise_distances(X) if dense else sparse.csr_array(kneighbors_graph(X, 40, mode="distance"))
    clf = SLGCPClassifier("precomputed_distances").fit(distances, Y)
    shape = spectrum_of_points(X, EDGE_RULES, n_modes(120, 3))
    few = learn_few_labels(Prepared(X, views=(View(AsGiven(), replace(shape, axes=None)),), count=120), Y, np.zeros(3))
    np.testing.assert_allclose(clf.label_distributions_, few.distributions, atol=1e-6)
    new = X[:15] + 0.01
    found = clf.predict_proba(pairwise_distances(new, X))
    assert_close(found.sum(axis=1), 1.0, terms=4)
    np.testing.assert_allclose(found, few.probabilities(new), atol=1e-6)


def test_twins_in_a_dense_matrix_of_distances_are_tied():
    twins = np.repeat(X[:60], 2, axis=0)
    y = np.full(120, -1)
    y[::2] = np.where(np.arange(60) < 6, TRUTH[:60], -1)
    clf = SLGCPClassifier("precomputed_distances").fit(pairwise_distances(twins), y)
    np.testing.assert_array_equal(clf.transduction_[1:12:2], TRUTH[:6])


def graph_with(i, j, value):
    graph = np.ones((6, 6)) - np.eye(6)
    graph[i, j] = value
    return graph


@pytest.mark.parametrize(
    ("params", "X", "y", "words"),
    [
        ({}, X[:6], [-1] * 6, "no point is labelled: .* label at least one of each class"),
        ({}, X[:6], [1, -1, -1, 1, -1, -1], "at least two classes, got only one class: 1"),
        ({}, [[0.0]], [0], "only one class: 0"),
        ({}, [[0.0], [1.0]], [0, -1], "only one class: 0"),
        ({}, [[0.0], [np.inf], [1.0]], [0, 1, -1], "contains infinity"),
        ({"kernel": "rbf"}, None, None, "kernel must be None, a kernel, or one of 'precomputed', .*; got 'rbf'"),
        ({"kernel": RBF(), "inference": "mixture"}, None, None, "but kernel is RBF.*: give kernel=None, or inference"),
        ({"kernel": "precomputed", "inference": "map"}, None, None, "inference='map' needs a kernel.*LabelField.from_"),
        ({"kernel": "precomputed"}, X[:6], None, r"square matrix .*, got shape \(6, 2\): give kernel=None"),
        ({"kernel": "precomputed"}, graph_with(0, 1, -2.0), None, "must not be negative, got -2: leave out"),
        ({"kernel": "precomputed"}, graph_with(0, 1, 3.0), None, r"symmetric, but the entry \(0, 1\) is 3 .*give \(A"),
        ({"kernel": "precomputed_distances"}, X[:6], None, r"square matrix .*, got shape \(6, 2\): give kernel=None"),
        ({"kernel": "precomputed_distances"}, graph_with(0, 1, -2.0), None, "must not be negative, got -2: give leng"),
        ({"kernel": "precomputed"}, graph_with(0, 1, 1.0), [0, 1] * 3, "all 6 points of the graph are labelled.*mark"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_input_gets_one_clear_sentence(params, X, y, words):
    X = graph_with(0, 1, 1.0) if X is None else X
    with pytest.raises(ValueError, match=words):
        SLGCPClassifier(**params).fit(X, [0, 1, -1, -1, 0, 1] if y is None else y)


def test_two_points_with_two_labels_are_supervised():
    clf = SLGCPClassifier().fit([[0.0], [1.0]], [0, 1])
    assert clf.inference_ == "supervised"
    assert clf.predict([[0.1]]).tolist() == [0]


def test_new_points_may_not_be_negative_either():
    clf = SLGCPClassifier("precomputed").fit(graph_with(0, 1, 1.0), [0, 1, -1, -1, -1, -1])
    with pytest.raises(ValueError, match="affinities must not be negative, got -1"):
        clf.predict([[0.0, -1.0, 0, 0, 0, 0]])
    assert_close(clf.predict_proba([[0.0] * 6]), np.full((1, 2), 0.5), terms=10)  # no neighbour, no opinion
