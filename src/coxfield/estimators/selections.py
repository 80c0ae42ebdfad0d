"""How `LGCPClassifier` chooses its covariance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.per_class import PerClass, class_kernels, class_values
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import rescale
from coxfield.selection.grid import candidate_factors, class_distance, length_scale_of
from coxfield.selection.learning.pseudo_likelihood import learn
from coxfield.selection.learning.start import starting_points
from coxfield.selection.loo import Search
from coxfield.selection.mixture.bank import bank_of
from coxfield.selection.mixture.learn import learn_mixture
from coxfield.utils.randomness import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.store import Labelled
    from coxfield.kernels.mixture import Mixture

SELECTIONS = ("mixture", "loo_error", "loo_log_loss", "pseudo_likelihood", None)
UNBOUNDED = (1e-307, 1e308)  # the prior limits the default kernel instead, in units of the data


class ChoosesCovariance:
    """The selections of `LGCPClassifier`. They set `mean_` and what describes the choice, and return the kernels."""

    kernel: Any
    mean: Any
    selection: str | None
    length_scales: Any
    learn_mean: bool
    selection_part: float
    random_state: Any
    verbose: int
    classes_: NDArray
    mean_: NDArray

    def _drawn(self, labelled: Labelled) -> NDArray | None:
        """The rows that the covariance is chosen from, as a mask; None for all rows."""
        if self.selection_part == 1 or self.selection is None:
            return None
        n = len(labelled)
        count = min(max(1, round(self.selection_part * n)), n - 1)  # at least one row is left to calibrate
        rows = generator(self.random_state).choice(n, count, replace=False)
        absent = np.setdiff1d(np.arange(labelled.n_classes), labelled.y[rows])
        if len(absent):
            raise ValueError(
                f"selection_part={self.selection_part:g} has drawn {len(rows)} of {n} rows and none of the class "
                f"{self.classes_.tolist()[absent[0]]!r}: give a larger share"
            )
        return np.isin(np.arange(n), rows)

    def _given_kernels(self) -> PerClass:
        learning = self.selection == "pseudo_likelihood"
        default = RBF(1.0, UNBOUNDED) if learning else RBF(1.0)
        return class_kernels(default if self.kernel is None else self.kernel, self.classes_, by_object=learning)

    def _chosen(self, labelled: Labelled) -> PerClass:
        """The kernels that the selection prefers."""
        kernels = self._given_kernels()
        for kernel in kernels.distinct:
            recognise(kernel, labelled.X.shape[1])  # refuses wrong kernels before any work is done
        if self.selection is None:
            return kernels
        return (self._learn if self.selection == "pseudo_likelihood" else self._select)(labelled, kernels)

    def _search(self, criterion: str) -> Search:
        return Search(
            mean=self.mean_,
            criterion=criterion,
            bounded=self.kernel is not None,
            refine=self.length_scales is None,
            set_variance=self.kernel is None or criterion == "loo_log_loss",
            verbose=self.verbose,
        )

    def _select(self, labelled: Labelled, kernels: PerClass) -> PerClass:
        """The kernels with the length scale, and the signal variance if it is free, that leave-one-out prefers."""
        return self._along(self._search(str(self.selection)), class_distance(labelled, kernels), labelled, kernels)

    def _along(self, search: Search, distance: float, labelled: Labelled, kernels: PerClass) -> PerClass:
        """The kernels that a search prefers, if the points have a typical distance."""
        distinct = kernels.distinct
        factors = candidate_factors(distinct, distance, self.length_scales, bounded=search.bounded)
        path = search.path(labelled, kernels, factors)
        self.selection_path_ = path.table(length_scale_of(distinct))
        self.loo_error_ = path.chosen("loo_error")
        return kernels.map(lambda kernel: rescale(kernel, path.chosen("factor"), path.chosen("variance")))

    def _mixed(self, labelled: Labelled) -> PerClass:
        """The mixture of covariances that leave-one-out prefers; the means are learned with it."""
        if isinstance(self.kernel, Mapping):
            self._given_kernels()  # refuses wrong keys first
            others = str(SELECTIONS[1:])[1:-1]
            raise ValueError(f"classes share a mixture: for a kernel per class, give selection as one of {others}")
        bank = bank_of(self.kernel, labelled, self.length_scales)
        learned = learn_mixture(labelled, bank, self.mean_, learn_mean=self.learn_mean, verbose=self.verbose)
        self.mean_, self.mixture_ = learned.mean, learned.table
        self.loo_error_, self.loo_log_loss_ = learned.loo_error, learned.loo_log_loss
        return PerClass.shared_by(learned.mixture, len(self.classes_))

    def _reweighed(self, labelled: Labelled, mixture: Mixture) -> Mixture:
        """The members of a mixture with weights, and means, that fit the rows that are there now."""
        mean = class_values(self.mean, self.classes_, "mean", default=0.0)
        ladders, learn_mean, verbose = mixture.ladders, self.learn_mean, self.verbose
        learned = learn_mixture(labelled, ladders, mean, learn_mean=learn_mean, verbose=verbose, known=mixture)
        self.mean_, self.mixture_ = learned.mean, learned.table
        self.loo_error_, self.loo_log_loss_ = learned.loo_error, learned.loo_log_loss
        return learned.mixture

    def _learn(self, labelled: Labelled, kernels: PerClass) -> PerClass:
        """The kernels with their free parameters learned by pseudo-likelihood; the means are learned too."""
        starts = starting_points(labelled, kernels, self._search("loo_log_loss"), self.length_scales)
        learn_mean, verbose = self.learn_mean, self.verbose
        learned = [
            learn(labelled, start.kernels, self.mean_, learn_mean=learn_mean, verbose=verbose) for start in starts
        ]
        best = int(np.argmax([end.path["log_posterior"][-1] for end in learned]))
        if starts[best].table:
            self.selection_path_ = starts[best].table
        self.mean_, self.learning_path_ = learned[best].mean, learned[best].path
        return learned[best].kernels
