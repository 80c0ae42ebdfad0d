"""Section 'Connections to classical nonparametric methods' and the remark of section 'Parameters', as equalities."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.gaussian_process.kernels import RBF
from sklearn.neighbors import KernelDensity, KNeighborsClassifier

from coxfield import LGCPClassifier
from coxfield.datasets import load_banana, load_pima, load_synth
from tolerances import assert_same_decisions, rounding


def parzen_scores(X, y, queries, length_scale):
    """N_i times the kernel density estimate of each class, eq. kdePredictive, in logarithms."""
    log_kernel = -cdist(queries, X, "sqeuclidean") / (2 * length_scale**2)
    return np.stack([logsumexp(log_kernel[:, y == label], axis=1) for label in np.unique(y)], axis=1)


def kernel_density_decisions(X, y, queries, length_scale):
    """The same from scikit-learn's density estimates, whose logarithms lose digits at short length scales."""
    scores = [
        KernelDensity(bandwidth=length_scale).fit(X[y == label]).score_samples(queries) + np.log(np.mean(y == label))
        for label in np.unique(y)
    ]
    return np.argmax(scores, axis=0)


def squared_size(X, queries):
    """The scale of rounding of squared distances that are computed by products: |x|^2 + |z|^2."""
    return 2 * np.square(np.vstack([X, queries]) - X.mean(axis=0)).sum(axis=1).max()


@pytest.mark.parametrize("load", [load_synth, load_pima])
def test_decisions_are_those_of_a_parzen_window_classifier_at_every_length_scale(load):
    data = load()
    spread = np.sqrt(2 * data.X_train.var(axis=0).sum())
    for ratio in np.logspace(-4, 1, 21):
        clf = LGCPClassifier(RBF(ratio * spread), selection=None).fit(data.X_train, data.y_train)
        decisions = clf.predict(data.X_test)
        arguments = data.X_train, data.y_train, data.X_test, ratio * spread
        scores = parzen_scores(*arguments)
        exponents = 1 + squared_size(data.X_train, data.X_test) / (ratio * spread) ** 2
        margin = rounding(exponents, terms=len(data.X_train))
        assert_same_decisions(decisions, scores.argmax(axis=1), scores, margin)
        if ratio > 0.1:
            assert_same_decisions(decisions, kernel_density_decisions(*arguments), scores, margin)


def test_probabilities_are_not_those_of_the_parzen_classifier():
    data = load_synth()
    clf = LGCPClassifier(RBF(0.2), selection=None).fit(data.X_train, data.y_train)
    sums = clf.class_scores(data.X_test) - 0.5
    parzen = sums / sums.sum(axis=1, keepdims=True)
    assert np.abs(clf.predict_proba(data.X_test) - parzen).max() > 0.1


def test_the_short_limit_is_the_nearest_neighbour():
    data = load_banana()
    X, y, queries = data.X[:800], data.y[:800], data.X[800:2800]
    nearest = KNeighborsClassifier(1, algorithm="brute").fit(X, y)
    squares = cdist(queries, X, "sqeuclidean")
    scores = -np.stack([squares[:, y == label].min(axis=1) for label in np.unique(y)], axis=1)
    margin = rounding(squared_size(X, queries), terms=2)
    for length_scale in (1e-3, 1e-6, 1e-12):
        clf = LGCPClassifier(RBF(length_scale), selection=None).fit(X, y)
        assert_same_decisions(clf.predict(queries), nearest.predict(queries), scores, margin)


def test_multiplying_means_and_covariance_changes_confidence_but_not_decisions():
    data = load_synth()
    means = {0: 0.3, 1: -0.2}
    cool = LGCPClassifier(RBF(0.2), mean=means, selection=None).fit(data.X_train, data.y_train)
    for temperature in (1.5, 10.0, 1e6):
        scaled = {label: temperature * mean for label, mean in means.items()}
        hot = LGCPClassifier(temperature * RBF(0.2), mean=scaled, selection=None).fit(data.X_train, data.y_train)
        exponents = 1 + squared_size(data.X_train, data.X_test) / 0.2**2
        scores = cool.class_scores(data.X_test)
        assert_same_decisions(
            hot.predict(data.X_test), cool.predict(data.X_test), scores, terms=250, condition=exponents
        )
        sure, unsure = hot.predict_proba(data.X_test).max(axis=1), cool.predict_proba(data.X_test).max(axis=1)
        assert (sure >= unsure - 1e-12).all()
