"""Gaussian mixtures of all points, against scikit-learn and closed forms."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture

from coxfield.graphs import bank
from coxfield.graphs.bank import ROUND, TIED, Given, fit_clusters
from coxfield.graphs.spectrum import Axes
from tolerances import assert_close

X, TRUTH = make_blobs(300, centers=[[0, 0, 0], [7, 0, 0], [0, 7, 3]], random_state=0)
X = X @ np.diag([1.0, 2.0, 0.5])


def fitted(n_classes=3):
    axes = Axes.of(X)
    return axes.coordinates(X), fit_clusters(axes, axes.coordinates(X), n_classes)


def test_components_are_as_many_as_classes_and_more():
    _, found = fitted()
    assert [(one.member.source, one.member.parameter) for one in found] == [
        (source, 3 * multiple) for multiple in (1, 2, 4, 8) for source in (TIED, ROUND)
    ]
    assert found[0].name == "3 clusters, of one shape"
    assert found[1].name == "3 clusters, round"


@pytest.mark.parametrize(("number", "kind"), [(0, "tied"), (1, "spherical")])
def test_probabilities_are_those_of_scikit_learn(number, kind, monkeypatch):
    monkeypatch.setattr(bank, "RIDGE", 1e-9)
    monkeypatch.setattr(bank, "SETTLED", 0.0)
    monkeypatch.setattr(bank, "STEPS", 200)
    coordinates, found = fitted()
    p = found[number].probabilities(coordinates)
    means = np.array([X[p.argmax(axis=1) == k].mean(axis=0) for k in range(3)])
    other = GaussianMixture(3, covariance_type=kind, means_init=means, reg_covar=0, tol=1e-9, max_iter=500).fit(X)
    np.testing.assert_allclose(p, other.predict_proba(X), atol=1e-4)


def test_a_covariance_is_the_chance_of_one_component_scaled_to_unit_variance():
    coordinates, found = fitted()
    block = found[3].block(coordinates)
    p = found[3].probabilities(coordinates)
    assert_close(p.sum(axis=1), 1.0, terms=6)
    given = Given(np.array([0, 5, 9]), TRUTH[[0, 5, 9]], 3)
    same = p @ p[given.rows].T / np.linalg.norm(p, axis=1)[:, None] / np.linalg.norm(p[given.rows], axis=1)
    expected = same @ given.indicators / np.sqrt(np.maximum(given.counts, 1))
    assert_close(block.sums(given)[0].whole, expected, terms=30, scale=3.0)


def test_equal_points_have_no_clusters():
    axes = Axes.of(np.ones((50, 3)))
    assert fit_clusters(axes, axes.coordinates(np.ones((50, 3))), 2) == []
    few = np.repeat(np.eye(3), 20, axis=0)
    axes = Axes.of(few)
    assert [one.coefficients.shape[1] for one in fit_clusters(axes, axes.coordinates(few), 2)] == [2, 2]
