"""Label distributions as data: each point is held once, and counts for every class with its probability."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import SLGCPClassifier
from coxfield.engine.store import Segments, Shares
from reference import kernel_value, softmax
from tolerances import assert_close

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(20, 2)), RNG.normal(size=(5, 2))
CODES = np.where(np.arange(20) < 6, np.arange(20) % 3, -1)
MEANS = np.array([0.0, 0.3, -0.1])
SHARED = [0.5 * RBF(1.0)] * 3
OWN = [0.5 * RBF(1.0), 0.4 * Matern(1.5), 0.5 * RBF(1.0)]
# (|x|^2 + |z|^2) / l^2, at most: the rounding of distances made of products is relative to that.
EXPONENTS = 4 * max(np.square(points).sum(axis=1).max() for points in (X, NEW))
# Few draws make rough distributions, which are as good a test as any.
pytestmark = pytest.mark.filterwarnings(
    "ignore::coxfield.estimators.trivial.TrivialLabellingWarning",
    "ignore::coxfield.estimators.trivial.ChainsDisagreeWarning",
)


def fitted(kernels, inference="marginals", points=X):
    how = {"mean": dict(enumerate(MEANS)), "selection": None, "n_draws": 200, "random_state": 0}
    return SLGCPClassifier(dict(enumerate(kernels)), inference=inference, **how).fit(points, CODES)


def expected_scores(clf, kernels):
    """F by double loop, a point counting for each class with its probability."""
    scores = np.empty((len(NEW), 3))
    for q, x in enumerate(NEW):
        for c, kernel in enumerate(kernels):
            scores[q, c] = MEANS[c] + kernel_value(kernel, x, x) / 2
            for z, share in zip(X, clf.label_distributions_[:, c], strict=True):
                scores[q, c] += share * kernel_value(kernel, x, z)
    return scores


@pytest.mark.parametrize("kernels", [SHARED, OWN], ids=["shared", "per class"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_are_weighted_sums_by_double_loop(kernels, dtype):
    clf = fitted(kernels, points=X.astype(dtype))
    expected = expected_scores(clf, kernels)
    nearest = min(1, np.square(NEW[:, None] - X).sum(axis=2).min())  # of which rough kernels see the root
    rounded = {"terms": 20, "condition": EXPONENTS / nearest, "dtype": dtype}
    assert_close(clf.class_scores(NEW), expected, scale=expected.max(), **rounded)
    assert_close(clf.predict_proba(NEW), softmax(expected), scale=expected.max(), **rounded)


def test_each_point_is_held_once_however_many_classes_there_are():
    (group,) = fitted(SHARED).classifier_._store.groups
    (part,) = group.parts
    assert sorted(part.rows.tolist()) == list(range(20))
    assert len(part.points) == 20
    assert isinstance(part.weights, Shares)
    assert part.weights.matrix.shape == (20, 3)


def test_each_covariance_holds_each_point_once():
    clf = fitted(OWN)
    groups = clf.classifier_._store.groups
    assert [group.classes.tolist() for group in groups] == [[0, 2], [1]]
    for group in groups:
        (part,) = group.parts
        counted = np.flatnonzero(clf.label_distributions_[:, group.classes].any(axis=1))
        assert sorted(part.rows.tolist()) == counted.tolist()


def test_a_labelling_that_is_certain_is_sorted_by_class():
    (group,) = fitted(SHARED, "map").classifier_._store.groups
    (part,) = group.parts
    assert isinstance(part.weights, Segments)
    assert len(part.points) == 20


def test_leaving_a_point_out_takes_all_its_shares():
    clf = fitted(SHARED)
    kernel = SHARED[0](X)
    expected = clf.classifier_.class_scores(X) - np.diagonal(kernel)[:, None] * clf.label_distributions_
    assert_close(clf.classifier_.loo_class_scores(), expected, terms=20, condition=EXPONENTS, scale=expected.max())
