"""The label field of `SLGCPClassifier`: its kernels, its most probable labelling and its marginals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield.engine.store import Labelled
from coxfield.estimators.supervised import LGCPClassifier
from coxfield.estimators.trivial import warn_if_chains_disagree
from coxfield.estimators.validation import shown_kernel
from coxfield.field import LabelField, MapResult, PerturbAndMap, SwendsenWang, map_labels, sample
from coxfield.field.chains import FEWEST
from coxfield.field.potts import field_covariances
from coxfield.kernels.protocol import PerClass, class_kernels
from coxfield.kernels.sklearn_tree import rescale_variance
from coxfield.progress import progress
from coxfield.selection.few_labels import Choice, best_variance
from coxfield.selection.grid import length_scale_of
from coxfield.utils.numbers import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field import Samples

# Draws of label distributions for `SLGCPClassifier`.


CHAINS = 4  # chains of Swendsen-Wang: enough to see whether they agree
DRAWS = {"marginals": 800, "perturb_and_map": 100}


def check_draws(n_draws, inference: str) -> None:
    """Refuse a number of draws that is not an integer, or too small for standard errors."""
    fewest = FEWEST * (CHAINS if inference == "marginals" else 1)
    if n_draws is not None and (not isinstance(n_draws, int | np.integer) or n_draws < fewest):
        raise ValueError(f"n_draws must be None or an integer of at least {fewest}, got {n_draws!r}")


def draw(field: LabelField, inference: str, n_draws: int | None, rng: np.random.Generator, verbose: int) -> Samples:
    """Draws from the field by Swendsen-Wang ("marginals"), or approximate draws ("perturb_and_map")."""
    draws = DRAWS[inference] if n_draws is None else n_draws
    sampler: PerturbAndMap | SwendsenWang = SwendsenWang(field)
    size = {"n_samples": -(-draws // CHAINS), "n_chains": CHAINS}
    if inference == "perturb_and_map":  # draws are independent, so there is no burn-in
        sampler, size = PerturbAndMap(field), {"n_samples": draws, "n_chains": 1, "burn_in": 0}
    total = size["n_samples"] + size.setdefault("burn_in", max(10, size["n_samples"] // 10))
    with progress("draws", total, verbose, "fewer n_draws take less time") as done:
        return sample(sampler, **size, keep_labels=False, random_state=rng, done=done)


class FieldInference:
    """The part of `SLGCPClassifier` that labels points by a label field."""

    kernel: Any
    mean: Any
    selection: str | None
    length_scales: Any
    n_folds: int
    tolerance: float
    n_draws: int | None
    random_state: Any
    n_jobs: int | None
    verbose: int
    classes_: NDArray
    mean_: NDArray
    inference_: str

    def _fit_field_supervised(self, X, codes) -> None:
        """If all points are labelled, the classifier of new points is the supervised one."""
        selection = None if self.selection is None else "loo_error"
        options = {"length_scales": self.length_scales, "n_jobs": self.n_jobs, "verbose": self.verbose}
        classifier = LGCPClassifier(self.kernel, mean=self.mean, selection=selection, **options)
        self.classifier_ = classifier.fit(X, self.classes_[codes])
        self.kernel_ = self.classifier_.kernel_
        field = self._field(X, codes, class_kernels(self.kernel_, self.classes_))
        if self.inference_ == "map":
            self._set_result(field, codes)
        else:
            self._set_marginals(field, codes, None)

    def _fit_field(self, X, codes) -> None:
        """Choose the kernels, label the unlabelled points, and keep the classifier of new ones."""
        kernels = class_kernels(RBF(1.0) if self.kernel is None else self.kernel, self.classes_)
        field_covariances(kernels, len(kernels), X.shape[1])  # refuses wrong kernels before any work is done
        rng = generator(self.random_state)
        if self.selection is not None:
            kernels = self._choose(X, codes, kernels, rng)
        field = self._field(X, codes, kernels)
        if self.inference_ == "map":
            self._set_result(field, codes)
            if self.kernel is None and np.ptp(self.mean_) == 0:
                kernels = self._temper(X, codes, kernels)
        else:
            self._set_marginals(field, codes, draw(field, self.inference_, self.n_draws, rng, self.verbose))
        self.kernel_ = shown_kernel(kernels, self.kernel, self.classes_)
        self.classifier_ = LGCPClassifier(self.kernel_, mean=self.mean, selection=None, n_jobs=self.n_jobs)
        self.classifier_._fit_distributions(X, self.label_distributions_, self.classes_)

    def _field(self, X, codes, kernels: PerClass) -> LabelField:
        return LabelField.from_points(X, kernels, codes, mean=self.mean_, n_classes=len(kernels))

    def _choose(self, X, codes, kernels: PerClass, rng) -> PerClass:
        """The kernels that cross validation of the labelled points prefers."""
        choice = Choice(X, codes, self.mean_, self.length_scales, self.kernel is not None, self.n_folds, self.verbose)
        if self.inference_ == "map":
            chosen, path = choice.for_labelling(kernels, self.tolerance)
        else:
            chosen, path = choice.for_marginals(kernels, seed=int(rng.integers(2**32)))
        self.selection_path_ = path.table(length_scale_of(kernels.distinct))
        return chosen

    def _temper(self, X, codes, kernels: PerClass) -> PerClass:
        """The kernels with the signal variance that predicts the labelled points best, each from all the others."""
        labelled = Labelled(X, self.label_distributions_.argmax(axis=1), len(kernels))
        variance = best_variance(labelled, kernels, self.mean_, np.flatnonzero(codes >= 0))
        # The variance multiplies all of the energy but the means. These are equal, so no label changes.
        self._report(self.result_.rescaled(variance, constant=-self.mean_[0] * (codes < 0).sum()))
        return kernels.map(lambda kernel: rescale_variance(kernel, variance))

    def _report(self, result: MapResult) -> None:
        self.result_ = result
        self.energy_, self.lower_bound_, self.gap_ = result.energy, result.lower_bound, result.gap

    def _set_result(self, field: LabelField, codes) -> None:
        self._report(map_labels(field, tolerance=self.tolerance))
        self._set_distributions(codes, field.nodes, np.eye(len(self.classes_))[self.result_.labels])
        self.certified_ = np.ones(len(codes), dtype=bool)
        self.certified_[field.nodes] = self.result_.certified

    def _set_marginals(self, field: LabelField, codes, samples: Samples | None) -> None:
        """Set the attributes that describe the draws; `samples` is None if all points are labelled."""
        shape = len(codes), len(self.classes_)
        self._set_distributions(codes, field.nodes, np.empty((0, shape[1])) if samples is None else samples.marginals)
        self.marginal_errors_ = np.zeros(shape)
        if samples is not None:
            self.marginal_errors_[field.nodes] = samples.standard_errors
        if self.inference_ == "marginals":  # draws of other inferences are independent
            self.r_hat_ = np.ones(shape[0])
            self.r_hat_[field.nodes] = 1.0 if samples is None else samples.r_hat.max(axis=1)
            warn_if_chains_disagree(self.r_hat_)

    def _set_distributions(self, codes, nodes, distributions) -> None:
        self.label_distributions_ = np.eye(len(self.classes_))[codes]  # rows without a label are set below
        self.label_distributions_[nodes] = distributions
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
