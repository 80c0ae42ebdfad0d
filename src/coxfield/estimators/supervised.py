"""`LGCPClassifier`: the supervised log Gaussian Cox process classifier, section 'Supervised learning'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.engine.store import Labelled, store_bound, store_distributions, store_labels
from coxfield.estimators import labels, validation
from coxfield.estimators.guaranteed_sets import GuaranteedSets
from coxfield.estimators.in_parts import scores_in_parts
from coxfield.estimators.label_quality import LabelQuality
from coxfield.estimators.scored import ScoredClassifier
from coxfield.kernels.named_rows import rows_named
from coxfield.kernels.per_class import PerClass, class_kernels, class_values
from coxfield.kernels.recognise import recognise
from coxfield.kernels.sklearn_tree import rescale
from coxfield.progress import stages
from coxfield.selection.grid import candidate_factors, class_distance, length_scale_of
from coxfield.selection.learning.pseudo_likelihood import learn
from coxfield.selection.learning.start import starting_points
from coxfield.selection.loo import Search
from coxfield.selection.mixture.bank import bank_of
from coxfield.selection.mixture.learn import learn_mixture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.engine.decision import Scores

SELECTIONS = ("mixture", "loo_error", "loo_log_loss", "pseudo_likelihood", None)
ARRANGED = ("_store", "_covariances")
UNBOUNDED = (1e-307, 1e308)  # the prior limits the default kernel instead, in units of the data
FITTED = ("selection_path_", "learning_path_", "loo_error_", "mixture_")  # attributes that only some fits set


class LGCPClassifier(GuaranteedSets, LabelQuality, ScoredClassifier, BaseEstimator):
    r"""Classify by log Gaussian Cox processes, one per class: a probabilistic classifier in closed form.

    The probability of class i at x* is softmax(F)_i with

    .. math:: F_i = \mu_i + C_i(x^*, x^*)/2 + \sum_{x \in \text{class } i} C_i(x^*, x)

    (eqs predictiveDistribution and activationFunction). Fitting stores the points and chooses the covariance by
    closed-form leave-one-out. A prediction costs O(n) kernel values per member of the covariance.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, list, or mapping class -> kernel, default=None
        Covariance function. With `selection="mixture"` it is the bank from which the mixture chooses: a list of kernels
        and of `coxfield.kernels.Member`, which are kernels on a representation of the points; one kernel, which
        is taken along a path of length scales; or None for squared exponentials at all useful length scales, of the
        features as they are, standardised, and whitened. With other selections it is one kernel, shared or one per
        class, and None means `RBF(1.0)`. Products of constants with one `RBF`, `Matern` or `RationalQuadratic` use the
        fast path. Other kernels are called block by block.
    mean : float or mapping class -> float, default=0.0
        Means mu_i of the Gaussian processes: a prior bias between classes. Classes that a mapping does not name have
        mean 0.
    selection : {"mixture", "loo_error", "loo_log_loss", "pseudo_likelihood", None}, default="mixture"
        "mixture" learns the weights of a mixture of covariances, and the class means, by leave-one-out log
        probability. The problem is concave, so there is one optimum. Units of the features need no care.
        "loo_error" is the paper's rule. It multiplies the length scales by the factor with the least leave-one-out
        0-1 loss, and breaks ties by log loss. With the default kernel it also sets the signal variance by log loss.
        "loo_log_loss" chooses length scale and signal variance together by log loss.
        "pseudo_likelihood" learns the signal variance, the class means and all free parameters of one kernel, such as
        length scales per feature, under a weak prior and within the bounds of the kernel. Classes that are given the
        same kernel object share its parameters.
        None uses the kernel unchanged. Parameters with bounds "fixed" stay.
    length_scales : array-like, default=None
        Factors tried for the length scales; with the default kernel, the length scales themselves, in the units of each
        representation. None for those that fit the data: from twice the root mean square distance downwards, each
        shorter by sqrt(2).
    learn_mean : bool, default=True
        Whether "mixture" and "pseudo_likelihood" learn the means too, around `mean` (for "mixture", around `mean` plus
        the logarithms of the class shares). Give False if the means say something that the training points do not
        show, such as different class shares in new data.
    n_jobs : int, default=None
        Threads. None follows `joblib.parallel_config`; outside of it, None means as many threads as the BLAS uses for
        a matrix product. -1 means all processors.
    verbose : int, default=0
        Above 0, show the progress of the selection.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : kernel, Mixture, or dict class -> kernel
        The covariance in use.
    mean_ : ndarray of shape (n_classes,)
    mixture_ : dict of arrays
        With `selection="mixture"`, its members, ready for a data frame: "representation", "kernel", "length_scale",
        "alpha" (the power of the density that divides the kernel), "weight" and "share" (of the evidence).
        `coxfield.plotting.plot_mixture` draws it.
    selection_path_ : dict of arrays
        With "loo_error", "loo_log_loss" and "pseudo_likelihood", what was tried, ready for a data frame: "length_scale"
        (the factor, if there are several), "variance" (the factor), "loo_error", "loo_log_loss" and "chosen". With
        "pseudo_likelihood" the chosen entry is the start of learning, and the path is absent if the kernel is not a
        product of constants with one stationary kernel. `coxfield.plotting.plot_selection_path` draws it.
    learning_path_ : dict of arrays
        With "pseudo_likelihood", the steps of learning: "step", "log_pseudo_likelihood" and "log_posterior".
    loo_error_ : float
        Leave-one-out 0-1 loss of the fitted model, set by the selection; with a mixture and more than 10,000 points, of
        10,000 drawn at random. Absent with `selection=None`: `np.mean(clf.loo_predict() != y)` computes it.
    X_fit_, y_fit_ : the training points, and their class numbers
        Without the rows of weight zero.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Examples
    --------
    >>> from coxfield import LGCPClassifier
    >>> from coxfield.datasets import load_synth
    >>> synth = load_synth()
    >>> clf = LGCPClassifier().fit(synth.X_train, synth.y_train)
    >>> bool(clf.score(synth.X_test, synth.y_test) > 0.9)
    True
    """

    def __init__(
        self,
        kernel=None,
        *,
        mean=0.0,
        selection="mixture",
        length_scales=None,
        learn_mean=True,
        n_jobs=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.mean = mean
        self.selection = selection
        self.length_scales = length_scales
        self.learn_mean = learn_mean
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Store the labelled points and choose the parameters of the covariance.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            float32 is computed in float32, all other types in float64.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            A point of weight w counts as w points; if the largest is beyond 2^64 or below 2^-64, only their proportions
            count. Rows of weight zero are dropped.

        Returns
        -------
        self
        """
        validation.check_option("selection", self.selection, SELECTIONS)
        X, y = validation.check_labelled_points(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        given, weights = X, validation.check_weights(sample_weight, X)
        if weights is not None:
            kept = weights > 0
            X, y, weights = X[kept], y[kept], weights[kept]
        self.classes_, codes = labels.class_numbers(y, self)
        labelled = Labelled(X, codes, len(self.classes_), weights)
        self.mean_ = class_values(self.mean, self.classes_, "mean", default=0.0)
        for earlier in FITTED:
            self.__dict__.pop(earlier, None)
        with stages("fit", None, self.verbose), threads.use(self.n_jobs), rows_named({"training points": given}):
            kernels = self._mixed(labelled) if self.selection == "mixture" else self._chosen(labelled)
            self._keep(X, codes, weights, kernels)
            if self.selection == "pseudo_likelihood":
                self.loo_error_ = float(np.average(self._loo_scores().decisions != codes, weights=weights))
        return self

    def _fit_distributions(self, X, distributions: NDArray, classes: NDArray):
        """Store points with a weight for every class under the unchanged kernel."""
        X = validation.check_points(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.classes_ = classes
        self.mean_ = class_values(self.mean, classes, "mean", default=0.0)
        self._keep(X, distributions.argmax(axis=1), distributions, self._given_kernels())
        return self

    def _keep(self, X, codes, weights, kernels: PerClass) -> None:
        """Hold the points under the chosen kernels."""
        self.X_fit_, self.y_fit_ = X, codes
        self.kernel_ = validation.shown_kernel(kernels, self.kernel, self.classes_)
        self._arrange(weights, kernels)

    def _arrange(self, weights, kernels: PerClass) -> None:
        self._covariances = kernels.map(lambda kernel: recognise(kernel, self.X_fit_.shape[1]))
        self._weights = weights
        if hasattr(self, "mixture_"):
            self._store = store_bound([self.kernel_.bind_reference()], self.y_fit_, self._covariances, weights)
        elif weights is not None and weights.ndim == 2:
            self._store = store_distributions(self.X_fit_, weights, self._covariances)
        else:
            self._store = store_labels(self.X_fit_, self.y_fit_, self._covariances, weights)

    def __getstate__(self):
        # The arranged points repeat X_fit_ in another order. Files omit them; they are arranged again on loading.
        return {name: value for name, value in super().__getstate__().items() if name not in ARRANGED}

    def __setstate__(self, state):
        super().__setstate__(state)
        if "_weights" in state:
            self._arrange(self._weights, class_kernels(self.kernel_, self.classes_))

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
        search, distinct, distance = self._search(self.selection), kernels.distinct, class_distance(labelled, kernels)
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
        self.mean_, self.mixture_, self.loo_error_ = learned.mean, learned.table, learned.loo_error
        return PerClass.shared_by(learned.mixture, len(self.classes_))

    def _learn(self, labelled: Labelled, kernels: PerClass) -> PerClass:
        """The kernels with their free parameters learned by pseudo-likelihood; the means are learned too."""
        starts = starting_points(labelled, kernels, self._search("loo_log_loss"), self.length_scales)
        options = {"learn_mean": self.learn_mean, "verbose": self.verbose}
        learned = [learn(labelled, start.kernels, self.mean_, **options) for start in starts]
        best = int(np.argmax([end.path["log_posterior"][-1] for end in learned]))
        if starts[best].table:
            self.selection_path_ = starts[best].table
        self.mean_, self.learning_path_ = learned[best].mean, learned[best].path
        return learned[best].kernels

    @property
    def _precision(self):
        return self.X_fit_.dtype

    def _scores(self, X) -> Scores:
        check_is_fitted(self)
        X = validation.check_points(self, X, accept_sparse="csr", dtype=self.X_fit_.dtype, reset=False)
        return self._scores_of(validation.like(X, self.X_fit_))

    def _scores_of(self, X, leave_out: NDArray | None = None) -> Scores:
        with threads.use(self.n_jobs), rows_named({"queries": X, "training points": self.X_fit_}):
            return scores_in_parts(self._store, self._covariances, self.mean_, X, leave_out)

    def _loo_scores(self) -> Scores:
        check_is_fitted(self)
        return self._scores_of(self.X_fit_, np.arange(len(self.y_fit_)))

    def loo_class_scores(self):
        """`class_scores` of each training point from all the others, in closed form.

        A point is left out with all its weight. Otherwise a point of weight 2 would be predicted by its own copy, and
        the selection would choose the shortest length scale.
        """
        return self._returned(self._loo_scores().values)

    def loo_predict_proba(self):
        """`predict_proba` of each training point from all the others, in closed form."""
        return np.exp(self._returned(self._loo_scores().log_probabilities))

    def loo_predict(self):
        """`predict` for each training point from all the others, in closed form."""
        codes = self._loo_scores().decisions
        return self.classes_[codes]
