"""Labels and probabilities from scores, all at once and in parts."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF, DotProduct

from coxfield import LGCPClassifier
from coxfield.engine.class_sums import ClassSums, Scores
from coxfield.estimators import scored
from coxfield.estimators.scored import ScoredClassifier
from reference import softmax
from tolerances import assert_close

PRIOR, SUMS = np.array([[0.5, 0.2, 0.9]]), np.array([[1.0, 2.0, 0.5], [0.3, 0.1, 0.0]])


class Fixed(ScoredClassifier, BaseEstimator):
    """A classifier whose scores are given."""

    def __init__(self, n_classes=3, dtype=np.float64):
        self.n_classes = n_classes
        self.dtype = dtype
        self.classes_ = np.array(["ant", "bee", "cat"])[:n_classes]
        self.asked = 0

    @property
    def _precision(self):
        return self.dtype

    def _scores(self, X):
        self.asked += 1
        with np.errstate(divide="ignore"):
            logs = np.log(SUMS)
        return Scores(PRIOR, ClassSums(SUMS, logs)) if self.n_classes == 3 else self._of_two(logs)

    def _of_two(self, logs):
        return Scores(PRIOR[:, :2], ClassSums(SUMS[:, :2], logs[:, :2]))


def test_scores_are_prior_and_sums():
    np.testing.assert_array_equal(Fixed().class_scores(None), PRIOR + SUMS)


def test_probabilities_are_the_softmax_of_the_scores():
    assert_close(Fixed().predict_proba(None), softmax(PRIOR + SUMS), terms=3)
    assert_close(np.exp(Fixed().predict_log_proba(None)), softmax(PRIOR + SUMS), terms=3)


def test_labels_are_the_classes_of_the_largest_scores():
    assert Fixed().predict(None).tolist() == ["bee", "cat"]
    assert Fixed(2).predict(None).tolist() == ["bee", "ant"]


def test_a_decision_function_of_two_classes_is_a_difference_and_of_more_is_relative():
    assert_close(Fixed(2).decision_function(None), np.array([0.7, -0.5]), scale=3.0)
    found = Fixed().decision_function(None)
    assert_close(found - found[:, :1], (PRIOR + SUMS) - (PRIOR + SUMS)[:, :1], scale=3.0)


def test_labels_and_probabilities_together_ask_once():
    clf = Fixed()
    labels, probabilities = clf.predict_with_proba(None)
    assert clf.asked == 1
    np.testing.assert_array_equal(labels, clf.predict(None))
    np.testing.assert_array_equal(probabilities, clf.predict_proba(None))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_of_the_precision_of_the_classifier(dtype):
    clf = Fixed(dtype=dtype)
    for method in ("class_scores", "decision_function", "predict_log_proba", "predict_proba"):
        assert getattr(clf, method)(None).dtype == dtype
    assert clf.predict_with_proba(None)[1].dtype == dtype


def test_a_subclass_must_have_scores():
    with pytest.raises(NotImplementedError):
        ScoredClassifier().predict(None)
    with pytest.raises(NotImplementedError):
        _ = ScoredClassifier()._precision


RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(40, 3)), RNG.normal(size=(23, 3))
y = np.arange(40) % 3


@pytest.mark.parametrize(
    "classifier",
    [
        LGCPClassifier(),
        LGCPClassifier(RBF(1.0), selection=None),
        LGCPClassifier(DotProduct() ** 2, selection=None),
        LGCPClassifier({0: RBF(1.0), 1: RBF(2.0), 2: RBF(1.0) + DotProduct()}, selection=None),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [1, 7, 22])
def test_parts_change_nothing(classifier, rows, monkeypatch):
    classifier.fit(X, y)
    whole = classifier.class_scores(Z), classifier.loo_class_scores(), classifier.predict(Z)
    monkeypatch.setattr(scored, "ROWS", rows)
    parts = classifier.class_scores(Z), classifier.loo_class_scores(), classifier.predict(Z)
    for found, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)  # tiles of other shapes add in another order
