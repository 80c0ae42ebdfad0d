"""`SLGCPClassifier`: many points and few labels, by the most probable labelling of the label field or its marginals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.validation import check_is_fitted, validate_data

from coxfield import threads
from coxfield.engine.store import Labelled
from coxfield.estimators.draws import check_draws, draw
from coxfield.estimators.scored import ScoredClassifier
from coxfield.estimators.supervised import LGCPClassifier
from coxfield.estimators.trivial import warn_if_chains_disagree, warn_if_trivial
from coxfield.estimators.validation import check_option, known_class_numbers, shown_kernel
from coxfield.field import LabelField, MapResult, map_labels
from coxfield.field.arguments import field_covariances
from coxfield.kernels.per_class import PerClass, class_kernels, class_values
from coxfield.kernels.sklearn_tree import rescale_variance
from coxfield.selection.few_labels import Choice, best_variance
from coxfield.selection.folds import check_folds
from coxfield.selection.grid import length_scale_of
from coxfield.utils.randomness import generator

if TYPE_CHECKING:
    from coxfield.engine.decision import Scores
    from coxfield.field import Samples

SELECTIONS = ("cv_error", None)
INFERENCES = ("map", "marginals", "perturb_and_map")
FITTED = (  # attributes that only some fits set
    "selection_path_",
    *("result_", "energy_", "lower_bound_", "gap_", "certified_"),
    *("marginal_errors_", "r_hat_"),
)


class SLGCPClassifier(ScoredClassifier, BaseEstimator):
    r"""Label the unlabelled points by the exact MAP of the log Gaussian Cox process model, or by its marginals.

    Given the positions of all points, the labels follow a Potts model whose weights are the covariance function (eq.
    explicitMRF). By default fitting finds the most probable labels of all unlabelled points together. For two classes
    this is exact, by minimum cuts. For more classes it uses alpha-expansion, with a bound on the distance to the
    minimum. With `inference="marginals"` each point has a distribution over the classes and takes the most probable
    one, which makes the fewest errors in expectation. `LGCPClassifier` classifies new points with this result as data.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, or mapping class -> kernel, default=None
        Covariance function without negative values, shared or one per class. None means `RBF(1.0)`. The selection sets
        its length scale, and the leave-one-out log loss of the labelled points sets its signal variance.
    mean : float or mapping class -> float, default=0.0
        Means mu_i of the Gaussian processes: a prior bias between classes.
    inference : {"map", "marginals", "perturb_and_map"}, default="map"
        "map" is the most probable labelling. "marginals" are the probabilities of the classes at each point, averaged
        over chains of Swendsen-Wang. "perturb_and_map" approximates them by the shares of independent draws. Each draw
        is the most probable labelling with perturbed unary terms.
    selection : {"cv_error", None}, default="cv_error"
        "cv_error" chooses a factor for the length scales by cross validation of the labelled points that uses all other
        points too (the paper's rule). The longest with the least error wins. Factors that give all unlabelled points to
        one class are excluded.
        The other inferences depend on the signal variance too. For them it chooses factors for both by the log loss of
        the marginals in cross validation. Factors at which one class takes nearly all points are excluded. Fixed
        variances stay. None uses the kernel unchanged. If every point is labelled, leave-one-out decides as in
        `LGCPClassifier`.
    length_scales : array-like, default=None
        Factors tried for the length scales; with the default kernel, the length scales themselves. None for 24 of them,
        from twice the root mean square distance downwards, each shorter by sqrt(2). For the other inferences, None
        keeps those at which the median point has between 1.5 and 64 neighbours. The number of neighbours of a point is
        the sum of its couplings divided by its strongest one.
    n_folds : int, default=10
        Folds of the cross validation; at most one per labelled point.
    missing_label : int, float, str or None, default=-1
        The mark of an unknown label in y. None and NaN mean the same.
    tolerance : float, default=1e-9
        A gap between energy and lower bound of at most this share of the cost (see `MapResult`) counts as zero.
    n_draws : int, default=None
        Number of draws to average over. None for 800 from four chains together, or 100 for perturb-and-MAP.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draws. "map" draws nothing.
    n_jobs : int, default=None
        Threads. None follows `joblib.parallel_config`; outside of it, None means as many threads as the BLAS uses for
        a matrix product. -1 means all processors.
    verbose : int, default=0
        Above 0, show the progress of the selection.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_samples,)
        Label of every training point: the given label, or the label in the most probable labelling ("map"), or the
        class of the largest probability in `label_distributions_`.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes at every training point, 1 for a given label. With "map" all entries are 0 or 1:
        they show the labelling, but not how certain it is.
    marginal_errors_ : ndarray of shape (n_samples, n_classes)
        Standard errors of `label_distributions_` from the finite number of draws. Not with "map".
    r_hat_ : ndarray of shape (n_samples,)
        Split R-hat of the distribution of each point, the largest over the classes. It is near 1 if chains agree. If
        they do not, a `ChainsDisagreeWarning` is given. Only with "marginals".
    certified_ : ndarray of bool, shape (n_samples,)
        Whether the label is given, or proven to belong to a labelling of least energy. This attribute and the next four
        describe the labelling of "map" and exist only with it.
    energy_ : float
        Energy of the labelling, -log of its unnormalised probability.
    lower_bound_ : float
        No labelling has less energy than this.
    gap_ : float
        `energy_ - lower_bound_`.
    result_ : MapResult
        The full report of the solver.
    kernel_ : kernel, or dict class -> kernel
        The covariance in use.
    mean_ : ndarray of shape (n_classes,)
    selection_path_ : dict of arrays
        What was tried: "length_scale", "cv_error", "trivial" and "chosen". At a trivial length scale one class takes
        all unlabelled points; its error is NaN. For the other inferences: "length_scale", "variance" (the factor),
        "cv_log_loss", "cv_error", "trivial" and "chosen". Absent with `selection=None`.
    classifier_ : LGCPClassifier
        The classifier of new points. A training point counts for each class with its weight in `label_distributions_`,
        which gives the expected score F. The exact prediction would be the mean of softmax(F) over the draws. The
        softmax of the mean F is cheaper. It is too certain if many points share one class but it is uncertain which.

    Examples
    --------
    Two rings, one label in twenty:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield import SLGCPClassifier
    >>> from coxfield.datasets import make_circles
    >>> X, truth = make_circles(2, random_state=3)
    >>> y = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    >>> clf = SLGCPClassifier(0.25 * RBF(1.0), selection=None).fit(X, y)
    >>> print(f"{np.sum(clf.transduction_ != truth)} of {len(X)} wrong, all certified: {clf.certified_.all()}")
    0 of 300 wrong, all certified: True

    One label on each ring, and marginals of the other points:

    >>> y = np.where(np.isin(np.arange(len(truth)), [0, 299]), truth, -1)
    >>> clf = SLGCPClassifier(0.5 * RBF(0.7), selection=None, inference="marginals", random_state=0).fit(X, y)
    >>> print(f"{np.sum(clf.transduction_ != truth)} of {len(X)} wrong")
    0 of 300 wrong
    """

    def __init__(
        self,
        kernel=None,
        *,
        mean=0.0,
        inference="map",
        selection="cv_error",
        length_scales=None,
        n_folds=10,
        missing_label=-1,
        tolerance=1e-9,
        n_draws=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.mean = mean
        self.inference = inference
        self.selection = selection
        self.length_scales = length_scales
        self.n_folds = n_folds
        self.missing_label = missing_label
        self.tolerance = tolerance
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y):
        """Label the unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels, with `missing_label` where they are unknown.

        Returns
        -------
        self
        """
        check_option("selection", self.selection, SELECTIONS)
        check_option("inference", self.inference, INFERENCES)
        check_folds(self.n_folds)
        check_draws(self.n_draws, self.inference)
        for earlier in FITTED:
            self.__dict__.pop(earlier, None)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.classes_, codes = known_class_numbers(y, self.missing_label, X, self)
        self.mean_ = class_values(self.mean, self.classes_, "mean", default=0.0)
        with threads.use(self.n_jobs):
            if (codes >= 0).all():
                return self._fit_supervised(X, codes)
            self._fit_unlabelled(X, codes)
        warn_if_trivial(self.transduction_[codes < 0], self.inference)
        return self

    def _fit_supervised(self, X, codes):
        """If all points are labelled, this is the supervised classifier."""
        selection = None if self.selection is None else "loo_error"
        options = {"length_scales": self.length_scales, "n_jobs": self.n_jobs, "verbose": self.verbose}
        classifier = LGCPClassifier(self.kernel, mean=self.mean, selection=selection, **options)
        self.classifier_ = classifier.fit(X, self.classes_[codes])
        self.kernel_ = self.classifier_.kernel_
        field = self._field(X, codes, class_kernels(self.kernel_, self.classes_))
        if self.inference == "map":
            self._set_result(field, codes)
        else:
            self._set_marginals(field, codes, None)
        return self

    def _fit_unlabelled(self, X, codes) -> None:
        """Choose the kernels, label the unlabelled points, and keep the classifier of new ones."""
        kernels = class_kernels(RBF(1.0) if self.kernel is None else self.kernel, self.classes_)
        field_covariances(kernels, len(kernels), X.shape[1])  # refuses wrong kernels before any work is done
        rng = generator(self.random_state)
        if self.selection is not None:
            kernels = self._choose(X, codes, kernels, rng)
        field = self._field(X, codes, kernels)
        if self.inference == "map":
            self._set_result(field, codes)
            if self.kernel is None and np.ptp(self.mean_) == 0:
                kernels = self._temper(X, codes, kernels)
        else:
            self._set_marginals(field, codes, draw(field, self.inference, self.n_draws, rng, self.verbose))
        self.kernel_ = shown_kernel(kernels, self.kernel, self.classes_)
        self.classifier_ = LGCPClassifier(self.kernel_, mean=self.mean, selection=None, n_jobs=self.n_jobs)
        self.classifier_._fit_distributions(X, self.label_distributions_, self.classes_)

    def _field(self, X, codes, kernels: PerClass) -> LabelField:
        return LabelField.from_points(X, kernels, codes, mean=self.mean_, n_classes=len(kernels))

    def _choose(self, X, codes, kernels: PerClass, rng) -> PerClass:
        """The kernels that cross validation of the labelled points prefers."""
        choice = Choice(X, codes, self.mean_, self.length_scales, self.kernel is not None, self.n_folds, self.verbose)
        if self.inference == "map":
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
        if self.inference == "marginals":  # draws of other inferences are independent
            self.r_hat_ = np.ones(shape[0])
            self.r_hat_[field.nodes] = 1.0 if samples is None else samples.r_hat.max(axis=1)
            warn_if_chains_disagree(self.r_hat_)

    def _set_distributions(self, codes, nodes, distributions) -> None:
        self.label_distributions_ = np.eye(len(self.classes_))[codes]  # rows without a label are set below
        self.label_distributions_[nodes] = distributions
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]

    @property
    def _precision(self):
        return self.classifier_._precision

    def _scores(self, X) -> Scores:
        """Scores of new points, with `label_distributions_` as data."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return self.classifier_._scores(X)
