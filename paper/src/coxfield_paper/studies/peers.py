"""Classifiers of scikit-learn that ours are compared with: features standardised, parameters by cross validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

FOLDS = 5
NEIGHBOURS = (1, 3, 5, 9, 15, 25)
PENALTIES = tuple(10.0**power for power in range(-3, 4))  # of logistic regression: C
TREES = 500


@dataclass(frozen=True)
class SVCGrid:
    """Parameters among which cross validation chooses those of a support vector machine."""

    costs: tuple[float, ...]
    gammas: tuple[float, ...]
    """In units of 1 / number of features."""
    folds: int

    @property
    def splits(self) -> StratifiedKFold:
        """How the training points are divided."""
        return _splits(self.folds)


COARSE = SVCGrid((1.0, 10.0, 100.0), (0.1, 1.0, 10.0), folds=3)
FINE = SVCGrid((0.1, 1.0, 10.0, 100.0, 1000.0), (0.01, 0.1, 1.0, 10.0, 100.0), folds=FOLDS)


def _splits(folds: int) -> StratifiedKFold:
    return StratifiedKFold(folds, shuffle=True, random_state=0)


def _tuned(classifier: Any, grid: dict[str, Any], splits: StratifiedKFold, scoring: str | None = None) -> GridSearchCV:
    """A classifier on standardised features, with the parameters of a grid that cross validation prefers."""
    return GridSearchCV(make_pipeline(StandardScaler(), classifier), grid, cv=splits, scoring=scoring)


def gaussian_process(n_features: int):
    """scikit-learn's Gaussian process classifier with Laplace's approximation, on standardised features."""
    return make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * RBF(np.sqrt(n_features)), random_state=0))


def grid_search(n_features: int, grid: SVCGrid) -> GridSearchCV:
    """A support vector machine with C and gamma by cross validation. It decides, but has no probabilities."""
    return _tuned(SVC(), {"svc__C": grid.costs, "svc__gamma": np.array(grid.gammas) / n_features}, grid.splits)


def support_vectors(n_features: int, grid: SVCGrid = COARSE):
    """A support vector machine with C and gamma by cross validation, and sigmoids fitted to its scores."""
    return CalibratedClassifierCV(grid_search(n_features, grid), cv=grid.splits, ensemble=False)


def nearest_neighbours() -> GridSearchCV:
    """Votes of the k nearest neighbours, each vote alike; k of least error in cross validation."""
    return _tuned(KNeighborsClassifier(), {"kneighborsclassifier__n_neighbors": NEIGHBOURS}, _splits(FOLDS))


def logistic_regression() -> GridSearchCV:
    """Multinomial logistic regression; penalty of least log loss in cross validation."""
    # On separable classes a weak penalty takes L-BFGS thousands of steps.
    classifier = LogisticRegression(max_iter=10_000)
    return _tuned(classifier, {"logisticregression__C": PENALTIES}, _splits(FOLDS), "neg_log_loss")


def random_forest(seed: int) -> RandomForestClassifier:
    """A random forest. Trees do not depend on the scales of features."""
    return RandomForestClassifier(TREES, random_state=seed)
