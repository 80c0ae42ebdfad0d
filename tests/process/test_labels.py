"""Label distributions in the limit of vanishing thinning, against enumeration and against the classifier."""

import itertools

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.process import LabelDistribution, LogGaussianCoxProcess, label_distribution, log_superposition_density
from tolerances import assert_close

CATS = LogGaussianCoxProcess(0.8 * RBF(0.7), mean=-0.5)
DOGS = LogGaussianCoxProcess(0.5 * Matern(0.7, nu=0.5), mean=-0.2)
BIRDS = LogGaussianCoxProcess(0.6 * RBF(0.5), mean=lambda x: -0.5 * x[:, 0])
POINTS = np.array([[0.27], [0.39], [0.95], [1.58]])


def log_numerator(processes, points, y):
    return sum(p.log_product_density(points[np.array(y) == i]) for i, p in enumerate(processes))


@pytest.mark.parametrize("processes", [[CATS, DOGS], [CATS, DOGS, BIRDS], [CATS]])
def test_limit_is_the_papers_by_enumeration(processes):
    found = label_distribution(processes, POINTS).probabilities
    labellings = list(itertools.product(range(len(processes)), repeat=4))
    logs = np.array([log_numerator(processes, POINTS, y) for y in labellings])
    weights = np.exp(logs)
    # A weight is the exponential of a sum of 4 + 16 numbers.
    how = {"terms": 20 + len(labellings), "condition": 1 + np.abs(logs).max()}
    assert found.shape == (len(processes),) * 4
    for y, weight in zip(labellings, weights, strict=True):
        assert_close(found[y], weight / weights.sum(), **how)
    assert_close(found.sum(), 1.0, terms=len(labellings))
    assert_close(np.exp(log_superposition_density(processes, POINTS)), weights.sum(), **how)


def test_limit_given_the_other_labels_is_the_classifiers_prediction():
    X = np.random.default_rng(3).normal(size=(6, 2))
    y = np.array([0, 1, 2, 0, 1])
    kernel, means = {0: RBF(1.0), 1: 0.5 * RBF(0.7), 2: RBF(0.5)}, {0: 0.1, 1: -0.3, 2: 0.0}
    table = label_distribution([LogGaussianCoxProcess(kernel[c], means[c]) for c in range(3)], X).probabilities
    conditional = table[tuple(y)] / table[tuple(y)].sum()
    classifier = LGCPClassifier(kernel, mean=means, selection=None).fit(X[:5], y)
    # The classifier takes squared distances from products of coordinates, which err in proportion to squared norms.
    condition = 4 * np.square(X / 0.5).sum(axis=1).max()
    assert_close(conditional, classifier.predict_proba(X[5:])[0], terms=3**5, condition=condition)


def test_processes_may_be_named():
    named = label_distribution({"cat": CATS, "dog": DOGS}, POINTS)
    np.testing.assert_array_equal(named.probabilities, label_distribution([CATS, DOGS], POINTS).probabilities)


def test_marginals_keep_their_order():
    table = np.random.default_rng(0).dirichlet(np.ones(8)).reshape(2, 2, 2)
    assert_close(LabelDistribution(table).marginal([2, 0]).probabilities, table.sum(axis=1).T, terms=2)
    assert_close(LabelDistribution(table).marginal([1]).probabilities, table.sum(axis=(0, 2)), terms=4)


def test_what_cannot_be_enumerated_is_refused():
    with pytest.raises(ValueError, match=r"2\^17 labellings are too many .*: give fewer points"):
        label_distribution([CATS, DOGS], np.zeros((17, 1)))
    with pytest.raises(ValueError, match="no points to label: give at least one"):
        label_distribution([CATS, DOGS], np.empty((0, 1)))
    with pytest.raises(TypeError, match="a LogGaussianCoxProcess for each class"):
        label_distribution([CATS, RBF(1.0)], POINTS)
    with pytest.raises(TypeError, match="a LogGaussianCoxProcess for each class"):
        label_distribution([], POINTS)
    with pytest.raises(ValueError, match=r"different numbers from 0 to 3, got .*: give each point once"):
        label_distribution([CATS, DOGS], POINTS).marginal([0, 4])
    with pytest.raises(ValueError, match=r"different numbers from 0 to 3, got \[1, 1\]"):
        label_distribution([CATS, DOGS], POINTS).marginal([1, 1])
