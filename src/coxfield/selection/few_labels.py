"""Parameters from a few labelled points among many, for `SLGCPClassifier`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coxfield.engine.class_sums import class_sums
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import length_unit, rescale, rescale_length
from coxfield.progress import progress
from coxfield.selection.folds import folds
from coxfield.selection.grid import candidate_factors, typical_distance
from coxfield.selection.map_cv import cv_path
from coxfield.selection.marginal_cv import marginal_factors, marginal_path, n_cells
from coxfield.selection.temperature import best_log_variance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.per_class import PerClass
    from coxfield.selection.loo import SelectionPath


FASTER = "fewer length_scales or n_folds take less time, and kernel=None with inference='mixture' takes the least"


@dataclass(frozen=True)
class Choice:
    """Points, few of them labelled, and the candidates to try."""

    X: Any
    codes: NDArray
    """Class numbers, -1 for unlabelled rows."""
    mean: NDArray
    length_scales: Any
    """Given by the user; None for a grid that suits the data."""
    bounded: bool
    """Whether grid values outside the bounds of the kernels are dropped."""
    n_folds: int
    verbose: int = 0

    def for_labelling(self, kernels: PerClass, tolerance: float) -> tuple[PerClass, SelectionPath]:
        """The kernels with the length scale at which the most probable labelling recovers hidden labels best."""
        distance = typical_distance(self.X, length_unit(kernels[0]))
        factors = candidate_factors(kernels.distinct, distance, self.length_scales, bounded=self.bounded)
        covariances = kernels.map(lambda kernel: recognise(kernel, self.X.shape[1]))
        total = len(factors) * (1 + len(folds(self.codes, self.n_folds)))
        data = self.X, self.codes, covariances, self.mean, factors
        with progress(f"cross validation, {len(factors)} length scales", total, self.verbose, FASTER) as done:
            path = cv_path(*data, n_folds=self.n_folds, tolerance=tolerance, done=done)
        return kernels.map(lambda kernel: rescale_length(kernel, path.chosen("factor"))), path

    def for_marginals(self, kernels: PerClass, seed: int) -> tuple[PerClass, SelectionPath]:
        """The kernels with the length scale and the signal variance at which hidden labels are most probable."""
        factors = marginal_factors(self.X, kernels, self.length_scales, bounded=self.bounded)
        options = {"n_folds": self.n_folds, "seed": seed}
        title = f"cross validation of marginals, {len(factors)} length scales"
        with progress(title, n_cells(kernels, len(factors)), self.verbose, FASTER) as done:
            path = marginal_path(self.X, self.codes, kernels, self.mean, factors, **options, done=done)
        factors_of_best = path.chosen("factor"), path.chosen("variance")
        return kernels.map(lambda kernel: rescale(kernel, *factors_of_best)), path


def best_variance(labelled: Labelled, kernels: PerClass, mean: NDArray, rows: NDArray) -> float:
    """Factor of the signal variance that predicts some rows best, each from all the others."""
    store = labelled.under(kernels.map(lambda kernel: recognise(kernel, labelled.X.shape[1])))
    logs = class_sums(store, labelled.X[rows], leave_out=rows).logs
    return float(np.exp(best_log_variance(logs, mean, labelled.y[rows], np.ones(len(rows)))))
