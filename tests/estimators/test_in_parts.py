"""Scores of many points are those of all points at once."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct

from coxfield import LGCPClassifier
from coxfield.estimators import scored

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
